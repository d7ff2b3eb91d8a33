// A loop program, scheduled, compiled and given buffers: what its kernels cost without anything around them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cpp/printer.h"
#include "device/cpu_info.h"
#include "device/thread_pool.h"
#include "loops/parse.h"
#include "runtime/host_compiler.h"

namespace bench {

class Program {
 public:
  Program(std::string_view text, int threads) : program_(stax::loops::parse_program(text)) {
    using namespace stax;
    const device::CpuTarget& cpu = device::cpu_target();
    const schedule::Target target{.processors = threads,
                                  .vector_bytes = cpu.vector_bytes,
                                  .cache_bytes = device::last_level_cache_bytes()};
    const schedule::Schedule schedule = schedule::make_schedule(program_, target);
    module_ = codegen::emit_module(program_, schedule.groups, target);
    runtime::CompileFlags flags;
    flags.target = cpu.flags;
    static runtime::HostCompiler compiler;
    library_ = compiler.compile(module_.source, flags);
    for (const loops::Buffer& b : program_.buffers) add_buffer(b);
    for (const codegen::KernelInfo& info : module_.kernels) {
      Call call{reinterpret_cast<codegen::KernelEntry>(library_->symbol(info.name)),
                {{info.parallel_extent.value(), info.grain.value()}}};
      for (const codegen::KernelPhase& p : info.later)
        call.phases.push_back({p.extent.value(), p.grain.value()});
      for (loops::BufferId b : info.buffers) call.buffers.push_back(memory_[b].get());
      calls_.push_back(std::move(call));
    }
  }

  size_t bytes() const { return bytes_; }  ///< of inputs and outputs
  size_t kernels() const { return module_.kernels.size(); }
  const std::string& source() const { return module_.source; }

  void run() {
    for (Call& call : calls_) {
      const auto part = [&](int64_t begin, int64_t end) {
        stax::codegen::KernelStatus status;
        call.entry(call.buffers.data(), nullptr, nullptr, &status.node, begin, end);
      };
      int64_t first = 0;
      for (const auto& [points, grain] : call.phases) {
        if (points <= grain) {
          part(first, first + points);
        } else {
          stax::device::ThreadPool::global().parallel_for(first, first + points, grain, part);
        }
        first += points;
      }
    }
  }

 private:
  struct Call {
    stax::codegen::KernelEntry entry;
    struct Phase {
      int64_t points, grain;
    };
    std::vector<Phase> phases;
    std::vector<void*> buffers;
  };

  void add_buffer(const stax::loops::Buffer& b) {
    const size_t bytes = static_cast<size_t>(stax::product(b.sizes).value() * stax::itemsize(b.dtype));
    memory_.emplace_back(static_cast<char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)),
                         &std::free);
    auto* values = reinterpret_cast<float*>(memory_.back().get());
    for (size_t i = 0; i < bytes / 4; ++i) values[i] = static_cast<float>(i * 2654435761u % 1024) / 1024;
    if (b.role != stax::loops::BufferRole::intermediate) bytes_ += bytes;
  }

  stax::loops::Program program_;
  stax::codegen::Module module_;
  std::shared_ptr<stax::runtime::Module> library_;
  std::vector<std::unique_ptr<char, decltype(&std::free)>> memory_;
  std::vector<Call> calls_;
  size_t bytes_ = 0;
};

}  // namespace bench
