#include "runtime/plan_executor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "device/cuda_device.h"
#include "runtime/external_call.h"
#include "runtime/host_views.h"
#include "runtime/index_error.h"
#include "runtime/prepared_plan.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::runtime {

using codegen::KernelStatus;
using loops::BufferId;

/// The arrays of one call, laid out once and used by one call at a time.
struct PlanExecutor::Frame {
  explicit Frame(const PreparedPlan& plan)
      : numbers(plan.numbers.program.initial().begin(), plan.numbers.program.initial().end()),
        base(plan.plan.buffers.size()),
        pointers(plan.pointers),
        sizes(plan.sizes),
        blocks(plan.kernels.size()) {
    for (const auto& [buffer, data] : plan.constants) base[buffer] = data;
    for (const codegen::PlanExternal& call : plan.plan.externals) externals.emplace_back(call);
  }

  std::vector<int64_t> numbers;                               // by NumberId
  std::vector<void*> base;                                    // by buffer: element 0
  std::vector<void*> pointers;                                // arguments of all kernels
  std::vector<long> sizes;                                    // size symbols of all kernels
  std::vector<std::unique_ptr<codegen::LaunchBlock>> blocks;  // by kernel: what its runner keeps
  std::vector<ExternalViews> externals;                       // by external
};

/// Frames that no call uses at the moment; as many are kept as calls usually overlap.
struct PlanExecutor::Frames {
  std::array<std::atomic<Frame*>, 8> spare{};

  std::unique_ptr<Frame> take() {
    for (auto& s : spare) {
      if (s.load(std::memory_order_relaxed) == nullptr) continue;
      if (Frame* frame = s.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Frame>(frame);
    }
    return nullptr;
  }
  void keep(std::unique_ptr<Frame> frame) {
    for (auto& s : spare) {
      Frame* empty = nullptr;
      if (s.compare_exchange_strong(empty, frame.get(), std::memory_order_release,
                                    std::memory_order_relaxed)) {
        frame.release();
        return;
      }
    }
  }
  ~Frames() {
    for (auto& s : spare) delete s.load();
  }
};

namespace {

/// A kernel's launch, as the thread pool hands it on.
struct LaunchContext {
  codegen::KernelEntry entry;
  void* const* buffers;
  int32_t buffer_count;
  const long* sizes;
  const void* scalars;
  long* status;
  int64_t scratch_bytes;
  device::Allocator* allocator;
};

/// One thread's part of a kernel that wants scratch: the pointers, with the thread's own one more.
void launch_with_scratch(const LaunchContext& c, long begin, long end) {
  const int64_t pointer_bytes = (c.buffer_count + 1) * static_cast<int64_t>(sizeof(void*));
  const int64_t scratch = (c.scratch_bytes + 63) / 64 * 64, total = scratch + pointer_bytes;
  const auto run = [&](std::byte* memory) {
    void** pointers = reinterpret_cast<void**>(memory + scratch);
    std::copy_n(c.buffers, c.buffer_count, pointers);
    pointers[c.buffer_count] = memory;
    c.entry(pointers, c.sizes, c.scalars, c.status, begin, end);
  };
  constexpr int64_t kOnStack = 16 << 10;
  if (total <= kOnStack) {
    alignas(64) std::byte memory[kOnStack];
    return run(memory);
  }
  struct Block {
    device::Allocator* allocator;
    int64_t bytes;
    std::byte* data = static_cast<std::byte*>(allocator->allocate(bytes));
    ~Block() { allocator->deallocate(data, bytes); }
  } block{c.allocator, total};
  run(block.data);
}

void launch_part(void* context, int64_t begin, int64_t end) {
  const LaunchContext& c = *static_cast<const LaunchContext*>(context);
  if (c.scratch_bytes > 0) return launch_with_scratch(c, begin, end);
  c.entry(c.buffers, c.sizes, c.scalars, c.status, begin, end);
}

}  // namespace

/// One call.
class PlanExecutor::Run {
 public:
  Run(const PreparedPlan& plan, Frame& frame, const RunInputs& in, RunOutputs& out)
      : plan_(plan), frame_(frame), in_(in), out_(out) {}
  ~Run() {
    if (arena_) plan_.machine.allocator->deallocate(arena_, number(plan_.arena_bytes));
    for (const Block& b : blocks_) plan_.machine.allocator->deallocate(b.data, b.bytes);
    if (finished_) return;
    for (OutputTensor& t : out_.tensors) {
      plan_.machine.allocator->deallocate(t.data, t.bytes);
      t = {};
    }
  }

