// Which types a callable takes, where it says so: a compiled function traces its arguments as these.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "stax/tree.h"

namespace stax::detail {

/// In the place of a parameter's type: the argument stays what it is.
struct AsGiven {};

/// The parameters of F in order, without references and const. An empty tuple for what has no single
/// signature: generic lambdas, overloaded and templated operator().
template <class F>
struct Signature {
  using Parameters = std::tuple<>;
};

template <class F>
using ParametersOf = typename Signature<F>::Parameters;

#define STAX_FUNCTION_SIGNATURE(qualifier)                      \
  template <class R, class... P>                                \
  struct Signature<R (*)(P...) qualifier> {                     \
    using Parameters = std::tuple<std::decay_t<P>...>;          \
  };                                                            \
  template <class R, class C, class... P>                       \
  struct Signature<R (C::*)(P...) qualifier> {                  \
    using Parameters = std::tuple<AsGiven, std::decay_t<P>...>; \
  };
#define STAX_MEMBER_SIGNATURE(qualifier)                        \
  template <class R, class C, class... P>                       \
  struct Signature<R (C::*)(P...) qualifier> {                  \
    using Parameters = std::tuple<AsGiven, std::decay_t<P>...>; \
  };
STAX_FUNCTION_SIGNATURE()
STAX_FUNCTION_SIGNATURE(noexcept)
STAX_MEMBER_SIGNATURE(const)
STAX_MEMBER_SIGNATURE(const noexcept)
STAX_MEMBER_SIGNATURE(&)
STAX_MEMBER_SIGNATURE(&noexcept)
STAX_MEMBER_SIGNATURE(const&)
STAX_MEMBER_SIGNATURE(const& noexcept)
#undef STAX_MEMBER_SIGNATURE
#undef STAX_FUNCTION_SIGNATURE

template <class All>
struct WithoutObject;
template <class Object, class... P>
struct WithoutObject<std::tuple<Object, P...>> {
  using Parameters = std::tuple<P...>;
};

/// Lambdas, std::function and structs with one operator().
template <class F>
requires requires {
  &F::operator();
}
struct Signature<F> : WithoutObject<ParametersOf<decltype(&F::operator())>> {};

template <class F>
struct Signature<std::reference_wrapper<F>> : Signature<F> {};

/// Whether an argument of type A becomes the parameter's type P before it is traced. A size or a number of
/// the library stays what it is, because it is no constant anyway; so does what walk() cannot take apart (a
/// view of a list, say), and what would lose a derived part.
template <class P, class A>
inline constexpr bool becomes = !std::is_same_v<P, A> && !std::is_same_v<P, AsGiven> &&
                                !std::is_same_v<A, SymInt> && !std::is_same_v<A, Scalar> && can_walk<P> &&
                                std::is_convertible_v<const A&, P> && !std::is_base_of_v<P, A>;

template <size_t I, class A, class Parameters>
struct TracedType {
  using Type = A;
};
template <size_t I, class A, class... P>
requires(I < sizeof...(P)) struct TracedType<I, A, std::tuple<P...>> {
  using Parameter = std::tuple_element_t<I, std::tuple<P...>>;
  using Type = std::conditional_t<becomes<Parameter, A>, Parameter, A>;
};

/// What argument number I of a call of F, of type A, is traced as.
template <class F, size_t I, class A>
using TracedTypeOf = typename TracedType<I, A, ParametersOf<F>>::Type;

/// The argument as the type it is traced as: itself, or converted.
template <class T, class A>
decltype(auto) as_traced(const A& argument) {
  if constexpr (std::is_same_v<T, A>) {
    return (argument);
  } else {
    return static_cast<T>(argument);
  }
}

}  // namespace stax::detail
