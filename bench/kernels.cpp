// CPU kernels over 64M-element float32 inputs against a parallel copy of the same bytes (read plus written).
// A ratio of 1 is the copy's bandwidth; the target is at most 1 / 0.85 = 1.176.
#include "bench/harness.h"
#include "codegen/cpp/printer.h"
#include "device/cpu_info.h"
#include "device/thread_pool.h"
#include "loops/parse.h"
#include "runtime/host_compiler.h"

namespace {

using namespace stax;

constexpr int64_t kRows = 8192, kColumns = 8192;

/// One program, compiled, with inputs and outputs of its own.
class Case {
 public:
  Case(std::string_view text, int threads) : program_(loops::parse_program(text)) {
    const device::CpuTarget& cpu = device::cpu_target();
    const schedule::Target target{.processors = threads,
                                  .vector_bytes = cpu.vector_bytes,
                                  .cache_bytes = device::last_level_cache_bytes()};
    const schedule::Schedule schedule = schedule::make_schedule(program_, target);
    module_ = codegen::emit_module(program_, schedule.groups, target);
    runtime::CompileFlags flags;
    flags.target = cpu.flags;
    library_ = compiler().compile(module_.source, flags);
    for (const loops::Buffer& b : program_.buffers) {
      const size_t bytes = static_cast<size_t>(product(b.sizes).value() * itemsize(b.dtype));
      memory_.emplace_back(static_cast<char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)),
                           &std::free);
      auto* values = reinterpret_cast<float*>(memory_.back().get());
      for (size_t i = 0; i < bytes / 4; ++i) values[i] = static_cast<float>(i * 2654435761u % 1024) / 1024;
      if (b.role != loops::BufferRole::intermediate) bytes_ += bytes;
    }
  }

  size_t bytes() const { return bytes_; }
  size_t kernels() const { return module_.kernels.size(); }
  const std::string& source() const { return module_.source; }

  void run() {
    for (const codegen::KernelInfo& info : module_.kernels) {
      const auto entry = reinterpret_cast<codegen::KernelEntry>(library_->symbol(info.name));
      const int64_t points = info.parallel_extent.value(), grain = info.grain.value();
      std::vector<void*> buffers;
      for (loops::BufferId b : info.buffers) buffers.push_back(memory_[b].get());
      device::ThreadPool::global().parallel_for(0, points, grain, [&](int64_t begin, int64_t end) {
        codegen::KernelStatus status;
        std::vector<void*> own = buffers;
        alignas(64) thread_local char scratch[512 << 10];
        own.push_back(scratch);
        entry(own.data(), nullptr, nullptr, &status.node, begin, end);
      });
    }
  }

 private:
  static runtime::HostCompiler& compiler() {
    static runtime::HostCompiler one;
    return one;
  }
  loops::Program program_;
  codegen::Module module_;
  std::shared_ptr<runtime::Module> library_;
  std::vector<std::unique_ptr<char, decltype(&std::free)>> memory_;
  size_t bytes_ = 0;
};

std::string pointwise(int operators) {
  constexpr int64_t n = kRows * kColumns;
  std::string text = fmt::format(
      "buffer in0 float32 [{0}] input\nbuffer in1 float32 [{0}] input\nbuffer out0 float32 [{0}] output\n"
      "node op0 \"chain\" [i0 < {0}]\n  v0 = load float32 in0[i0]\n  v1 = load float32 in1[i0]\n",
      n);
  const char* ops[] = {"add", "mul", "maximum"};
  for (int k = 0; k < operators; ++k)
    text += fmt::format("  v{} = {} float32 v{} v{}\n", k + 2, ops[k % 3], k == 0 ? 0 : k + 1,
                        k % 2 == 0 ? 1 : 0);
  return text + fmt::format("  store out0[i0] v{}\n", operators + 1);
}