  void execute() {
    start();
    for (const Step& step : plan_.steps) {
      switch (step.kind) {
        case Step::Kind::check_input:
          if (in_.symbols.empty()) check_input(step.index);
          break;
        case Step::Kind::arena:
          arena_ = static_cast<std::byte*>(plan_.machine.allocator->allocate(number(plan_.arena_bytes)));
          break;
        case Step::Kind::slot:
          frame_.base[plan_.slots[step.index].buffer] = arena_ + number(plan_.slots[step.index].offset);
          break;
        case Step::Kind::output:
          allocate_output(step.index);
          break;
        case Step::Kind::launch:
          launch(chosen(step.index));
          break;
        case Step::Kind::external:
          call_external(step.index);
          break;
        case Step::Kind::late:
          frame_.base[step.index] = allocate_block(step.index, number(plan_.late_bytes[step.index]));
          break;
        case Step::Kind::dynamic:
          call_dynamic(step.index);
          break;
        case Step::Kind::assertion:
          check_assertion(step.index);
          break;
        case Step::Kind::release:
          release(step.index);
          break;
      }
    }
    if (status_.flag) throw_index_error(status_, plan_.plan.origins, plan_.plan.places);
    finished_ = true;
  }

 private:
  int64_t number(NumberId id) const { return frame_.numbers[id]; }

  void start();
  void bind_symbols();
  int64_t symbol_value(Symbol symbol) const;
  void check_input(int32_t k) const;
  void allocate_output(int32_t k);
  const PreparedKernel& chosen(int32_t k) const;
  int64_t grain_of(const PreparedPhase& phase) const;
  void launch(const PreparedKernel& kernel);
  /// The arguments and results of an external call, over this call's memory.
  ExternalViews& views_of(int32_t k);
  void call_external(int32_t k);
  void call_dynamic(int32_t k);
  void bind_late(int32_t k, std::span<const TensorView> results);
  void check_assertion(int32_t k) const;
  /// Memory of its own for a buffer, until it is released or the call ends.
  void* allocate_block(BufferId buffer, int64_t bytes);
  void release(BufferId buffer);
  int64_t evaluated(Expr e) const {
    if (e.is_constant()) return e.value();
    return evaluate(e, [this](Symbol s) { return symbol_value(s); });
  }

