// The table of nodes, and what can be read from a node.
#include "symbolic/expr.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "support/check.h"
#include "support/hash_mix.h"
#include "symbolic/node.h"

namespace stax {
namespace symbolic {
namespace {

constexpr size_t kShards = 64;
constexpr int64_t kSmallestCached = -64;
constexpr int64_t kLargestCached = 1024;

int64_t pack(Symbol s) {
  return static_cast<int64_t>(s.kind) << 32 | static_cast<uint32_t>(s.number);
}

Symbol unpack(int64_t value) {
  return {static_cast<SymbolKind>(value >> 32), static_cast<int32_t>(static_cast<uint32_t>(value))};
}

uint64_t symbol_bit(Symbol s) {
  return uint64_t{1} << (mix(0, static_cast<uint64_t>(pack(s)) + 1) >> 58);
}

/// Memory that is handed out in order and never returned.
class Arena {
 public:
  void* allocate(size_t bytes) {
    if (bytes > left_) {
      size_t block = std::max(bytes, kBlock);
      blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
      next_ = blocks_.back().get();
      left_ = block;
    }
    void* result = next_;
    next_ += bytes;
    left_ -= bytes;
    return result;
  }

 private:
  static constexpr size_t kBlock = 16384;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
};

struct NodeKey {
  ExprKind kind;
  int64_t value;
  std::span<const Expr> args;
  uint64_t hash;
};

/// Open addressing with linear probing, at most half full.
class Shard {
 public:
  const ExprNode* find_or_add(const NodeKey& key) {
    std::lock_guard lock(mutex_);
    size_t mask = slots_.size() - 1;
    size_t at = key.hash & mask;
    for (; slots_[at] != nullptr; at = (at + 1) & mask) {
      if (matches(*slots_[at], key)) return slots_[at];
    }
    const ExprNode* node = make(key);
    slots_[at] = node;
    if (++used_ * 2 > slots_.size()) grow();
    return node;
  }

 private:
  static bool matches(const ExprNode& node, const NodeKey& key) {
    return node.hash == key.hash && node.kind == key.kind && node.value == key.value &&
           std::ranges::equal(std::span(node.args, node.count), key.args);
  }

  const ExprNode* make(const NodeKey& key) {
    auto* args = static_cast<Expr*>(arena_.allocate(key.args.size() * sizeof(Expr)));
    std::uninitialized_copy(key.args.begin(), key.args.end(), args);
    auto* node = static_cast<ExprNode*>(arena_.allocate(sizeof(ExprNode)));
    bool polynomial = key.kind <= ExprKind::mul;
    uint8_t symbol_kinds = 0;
    uint64_t symbols = 0;
    if (key.kind == ExprKind::symbol) {
      symbol_kinds = static_cast<uint8_t>(1u << (key.value >> 32));
      symbols = symbol_bit(unpack(key.value));
    }
    for (Expr arg : key.args) {
      polynomial = polynomial && arg.node()->polynomial;
      symbol_kinds |= arg.node()->symbol_kinds;
      symbols |= arg.node()->symbols;
    }
    return new (node) ExprNode{key.kind,  symbol_kinds, polynomial, static_cast<uint32_t>(key.args.size()),
                               key.value, key.hash,     symbols,    Expr(node),
                               args};
  }

  void grow() {
    std::vector<const ExprNode*> old(slots_.size() * 2, nullptr);
    old.swap(slots_);
    size_t mask = slots_.size() - 1;
    for (const ExprNode* node : old) {
      if (node == nullptr) continue;
      size_t at = node->hash & mask;
      while (slots_[at] != nullptr) at = (at + 1) & mask;
      slots_[at] = node;
    }
  }

