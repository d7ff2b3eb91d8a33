// Calls of exported programs.
#include <algorithm>

#include "capture/traced_tensor.h"
#include "compiler/export_state.h"
#include "compiler/size_text.h"
#include "support/check.h"
#include "support/plural.h"
#include "tensor/element.h"

namespace stax {
namespace detail {

using compiler::CompiledProgram;
using compiler::ConditionList;
using compiler::ExportContract;
using compiler::ExportInput;
using compiler::ExportPlace;
using compiler::ExportSymbol;
using compiler::LinearSize;

namespace {

constexpr size_t kMaxArtifacts = 16;

bool within(const Interval& interval, int64_t value) {
  return (!interval.lower || value >= *interval.lower) && (!interval.upper || value <= *interval.upper);
}

}  // namespace

ExportedState::ExportedState(ExportContract given, capture::Captured graph)
    : contract(std::move(given)), captured(std::move(graph)), assertions(contract.assertions) {
  for (size_t k = 0; k < contract.symbols.size(); ++k) {
    places.push_back(contract.place_of(Symbol{SymbolKind::size, static_cast<int32_t>(k)}));
  }
  keeps_memory.assign(contract.inputs.size(), 0);
  const auto keep = [&](int32_t input) {
    const int32_t argument = captured.inputs[static_cast<size_t>(input)].argument;
    if (argument >= 0) keeps_memory[static_cast<size_t>(argument)] = 1;
  };
  for (const graph::WriteBack& w : captured.graph.write_backs) keep(w.input);
  for (const capture::CapturedOutput& output : captured.outputs) {
    if (output.same_as < 0 && output.argument < 0 && output.input >= 0) keep(output.input);
  }
}

bool ExportedState::Artifact::fits(const ExportContract& contract, std::span<const int64_t> values) const {
  for (size_t k = 0; k < values.size(); ++k) {
    const auto known = fixed.find(Symbol{SymbolKind::size, static_cast<int32_t>(k)});
    if (known != fixed.end() ? known->second != values[k] : !within(contract.symbols[k].assumed, values[k])) {
      return false;
    }
  }
  return conditions.first_failed(values) == ConditionList::kNone;
}

ExportedState::ArtifactPtr ExportedState::make(std::map<Symbol, int64_t> fixed) const {
  std::shared_ptr<ShapeEnv> env = compiler::environment_of(contract, fixed);
  if (!env) return nullptr;
  auto artifact = std::make_shared<Artifact>();
  std::optional<capture::Captured> graph;
  try {
    graph = compiler::rebuilt(captured, fixed, env, contract.late);
  } catch (const UserError& error) {
    throw_user_error(fmt::format("an exported program does not hold for these sizes: {}", error.what()));
  }
  artifact->program =
      CompiledProgram::make(std::move(*graph), compiler::PipelineOptions{compiler::Backend::native, false});
  artifact->fixed = std::move(fixed);
  std::vector<Condition> conditions;
  for (const Guard& guard : env->guards()) conditions.push_back(guard.condition);
  artifact->conditions = ConditionList(conditions);
  return artifact;
}

ExportedState::ArtifactPtr ExportedState::main_artifact() const {
  const std::lock_guard lock(mutex_);
  for (const ArtifactPtr& artifact : artifacts_) {
    if (artifact->fixed.empty()) return artifact;
  }
  ArtifactPtr made = make({});
  if (made) artifacts_.push_back(made);
  return made;
}

/// Sizes 0 and 1, for which the graph was not recorded but holds, get programs of their own; and so do sizes
/// at which a decision of the compiler does not hold.
ExportedState::ArtifactPtr ExportedState::artifact_for(std::span<const int64_t> values) const {
  const std::lock_guard lock(mutex_);
  const auto find = [&]() -> ArtifactPtr {
    for (const ArtifactPtr& artifact : artifacts_) {
      if (artifact->fits(contract, values)) return artifact;
    }
    return nullptr;
  };
  if (ArtifactPtr known = find()) return known;
  std::map<Symbol, int64_t> all, outside;
  for (size_t k = 0; k < values.size(); ++k) {
    const Symbol symbol{SymbolKind::size, static_cast<int32_t>(k)};
    all.emplace(symbol, values[k]);
    if (!within(contract.symbols[k].assumed, values[k])) outside.emplace(symbol, values[k]);
  }
  const bool tried =
      std::ranges::any_of(artifacts_, [&](const ArtifactPtr& a) { return a->fixed == outside; });
  ArtifactPtr made = tried ? nullptr : make(outside);
  if (!made || !made->fits(contract, values)) made = make(all);
  if (artifacts_.size() < kMaxArtifacts) artifacts_.push_back(made);
  return made;
}

namespace {

/// One call of an exported program.
class ExportedCall {
 public:
  ExportedCall(const ExportedState& state, const Leaves& leaves)
      : state_(state), contract_(state.contract), leaves_(leaves) {}

