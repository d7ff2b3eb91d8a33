// STAX_CHECK=decisions: every call asks again what was decided about sizes while its artifact was made.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "capture/captured.h"
#include "tensor/tensor_impl.h"

namespace stax::compiler {

/// Whether the environment variable STAX_CHECK, which is read once, names `what`, one of its words.
bool checks(std::string_view what);

/// What the sizes of one call are to the decisions of an artifact.
class DecisionCheck {
 public:
  /// The arguments of the call, for which the guards of the artifact hold.
  DecisionCheck(const capture::Captured& captured, std::span<const StridedImpl* const> tensors,
                std::span<const int64_t> integers);

  /// An internal error where a decision has another outcome at these sizes: the artifact may not serve them.
  void before() const;
  /// The same for decisions about sizes that only data determines; `late` are their values, by number.
  void after(std::span<const int64_t> late) const;

 private:
  void check(std::span<const int64_t> late, bool with_late) const;

  const capture::Captured& captured_;
  std::vector<std::optional<int64_t>> values_;  // by symbol
};

}  // namespace stax::compiler