  const PreparedPlan& plan_;
  Frame& frame_;
  const RunInputs& in_;
  RunOutputs& out_;
  struct Block {
    BufferId buffer;
    void* data;
    int64_t bytes;
  };
  std::vector<Block> blocks_;
  std::byte* arena_ = nullptr;
  bool finished_ = false;
  KernelStatus status_;
};

void PlanExecutor::Run::start() {
  // What is wrong with the number of arguments is a fault of the caller inside Stax: users' arguments are
  // counted before.
  STAX_ASSERT(in_.tensors.size() == plan_.inputs.size() && out_.tensors.size() == plan_.outputs.size() &&
                  in_.scalars.size() == plan_.plan.scalars.size(),
              "[plan] a call with {} inputs, {} outputs and {} scalars, the plan has {}, {} and {}",
              in_.tensors.size(), out_.tensors.size(), in_.scalars.size(), plan_.inputs.size(),
              plan_.outputs.size(), plan_.plan.scalars.size());
  for (OutputTensor& t : out_.tensors) t = {};
  for (size_t k = 0; k < plan_.inputs.size(); ++k) {
    frame_.base[plan_.inputs[k].buffer] = in_.tensors[k].data;
  }
  if (plan_.fixed()) return;
  bind_symbols();
  if (!in_.symbols.empty()) return;
  size_t total = 0;
  for (const PreparedOutput& o : plan_.outputs) total += 2 * o.sizes.size();
  out_.numbers.clear();
  out_.numbers.reserve(total);  // so that spans into it stay valid
}

/// The value of a size symbol, read from where the plan binds it.
int64_t PlanExecutor::Run::symbol_value(Symbol symbol) const {
  using Part = loops::SymbolBinding::Part;
  if (symbol.kind == SymbolKind::unbacked) return out_.late[static_cast<size_t>(symbol.number)];
  if (!in_.symbols.empty()) return in_.symbols[static_cast<size_t>(symbol.number)];
  for (const loops::SymbolBinding& b : plan_.bindings) {
    if (!(b.symbol == symbol)) continue;
    if (b.part == Part::value) {
      STAX_ASSERT(b.input < static_cast<int32_t>(in_.integers.size()), "[plan] no integer argument {}",
                  b.input);
      return in_.integers[b.input];
    }
    const InputTensor& t = in_.tensors[b.input];
    const std::span<const int64_t> list = b.part == Part::size ? t.sizes : t.strides;
    STAX_CHECK(b.dim < static_cast<int32_t>(list.size()),
               "[call] input {}: expected at least {}, got {}; pass a tensor of the rank that the "
               "function was compiled for",
               b.input, counted(b.dim + 1, "dimension"), list.size());
    return list[b.dim];
  }
  throw_internal_error(__FILE__, __LINE__, "bound",
                       fmt::format("[plan] symbol {} is bound nowhere", symbol.str()));
}

void PlanExecutor::Run::bind_symbols() {
  out_.late.assign(static_cast<size_t>(plan_.late_symbols), 0);
  for (const auto& [symbol, at] : plan_.numbers.program.symbols()) {
    if (symbol.kind != SymbolKind::unbacked) frame_.numbers[at] = symbol_value(symbol);
  }
  if (plan_.numbers.program.run(frame_.numbers.data())) return;
  std::string values;
  for (const auto& [symbol, at] : plan_.numbers.program.symbols()) {
    if (symbol.kind == SymbolKind::size)
      values += fmt::format(", {} = {}", symbol.str(), symbol_value(symbol));
  }
  throw_user_error(
      fmt::format("a compiled function is called with sizes whose products leave 64 bits{}", values));
}

void PlanExecutor::Run::check_input(int32_t k) const {
  const PreparedInput& want = plan_.inputs[k];
  const InputTensor& got = in_.tensors[k];
  bool fine = got.dtype == want.dtype && got.sizes.size() == want.sizes.size() &&
              got.strides.size() == want.strides.size();
  for (size_t d = 0; fine && d < want.sizes.size(); ++d) {
    fine = got.sizes[d] == number(want.sizes[d]) &&
           (got.strides[d] == number(want.strides[d]) || got.sizes[d] == 1);
  }
  if (fine) [[likely]]
    return;
  std::vector<int64_t> sizes, strides;
  for (NumberId id : want.sizes) sizes.push_back(number(id));
  for (NumberId id : want.strides) strides.push_back(number(id));
  throw_user_error(
      fmt::format("[call] input {}: expected {} with sizes [{}] and strides [{}], got {} with sizes [{}] and "
                  "strides [{}]; "
                  "compile again for it",
                  k, name(want.dtype), fmt::join(sizes, ", "), fmt::join(strides, ", "), name(got.dtype),
                  fmt::join(got.sizes, ", "), fmt::join(got.strides, ", ")));
}

void PlanExecutor::Run::allocate_output(int32_t k) {
  const PreparedOutput& o = plan_.outputs[k];
  OutputTensor& t = out_.tensors[k];
  const int64_t bytes = number(o.bytes);
  t.data = plan_.machine.allocator->allocate(bytes);
  t.bytes = bytes;
  frame_.base[o.buffer] = t.data;
  if (plan_.fixed()) {
    t.sizes = o.fixed_sizes;
    t.strides = o.fixed_strides;
    return;
  }
  if (!in_.symbols.empty()) return;
  const auto copy = [&](const std::vector<NumberId>& ids) {
    const size_t from = out_.numbers.size();
    for (NumberId id : ids) out_.numbers.push_back(number(id));
    return std::span<const int64_t>(out_.numbers.data() + from, ids.size());
  };
  t.sizes = copy(o.sizes);
  t.strides = copy(o.strides);
}

/// The first kernel from number `k` on that is made for the sizes of this call.
const PreparedKernel& PlanExecutor::Run::chosen(int32_t k) const {
  const auto fits = [this](const PreparedKernel& kernel) {
    for (const PreparedKernel::Asked& c : kernel.when) {
      if (!holds(c.relation, number(c.left), number(c.right))) return false;
    }
    return true;
  };
  while (!fits(plan_.kernels[k])) ++k;
  return plan_.kernels[k];
}

int64_t PlanExecutor::Run::grain_of(const PreparedPhase& phase) const {
  const SeldomNumber& n = phase.grain;
  if (n.from.empty()) return std::max<int64_t>(1, n.value);
  std::vector<int64_t> registers(n.program.initial().begin(), n.program.initial().end());
  for (const auto& [id, at] : n.from) registers[static_cast<size_t>(at)] = number(id);
  return n.program.run(registers.data()) ? std::max<int64_t>(1, registers[static_cast<size_t>(n.at)]) : 1;
}

void PlanExecutor::Run::launch(const PreparedKernel& kernel) {
  void** pointers = frame_.pointers.data() + kernel.first_argument;
  for (int32_t k = 0; k < kernel.arguments; ++k) pointers[k] = frame_.base[kernel.buffers[k]];
  long* sizes = frame_.sizes.data() + kernel.first_size;
  for (size_t k = 0; k < kernel.symbols.size(); ++k) sizes[k] = number(kernel.symbols[k]);
  if (kernel.runner != nullptr) {
    long* extents = sizes + kernel.symbols.size();
    for (size_t k = 0; k < kernel.extents.size(); ++k) extents[k] = number(kernel.extents[k]);
    kernel.runner->run({{pointers, static_cast<size_t>(kernel.arguments)},
                        in_.scalars,
                        &status_,
                        {sizes, kernel.symbols.size()},
                        {extents, kernel.extents.size()},
                        [this](Expr e) { return evaluated(e); },
                        &frame_.blocks[static_cast<size_t>(&kernel - plan_.kernels.data())]});
    return;
  }
  LaunchContext context{kernel.entry,
                        pointers,
                        kernel.arguments,
                        sizes,
                        in_.scalars.data(),
                        reinterpret_cast<long*>(&status_),
                        number(kernel.scratch_bytes),
                        plan_.machine.allocator};
  int64_t first = 0;
  for (const PreparedPhase& phase : kernel.phases) {
    const int64_t extent = number(phase.extent), points = number(phase.points);
    if (extent <= 0) continue;
    const bool one_thread =
        plan_.machine.pool->size() == 1 || (points > 0 && points <= codegen::kGrainPoints);
    const int64_t grain = one_thread ? extent : grain_of(phase);
    if (extent <= grain) {
      launch_part(&context, first, first + extent);
    } else {
      plan_.machine.pool->parallel_for(first, first + extent, grain, &launch_part, &context);
    }
    first += extent;
  }
}

void PlanExecutor::Run::call_external(int32_t k) {
  ExternalViews& views = views_of(k);
  if (const auto& runner = plan_.plan.externals[k].runner)
    return runner->run(views.arguments(), views.results());
  if (plan_.machine.device != kCPU) {
    HostViews here(views.arguments(), views.results(), plan_.machine.device.index);
    plan_.externals[k](here.arguments(), here.results());
    return here.upload();
  }
  if (const auto& ready = plan_.ready[k]) return ready->run(views.arguments(), views.results());
  plan_.externals[k](views.arguments(), views.results());
}

ExternalViews& PlanExecutor::Run::views_of(int32_t k) {
  ExternalViews& views = frame_.externals[k];
  views.renew(plan_.external_numbers[static_cast<size_t>(k)], frame_.numbers);
  views.point_at(frame_.base);
  return views;
}

void* PlanExecutor::Run::allocate_block(BufferId buffer, int64_t bytes) {
  const int64_t size = std::max<int64_t>(bytes, 1);
  void* data = plan_.machine.allocator->allocate(size);
  blocks_.push_back({buffer, data, size});
  return data;
}

void PlanExecutor::Run::release(BufferId buffer) {
  const auto at = std::ranges::find(blocks_, buffer, &Block::buffer);
  if (at == blocks_.end()) return;
  plan_.machine.allocator->deallocate(at->data, at->bytes);
  blocks_.erase(at);
}

void PlanExecutor::Run::call_dynamic(int32_t k) {
  const codegen::PlanExternal& call = plan_.plan.externals[k];
  const PreparedDynamic& prepared = plan_.dynamics[k];
  const ExternalViews& views = views_of(k);
  const bool on_gpu = plan_.machine.device != kCPU;
  std::vector<TensorView> results;
  std::vector<std::unique_ptr<std::byte[]>> here;  // results in host memory, where kernels write to a device
  std::vector<std::pair<void*, int64_t>> there;
  const auto allocate = [&](DType dtype, const std::vector<int64_t>& sizes) {
    const size_t r = results.size();
    STAX_ASSERT(r < call.results.size() && dtype == call.results[r].dtype &&
                    sizes.size() == call.results[r].sizes.size(),
                "[plan] result {} of {} is not what its node says", r, call.function);
    TensorView& view = results.emplace_back(TensorView{nullptr, dtype, sizes, {}});
    view.strides.assign(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;)
      view.strides[d - 1] = view.strides[d] * std::max<int64_t>(sizes[d], 1);
    int64_t bytes = itemsize(dtype);
    bool overflow = false;
    for (const int64_t size : sizes) overflow |= __builtin_mul_overflow(bytes, size, &bytes);
    STAX_CHECK(!overflow, "[{}] the sizes [{}] of its result leave 64 bits", call.function,
               fmt::join(sizes, ", "));
    const BufferId buffer = call.results[r].buffer;
    if (const int32_t output = prepared.outputs[r]; output >= 0) {
      OutputTensor& t = out_.tensors[output];
      t.bytes = std::max<int64_t>(bytes, 1);
      t.data = view.data = plan_.machine.allocator->allocate(t.bytes);
    } else {
      view.data = allocate_block(buffer, bytes);
    }
    frame_.base[buffer] = view.data;
    if (on_gpu) {
      there.emplace_back(view.data, bytes);
      here.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(std::max<int64_t>(bytes, 1))));
      view.data = here.back().get();
    }
    return view;
  };
  if (on_gpu) {
    const HostViews given(views.arguments(), {}, plan_.machine.device.index);
    prepared.function(given.arguments(), allocate);
    for (size_t r = 0; r < there.size(); ++r) {
      device::copy_to_device(there[r].first, here[r].get(), there[r].second, plan_.machine.device.index);
    }
  } else {
    prepared.function(views.arguments(), allocate);
  }
  bind_late(k, results);
}