  std::vector<Tensor> run() {
    check_arguments();
    bind();
    check_sizes();
    check_assertions();
    const ExportedState::ArtifactPtr artifact = state_.artifact_for(values_);
    place_arguments();
    check_regions();
    std::vector<Tensor> results(artifact->program->result_count());
    std::vector<int64_t> integers(state_.captured.integers.size());
    artifact->program->run(pointers_, {}, results.data(), values_, integers.data());
    check_parts(results);
    for (const int64_t value : integers) {
      results.push_back(new_tensor(DType::int64, std::span<const int64_t>()));
      fill_elements(strided(results.back()).view(), Scalar(value));
    }
    return results;
  }

 private:
  const StridedImpl& tensor(size_t k) const { return strided(*leaves_.tensors[k]); }
  int64_t size_at(const ExportPlace& place) const {
    return tensor(static_cast<size_t>(place.input)).size(place.dim);
  }
  std::string where(const ExportPlace& place) const {
    return fmt::format("dimension {} of {}", place.dim,
                       contract_.inputs[static_cast<size_t>(place.input)].name);
  }

  void check_arguments() const {
    STAX_CHECK(leaves_.numbers.size() == 0 && leaves_.integers.size() == 0,
               "an exported program is called with numbers, which are constants of it; leave them out");
    STAX_CHECK(leaves_.tensors.size() == contract_.inputs.size(),
               "an exported program of {} tensors is called with {}", contract_.inputs.size(),
               leaves_.tensors.size());
    for (size_t k = 0; k < contract_.inputs.size(); ++k) {
      const ExportInput& input = contract_.inputs[k];
      const StridedImpl& given = tensor(k);
      STAX_CHECK(given.dim() == input.meta.dim(),
                 "{}: the program was exported for a tensor of rank {}, got rank {}", input.name,
                 input.meta.dim(), given.dim());
      STAX_CHECK(given.dtype() == input.meta.dtype, "{}: the program was exported for {}, got {}", input.name,
                 name(input.meta.dtype), name(given.dtype()));
      STAX_CHECK(given.device() == input.meta.device,
                 "{}: the program was exported for the device {}, got {}", input.name,
                 input.meta.device.str(), given.device().str());
    }
  }

  /// The symbols' values, within their declared ranges.
  void bind() {
    for (size_t s = 0; s < contract_.symbols.size(); ++s) {
      const ExportSymbol& symbol = contract_.symbols[s];
      const ExportPlace place = state_.places[s];
      const Expr size =
          contract_.inputs[static_cast<size_t>(place.input)].meta.sizes[static_cast<size_t>(place.dim)];
      const LinearSize form = *compiler::linear_size(size);
      const int64_t rest = size_at(place) - form.offset;
      STAX_CHECK(rest % form.scale == 0, "{} is declared as {}, got {}, which is not of that form",
                 where(place), text(size), size_at(place));
      const int64_t value = rest / form.scale;
      STAX_CHECK(within(symbol.declared, value), "{}: {} is declared within {}, got {}", where(place),
                 contract_.symbol_text(form.symbol), symbol.declared.str(),
                 form.scale == 1 && form.offset == 0
                     ? fmt::format("{}", value)
                     : fmt::format("{} (the size is {})", value, size_at(place)));
      values_.push_back(value);
    }
  }

