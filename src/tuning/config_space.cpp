#include "tuning/config_space.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "support/check.h"
#include "tuning/launch_config.h"

namespace stax::tuning {
namespace {

using codegen::LaunchConfig;
using codegen::ReductionHint;
using codegen::TileAxis;
using codegen::TileAxisKind;
using codegen::TileForm;
using codegen::TileKernel;

constexpr int64_t kMostValues = int64_t{1} << 20;  // of a block, by Triton
constexpr int32_t kMostWarps = 32;                 // 1024 threads
constexpr size_t kMostCandidates = 6;

/// What a configuration has beside the sizes of its blocks, in the order of the space's parameters.
constexpr struct {
  std::string_view name;
  int32_t LaunchConfig::*member;
} kSettings[] = {
    {"num_warps", &LaunchConfig::warps},
    {"num_stages", &LaunchConfig::stages},
    {codegen::kKeptBlocks, &LaunchConfig::kept},
    {codegen::kMostRegisters, &LaunchConfig::registers},
};
constexpr size_t kSettingCount = std::size(kSettings);

int64_t largest_block(const TileAxis& axis) {
  return std::min(codegen::facts_of(axis.kind).largest_block, axis.size_hint);
}

std::vector<int64_t> powers_of_two(int64_t last) {
  std::vector<int64_t> values;
  for (int64_t v = 1; v <= last; v *= 2) values.push_back(v);
  return values;
}

int64_t round_up_to_power_of_two(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

int64_t hint_of(const TileKernel& kernel, TileAxisKind kind) {
  const TileAxis* axis = kernel.axis(kind);
  return axis == nullptr ? 1 : axis->size_hint;
}

/// Blocks as wanted, cut to what the kernel has; warps by how many values each of them gets.
class Candidates {
 public:
  explicit Candidates(const TileKernel& kernel) : kernel_(kernel), space_(kernel) {}

  struct Wanted {
    int64_t z = 1, y = 1, x = 1, r0 = 1;
    int32_t warps = 0;       // 0: as many as the blocks need
    bool at_a_time = false;  // a staged loop loads nothing ahead
    int32_t kept = 0;        // blocks of a row, where the kernel keeps some
    int32_t registers = 0;   // of a thread at most, where the space has such configurations
  };

  void add(const Wanted& wanted) {
    LaunchConfig config;
    int64_t values = 1;
    for (const TileAxis& axis : kernel_.axes) {
      const int64_t sizes[] = {wanted.z, wanted.y, wanted.x, wanted.r0};
      const int64_t block =
          axis.block > 0 ? axis.block
                         : std::clamp<int64_t>(sizes[static_cast<size_t>(axis.kind)], 1, largest_block(axis));
      values *= block;
      if (axis.block == 0) config.blocks.emplace_back(codegen::facts_of(axis.kind).block, block);
    }
    config.warps = wanted.warps > 0 ? wanted.warps : warps_for(values);
    config.stages = wanted.at_a_time ? 1 : stages_for(kernel_, config);
    if (kernel_.keeps) {
      config.kept = std::min(wanted.kept, steps_of_row(config));
      config.registers = wanted.registers;
    }
    add(std::move(config));
  }

  void add(LaunchConfig config) {
    const auto same = [&](const LaunchConfig& c) { return to_string(c) == to_string(config); };
    if (configs_.size() < kMostCandidates && space_.contains(config) &&
        std::none_of(configs_.begin(), configs_.end(), same))
      configs_.push_back(std::move(config));
  }

  std::vector<LaunchConfig> take() { return std::move(configs_); }

 private:
  int32_t warps_for(int64_t values) const {
    const bool reduces = kernel_.form != TileForm::pointwise;
    const int64_t each = reduces ? 128 : 256;  // values of a warp
    const int64_t wanted = std::clamp<int64_t>(values / each, reduces ? 2 : 1, reduces ? 16 : 8);
    const int64_t least = values >= 128 && !reduces ? 4 : 1;
    return static_cast<int32_t>(round_up_to_power_of_two(std::max(wanted, least)));
  }

  int32_t steps_of_row(const LaunchConfig& config) const {
    const int64_t block = config.blocks.back().second;
    return static_cast<int32_t>((hint_of(kernel_, TileAxisKind::r0) + block - 1) / block);
  }

  const TileKernel& kernel_;
  ConfigSpace space_;
  std::vector<LaunchConfig> configs_;
};

void pointwise(const TileKernel& kernel, Candidates& out) {
  int64_t numel = 1;
  for (const TileAxis& axis : kernel.axes) numel *= axis.size_hint;
  const int64_t line = std::clamp<int64_t>(round_up_to_power_of_two(numel) / 128, 256, 1024);
  switch (kernel.axes.size()) {
    case 1:
      out.add({.x = line});
      out.add({.x = line / 2});
      out.add({.x = 2 * line});
      out.add({.x = 2 * line, .warps = 4});
      out.add({.x = 4 * line, .warps = 8});
      return;
    case 2:
      for (const auto& [y, x] : {std::pair{32, 32}, {64, 64}, {16, 256}, {256, 16}})
        out.add({.y = y, .x = x});
      out.add({.y = 1, .x = line});
      out.add({.y = line, .x = 1});
      return;
    default:
      out.add({.z = 16, .y = 16, .x = 16});
      out.add({.z = 8, .y = 8, .x = 64});
      out.add({.z = 8, .y = 64, .x = 8});
      out.add({.z = 64, .y = 8, .x = 8});
      out.add({.z = 1, .y = 1, .x = line});
  }
}

/// A sorting network is as many instructions as a block has elements for each thread, and takes Triton as
/// long: few candidates.
void sorted(const TileKernel& kernel, Candidates& out) {
  const LaunchConfig usual = default_config(kernel);
  const int64_t x = usual.blocks.back().second;
  out.add({.x = x, .warps = 2 * usual.warps});
  if (x == 1) return;
  out.add({.x = x / 2, .warps = usual.warps});
  out.add({.x = x / 2, .warps = std::max(usual.warps / 2, 1)});
}

void persistent(const TileKernel& kernel, Candidates& out) {
  if (sorts(kernel)) {
    sorted(kernel, out);
    return;
  }
  // Of a form for shorter rows the block is shorter than the hint.
  const int64_t r0 = kernel.axis(TileAxisKind::r0)->block;
  if (r0 >= 512 && kernel.hint == ReductionHint::inner) {
    // One row, or two, by as many warps as leave a thread 4 values of a row up to 16.
    const auto warps = static_cast<int32_t>(r0 / 256);
    out.add({.x = 1, .warps = warps});
    out.add({.x = 2, .warps = warps});
    out.add({.x = 1, .warps = 2 * warps});
    out.add({.x = 1, .warps = std::max(warps / 2, 1)});
    out.add({.x = 2, .warps = 2 * warps});
    return;
  }
  if (kernel.hint == ReductionHint::outer_tiny) out.add({.x = std::max<int64_t>(2 * (256 / r0), 1)});
  for (const int64_t x : {8, 1, 32, 128})
    if (x == 1 || x * r0 <= 4096) out.add({.x = x});
  if (r0 >= 512) out.add({.x = 1, .warps = 8});
}

bool scans(const std::vector<codegen::TileStatement>& statements) {
  return std::ranges::any_of(statements, [](const codegen::TileStatement& s) {
    return s.action == codegen::TileAction::scan || scans(s.body);
  });
}

/// Blocks of scans are combined across warps, step by step: few warps wait less for each other. (On an H200,
/// columns of 512 float32 in blocks of 32x64: 0.210 ms by 4 warps, 0.340 ms by 8.)
void looped_scan(const TileKernel& kernel, Candidates& out) {
  if (kernel.hint == ReductionHint::inner) {
    for (const auto& [block, warps] : {std::pair{1024, 4}, {4096, 4}, {2048, 4}, {8192, 8}})
      out.add({.x = 1, .r0 = block, .warps = warps});
    return;
  }
  for (const auto& [columns, rows, warps] : {std::tuple{32, 64, 4}, {16, 64, 4}, {32, 128, 8}, {8, 256, 8}})
    out.add({.x = columns, .r0 = rows, .warps = warps});
}

void looped(const TileKernel& kernel, Candidates& out) {
  if (scans(kernel.body)) {
    looped_scan(kernel, out);
    return;
  }
  const int64_t x = hint_of(kernel, TileAxisKind::x), r0 = hint_of(kernel, TileAxisKind::r0);
  switch (kernel.hint) {
    case ReductionHint::inner:
      if (r0 <= 1024) {
        for (const auto& [rows, warps] : {std::pair{1, 4}, {1, 2}, {2, 4}, {2, 2}, {1, 8}})
          out.add({.x = rows, .r0 = r0, .warps = warps});
        return;
      }
      if (r0 <= 4096) {
        // The whole row in one block: it stays in registers, or is read again out of the nearest cache.
        if (kernel.keeps) out.add({.x = 1, .r0 = r0, .warps = 8, .kept = 1});
        for (const auto& [rows, warps] : {std::pair{1, 4}, {2, 16}, {1, 16}, {2, 8}})
          out.add({.x = rows, .r0 = r0, .warps = warps});
        out.add({.x = 1, .r0 = r0 / 2, .warps = 8});
        return;
      }
      if (kernel.keeps) {
        // Two instances of a processor, which leave each other time to wait for memory, or one that keeps so
        // much of a row that little is read again.
        out.add({.x = 1, .r0 = 16384, .warps = 16, .registers = 64});
        out.add({.x = 1, .r0 = 8192, .warps = 8, .kept = 1, .registers = 128});
        out.add({.x = 1, .r0 = 16384, .warps = 16, .kept = 2});
        out.add({.x = 1, .r0 = 8192, .warps = 8});
        out.add({.x = 1, .r0 = 4096, .warps = 4});
        return;
      }
      for (const auto& [block, warps] : {std::pair{4096, 4}, {4096, 16}, {2048, 16}, {8192, 32}, {4096, 8}})
        out.add({.x = 1, .r0 = block, .warps = warps});
      return;
    case ReductionHint::outer:
      // Few columns and many rows at a time, or many columns.
      out.add({.x = 8, .r0 = 256, .warps = 8});
      out.add({.x = 16, .r0 = 128, .warps = 8});
      out.add({.x = 32, .r0 = 64, .warps = 8});
      out.add({.x = x <= 1024 ? std::clamp<int64_t>(x / 128, 2, 8) : 16, .r0 = 64, .at_a_time = true});
      out.add({.x = 64, .r0 = 64, .warps = 16});
      return;
    case ReductionHint::outer_tiny:
      out.add({.x = r0 <= 256 ? 2 * (256 / r0) : 1, .r0 = std::min<int64_t>(r0, 2048)});
      [[fallthrough]];
    case ReductionHint::normal:
      out.add({.x = 64, .r0 = 64});
      out.add({.x = 8, .r0 = 512});
      out.add({.x = 1, .r0 = 2048});
      out.add({.x = 64, .r0 = 4, .warps = 8});
      out.add({.x = 32, .r0 = 128});
  }
}

}  // namespace

ConfigSpace::ConfigSpace(const TileKernel& kernel) {
  for (const TileAxis& axis : kernel.axes) {
    if (axis.block > 0) {
      fixed_ *= axis.block;
    } else {
      parameters_.push_back(
          {std::string(codegen::facts_of(axis.kind).block), powers_of_two(largest_block(axis))});
    }
  }
  std::vector<int64_t> values[kSettingCount] = {powers_of_two(kMostWarps), {1}, {0}, {0}};
  if (kernel.staged) values[1] = {1, 2, 3, 4, 6, 8};
  if (kernel.keeps) {
    values[2] = {0, 1, 2, 3, 4, 6};
    values[3] = {0, 64, 128};
  }
  for (size_t k = 0; k < kSettingCount; ++k)
    parameters_.push_back({std::string(kSettings[k].name), std::move(values[k])});
}

int64_t ConfigSpace::value(const LaunchConfig& config, size_t i) const {
  const size_t blocks = block_count();
  return i < blocks ? config.blocks[i].second : config.*kSettings[i - blocks].member;
}

LaunchConfig ConfigSpace::with(LaunchConfig config, size_t i, int64_t value) const {
  if (i < block_count())
    config.blocks[i].second = value;
  else
    config.*kSettings[i - block_count()].member = static_cast<int32_t>(value);
  return config;
}

bool ConfigSpace::fits(const LaunchConfig& config) const {
  int64_t values = fixed_;
  for (const auto& [name, block] : config.blocks) values *= block;
  return values * (1 + config.kept) <= kMostValues;
}

bool ConfigSpace::contains(const LaunchConfig& config) const {
  if (config.blocks.size() != block_count()) return false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (i < config.blocks.size() && config.blocks[i].first != p.name) return false;
    if (!std::binary_search(p.values.begin(), p.values.end(), value(config, i))) return false;
  }
  return fits(config);
}

std::optional<LaunchConfig> ConfigSpace::neighbour(const LaunchConfig& config, size_t i, bool up) const {
  const std::vector<int64_t>& values = parameters_[i].values;
  auto at = std::lower_bound(values.begin(), values.end(), value(config, i));
  if (up ? at == values.end() || ++at == values.end() : at == values.begin()) return std::nullopt;
  LaunchConfig next = with(config, i, up ? *at : *--at);
  return fits(next) ? std::optional(std::move(next)) : std::nullopt;
}

LaunchConfig ConfigSpace::draw(std::mt19937_64& random) const {
  while (true) {
    LaunchConfig config;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& p = parameters_[i];
      const size_t last = p.values.size() - 1;
      if (i < block_count()) config.blocks.emplace_back(p.name, 0);
      config = with(std::move(config), i, p.values[std::uniform_int_distribution<size_t>(0, last)(random)]);
    }
    if (fits(config)) return config;
  }
}

