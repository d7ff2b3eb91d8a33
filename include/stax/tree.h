// How compiled functions take arguments and results apart.
//
// Leaves are tensors, numbers, sizes and text. Between them may stand std::vector, array, tuple, pair,
// optional and map, and structs for which Traversable is specialised:
//
//   struct Layer { stax::Tensor weight, bias; };
//   template <>
//   struct stax::Traversable<Layer> {
//     static void fields(auto& layer, auto&& visit) { visit(layer.weight, layer.bias); }
//   };
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stax/scalar.h"
#include "stax/symint.h"
#include "stax/tensor.h"

namespace stax {

/// To be specialised for a struct that compiled functions take or return: `fields(self, visit)` calls `visit`
/// with every field that matters. `self` is the struct, const or not.
template <class T>
struct Traversable;

namespace detail {

template <class T, template <class...> class Template>
inline constexpr bool is_instance = false;
template <class... A, template <class...> class Template>
inline constexpr bool is_instance<Template<A...>, Template> = true;
template <class T>
inline constexpr bool is_std_array = false;
template <class T, size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool always_false = false;

template <class T>
concept Described = requires(T& value) {
  Traversable<std::remove_const_t<T>>::fields(value, [](auto&...) {});
};

/// Whether walk() takes a T apart.
template <class T>
inline constexpr bool can_walk =
    std::is_same_v<T, Tensor> || std::is_same_v<T, Scalar> || std::is_same_v<T, SymInt> ||
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_convertible_v<const T&, std::string_view> ||
    std::is_same_v<T, std::nullopt_t> || Described<T>;
template <class T, class A>
inline constexpr bool can_walk<std::vector<T, A>> = can_walk<T>;
template <class T, size_t N>
inline constexpr bool can_walk<std::array<T, N>> = can_walk<T>;
template <class T>
inline constexpr bool can_walk<std::optional<T>> = can_walk<T>;
template <class... T>
inline constexpr bool can_walk<std::tuple<T...>> = (... && can_walk<T>);
template <class A, class B>
inline constexpr bool can_walk<std::pair<A, B>> = can_walk<A>&& can_walk<B>;
template <class K, class T, class... More>
inline constexpr bool can_walk<std::map<K, T, More...>> = can_walk<K>&& can_walk<T>;

/// Calls the visitor for every leaf of `value`, in a fixed order: visitor.tensor(Tensor&),
/// visitor.number(Scalar&), visitor.integer(SymInt&), visitor.word(uint64_t), visitor.text(string_view).
/// Words and text also say which shape the containers have.
template <class V, class T>
void walk(V& visitor, T& value) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, Tensor>) {
    visitor.tensor(value);
  } else if constexpr (std::is_same_v<U, Scalar>) {
    visitor.number(value);
  } else if constexpr (std::is_same_v<U, SymInt>) {
    visitor.integer(value);
  } else if constexpr (std::is_floating_point_v<U>) {
    visitor.word(std::bit_cast<uint64_t>(static_cast<double>(value)));
  } else if constexpr (std::is_integral_v<U> || std::is_enum_v<U>) {
    visitor.word(static_cast<uint64_t>(value));
  } else if constexpr (std::is_convertible_v<const U&, std::string_view>) {
    visitor.text(value);
  } else if constexpr (std::is_same_v<U, std::nullopt_t>) {
    visitor.word(0);
  } else if constexpr (std::is_same_v<U, std::vector<bool>>) {
    visitor.word(value.size());
    for (const bool b : value) visitor.word(b ? 1 : 0);
  } else if constexpr (is_instance<U, std::vector> || is_std_array<U>) {
    visitor.word(value.size());
    for (auto& element : value) walk(visitor, element);
  } else if constexpr (is_instance<U, std::optional>) {
    visitor.word(value.has_value() ? 1 : 0);
    if (value) walk(visitor, *value);
  } else if constexpr (is_instance<U, std::tuple> || is_instance<U, std::pair>) {
    std::apply([&](auto&... elements) { (walk(visitor, elements), ...); }, value);
  } else if constexpr (is_instance<U, std::map>) {
    visitor.word(value.size());
    for (auto& [key, element] : value) {
      walk(visitor, key);
      walk(visitor, element);
    }
  } else if constexpr (Described<T>) {
    Traversable<U>::fields(value, [&](auto&... fields) { (walk(visitor, fields), ...); });
  } else {
    static_assert(always_false<T>,
                  "a compiled function takes or returns a type that stax cannot take apart: "
                  "specialise stax::Traversable for it (see stax/tree.h)");
  }
}

/// A list that needs no allocation up to N elements.
template <class T, size_t N>
class ShortList {
 public:
  ShortList() = default;
  ShortList(const ShortList&) = delete;
  void add(T value) {
    if (size_ == N && more_.empty()) {
      more_.reserve(4 * N);
      more_.assign(inline_, inline_ + N);
    }
    if (size_ < N) {
      inline_[size_] = std::move(value);
    } else {
      more_.push_back(std::move(value));
    }
    ++size_;
  }
  /// `size` default-made elements.
  void resize(size_t size) {
    if (size > N) more_.resize(size);
    size_ = size;
  }
  size_t size() const { return size_; }
  T* data() { return size_ > N ? more_.data() : inline_; }
  const T* data() const { return size_ > N ? more_.data() : inline_; }
  T& operator[](size_t k) { return data()[k]; }
  const T& operator[](size_t k) const { return data()[k]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  size_t size_ = 0;
  T inline_[N] = {};
  std::vector<T> more_;
};

/// The leaves of a call's arguments: what its key is made of.
struct Leaves {
  ShortList<const Tensor*, 16> tensors;
  ShortList<const Scalar*, 4> numbers;
  ShortList<int64_t, 4> integers;
  ShortList<uint64_t, 24> words;
};

struct LeafCollector {
  Leaves& leaves;
  void tensor(const Tensor& value) {
    word(value.defined() ? 1 : 0);
    if (value.defined()) leaves.tensors.add(&value);
  }
  void number(const Scalar& value) {
    word(static_cast<uint64_t>(value.kind()));
    leaves.numbers.add(&value);
  }
  void integer(const SymInt& value) { leaves.integers.add(value.value()); }
  void word(uint64_t value) { leaves.words.add(value); }
  void text(std::string_view value) {
    word(value.size());
    for (size_t at = 0; at < value.size(); at += 8) {
      uint64_t bits = 0;
      for (size_t k = at; k < at + 8 && k < value.size(); ++k) {
        bits = bits << 8 | static_cast<uint8_t>(value[k]);
      }
      word(bits);
    }
  }
};

/// Base of visitors that look at tensors, numbers and integers only.
struct LeafVisitor {
  void word(uint64_t) {}
  void text(std::string_view) {}
};

}  // namespace detail
}  // namespace stax