  void check_sizes() const {
    for (size_t k = 0; k < contract_.inputs.size(); ++k) {
      const std::vector<Expr>& sizes = contract_.inputs[k].meta.sizes;
      for (size_t d = 0; d < sizes.size(); ++d) {
        const ExportPlace place{static_cast<int32_t>(k), static_cast<int32_t>(d)};
        const int64_t expected = value(sizes[d]), got = size_at(place);
        if (expected == got) continue;
        if (sizes[d].is_constant()) {
          throw_user_error(fmt::format("{}: the program was exported for the size {}, got {}", where(place),
                                       expected, got));
        }
        const Symbol symbol = sizes[d].symbols()[0];
        throw_user_error(fmt::format("{} is declared as {}, which is {} by {}, got {}", where(place),
                                     text(sizes[d]), expected,
                                     where(state_.places[static_cast<size_t>(symbol.number)]), got));
      }
    }
  }

  void check_assertions() const {
    const int32_t failed = state_.assertions.first_failed(values_);
    if (failed == ConditionList::kNone) return;
    STAX_CHECK(failed != ConditionList::kOverflow,
               "an exported program is called with sizes whose products leave 64 bits: {}",
               compiler::size_text(state_.captured, values_));
    const Condition& c = contract_.assertions[static_cast<size_t>(failed)];
    std::string message =
        fmt::format("an exported program holds only where {}",
                    compiler::text_of(c, [&](Symbol s) { return contract_.source_text(s); }));
    std::vector<Symbol> symbols = c.left.symbols();
    for (const Symbol s : c.right.symbols()) {
      if (std::ranges::find(symbols, s) == symbols.end()) symbols.push_back(s);
    }
    for (size_t k = 0; k < symbols.size(); ++k) {
      message += fmt::format("{} {} is {}", k == 0 ? ", but" : " and", contract_.source_text(symbols[k]),
                             values_[static_cast<size_t>(symbols[k].number)]);
    }
    throw_user_error(message);
  }

  /// Tensors in the memory order of the example; copies of those that lie in another.
  void place_arguments() {
    for (size_t k = 0; k < contract_.inputs.size(); ++k) pointers_.push_back(leaves_.tensors[k]);
    check_memory();
    copies_.resize(pointers_.size());
    for (size_t k = 0; k < pointers_.size(); ++k) {
      const StridedImpl& given = tensor(k);
      const graph::TensorMeta& meta = contract_.inputs[k].meta;
      bool fits = state_.captured.offset_matters[k] == 0 || given.offset() == SymInt(0);
      bool empty = false;
      for (int64_t d = 0; d < given.dim(); ++d) empty = empty || given.size(d) == 0;
      for (size_t d = 0; d < meta.strides.size() && !empty; ++d) {
        const auto dim = static_cast<int64_t>(d);
        fits = fits && (given.size(dim) == 1 || given.stride(dim) == value(meta.strides[d]));
      }
      if (fits) continue;
      STAX_CHECK(
          state_.keeps_memory[k] == 0,
          "{}: the program writes to it or returns a view of it, and was exported for another order in "
          "memory; give a tensor that lies as the example did",
          contract_.inputs[k].name);
      std::vector<int64_t> sizes, strides;
      int64_t bytes = itemsize(meta.dtype);
      for (size_t d = 0; d < meta.sizes.size(); ++d) {
        sizes.push_back(value(meta.sizes[d]));
        STAX_CHECK(!__builtin_mul_overflow(bytes, sizes.back(), &bytes),
                   "an exported program is called with sizes whose products leave 64 bits: {}",
                   compiler::size_text(state_.captured, values_));
        strides.push_back(value(meta.strides[d]));
      }
      copies_[k] = new_tensor(meta.dtype, extents_of(sizes, strides));
      copy_elements(given.view(), strided(copies_[k]).view());
      pointers_[k] = &copies_[k];
    }
  }