int64_t ConfigSpace::size() const {
  // Walks the blocks and, last, those kept; the other settings do not change what fits.
  const size_t blocks = block_count();
  const std::function<int64_t(size_t, int64_t)> count = [&](size_t i, int64_t values) -> int64_t {
    if (values > kMostValues) return 0;
    if (i == blocks)
      return std::ranges::count_if(parameters_[blocks + 2].values,
                                   [&](int64_t kept) { return values * (1 + kept) <= kMostValues; });
    int64_t n = 0;
    for (const int64_t v : parameters_[i].values) n += count(i + 1, values * v);
    return n;
  };
  const auto choices = [&](size_t i) { return static_cast<int64_t>(parameters_[i].values.size()); };
  return count(0, fixed_) * choices(blocks) * choices(blocks + 1) * choices(blocks + 3);
}

size_t ConfigSpace::block_count() const {
  return parameters_.size() - kSettingCount;
}

std::vector<LaunchConfig> candidates(const TileKernel& kernel) {
  if (kernel.batch_invariant) return {default_config(kernel)};
  Candidates out(kernel);
  out.add(default_config(kernel));
  switch (kernel.form) {
    case TileForm::pointwise:
      pointwise(kernel, out);
      break;
    case TileForm::persistent:
      persistent(kernel, out);
      break;
    case TileForm::looped:
      looped(kernel, out);
      break;
  }
  return out.take();
}

std::string to_string(const LaunchConfig& config) {
  std::string text;
  for (const auto& [name, block] : config.blocks) text += fmt::format("{}={} ", name, block);
  text += fmt::format("num_warps={} num_stages={}", config.warps, config.stages);
  if (config.kept > 0) text += fmt::format(" {}={}", codegen::kKeptBlocks, config.kept);
  if (config.registers > 0) text += fmt::format(" {}={}", codegen::kMostRegisters, config.registers);
  return text;
}

}  // namespace stax::tuning
