// Recorded calls name Python functions and methods; this is the one place that says which rows of the op
// table they mean.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/verify/recorded_file.h"

namespace stax::cli {

/// A call of an operator by name, with its arguments.
struct Request {
  std::string name;
  capture::Arguments positional;
  std::vector<std::pair<std::string, Argument<Tensor>>> named;
  std::vector<TensorIndex> indices;  ///< of positional[0], where the name is "index"
  int32_t keep = -1;                 ///< only so many results, of what the row returns
  /// Where the recorded function is made of several operators: what it does. The request then only holds its
  /// arguments.
  std::vector<Tensor> (*formula)(const Request& call) = nullptr;
  bool python_refuses = false;  ///< numbers stand where Python's signature wants tensors

  /// Whether the op table has the name at all.
  bool known() const;
  /// Whether a row takes these arguments.
  bool binds() const;
  /// The tensors among the arguments, in order.
  std::vector<Tensor> tensors() const;
  /// Makes the call, with other tensors in place of tensors(). UserError as operators give it.
  std::vector<Tensor> run(const std::vector<Tensor>& tensors) const;
};

/// The call as one of the op table. Throws Unsupported for what no row could mean, UserError for values that
/// Python refuses before it calls.
Request translate(const RecordedFile& file, const Json& call);

/// Whether every element of the result is a sum of products of elements of the arguments.
bool sums_products(const Request& request);

/// Where the order of results is free: the position of the index tensor among the results, or -1.
int32_t free_index_result(const Request& request);
/// The dimension along which those indices count, from the front.
int64_t free_index_dim(const Request& request);

}  // namespace stax::cli
