// A file of recorded calls of one operator: a safetensors file whose metadata holds the calls as JSON.
#pragma once

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "capture/dispatch.h"
#include "stax/indexing.h"
#include "support/json.h"
#include "tensor/files/safetensors.h"

namespace stax::cli {

/// A recorded value is of a kind that Stax does not have: complex numbers, named axes.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RecordedFile {
 public:
  /// UserError naming the file when it is not what it should be.
  explicit RecordedFile(const std::string& path);

  const std::string& op() const { return op_; }
  /// The operator, with "~variant" where there is one.
  std::string name() const { return variant_.empty() ? op_ : op_ + "~" + variant_; }
  size_t size() const { return calls_.size(); }
  const Json& call(size_t i) const { return calls_.at(i); }

  /// Stands for None in a list of integers.
  static constexpr int64_t kNoneInList = std::numeric_limits<int64_t>::min();

  /// The value as an argument. Two lists of integers come as one, joined. Throws Unsupported for what no
  /// argument can be.
  Argument<Tensor> argument(const Json& value) const;
  /// The value as indices: a tuple gives several, anything else one.
  std::vector<TensorIndex> indices(const Json& value) const;
  /// A fresh tensor with the recorded strides.
  Tensor tensor(const Json& reference) const;

 private:
  TensorIndex index(const Json& value) const;
  Argument<Tensor> list(const Json& value) const;

  files::SafetensorsFile file_;
  Json calls_;
  std::string op_, variant_;
};

}  // namespace stax::cli
