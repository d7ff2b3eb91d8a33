#include "cli/verify/replay.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <optional>

#include "cli/verify/compare.h"
#include "cli/verify/other_sizes.h"
#include "cli/verify/translate.h"
#include "compiler/batch.h"
#include "stax/compile.h"
#include "stax/cuda.h"
#include "stax/error.h"
#include "stax/random.h"
#include "tensor/moved.h"
#include "tensor/tensor_impl.h"

namespace stax::cli {
namespace {

// Kernels of so many calls go into one run of the host compiler.
constexpr size_t kBatch = 100;

Outcome failed(std::string reason) {
  return {Verdict::failed, std::move(reason)};
}
Outcome unknown(std::string reason) {
  return {Verdict::unknown, std::move(reason)};
}

bool on_gpu(ReplayMode mode) {
  return mode == ReplayMode::cuda || mode == ReplayMode::cuda_dynamic;
}
bool for_all_sizes(ReplayMode mode) {
  return mode == ReplayMode::dynamic || mode == ReplayMode::cuda_dynamic ||
         mode == ReplayMode::interpret_dynamic;
}

std::vector<Tensor> moved(const std::vector<Tensor>& tensors, Device device) {
  return MovedTensors(tensors, device).tensors();
}

std::vector<Expected> expected_results(const RecordedFile& file, const Json& call) {
  std::vector<Expected> result;
  const Json* exact = call.find("exact");
  size_t i = 0;
  for (const Json& out : call.at("out").as_array()) {
    if (!out.is_object() || !out.find("tensor")) throw Unsupported(fmt::format("the result {}", out.dump()));
    Expected expected{file.tensor(out), {}};
    if (exact != nullptr && exact->is_array() && i < exact->size() && exact->at(i).is_object())
      expected.exact = file.tensor(exact->at(i));
    result.push_back(std::move(expected));
    ++i;
  }
  return result;
}

/// The call on the magnitudes of its arguments: for sums of products, the sums of the terms' magnitudes.
Tensor magnitudes_of(const Request& request, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> absolute;
  for (const Tensor& tensor : tensors) absolute.push_back(capture::call("abs", {tensor})[0]);
  return request.run(absolute).at(0);
}

/// The call in float64.
Tensor exact_result(const Request& request, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> wide;
  for (const Tensor& tensor : tensors)
    wide.push_back(tensor.is_floating_point() ? tensor.to(DType::float64) : tensor);
  return request.run(wide).at(0);
}

/// `tensors`: what the request ran on.
Outcome compare(const Request& request, const std::vector<Tensor>& tensors,
                const std::vector<Tensor>& results, const std::vector<Expected>& expected) {
  if (results.size() != expected.size())
    return failed(fmt::format("{} results, expected {}", results.size(), expected.size()));
  const int32_t free = free_index_result(request);
  for (size_t i = 0; i < results.size(); ++i) {
    std::string words = difference(results[i], expected[i]);
    if (words.empty()) continue;
    if (sums_products(request) && i == 0) {
      Expected wider = expected[i];
      wider.magnitudes = magnitudes_of(request, tensors);
      // Results that were computed here are as inexact as those that they are compared with.
      if (!wider.exact.defined()) wider.exact = exact_result(request, tensors);
      words = difference(results[i], wider);
      if (words.empty()) continue;
    }
    const bool same_form =
        results[i].dtype() == expected[i].out.dtype() && results[i].sizes() == expected[i].out.sizes();
    if (static_cast<int32_t>(i) == free && same_form) {
      const Tensor& input = request.positional.at(0).tensor();
      words = index_difference(input, free_index_dim(request), results[i], expected[i].out);
      if (words.empty()) continue;
    }
    return failed(results.size() == 1 ? words : fmt::format("result {}: {}", i, words));
  }
  return {};
}

/// One call on its way. Steps throw what operators throw; settle() makes an outcome of it.
class Call {
 public:
  Call(const RecordedFile& file, size_t index) : file_(file), json_(file.call(index)), index_(index) {}

  size_t index() const { return index_; }
  bool refused_by_python() const { return json_.find("error") != nullptr; }
  const std::optional<Outcome>& outcome() const { return outcome_; }
  void set(Outcome outcome) { outcome_ = std::move(outcome); }

