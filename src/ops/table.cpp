#include "ops/table.h"

namespace stax::ops {

using graph::Op;

const graph::OpTable& table() {
  static const graph::OpTable table([] {
    std::vector<Op> rows;
    for (const auto family : {unary_rows,
                              arithmetic_rows,
                              comparison_rows,
                              cast_rows,
                              activation_rows,
                              reduction_rows,
                              scan_rows,
                              reduction_composite_rows,
                              norm_rows,
                              normalization_rows,
                              loss_rows,
                              view_rows,
                              view_composite_rows,
                              splitting_rows,
                              joining_rows,
                              shape_rows,
                              padding_rows,
                              diagonal_rows,
                              functional_view_rows,
                              indexing_rows,
                              sorting_rows,
                              matmul_rows,
                              convolution_rows,
                              pooling_rows,
                              interpolation_rows,
                              factory_rows}) {
      for (Op& op : family()) {
        op.derivative = derivative_of(op.schema_text.substr(0, op.schema_text.find('(')));
        rows.push_back(std::move(op));
      }
    }
    return rows;
  }());
  return table;
}

}  // namespace stax::ops