std::string sum(bool rows) {
  return fmt::format(
      "buffer in0 float32 [{0}, {0}] input\nbuffer out0 float32 [{0}] output\n"
      "node op0 \"sum\" [i0 < {0}] [r0 < {0}]\n  v0 = load float32 in0[{1}]\n  v1 = reduce_sum float32 v0\n"
      "  store out0[i0] v1\n",
      kRows, rows ? fmt::format("{}*i0 + r0", kColumns) : fmt::format("{}*r0 + i0", kColumns));
}

std::string softmax() {
  return fmt::format(R"(
buffer in0 float32 [{0}, {1}] input
buffer out0 float32 [{0}, {1}] output
buffer buf0 float32 [{0}] intermediate
buffer buf1 float32 [{0}] intermediate
node op0 "amax" [i0 < {0}] [r0 < {1}]
  v0 = load float32 in0[{1}*i0 + r0]
  v1 = reduce_max float32 v0
  store buf0[i0] v1
node op1 "sum" [i0 < {0}] [r0 < {1}]
  v0 = load float32 in0[{1}*i0 + r0]
  v1 = load float32 buf0[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = reduce_sum float32 v3
  store buf1[i0] v4
node op2 "div" [i0 < {0}, i1 < {1}]
  v0 = load float32 in0[{1}*i0 + i1]
  v1 = load float32 buf0[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = load float32 buf1[i0]
  v5 = div_relaxed float32 v3 v4
  store out0[{1}*i0 + i1] v5
)",
                     kRows * 8, kColumns / 8);
}

std::string layer_norm() {
  return fmt::format(R"(
buffer in0 float32 [{0}, {1}] input
buffer in1 float32 [{1}] input
buffer in2 float32 [{1}] input
buffer out0 float32 [{0}, {1}] output
buffer buf0 float32 [{0}] intermediate
buffer buf1 float32 [{0}] intermediate
node op0 "var_mean" [i0 < {0}] [r0 < {1}]
  v0 = load float32 in0[{1}*i0 + r0]
  v1 = reduce_welford float32 v0
  v2 = result float32 v1 number 1
  store buf0[i0] v1
  store buf1[i0] v2
node op1 "layer_norm" [i0 < {0}, i1 < {1}]
  v0 = load float32 in0[{1}*i0 + i1]
  v1 = load float32 buf0[i0]
  v2 = load float32 buf1[i0]
  v3 = constant float32 {1}.0
  v4 = div float32 v2 v3
  v5 = constant float32 1e-05
  v6 = add float32 v4 v5
  v7 = rsqrt float32 v6
  v8 = sub float32 v0 v1
  v9 = mul float32 v8 v7
  v10 = load float32 in1[i1]
  v11 = load float32 in2[i1]
  v12 = mul float32 v9 v10
  v13 = add float32 v12 v11
  store out0[{1}*i0 + i1] v13
)",
                     kRows * 8, kColumns / 8);
}

}  // namespace

int main(int argc, char**) {
  const bench::Machine machine = bench::this_machine();
  bench::print_machine(machine);
  bench::print_head("kernel", "copy");
  const std::vector<std::pair<const char*, std::string>> cases = {{"pointwise, 1 operator", pointwise(1)},
                                                                  {"pointwise, 20 operators", pointwise(20)},
                                                                  {"sum of rows", sum(true)},
                                                                  {"sum of columns", sum(false)},
                                                                  {"softmax", softmax()},
                                                                  {"layer_norm", layer_norm()}};
  for (const auto& [name, text] : cases) {
    Case c(text, machine.threads);
    if (argc > 1) fmt::print("{}\n", c.source());
    bench::ParallelCopy copy(c.bytes(), machine.threads);
    bench::print_row(fmt::format("{} ({} kernels)", name, c.kernels()),
                     bench::compare([&] { c.run(); }, [&] { copy.run(); }, {.rounds = 7}));
    std::fflush(stdout);
  }
}