  /// Runs `step`, which may settle the call by throwing.
  template <class F>
  void attempt(F&& step) {
    if (outcome_) return;
    try {
      step();
    } catch (const Unsupported& reason) {
      outcome_ = unknown(reason.what());
    } catch (const UserError& error) {
      outcome_ = refused_by_python() ? Outcome() : failed(fmt::format("raised: {}", error.what()));
    } catch (const std::exception& error) {
      outcome_ = failed(fmt::format("raised: {}", error.what()));
    }
  }

  /// Finds the operator and the expected results. Calls that Stax has no row for are settled.
  void prepare() {
    request_ = translate(file_, json_);
    if (!request_.known()) {
      outcome_ = unknown(fmt::format("no operator '{}'", request_.name));
    } else if (refused_by_python()) {
      return;
    } else if (!request_.binds()) {
      outcome_ = unknown(fmt::format("no row of '{}' takes these arguments", request_.name));
    } else {
      expected_ = expected_results(file_, json_);
    }
  }

  /// A fresh copy: in-place operators change their arguments.
  Request fresh() const { return translate(file_, json_); }

  void finish(const std::vector<Tensor>& results) {
    if (refused_by_python()) {
      outcome_ = failed(fmt::format("accepted, but PyTorch refuses it: {}", json_.at("message").as_string()));
    } else {
      outcome_ = compare(request_, request_.tensors(), results, expected_);
    }
  }
  void not_native() {
    if (outcome_) outcome_->native = false;
  }

  /// Runs the program that was compiled for the call's own sizes at others, against eager evaluation.
  void check_other_sizes(const compiler::CompiledProgram& program, const std::vector<Tensor>& arguments,
                         Device device) {
    if (!outcome_ || outcome_->verdict != Verdict::passed || refused_by_python()) return;
    const compiler::Guards guards(program.captured());
    for (const std::vector<Tensor>& tensors : at_other_sizes(program.captured(), guards, arguments, 2)) {
      std::string words = difference_at(program, guards, tensors, device);
      if (!words.empty()) {
        const bool native = outcome_->native;
        outcome_ = failed(std::move(words));
        outcome_->native = native;
        return;
      }
      ++outcome_->other_sizes;
    }
  }

 private:
  static std::vector<Tensor> clones(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> out;
    for (const Tensor& t : tensors) {
      const StridedImpl& from = strided(t);
      out.push_back(new_tensor(t.dtype(), extents_of(from.sizes().values(), from.strides().values())));
      copy_elements(from.view(), strided(out.back()).view());
    }
    return out;
  }

  /// Where the program and eager evaluation differ on these arguments; empty where they do not.
  std::string difference_at(const compiler::CompiledProgram& program, const compiler::Guards& guards,
                            const std::vector<Tensor>& tensors, Device device) const {
    std::vector<Tensor> got;
    std::vector<Expected> expected;
    std::string raised, eager_raised;
    const Request request = fresh();
    const uint64_t seed = 7;  // both draw the same
    try {
      manual_seed(seed);
      for (const Tensor& t : request.run(clones(tensors))) expected.push_back({t, {}});
    } catch (const UserError& error) {
      eager_raised = error.what();
    }
    try {
      manual_seed(seed);
      got = moved(compiler::run_program(program, moved(clones(tensors), device),
                                        *compiler::symbols_of(guards, tensors)),
                  kCPU);
    } catch (const UserError& error) {
      raised = error.what();
    }
    std::string sizes;
    for (const Tensor& t : tensors) sizes += fmt::format("[{}]", fmt::join(t.sizes().values(), ", "));
    if (raised.empty() != eager_raised.empty()) {
      return fmt::format("at sizes {}: compiled {}, eager {}", sizes, raised.empty() ? "returns" : raised,
                         eager_raised.empty() ? "returns" : eager_raised);
    }
    if (!raised.empty()) return {};
    const Outcome outcome = compare(request, tensors, got, expected);
    return outcome.verdict == Verdict::passed ? std::string()
                                              : fmt::format("at sizes {}: {}", sizes, outcome.reason);
  }

