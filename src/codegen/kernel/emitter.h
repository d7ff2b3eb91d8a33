// Turns instructions of a flattened group into statements over vectors. Internal to codegen/kernel.
#pragma once

#include <functional>
#include <map>

#include "codegen/kernel/flat.h"
#include "codegen/kernel/kernel.h"
#include "codegen/kernel/layout.h"
#include "loops/fold.h"

namespace stax::codegen {

/// What the loop nests of one kernel number together.
struct Numbering {
  std::map<loops::BufferId, int32_t> arguments;
  Var next_var = 0;
  int32_t next_symbol = kFirstFreeBlockSymbol;
  int32_t arrays = 0;
};

/// Statements under construction, and the vectors that hold values at this point of them.
class Emitter {
 public:
  /// Enters the group's buffers as arguments. The emitters of all loop nests are made before the first
  /// declares an array.
  Emitter(const loops::Program& program, const schedule::Group& group, const FlatGroup& flat,
          const Layout& layout, Kernel& kernel, Numbering& numbering);

  using Body = std::function<void()>;

  // Statements
  Statement& add(Statement statement);
  void in(std::vector<Statement>& list,
          const Body& body);  // appends to `list` while body runs; values made there end
  void scoped(const Body& body) { in(*out_, body); }
  void loop(Symbol symbol, Expr begin, Expr end, Expr step, const Body& body);
  /// Runs body for lo, lo + lanes, ...: with full vectors, then (partial() true) for what is left. A pointer
  /// >= 0 names an access whose full vectors are to be aligned.
  void vector_loop(Symbol symbol, Expr lo, Expr hi, const Body& body, const Statement* aligned = nullptr);
  Symbol fresh() { return Symbol{SymbolKind::block, numbering_.next_symbol++}; }
  Symbol let(Expr value);
  int32_t array(DType dtype, Expr elements, bool scratch = false);

  // Vectors
  Var define(Statement statement);  // numbers its result
  Var compute(loops::OpCode op, DType dtype, std::vector<Var> args);
  Var constant(DType dtype, loops::Constant number);
  Var lane_index(Expr e, const std::vector<Var>& indirect);  // e in every lane, int64
  Var load_array(int32_t pointer, DType dtype, Expr index);
  void store_array(int32_t pointer, DType dtype, Expr index, Var value);
  void assign(Var to, Var value);
  Var copy(Var value, DType dtype);  // a vector that may be assigned to
  Var tail();                        // bool: lanes in force
  bool partial() const { return partial_; }

  // Instructions
  Var value(loops::ValueId id) const { return env_[id]; }
  void bind(loops::ValueId id, Var var) { env_[id] = var; }
  bool bound(loops::ValueId id) const { return env_[id] >= 0; }
  void unbind(loops::ValueId id) { env_[id] = -1; }
  /// Emits one instruction that is neither reduction nor scan; its operands are bound.
  void emit(loops::ValueId id);
  /// Emits a load or store whose mask holds.
  void emit_unmasked(loops::ValueId id);
  /// The access of a load or store, without the value.
  Statement access_of(const loops::Inst& inst);
  bool varies(loops::ValueId id) const { return varies_[id]; }

  /// Adds `offset` to `symbol` in every index: the copies of an unrolled loop.
  void shift(Symbol symbol, int64_t offset) {
    shifted_ = symbol;
    offset_ = offset;
  }
  Expr at(Expr e) const { return offset_ == 0 ? e : substitute(e, shifted_, Expr(shifted_) + Expr(offset_)); }

 private:
  void full_vectors(Symbol symbol, Expr hi, const Body& body);
  std::vector<Var> vars(const std::vector<loops::ValueId>& ids) const;
  void emit_leaf(loops::ValueId id, const loops::Inst& inst);
  void emit_special(loops::ValueId id, const loops::Inst& inst);
  void emit_load(loops::ValueId id, const loops::Inst& inst);
  void emit_store(loops::ValueId id, const loops::Inst& inst);
  int32_t argument(loops::BufferId buffer, bool written);
  std::vector<Statement>* out_;
  const loops::Program& program_;
  const schedule::Group& group_;
  const FlatGroup& flat_;
  const Layout& layout_;
  Kernel& kernel_;
  Numbering& numbering_;
  std::vector<Var> env_;
  std::vector<bool> varies_;
  bool partial_ = false;
  Var tail_ = -1;
  const Statement* aligned_ = nullptr;  // an access that is aligned in the vectors at hand
  Symbol shifted_;
  int64_t offset_ = 0;
};

}  // namespace stax::codegen
