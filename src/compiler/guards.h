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

  /// Whether all hold; `symbols` receives the values of the size symbols. The call is of the key's kind.
  bool hold(const CallTensors& call, int64_t* registers, int64_t* symbols) const {
    return first_failed(call.numbers.data(), registers, symbols) == kNone;
  }
  /// The first that does not hold, in words, with the values that it got; empty where all do.
  std::string misfit(const CallTensors& call) const;
  /// All, in words.
  std::vector<std::string> conditions() const;

 private:
  using Part = loops::SymbolBinding::Part;
  /// A size or a stride of a tensor argument, or an integer argument.
  struct Place {
    Part part = Part::size;
    int32_t input = 0, dim = 0;
    int32_t at = 0;  // in CallTensors::numbers
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
  /// What first_failed() reads, close together: numbers[at] == registers[reg].
  struct Equality {
    int32_t at = 0, reg = 0;
  };
  static constexpr int32_t kNone = -1, kOverflow = -2;

  void find_sources(const capture::Captured& captured);
  void add_source(Place place, Expr e, const ShapeEnv& env);
  void add_checks(const capture::Captured& captured);
  void add_conditions(const capture::Captured& captured);
  static Place place_of(const capture::Captured& captured, Part part, size_t input, size_t dim);
  /// Number of the condition (sources, checks, comparisons, in that order), kNone or kOverflow.
  int32_t first_failed(const int64_t* numbers, int64_t* registers, int64_t* symbols) const;
  std::string source_text(const Source& source) const;

  ExprProgram program_;
  size_t symbol_count_ = 0;
  std::vector<Source> sources_;
  std::vector<Check> early_, checks_;  // against constants and symbols, and against computed values
  std::vector<Comparison> conditions_;
  std::vector<Equality> early_equal_, equal_;  // parallel to early_ and checks_
  // Positions in conditions_: those over symbols alone tell artifacts of one function apart, and come first.
  std::vector<int32_t> plain_, computed_;
};

}  // namespace stax::compiler
