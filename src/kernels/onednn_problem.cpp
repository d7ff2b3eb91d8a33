#include "kernels/onednn_problem.h"

#include <algorithm>

#include "device/thread_pool.h"
#include "support/hash_mix.h"

namespace stax::kernels::onednn {
namespace {

// Multiplications that are worth a task of their own.
constexpr int64_t kTask = int64_t{1} << 18;

size_t hash_of(std::initializer_list<int64_t> numbers,
               std::initializer_list<const std::array<int64_t, 3>*> lists) {
  uint64_t h = 0;
  for (const int64_t v : numbers) h = mix(h, static_cast<uint64_t>(v));
  for (const auto* list : lists) {
    for (const int64_t v : *list) h = mix(h, static_cast<uint64_t>(v));
  }
  return h;
}

// Rows [row, row + rows) of images [image, image + images).
Slice slice_of(const ConvolutionProblem& p, int64_t image, int64_t images, int64_t row, int64_t rows) {
  const size_t axis = 3 - static_cast<size_t>(p.spatial);
  Slice s{image, images, row, rows, 0, p.in_sizes[axis], p.padding[axis], p.padding[axis]};
  if (rows == p.out_sizes[axis]) return s;
  const int64_t begin = row * p.stride[axis] - p.padding[axis];
  const int64_t end = begin + (rows - 1) * p.stride[axis] + p.dilation[axis] * (p.window[axis] - 1) + 1;
  s.in_row = std::clamp<int64_t>(begin, 0, p.in_sizes[axis] - 1);
  s.in_rows = std::clamp<int64_t>(end, s.in_row + 1, p.in_sizes[axis]) - s.in_row;
  s.before = s.in_row - begin;
  s.behind = end - (s.in_row + s.in_rows);
  return s;
}

}  // namespace

size_t MatmulHash::operator()(const MatmulProblem& p) const {
  return hash_of({p.batch, p.m, p.n, p.k}, {&p.a_strides, &p.b_strides, &p.c_strides});
}

size_t ConvolutionHash::operator()(const ConvolutionProblem& p) const {
  return hash_of({p.batch, p.groups, p.in, p.out, p.spatial, p.bias, p.transposed, p.x_channels_last,
                  p.y_channels_last, p.by_images},
                 {&p.in_sizes, &p.out_sizes, &p.window, &p.stride, &p.padding, &p.dilation});
}

Pieces pieces_of(const MatmulProblem& p) {
  const auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t threads = device::ThreadPool::global().size();
  const int64_t work = p.batch * p.m * p.n * p.k;
  const int64_t wanted = std::clamp<int64_t>(work / kTask, 1, threads);
  Pieces out{p.batch, p.m, p.n, 1, 1, 1};
  if (p.batch >= wanted) {
    out.batch = ceil_div(p.batch, std::min(p.batch, wanted));
  } else {
    out.batch = 1;
    const int64_t parts = ceil_div(wanted, p.batch);
    // Whole tiles of registers: rows are cut at multiples of 16, columns at multiples of 64.
    if (p.m >= p.n || p.m >= 16 * parts) {
      out.m = std::min(p.m, ceil_div(ceil_div(p.m, parts), 16) * 16);
    } else {
      out.n = std::min(p.n, ceil_div(ceil_div(p.n, parts), 64) * 64);
    }
  }
  out.batches = ceil_div(p.batch, out.batch);
  out.rows = ceil_div(p.m, out.m);
  out.columns = ceil_div(p.n, out.n);
  return out;
}

Dims tail(const std::array<int64_t, 3>& list, int32_t spatial) {
  return {list.end() - spatial, list.end()};
}

Dims with_lead(std::initializer_list<int64_t> lead, const Dims& spatial) {
  Dims out(lead);
  out.insert(out.end(), spatial.begin(), spatial.end());
  return out;
}

Dims dense_strides(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  return strides;
}

Dims image_strides(const Dims& sizes, bool channels_last) {
  if (!channels_last) return dense_strides(sizes);
  Dims moved = {sizes[0]};
  moved.insert(moved.end(), sizes.begin() + 2, sizes.end());
  moved.push_back(sizes[1]);
  Dims strides = dense_strides(moved);
  strides.insert(strides.begin() + 1, strides.back());
  strides.pop_back();
  return strides;
}

Dims x_sizes(const ConvolutionProblem& p) {
  return with_lead({p.batch, p.groups * p.in}, tail(p.in_sizes, p.spatial));
}
Dims y_sizes(const ConvolutionProblem& p) {
  return with_lead({p.batch, p.groups * p.out}, tail(p.out_sizes, p.spatial));
}

std::vector<Slice> slices_of(const ConvolutionProblem& p) {
  const size_t axis = 3 - static_cast<size_t>(p.spatial);
  const auto volume = [](const std::array<int64_t, 3>& list) { return list[0] * list[1] * list[2]; };
  const int64_t rows = p.out_sizes[axis];
  const int64_t image_work = std::max<int64_t>(
      1, p.groups * p.in * p.out * volume(p.window) * volume(p.transposed ? p.in_sizes : p.out_sizes));
  const int64_t threads = p.by_images ? 1 : device::ThreadPool::global().size();
  const int64_t images = p.by_images ? 1
                                     : std::clamp<int64_t>((kTask + image_work - 1) / image_work, 1,
                                                           (p.batch + threads - 1) / threads);
  int64_t pieces = 1;  // of an image
  if (!p.transposed && p.batch < threads) {
    pieces = std::clamp<int64_t>((threads + p.batch - 1) / p.batch, 1,
                                 std::max<int64_t>(1, std::min(rows, image_work / kTask)));
  }
  const int64_t step = (rows + pieces - 1) / pieces;
  std::vector<Slice> slices;
  for (int64_t image = 0; image < p.batch; image += images) {
    for (int64_t row = 0; row < rows; row += step) {
      slices.push_back(
          slice_of(p, image, std::min(images, p.batch - image), row, std::min(step, rows - row)));
    }
  }
  return slices;
}

}  // namespace stax::kernels::onednn
