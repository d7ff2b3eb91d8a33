// Compiled functions.
//
//   auto compiled = stax::compile([](const stax::Tensor& x, const stax::Tensor& w) {
//     return (stax::relu(x + w) * 2).sum(-1);
//   });
//   stax::Tensor y = compiled(x, w);
//
// The first call with arguments of a kind runs the function once on tensors that record what is done to them,
// compiles the record, and runs it; later calls of that kind run the compiled program only. What counts as a
// kind: dtypes, devices, shapes, strides, which arguments share memory, and the values of all arguments that
// are neither tensors nor Scalars nor SymInts. An argument is of the type that the function declares for it
// (signature.h); where it declares none, as a generic lambda does, of the type that is passed. With `dynamic`
// shapes and strides do not count, but what the function decided about them does: see docs/dynamic-shapes.md.
//
// C++ cannot look into a closure: a tensor that the function captures is followed through in-place updates
// only, and a captured number is a constant. What changes, or is bound anew, has to be an argument, or a
// field of a struct that is one (tree.h).
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "stax/api.h"
#include "stax/dim.h"
#include "stax/signature.h"
#include "stax/tree.h"

namespace stax {

struct CompileOptions {
  /// One program serves all sizes for which the function takes the same decisions. Sizes 0 and 1 are numbers
  /// still.
  bool dynamic = false;
  /// The whole function has to become one graph: reading a value inside it is an error.
  bool fullgraph = false;
  /// Everything has to become kernels of its own: what cannot is an error instead of a slower way. Implies
  /// fullgraph.
  bool strict_native = false;
  /// "stax", or "debug": runs the recorded graph operator by operator, with no compilation.
  std::string backend = "stax";
  /// How the launch configurations of kernels for a GPU are chosen: "candidates" measures a few that
  /// heuristics pick at the first launch, once on a kind of GPU; "coordinate_descent", "random" and
  /// "successive_halving" search further; "none" takes the likeliest one. Empty: STAX_TUNING, else
  /// "candidates".
  std::string tuning = "";
  /// How products of float32 matrices on a GPU may be computed: "highest" takes the operands as they are,
  /// "high" and "medium" let their mantissas be rounded to 10 bits (TF32), which is several times as fast.
  std::string matmul_precision = "highest";
  /// The results of a row do not depend on how many rows there are, bit by bit: all that a reduction, a
  /// product or a convolution adds up is added in an order that is fixed by the length of its rows alone, at
  /// the price of speed. See docs/semantics.md for what counts as a row.
  bool batch_invariant = false;
  /// With `dynamic`: what is declared about single dimensions. A declared dimension that the function turns
  /// out to fix is an error, and so is a size outside its declared range.
  DynamicShapes dynamic_shapes = {};
};

/// What a compiled function keeps for one kind of arguments.
struct Artifact {
  struct Kernel {
    std::string name;
    std::string source;  ///< complete: compiles by itself
  };
  std::string key;                  ///< the kind of arguments, in words
  std::vector<std::string> guards;  ///< what has to hold for it to be used again, in words
  std::vector<Kernel> kernels;
  std::string target;  ///< "cpu:x86-64-v4", ..., or "eager" where the function is not compiled
  std::string graph;   ///< after the passes
  std::string plan;    ///< what a call does, step by step
};

/// What becomes of a call: see CompiledFunction::explain.
struct Explanation {
  std::string key;                     ///< the kind of arguments
  bool cached = false;                 ///< an artifact fits
  std::vector<std::string> misfits;    ///< for each other artifact: what does not hold
  std::string captured, graph;         ///< the graph as recorded, and after the passes
  std::vector<std::string> decisions;  ///< what was fused, what was kept apart, and why
  std::vector<std::string> kernels;    ///< names, in order
  std::string fallback;                ///< why there are no kernels; empty where there are
  STAX_API std::string str() const;
};
STAX_API std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

namespace detail {

/// The user's function with the arguments of one call, for code that does not know their types.
class FunctionCall {
 public:
  virtual ~FunctionCall() = default;
  /// Runs the function with these tensors and numbers in the place of the call's own, and keeps the result.
  virtual void run(std::span<const Tensor> tensors, std::span<const Scalar> numbers,
                   std::span<const SymInt> integers) = 0;
  /// Runs it as it is.
  virtual void run_plain() = 0;
  /// The leaves of the kept result, in order.
  virtual void leaves(std::vector<Tensor*>& tensors, std::vector<Scalar*>& numbers,
                      std::vector<SymInt*>& integers) = 0;
  /// The kept result, without its tensors and what else differs from call to call.
  virtual std::shared_ptr<const void> take_prototype() = 0;
};

/// Results of a compiled call, to be put into a copy of the prototype.
struct CallResults {
  const void* prototype = nullptr;    ///< null: the FunctionCall keeps the result itself
  std::shared_ptr<const void> owner;  ///< of an artifact that is not stored
  /// For each leaf (tensors, then numbers, then integers): 1 where it is in `tensors`, 2 in `integers`.
  const char* wanted = nullptr;
  ShortList<Tensor, 4> tensors;
  ShortList<int64_t, 4> integers;
};

STAX_API bool is_tracing();

/// The artifacts of one function.
class STAX_API CompiledCore {
 public:
  explicit CompiledCore(CompileOptions options);
  void call(const Leaves& leaves, FunctionCall& call, CallResults& results) const;
  /// The function becomes a part of the one that is traced: warns, once, of options that are lost by that.
  /// `function` is its type.
  void note_inlined(const std::type_info& function) const;
  std::vector<Artifact> artifacts() const;
  Explanation explain(const Leaves& leaves, FunctionCall& call) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

struct Nothing {};

template <class F, class... A>
using ResultOf = std::conditional_t<std::is_void_v<std::invoke_result_t<F&, A&...>>, Nothing,
                                    std::decay_t<std::invoke_result_t<F&, A&...>>>;

template <class... A>
inline constexpr char type_tag = 0;

// Every lambda is a type of its own. So as little as can be depends on the function's type here, and the rest
// on the types of arguments and result, which recur: what the C++ compiler makes for one function serves
// others.

/// Puts tensors, numbers and integers in the place of the leaves, in order.
struct ReplaceLeaves : LeafVisitor {
  const Tensor* next_tensor;
  const Scalar* next_number;
  const SymInt* next_integer;
  ReplaceLeaves(const Tensor* tensors, const Scalar* numbers, const SymInt* integers)
      : next_tensor(tensors), next_number(numbers), next_integer(integers) {}
  void tensor(Tensor& t) {
    if (t.defined()) t = *next_tensor++;
  }
  void number(Scalar& s) { s = *next_number++; }
  void integer(SymInt& i) { i = *next_integer++; }
};

/// Lists the leaves.
struct ListLeaves : LeafVisitor {
  std::vector<Tensor*>& tensors;
  std::vector<Scalar*>& numbers;
  std::vector<SymInt*>& integers;
  ListLeaves(std::vector<Tensor*>& t, std::vector<Scalar*>& n, std::vector<SymInt*>& i)
      : tensors(t), numbers(n), integers(i) {}
  void tensor(Tensor& t) { tensors.push_back(&t); }
  void number(Scalar& s) { numbers.push_back(&s); }
  void integer(SymInt& i) { integers.push_back(&i); }
};

/// Drops what differs from call to call.
struct ClearLeaves : LeafVisitor {
  void tensor(Tensor& t) { t = Tensor(); }
  void number(Scalar& s) {
    if (s.is_symbolic()) s = Scalar();
  }
  void integer(SymInt& i) {
    if (i.is_symbolic()) i = SymInt();
  }
};

/// How far the leaves of a result are filled in, by walks of which each fills one kind of them.
struct FillLeaves : LeafVisitor {
  CallResults& results;
  size_t leaf = 0, next_tensor = 0, next_integer = 0;
  explicit FillLeaves(CallResults& r) : results(r) {}
  void tensor(Tensor&) {}
  void number(Scalar&) {}
  void integer(SymInt&) {}
};
struct FillTensors : FillLeaves {
  void tensor(Tensor& t) {
    if (results.wanted[leaf++]) t = std::move(results.tensors[next_tensor++]);
  }
};
struct FillNumbers : FillLeaves {
  void number(Scalar& s) {
    const char from = results.wanted[leaf++];
    if (from == 1) s = results.tensors[next_tensor++].item();
    if (from == 2) s = Scalar(results.integers[next_integer++]);
  }
};
struct FillIntegers : FillLeaves {
  void integer(SymInt& i) {
    if (results.wanted[leaf++]) i = results.integers[next_integer++];
  }
};

/// The result of a compiled call.
template <class Result>
Result assemble(CallResults& results) {
  Result result = *static_cast<const Result*>(results.prototype);
  if constexpr (!std::is_same_v<Result, Nothing>) {
    // Three walks: a result's tensors come first, whatever stands between them.
    FillTensors tensors{FillLeaves(results)};
    walk(tensors, result);
    FillNumbers numbers{tensors};
    walk(numbers, result);
    FillIntegers integers{numbers};
    walk(integers, result);
  }
  return result;
}

/// A call with arguments of types A and a result of type Result.
template <class Result, class... A>
class TypedCall : public FunctionCall {
 public:
  explicit TypedCall(const A&... arguments) : arguments_(arguments...) {}

