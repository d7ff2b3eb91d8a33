// Evaluates loop programs directly on the CPU: no compiler, blocks of a few thousand elements, one tight loop
// an instruction. Eager mode, the fallback of compiled code, and the oracle of the tests.
#pragma once

#include <memory>

#include "loops/invocation.h"
#include "loops/program.h"

namespace stax::reference {

/// A program made ready to run. Immutable; any number of threads may run it at a time.
class Executable {
 public:
  /// Plans every node whose sizes are numbers. Raises UserError where an instruction is not defined for its
  /// dtype. `program` is taken as well formed (loops::verify).
  static std::shared_ptr<const Executable> prepare(loops::Program program);
  ~Executable();

  /// Runs the nodes in order. Intermediates live in one arena for the run. Raises UserError when an index was
  /// out of range (after all nodes ran, with that index clamped), naming the index, the size and the node's
  /// origin.
  void run(const loops::Invocation& invocation) const;

  const loops::Program& program() const;

 private:
  struct Impl;
  explicit Executable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stax::reference