  const RecordedFile& file_;
  const Json& json_;
  size_t index_;
  Request request_;
  std::vector<Expected> expected_;
  std::optional<Outcome> outcome_;
};

void replay_eagerly(const RecordedFile& file, const std::vector<size_t>& calls,
                    const ReplayListener& listener) {
  for (const size_t index : calls) {
    listener.begins(index);
    Call call(file, index);
    call.attempt([&] { call.prepare(); });
    call.attempt([&] {
      const Request request = call.fresh();
      call.finish(request.run(request.tensors()));
    });
    listener.ends(index, *call.outcome());
  }
}

/// By the public door, alone: for functions that read values, which no trace covers, and for calls that
/// raise.
void run_alone(Call& call, Device device) {
  call.attempt([&] {
    const Request request = call.fresh();
    const auto compiled = compile([&](const std::vector<Tensor>& in) { return request.run(in); });
    call.finish(moved(compiled(moved(request.tensors(), device)), kCPU));
  });
  if (!call.refused_by_python()) call.not_native();
}

/// A call whose function was recorded.
struct Traced {
  Call* call;
  std::vector<Tensor> arguments;
};

void finish_batch(std::vector<Traced>& traced, std::vector<capture::Captured> captured, ReplayMode mode,
                  const ReplayListener& listener) {
  const bool dynamic = for_all_sizes(mode);
  const Device device = on_gpu(mode) ? kCUDA : kCPU;
  const bool interprets = mode == ReplayMode::interpret || mode == ReplayMode::interpret_dynamic;
  const std::vector<compiler::BatchItem> items =
      compiler::compile_batch(std::move(captured), interprets ? "cuda:sm_90" : "cpu");
  for (size_t i = 0; i < traced.size(); ++i) {
    Call& call = *traced[i].call;
    listener.begins(call.index());
    if (items[i].program == nullptr) {
      call.set(failed(fmt::format("cannot be compiled: {}", items[i].error)));
    } else {
      const std::vector<Tensor>& arguments = traced[i].arguments;
      call.attempt([&] {
        const compiler::Guards guards(items[i].program->captured());
        const auto symbols = compiler::symbols_of(guards, arguments);
        if (!symbols) return call.set(failed("the guards do not hold for the example itself"));
        call.finish(
            moved(compiler::run_program(*items[i].program, moved(arguments, device), *symbols), kCPU));
      });
      if (!items[i].error.empty()) call.not_native();
      if (dynamic) {
        try {
          call.check_other_sizes(*items[i].program, arguments, device);
        } catch (const std::exception& error) {
          call.set(failed(fmt::format("at other sizes: {}", error.what())));
        }
      }
    }
  }
}

void replay_compiled(const RecordedFile& file, std::span<const size_t> indices, ReplayMode mode,
                     const ReplayListener& listener) {
  const bool dynamic = for_all_sizes(mode);
  const Device device = on_gpu(mode) ? kCUDA : kCPU;
  std::vector<Call> calls;
  calls.reserve(indices.size());
  std::vector<Traced> traced;
  std::vector<capture::Captured> captured;
  for (const size_t index : indices) {
    listener.begins(index);
    Call& call = calls.emplace_back(file, index);
    call.attempt([&] { call.prepare(); });
    if (call.outcome()) continue;
    if (call.refused_by_python()) {  // whatever raises, raises while it is recorded or run
      run_alone(call, device);
      continue;
    }
    try {
      const Request request = call.fresh();
      std::vector<Tensor> arguments = request.tensors();
      captured.push_back(
          compiler::trace_function([&](const std::vector<Tensor>& in) { return request.run(in); },
                                   moved(arguments, device), {.dynamic = dynamic}, device));
      traced.push_back({&call, std::move(arguments)});
    } catch (const std::exception&) {
      run_alone(call, device);
    }
  }
  finish_batch(traced, std::move(captured), mode, listener);
  for (const Call& call : calls) listener.ends(call.index(), *call.outcome());
}

}  // namespace

void replay(const RecordedFile& file, ReplayMode mode, const std::vector<size_t>& calls,
            const ReplayListener& listener) {
  switch (mode) {
    case ReplayMode::reference:
      replay_eagerly(file, calls, listener);
      return;
    case ReplayMode::compiled:
    case ReplayMode::dynamic:
    case ReplayMode::cuda:
    case ReplayMode::cuda_dynamic:
    case ReplayMode::interpret:
    case ReplayMode::interpret_dynamic:
      for (size_t first = 0; first < calls.size(); first += kBatch) {
        const size_t count = std::min(kBatch, calls.size() - first);
        replay_compiled(file, std::span(calls).subspan(first, count), mode, listener);
      }
      return;
  }
}

}  // namespace stax::cli
