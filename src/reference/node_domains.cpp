// Which dimensions of a node its blocks span, and in which order its points are visited.
#include <algorithm>

#include "device/thread_pool.h"
#include "loops/fold.h"
#include "reference/plan_stages.h"
#include "support/check.h"

namespace stax::reference {
namespace {

constexpr int64_t kWideEnough = 512;  // elements that a block's domain should have
constexpr int64_t kNarrowest = 256;   // columns of a block, where they are shared between threads
/// Points of a reduction from which threads should share its columns.
constexpr int64_t kWorthSharing = 1 << 18;

/// A long reduction of few columns: narrower blocks, so that every thread gets some.
void share_columns(NodePlan& plan) {
  const int64_t columns = plan.iteration.size, wanted = 2 * device::ThreadPool::global().size();
  if (plan.work < kWorthSharing || plan.iteration_points * (columns / kBlock) >= wanted) return;
  const int64_t share = columns * plan.iteration_points / wanted;
  plan.block = std::clamp(share / kNarrowest * kNarrowest, kNarrowest, kBlock);
}

/// The innermost dimensions in [first, last) that together are wide enough.
Domain innermost(const std::vector<int64_t>& extents, int32_t first, int32_t last) {
  Domain domain;
  for (int32_t d = last; d-- > first && (domain.size < kWideEnough || domain.dims.empty());) {
    domain.dims.insert(domain.dims.begin(), d);
    domain.extents.insert(domain.extents.begin(), extents[d]);
    domain.size *= extents[d];
  }
  return domain;
}

/// The dimensions in [first, last) that are not in `domain`, appended to `out`; `points` is multiplied by
/// their extents.
void collect_scalars(const std::vector<int64_t>& extents, int32_t first, int32_t last, const Domain& domain,
                     std::vector<int32_t>& out, int64_t& points) {
  for (int32_t d = first; d < last; ++d) {
    if (std::find(domain.dims.begin(), domain.dims.end(), d) != domain.dims.end()) continue;
    out.push_back(d);
    points *= extents[d];
  }
}

/// Vectors go along the reduction where loads are contiguous there and it is long enough to be worth it.
Mode choose_mode(const Iteration& it, const loops::Body& body) {
  const auto dims = static_cast<int32_t>(it.extents.size());
  if (it.iteration_dims == 0) return Mode::inner;
  if (it.iteration_dims == dims) return Mode::outer;
  if (std::ranges::any_of(body, loops::needs_whole_row, &loops::Inst::op)) return Mode::inner;
  const int32_t i = it.iteration_dims - 1, r = dims - 1;
  int64_t along_iteration = 0, along_reduction = 0, iterations = 1, reductions = 1;
  for (int32_t d = 0; d < dims; ++d) (d <= i ? iterations : reductions) *= it.extents[d];
  for (size_t k = 0; k < body.size(); ++k) {
    if (body[k].op != loops::OpCode::load) continue;
    const auto& strides = it.indices[k].strides;
    if (strides[r] == 0) continue;  // loaded once an iteration either way
    along_reduction += std::abs(strides[r]) == 1;
    along_iteration += std::abs(strides[i]) <= 1;
  }
  if (reductions < 16 && iterations >= reductions) return Mode::outer;
  if (iterations < 16) return Mode::inner;
  if (along_reduction != along_iteration) {
    return along_reduction > along_iteration ? Mode::inner : Mode::outer;
  }
  return reductions >= iterations ? Mode::inner : Mode::outer;
}

}  // namespace

void choose_domains(const Iteration& it, const loops::Body& body, NodePlan& plan) {
  STAX_CHECK(it.extents.size() <= kMaxDims, "[reference] expected at most {} loop dimensions, got {}",
             kMaxDims, it.extents.size());
  plan.extents = it.extents;
  const auto dims = static_cast<int32_t>(it.extents.size());
  plan.work = 1;
  for (int64_t e : it.extents) plan.work *= std::max<int64_t>(e, 1);
  for (int32_t d = 0; d < it.iteration_dims; ++d) plan.empty = plan.empty || it.extents[d] == 0;
  if (plan.empty) return;
  plan.mode = !it.collective ? Mode::pointwise : choose_mode(it, body);
  if (plan.mode == Mode::inner) {
    plan.reduction = innermost(it.extents, it.iteration_dims, dims);
  } else {
    plan.iteration = innermost(it.extents, 0, it.iteration_dims);
  }
  collect_scalars(it.extents, 0, it.iteration_dims, plan.iteration, plan.iteration_scalars,
                  plan.iteration_points);
  collect_scalars(it.extents, it.iteration_dims, dims, plan.reduction, plan.reduction_scalars,
                  plan.reduction_points);
  if (it.empty_reduction) plan.reduction_points = 0;
  if (plan.mode == Mode::outer) share_columns(plan);
}

const Domain& domain_of(const NodePlan& plan, Phase phase) {
  const bool along_reduction = plan.mode == Mode::inner && (phase == Phase::during || phase == Phase::tail);
  return along_reduction ? plan.reduction : plan.iteration;
}

}  // namespace stax::reference