  void run(std::span<const Tensor> tensors, std::span<const Scalar> numbers,
           std::span<const SymInt> integers) override {
    std::tuple<A...> copy = arguments_;
    ReplaceLeaves replace(tensors.data(), numbers.data(), integers.data());
    walk(replace, copy);
    invoke_with(copy, std::index_sequence_for<A...>());
  }
  void run_plain() override {
    std::tuple<A...> copy = arguments_;
    invoke_with(copy, std::index_sequence_for<A...>());
  }
  void leaves(std::vector<Tensor*>& tensors, std::vector<Scalar*>& numbers,
              std::vector<SymInt*>& integers) override {
    ListLeaves list(tensors, numbers, integers);
    walk_result(list);
  }
  std::shared_ptr<const void> take_prototype() override {
    ClearLeaves clear;
    walk_result(clear);
    return std::make_shared<Result>(std::move(*result_));
  }
  Result take() { return std::move(*result_); }

 protected:
  virtual void invoke(A&... arguments) = 0;
  std::optional<Result> result_;

 private:
  template <size_t... I>
  void invoke_with(std::tuple<A...>& arguments, std::index_sequence<I...>) {
    invoke(std::get<I>(arguments)...);
  }
  template <class V>
  void walk_result(V& visitor) {
    if constexpr (!std::is_same_v<Result, Nothing>) walk(visitor, *result_);
  }