  std::mutex mutex_;
  std::vector<const ExprNode*> slots_ = std::vector<const ExprNode*>(256, nullptr);
  size_t used_ = 0;
  Arena arena_;
};

/// Never destroyed: expressions in static objects outlive it otherwise.
Shard* shards() {
  static Shard* const all = new Shard[kShards];
  return all;
}

const std::array<const ExprNode*, kLargestCached - kSmallestCached + 1>& small_constants() {
  static const auto table = [] {
    std::array<const ExprNode*, kLargestCached - kSmallestCached + 1> nodes;
    for (int64_t v = kSmallestCached; v <= kLargestCached; ++v) {
      nodes[v - kSmallestCached] = intern(ExprKind::constant, v, {}).node();
    }
    return nodes;
  }();
  return table;
}

int rank(ExprKind kind) {
  switch (kind) {
    case ExprKind::symbol:
      return 0;
    case ExprKind::floor_div:
      return 1;
    case ExprKind::mod:
      return 2;
    case ExprKind::min:
      return 3;
    case ExprKind::max:
      return 4;
    case ExprKind::add:
      return 5;
    case ExprKind::mul:
      return 6;
    case ExprKind::constant:
      return 7;
  }
  return 8;
}

template <typename T>
int three_way(T a, T b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

int compare_factor(Expr a, Expr b) {
  if (a == b) return 0;
  if (a.kind() != b.kind()) return three_way(rank(a.kind()), rank(b.kind()));
  if (a.kind() == ExprKind::symbol) return compare_symbols(a.symbol(), b.symbol());
  std::span<const Expr> x = a.args(), y = b.args();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (int order = compare(x[i], y[i])) return order;
  }
  return three_way(x.size(), y.size());
}

char letter(SymbolKind kind) {
  constexpr std::array<char, 6> kLetters = {'s', 'u', 'i', 'r', 't', 'x'};
  return kLetters[static_cast<size_t>(kind)];
}

}  // namespace

Expr intern(ExprKind kind, int64_t value, std::span<const Expr> args) {
  uint64_t hash = mix(mix(0, static_cast<uint64_t>(kind) + 1), static_cast<uint64_t>(value));
  for (Expr arg : args) hash = mix(hash, arg.node()->hash);
  return Expr(shards()[hash >> 58].find_or_add({kind, value, args, hash}));
}

int compare_symbols(Symbol a, Symbol b) {
  if (a.kind != b.kind) return three_way(letter(a.kind), letter(b.kind));
  return three_way(a.number, b.number);
}

int compare_factors(std::span<const Expr> a, std::span<const Expr> b) {
  if (a.empty() || b.empty()) return three_way(a.empty(), b.empty());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (int order = compare_factor(a[i], b[i])) return order;
  }
  return three_way(a.size(), b.size());
}

std::span<const Expr> factors_of(Expr e) {
  const ExprNode* node = e.node();
  if (node->kind == ExprKind::constant) return {};
  if (node->kind != ExprKind::mul) return {&node->self, 1};
  std::span<const Expr> args(node->args, node->count);
  return args[0].is_constant() ? args.subspan(1) : args;
}

int64_t coefficient_of(Expr e) {
  const ExprNode* node = e.node();
  if (node->kind == ExprKind::constant) return node->value;
  if (node->kind != ExprKind::mul || !node->args[0].is_constant()) return 1;
  return node->args[0].value();
}

std::span<const Expr> terms_of(Expr e) {
  if (e.kind() == ExprKind::add) return e.args();
  return {&e.node()->self, 1};
}

int64_t offset_of(Expr e) {
  Expr last = terms_of(e).back();
  return last.is_constant() ? last.value() : 0;
}

}  // namespace symbolic

using symbolic::ShortList;

std::string Symbol::str() const {
  return symbolic::letter(kind) + std::to_string(number);
}

Expr::Expr(int64_t value)
    : node_(value >= symbolic::kSmallestCached && value <= symbolic::kLargestCached
                ? symbolic::small_constants()[value - symbolic::kSmallestCached]
                : symbolic::intern(ExprKind::constant, value, {}).node()) {}

Expr::Expr(Symbol symbol) : node_(symbolic::intern(ExprKind::symbol, symbolic::pack(symbol), {}).node()) {}

ExprKind Expr::kind() const {
  return node_->kind;
}

bool Expr::is(int64_t value) const {
  return node_->kind == ExprKind::constant && node_->value == value;
}

int64_t Expr::value() const {
  STAX_ASSERT(is_constant(), "value of the expression {}, expected a constant", str());
  return node_->value;
}

std::optional<int64_t> Expr::constant() const {
  if (!is_constant()) return std::nullopt;
  return node_->value;
}

Symbol Expr::symbol() const {
  STAX_ASSERT(kind() == ExprKind::symbol, "symbol of the expression {}, expected a symbol", str());
  return symbolic::unpack(node_->value);
}

std::span<const Expr> Expr::args() const {
  return {node_->args, node_->count};
}

bool Expr::contains(Symbol symbol) const {
  if ((node_->symbols & symbolic::symbol_bit(symbol)) == 0) return false;
  if (kind() == ExprKind::symbol) return this->symbol() == symbol;
  return std::ranges::any_of(args(), [&](Expr arg) { return arg.contains(symbol); });
}

bool Expr::contains(SymbolKind kind) const {
  return node_->symbol_kinds >> static_cast<int>(kind) & 1;
}

namespace {

void collect_symbols(Expr e, std::vector<Symbol>& found) {
  if (e.kind() == ExprKind::symbol) {
    if (std::ranges::find(found, e.symbol()) == found.end()) found.push_back(e.symbol());
    return;
  }
  for (Expr arg : e.args()) collect_symbols(arg, found);
}

}  // namespace

std::vector<Symbol> Expr::symbols() const {
  std::vector<Symbol> found;
  collect_symbols(*this, found);
  std::ranges::sort(found, [](Symbol a, Symbol b) { return symbolic::compare_symbols(a, b) < 0; });
  return found;
}

int compare(Expr a, Expr b) {
  if (a == b) return 0;
  if (int order = symbolic::compare_factors(symbolic::factors_of(a), symbolic::factors_of(b))) return order;
  return symbolic::three_way(symbolic::coefficient_of(a), symbolic::coefficient_of(b));
}

}  // namespace stax
