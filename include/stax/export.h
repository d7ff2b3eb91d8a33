// Exported programs: one recorded graph for a declared class of sizes, checked when it is made and saved as a
// file.
//
//   auto n = stax::Dim("n", {.min = 2, .max = 4096});
//   auto e = stax::export_program(f, std::tuple{x, w}, {{{0, n}}, {{0, n}}}, {.names = {"x", "w"}});
//   stax::Tensor y = e(x, w);
//   e.save("f.stax");
//
// The function's own decisions about sizes have to hold for all declared values, otherwise exporting fails
// and says for which values it would not. What broadcasting needs (two sizes are equal) is asserted in each
// call. See docs/dynamic-shapes.md.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stax/api.h"
#include "stax/compile.h"
#include "stax/dim.h"
#include "stax/tree.h"

namespace stax {

/// An example without memory: what a tensor looks like.
struct TensorSpec {
  DType dtype = DType::float32;
  std::vector<int64_t> sizes;
};

struct ExportOptions {
  /// Of the tensors among the arguments, in order; "arg0", "arg1", ... where there are none. Identifiers.
  std::vector<std::string> names = {};
};

/// What an exported program returns: the tensors of the function's result, in order, then its Scalars and
/// sizes as zero-dim tensors.
class STAX_API ExportedResults {
 public:
  explicit ExportedResults(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  /// The only result; UserError where there is another number of them.
  operator Tensor() const;  // NOLINT: the common case reads like a call of the function
  const Tensor& operator[](size_t k) const { return tensors_[k]; }
  size_t size() const { return tensors_.size(); }
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

namespace detail {

struct ExportedState;
struct GraphState;

/// A tensor that has metadata only. Nothing may look at its elements.
STAX_API Tensor tensor_without_memory(const TensorSpec& spec);
STAX_API std::shared_ptr<const ExportedState> export_call(const Leaves& leaves, FunctionCall& call,
                                                          const DynamicShapes& shapes,
                                                          const ExportOptions& options);

template <class T>
auto example_of(const T& value) {
  if constexpr (std::is_same_v<T, TensorSpec>) {
    return tensor_without_memory(value);
  } else {
    return value;
  }
}

/// Calls use(leaves, call) for the function with these arguments.
template <class F, class... A, class Use>
auto with_example(F& function, const std::tuple<A...>& inputs, Use&& use) {
  const auto examples = std::apply([](const A&... a) { return std::tuple(example_of(a)...); }, inputs);
  return std::apply(
      [&](const auto&... a) {
        CallOf<F, std::decay_t<decltype(a)>...> call(function, a...);
        Leaves leaves;
        LeafCollector collector{leaves};
        (walk(collector, a), ...);
        return use(leaves, call);
      },
      examples);
}

}  // namespace detail

/// A recorded function. A value: copies share what they are made of, which never changes. Thread-safe. Keeps
/// no tensor of the example; tensors that the function captured were copied and are constants.
class STAX_API ExportedProgram {
 public:
  explicit ExportedProgram(std::shared_ptr<const detail::ExportedState> state) : state_(std::move(state)) {}

  /// Runs it on these tensors, which may come in containers; only the order of the tensors counts. Numbers
  /// are constants of the program and are left out. UserError for another number of tensors, another rank or
  /// dtype, sizes outside what is declared (with dimension, range and size), and for assertions that fail. A
  /// tensor that lies in memory in another order than the example is copied first.
  template <class... A>
  ExportedResults operator()(const A&... arguments) const {
    static_assert((... && !std::is_arithmetic_v<A>), "numbers are constants of an exported program");
    detail::Leaves leaves;
    detail::LeafCollector collector{leaves};
    (detail::walk(collector, arguments), ...);
    return run(leaves);
  }

  /// The program as text: one operator a line, sizes that are read, then the assertions.
  std::string graph() const;
  /// What is asked of a call, in words.
  std::vector<std::string> assertions() const;
  /// "cpu:x86-64-v4", ...; compiles where that has not happened yet.
  std::string target() const;

  /// Writes a file that load() reads; an existing one is replaced as a whole. RuntimeError where it cannot be
  /// written.
  void save(const std::string& path) const;
  /// Reads such a file and checks all that is in it. UserError, saying why, for files that cannot be read,
  /// are damaged or incomplete, are something else, or come from a newer Stax.
  static ExportedProgram load(const std::string& path);

  /// The state behind the handle: internal.
  const detail::ExportedState& state() const { return *state_; }

 private:
  ExportedResults run(const detail::Leaves& leaves) const;
  std::shared_ptr<const detail::ExportedState> state_;
};

inline void save(const ExportedProgram& program, const std::string& path) {
  program.save(path);
}
inline ExportedProgram load_program(const std::string& path) {
  return ExportedProgram::load(path);
}

/// Records `function` on arguments like `inputs` (tensors or TensorSpecs, other arguments as they are) for
/// all sizes that `dynamic_shapes` declares: by tensor, in the order of the arguments, nested ones included.
/// Dimensions that are not mentioned keep the example's size; Dim::automatic() ones are open, and may be
/// restricted by what the function does. The function runs once, and once more for each of the sizes 0 and 1
/// that a dimension may have. UserError where a declared size is none that the function holds for, with
/// declarations that would do.
template <class F, class... A>
ExportedProgram export_program(F function, const std::tuple<A...>& inputs,
                               const DynamicShapes& dynamic_shapes = {}, const ExportOptions& options = {}) {
  return ExportedProgram(
      detail::with_example(function, inputs, [&](const detail::Leaves& leaves, detail::FunctionCall& call) {
        return detail::export_call(leaves, call, dynamic_shapes, options);
      }));
}

}  // namespace stax