  std::tuple<const A&...> arguments_;
};

/// A call of a function of type F.
template <class F, class... A>
class CallOf final : public TypedCall<ResultOf<F, A...>, A...> {
  using Result = ResultOf<F, A...>;

 public:
  explicit CallOf(F& function, const A&... arguments)
      : TypedCall<Result, A...>(arguments...), function_(function) {}

 private:
  void invoke(A&... arguments) override {
    if constexpr (std::is_same_v<Result, Nothing>) {
      std::invoke(function_, arguments...);
      this->result_.emplace();
    } else {
      this->result_.emplace(std::invoke(function_, arguments...));
    }
  }

  F& function_;
};

/// The leaves of a call's arguments, and the types of the latter.
template <class... A>
void collect(Leaves& leaves, const A&... arguments) {
  LeafCollector collector{leaves};
  collector.word(reinterpret_cast<uintptr_t>(&type_tag<A...>));
  (walk(collector, arguments), ...);
}

/// Owns a function of a type that its owner's type does not name, so that there is one kind of shared_ptr.
struct AnyFunction {
  virtual ~AnyFunction() = default;
};
template <class F>
struct OwnedFunction final : AnyFunction {
  explicit OwnedFunction(F f) : function(std::move(f)) {}
  F function;
};

}  // namespace detail

/// A callable like F. Copies share their artifacts. Thread-safe where F is. The function sees copies of the
/// arguments: what it writes into tensors is seen outside, a tensor that it assigns to an argument is not.
template <class F>
class CompiledFunction {
 public:
  CompiledFunction(F function, CompileOptions options)
      : function_(static_cast<detail::AnyFunction*>(new detail::OwnedFunction<F>(std::move(function)))),
        core_(std::move(options)) {}

  template <class... A>
  requires std::invocable < F&, std::decay_t<A>
  &... > auto operator()(A&&... arguments) const {
    return call(std::index_sequence_for<A...>(), arguments...);
  }

  /// What is compiled now, oldest first.
  std::vector<Artifact> artifacts() const { return core_.artifacts(); }

  /// What a call with these arguments would run, and why. Records the function where no artifact fits;
  /// compiles and changes nothing.
  template <class... A>
  Explanation explain(A&&... arguments) const {
    return explain_call(std::index_sequence_for<A...>(), arguments...);
  }

 private:
  F& function() const { return static_cast<detail::OwnedFunction<F>&>(*function_).function; }

  // The arguments are traced as what the function declares for them.
  template <size_t... I, class... A>
  auto call(std::index_sequence<I...>, const A&... arguments) const {
    using Result = detail::ResultOf<F, detail::TracedTypeOf<F, I, std::decay_t<A>>...>;
    using Returned = std::conditional_t<std::is_same_v<Result, detail::Nothing>, void, Result>;
    return static_cast<Returned>(
        run<Result>(detail::as_traced<detail::TracedTypeOf<F, I, std::decay_t<A>>>(arguments)...));
  }
  template <size_t... I, class... A>
  Explanation explain_call(std::index_sequence<I...>, const A&... arguments) const {
    return explain_traced(detail::as_traced<detail::TracedTypeOf<F, I, std::decay_t<A>>>(arguments)...);
  }

  template <class Result, class... A>
  Result run(const A&... arguments) const {
    detail::CallOf<F, A...> call(function(), arguments...);
    if (detail::is_tracing()) {  // inlined into the function that is traced
      core_.note_inlined(typeid(F));
      call.run_plain();
      return call.take();
    }
    detail::Leaves leaves;
    detail::collect(leaves, arguments...);
    detail::CallResults results;
    core_.call(leaves, call, results);
    if (results.prototype == nullptr) return call.take();
    return detail::assemble<Result>(results);
  }
  template <class... A>
  Explanation explain_traced(const A&... arguments) const {
    detail::CallOf<F, A...> call(function(), arguments...);
    detail::Leaves leaves;
    detail::collect(leaves, arguments...);
    return core_.explain(leaves, call);
  }

  std::shared_ptr<detail::AnyFunction> function_;
  detail::CompiledCore core_;
};

namespace detail {

template <class F>
struct Signature<CompiledFunction<F>> : Signature<F> {};

}  // namespace detail

/// A function that behaves like `function` and runs compiled. UserError for options that contradict.
template <class F>
auto compile(F&& function, CompileOptions options = {}) {
  return CompiledFunction<std::decay_t<F>>(std::forward<F>(function), std::move(options));
}

}  // namespace stax
