#include "codegen/kernel/rewrite.h"

#include <algorithm>

namespace stax::codegen {

using loops::ValueId;

void rewrite(FlatGroup& flat, const Rewrite& rewritten) {
  loops::BodyBuilder builder;
  std::vector<ValueId> moved(flat.body.size(), -1);
  for (size_t i = 0; i < flat.body.size(); ++i) {
    loops::Inst inst = flat.body[i];
    for (ValueId& a : inst.args) a = moved[static_cast<size_t>(a)];
    for (ValueId& a : inst.indirect) a = moved[static_cast<size_t>(a)];
    moved[i] = rewritten(builder, static_cast<ValueId>(i), std::move(inst), moved);
  }
  std::vector<int32_t> node(builder.body().size(), -1);
  for (size_t i = 0; i < moved.size(); ++i) {
    int32_t& of = node[static_cast<size_t>(moved[i])];
    of = std::max(of, flat.node[i]);
  }
  flat.body = builder.take();
  flat.node = std::move(node);
}

}  // namespace stax::codegen