void PlanExecutor::Run::bind_late(int32_t k, std::span<const TensorView> results) {
  const std::vector<loops::ResultBinding>& binds = plan_.plan.externals[k].binds;
  for (size_t b = 0; b < binds.size(); ++b) {
    const TensorView& from = results[binds[b].result];
    const int64_t value = binds[b].dim < 0 ? *static_cast<const int64_t*>(from.data)
                                           : from.sizes[static_cast<size_t>(binds[b].dim)];
    out_.late[static_cast<size_t>(binds[b].symbol.number)] = value;
    frame_.numbers[plan_.dynamics[k].binds[b]] = value;
  }
  STAX_CHECK(plan_.numbers.program.run(frame_.numbers.data(), plan_.dynamics[k].stage),
             "[call] the sizes that {} gives lead to tensors whose sizes leave 64 bits",
             plan_.plan.externals[k].function);
}

void PlanExecutor::Run::check_assertion(int32_t k) const {
  const Assertion& a = plan_.plan.assertions[k];
  if (holds(a.condition.relation, number(plan_.assertions[k].left), number(plan_.assertions[k].right)))
    return;
  throw_failure(a, [this](Symbol s) { return symbol_value(s); });
}

PlanExecutor::PlanExecutor(codegen::Plan plan, const Machine& machine)
    : prepared_(std::make_unique<const PreparedPlan>(prepare(std::move(plan), machine))),
      frames_(std::make_unique<Frames>()) {}

PlanExecutor::~PlanExecutor() = default;

const codegen::Plan& PlanExecutor::plan() const {
  return prepared_->plan;
}

void PlanExecutor::run(const RunInputs& inputs, RunOutputs& outputs) const {
  struct Lease {
    Frames& frames;
    std::unique_ptr<Frame> frame;
    ~Lease() { frames.keep(std::move(frame)); }
  } lease{*frames_, frames_->take()};
  if (!lease.frame) lease.frame = std::make_unique<Frame>(*prepared_);
  Run(*prepared_, *lease.frame, inputs, outputs).execute();
}

}  // namespace stax::runtime