  /// A tensor that is written shares no memory with another one: the example's did not.
  void check_memory() const {
    if (state_.captured.graph.write_backs.empty()) return;
    for (const graph::WriteBack& w : state_.captured.graph.write_backs) {
      const auto written = static_cast<size_t>(state_.captured.inputs[static_cast<size_t>(w.input)].argument);
      for (size_t k = 0; k < contract_.inputs.size(); ++k) {
        STAX_CHECK(k == written || tensor(k).storage_id() != tensor(written).storage_id(),
                   "{} shares memory with {}, which the exported program writes to; clone it",
                   contract_.inputs[k].name, contract_.inputs[written].name);
      }
      STAX_CHECK(!tensor(written).may_overlap_itself(),
                 "{}: the exported program writes to it, and several of its elements lie at one place",
                 contract_.inputs[written].name);
    }
  }

  /// What follows from a file is not believed where it reaches into memory.
  void check_regions() const {
    for (const graph::WriteBack& w : state_.captured.graph.write_backs) {
      if (!w.region) continue;
      const capture::CapturedInput& input = state_.captured.inputs[static_cast<size_t>(w.input)];
      const auto written = static_cast<size_t>(input.argument);
      std::vector<int64_t> sizes, strides;
      for (const Expr e : w.region->sizes) sizes.push_back(value(e));
      for (const Expr e : w.region->strides) strides.push_back(value(e));
      const auto [low, high] = capture::reach(sizes, strides, input.start + value(w.region->offset));
      STAX_CHECK(low == high || (low >= 0 && high <= tensor(written).element_count()),
                 "an exported program writes outside {}", contract_.inputs[written].name);
    }
  }
  /// Results that are parts of a storage lie in it.
  void check_parts(const std::vector<Tensor>& results) const {
    for (size_t k = 0; k < state_.captured.outputs.size(); ++k) {
      const capture::CapturedOutput& output = state_.captured.outputs[k];
      if (output.whole || output.output < 0) continue;
      const StridedImpl& part = strided(results[k]);
      std::vector<int64_t> sizes, strides;
      for (int64_t d = 0; d < part.dim(); ++d) {
        sizes.push_back(part.size(d));
        strides.push_back(part.stride(d));
      }
      const auto [low, high] = capture::reach(sizes, strides, part.offset());
      STAX_CHECK(low == high || (low >= 0 && high <= part.storage()->bytes() / itemsize(part.dtype())),
                 "result {} of an exported program reaches outside its memory", k);
    }
  }

  int64_t value(Expr e) const {
    if (const auto constant = e.constant()) return *constant;
    if (e.kind() == ExprKind::symbol) return values_[static_cast<size_t>(e.symbol().number)];
    return evaluate(e, [&](Symbol s) { return values_[static_cast<size_t>(s.number)]; });
  }
  std::string text(Expr e) const {
    return to_string(e, [&](Symbol s) { return contract_.symbol_text(s); });
  }

  const ExportedState& state_;
  const ExportContract& contract_;
  const Leaves& leaves_;
  std::vector<int64_t> values_;
  std::vector<const Tensor*> pointers_;
  std::vector<Tensor> copies_;
};

}  // namespace
}  // namespace detail

ExportedResults::operator Tensor() const {
  STAX_CHECK(tensors_.size() == 1, "an exported program returns {} where one was expected",
             counted(tensors_.size(), "tensor"));
  return tensors_[0];
}

ExportedResults ExportedProgram::run(const detail::Leaves& leaves) const {
  STAX_CHECK(!detail::is_tracing(),
             "an exported program is called while a function is traced; call the "
             "function that it was exported from");
  return ExportedResults(detail::ExportedCall(*state_, leaves).run());
}

std::string ExportedProgram::graph() const {
  return compiler::program_text(state_->contract, state_->captured);
}

std::string ExportedProgram::target() const {
  const auto artifact = state_->main_artifact();
  return artifact ? artifact->program->stages().target : "";
}

}  // namespace stax
