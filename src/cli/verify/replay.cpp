#include "cli/verify/replay.h"

#include <fmt/core.h>

#include "cli/verify/compare.h"
#include "cli/verify/translate.h"
#include "stax/error.h"

namespace stax::cli {
namespace {

Outcome failed(std::string reason) {
  return {Verdict::failed, std::move(reason)};
}
Outcome unknown(std::string reason) {
  return {Verdict::unknown, std::move(reason)};
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

Outcome compare(const Request& request, const std::vector<Tensor>& results,
                const std::vector<Expected>& expected) {
  if (results.size() != expected.size())
    return failed(fmt::format("{} results, expected {}", results.size(), expected.size()));
  const int32_t free = free_index_result(request);
  for (size_t i = 0; i < results.size(); ++i) {
    std::string words = difference(results[i], expected[i]);
    if (words.empty()) continue;
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

/// A call that PyTorch refused.
Outcome replay_refusal(const RecordedFile& file, const Json& call,
                       const std::function<std::vector<Tensor>(const Request&)>& run) {
  try {
    const Request request = translate(file, call);
    if (!request.known()) return unknown(fmt::format("no operator '{}'", request.name));
    run(request);
  } catch (const UserError&) {
    return {};
  }
  return failed(fmt::format("accepted, but PyTorch refuses it: {}", call.at("message").as_string()));
}

Outcome replay_call(const RecordedFile& file, const Json& call,
                    const std::function<std::vector<Tensor>(const Request&)>& run) {
  const Request request = translate(file, call);
  if (!request.known()) return unknown(fmt::format("no operator '{}'", request.name));
  if (!request.binds()) return unknown(fmt::format("no row of '{}' takes these arguments", request.name));
  const std::vector<Expected> expected = expected_results(file, call);
  const Request fresh = translate(file, call);  // in-place operators change their arguments
  return compare(request, run(fresh), expected);
}

}  // namespace

void replay(const RecordedFile& file, ReplayMode, size_t first, size_t count,
            const std::function<void(const Outcome&)>& report) {
  const auto run = [](const Request& request) { return request.run(request.tensors()); };
  for (size_t i = first; i < count; ++i) {
    const Json& call = file.call(i);
    Outcome outcome;
    try {
      outcome = call.find("error") ? replay_refusal(file, call, run) : replay_call(file, call, run);
    } catch (const Unsupported& reason) {
      outcome = unknown(reason.what());
    } catch (const std::exception& error) {
      outcome = failed(fmt::format("raised: {}", error.what()));
    }
    report(outcome);
  }
}

}  // namespace stax::cli
