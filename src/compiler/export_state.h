// What an exported program is made of, and what a call of it has to satisfy.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "capture/captured.h"
#include "compiler/linear_size.h"
#include "compiler/program.h"
#include "stax/export.h"
#include "symbolic/expr_program.h"

namespace stax::compiler {

/// A dimension of a tensor argument.
struct ExportPlace {
  int32_t input = 0, dim = 0;
};

/// A size symbol of an exported program; its number is its position.
struct ExportSymbol {
  std::string name;   // as declared; empty for an automatic dimension
  int64_t hint = 0;   // the example's value, or the least assumed one where the example has less
  Interval declared;  // the values that calls may have
  Interval assumed;   // the values that the graph was recorded for: 0 and 1 are left out
};

struct ExportInput {
  std::string name;
  graph::TensorMeta meta;  // sizes and strides over the symbols
};

/// Immutable once it is made.
struct ExportContract {
  std::vector<ExportInput> inputs;  // the tensor arguments
  std::vector<ExportSymbol> symbols;
  /// All decisions under which the graph holds, those of the ranges included.
  std::vector<Guard> guards;
  /// Those among them, and others, that the declared ranges do not imply: asserted in each call.
  std::vector<Condition> assertions;
  /// About sizes that only data determines: checked in each call as soon as these are known.
  std::vector<Assertion> late;

  /// Where the value of a symbol is found: a dimension that is the symbol alone, else the first that is
  /// computed from it.
  ExportPlace place_of(Symbol symbol) const;
  /// "x.size()[0]", or computed from that.
  std::string source_text(Symbol symbol) const;
  /// With the names of dimensions where they have one, with source_text() elsewhere. "u0" for what only data
  /// determines, in both.
  std::string symbol_text(Symbol symbol) const;
};

/// Whether sizes that only data determines are in it.
inline bool is_late(Expr e) {
  return e.contains(SymbolKind::unbacked);
}
inline bool is_late(const Condition& c) {
  return is_late(c.left) || is_late(c.right);
}
bool is_late(const graph::TensorMeta& meta);

/// Equal and different sizes in the order of their symbols.
Condition ordered(const Condition& condition);

/// "n > 4": a constant stands on the right.
std::string text_of(const Condition& condition, const std::function<std::string(Symbol)>& name);

/// Conditions over size symbols, evaluated together.
class ConditionList {
 public:
  ConditionList() = default;
  explicit ConditionList(std::span<const Condition> conditions);
  static constexpr int32_t kNone = -1, kOverflow = -2;
  /// The first that does not hold; kNone, or kOverflow where a value leaves 64 bits.
  int32_t first_failed(std::span<const int64_t> symbols) const;

 private:
  struct Item {
    Relation relation = Relation::eq;
    int32_t left = 0, right = 0;
  };
  ExprProgram program_;
  std::vector<Item> items_;
};

/// `captured` with values for some symbols. Every node's metadata are computed anew, in `env`, and compared;
/// UserError naming the node where they are others. For files: where they were not made by Stax.
/// Sizes that only data determines get symbols of `env`; `late` is stated of them there.
capture::Captured rebuilt(const capture::Captured& captured, const std::map<Symbol, int64_t>& values,
                          std::shared_ptr<ShapeEnv> env, std::span<const Assertion> late);

/// The environment in which a program's graph was recorded: its symbols and decisions, with `values` for some
/// of them. Null where the hints of the others contradict a decision.
std::shared_ptr<ShapeEnv> environment_of(const ExportContract& contract,
                                         const std::map<Symbol, int64_t>& values);

/// The program as text.
std::string program_text(const ExportContract& contract, const capture::Captured& captured);

}  // namespace stax::compiler

namespace stax::detail {

struct ExportedState {
  compiler::ExportContract contract;
  capture::Captured captured;                 // without environment; inputs are arguments only
  compiler::ConditionList assertions;         // contract.assertions, compiled
  std::vector<compiler::ExportPlace> places;  // by symbol
  std::vector<char> keeps_memory;             // by argument: it is written, or a result is a view of it

  ExportedState(compiler::ExportContract contract, capture::Captured captured);

  /// A program for all assumed sizes, or for some that are fixed.
  struct Artifact {
    std::map<Symbol, int64_t> fixed;
    std::shared_ptr<const compiler::CompiledProgram> program;
    compiler::ConditionList conditions;  // what compiling decided
    bool fits(const compiler::ExportContract& contract, std::span<const int64_t> values) const;
  };
  using ArtifactPtr = std::shared_ptr<const Artifact>;
  ArtifactPtr artifact_for(std::span<const int64_t> values) const;
  /// The one for the assumed sizes.
  ArtifactPtr main_artifact() const;

 private:
  ArtifactPtr make(std::map<Symbol, int64_t> fixed) const;
  mutable std::mutex mutex_;
  mutable std::vector<ArtifactPtr> artifacts_;
};

}  // namespace stax::detail
