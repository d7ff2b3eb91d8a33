// Comparisons that hold for the first points of a loop only. A loop over them is two, each with a known
// answer: the uneven last part of a split reduction ends sooner, and no value is masked.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "codegen/kernel/flat.h"
#include "codegen/kernel/layout.h"

namespace stax::codegen {

/// Answers of comparisons that are known at some place of a kernel.
class Assumptions {
 public:
  void set(loops::ValueId condition, bool answer) { answers_[condition] = answer; }
  void clear() { answers_.clear(); }
  bool empty() const { return answers_.empty(); }
  std::optional<bool> answer(loops::ValueId id) const;
  /// For a `where` whose condition is known: the value that it takes. Otherwise -1.
  loops::ValueId chosen(const loops::Inst& inst) const;
  /// The answer of the mask of a load or store, where it has one that is known.
  std::optional<bool> mask(const loops::Inst& inst) const;
  /// The operands that computing instruction `id` takes.
  std::vector<loops::ValueId> operands(const loops::Body& body, loops::ValueId id) const;

 private:
  std::map<loops::ValueId, bool> answers_;
};

struct Prefix {
  std::vector<loops::ValueId> conditions;
  Expr end;  // they hold for values of the loop variable below it
};

/// Those of one end that are about the innermost loop over the reduction and the same in all lanes but for
/// it; nothing where there are none.
std::optional<Prefix> find_prefix(const FlatGroup& flat, const Layout& layout);

/// By instruction: whether stores and reductions need it, given `assumptions`.
std::vector<bool> needed(const FlatGroup& flat, const Assumptions& assumptions);

}  // namespace stax::codegen
