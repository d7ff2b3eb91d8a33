// What an artifact with symbolic sizes asks of the sizes and strides of a call, beyond its key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capture/captured.h"
#include "compiler/key.h"
#include "symbolic/expr_program.h"

namespace stax::compiler {

/// A conjunction of conditions, compiled to a flat list. Reads metadata only and holds no tensor.
/// Thread-safe.
class Guards {
 public:
  Guards() = default;
  /// The relations between sizes and strides that `captured` was traced under, the ranges of its symbols and
  /// all decisions that its environment has recorded by now.
  explicit Guards(const capture::Captured& captured);

  /// Room that check() needs.
  size_t registers() const { return program_.size(); }
  /// Values of symbols: check() gives that many, by the symbols' numbers.
  size_t symbols() const { return symbol_count_; }
  bool empty() const { return sources_.empty() && early_.empty() && checks_.empty() && conditions_.empty(); }

  /// Whether all hold; `symbols` receives the values of the size symbols. The call fits the artifact's key.
  bool hold(const detail::Leaves& leaves, const CallTensors& call, int64_t* registers,
            int64_t* symbols) const {
    return first_failed(leaves, call, registers, symbols) == kNone;
  }
  /// The first that does not hold, in words, with the values that it got; empty where all do.
  std::string misfit(const detail::Leaves& leaves, const CallTensors& call) const;
  /// All, in words.
  std::vector<std::string> conditions() const;

 private:
  using Part = loops::SymbolBinding::Part;
  /// A size or a stride of a tensor argument, or an integer argument.
  struct Place {
    Part part = Part::size;
    int32_t input = 0, dim = 0;
    std::string str() const;
  };
  /// symbol = (value at place - offset) / scale, within [lower, upper].
  struct Source {
    Place place;
    Symbol symbol;
    int32_t at = 0;  // register
    int64_t scale = 1, offset = 0, lower = INT64_MIN, upper = INT64_MAX;
  };
  struct Check {
    Place place;
    int32_t at = 0;
    Expr expr;
  };
  struct Comparison {
    Relation relation = Relation::eq;
    int32_t left = 0, right = 0;
    Guard guard;
  };
  static constexpr int32_t kNone = -1, kOverflow = -2;

  void find_sources(const capture::Captured& captured);
  void add_source(Place place, Expr e, const ShapeEnv& env);
  void add_checks(const capture::Captured& captured);
  static int64_t value_at(const Place& place, const detail::Leaves& leaves, const CallTensors& call);
  /// Number of the condition (sources, checks, comparisons, in that order), kNone or kOverflow.
  int32_t first_failed(const detail::Leaves& leaves, const CallTensors& call, int64_t* registers,
                       int64_t* symbols) const;
  std::string source_text(const Source& source) const;

  ExprProgram program_;
  size_t symbol_count_ = 0;
  std::vector<Source> sources_;
  std::vector<Check> early_, checks_;  // against constants and symbols, and against computed values
  std::vector<Comparison> conditions_;
};

}  // namespace stax::compiler
