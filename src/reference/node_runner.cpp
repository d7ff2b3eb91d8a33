#include "reference/node_runner.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "device/thread_pool.h"
#include "support/check.h"

namespace stax::reference {

namespace {

constexpr int64_t kSerialWork = 32768;  // points below which threads cost more than they bring

int size_log2(DType dtype) {
  return std::countr_zero(static_cast<unsigned>(itemsize(dtype)));
}

/// Copies past the caches: the lines of `to` are not read before they are written. Weakly ordered, so the
/// thread that streamed has to pass a fence.
void stream(std::byte* to, const std::byte* from, size_t bytes) {
#ifdef __SSE2__
  constexpr size_t kLine = 64;
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    for (size_t k = 0; k < kLine; k += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + k),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + k)));
  }
  to += at, from += at, bytes -= at;
#endif
  std::memcpy(to, from, bytes);
}
void stream_fence() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

/// One thread's walk over a part of the iteration space.
class Walker {
 public:
  explicit Walker(const NodeRun& run)
      : run_(run),
        plan_(run.plan),
        memory_(block_kernels().memory),
        scratch_(plan_.workspace + static_cast<int64_t>(plan_.registers.size() * sizeof(void*))) {
    regs_ = reinterpret_cast<void**>(scratch_.data() + plan_.workspace);
    for (size_t i = 0; i < plan_.registers.size(); ++i) bind(i);
  }

  void walk(int64_t begin, int64_t end) {
    const int64_t size = plan_.iteration.size, block = plan_.block;
    const int64_t chunks = (size + block - 1) / block;
    set_point(plan_.iteration_scalars, begin / chunks);
    int64_t chunk = begin % chunks;
    for (int64_t unit = begin; unit < end; ++unit) {
      unit_ = unit;
      iteration_at_ = chunk * block;
      iteration_n_ = std::min(block, size - iteration_at_);
      point();
      if (++chunk == chunks) {
        chunk = 0;
        next_point(plan_.iteration_scalars);
      }
    }
    if (plan_.streams) stream_fence();
  }

 private:
  /// A register's pointer: constants lie in the plan, scalars are converted once, slots lie in the workspace.
  void bind(size_t i) {
    const Register& reg = plan_.registers[i];
    regs_[i] = reg.offset >= 0 ? scratch_.data() + reg.offset : nullptr;
    if (reg.kind == Register::Kind::constant) {
      regs_[i] = const_cast<std::byte*>(reg.constant);
    } else if (reg.kind == Register::Kind::scalar) {
      STAX_ASSERT(reg.scalar < static_cast<int32_t>(run_.scalars.size()), "run-time scalar {} was not given",
                  reg.scalar);
      const loops::Constant value = run_.scalars[reg.scalar];
      const auto narrow = static_cast<float>(value.as_double());
      std::memcpy(regs_[i], &value, sizeof value);  // integers: little end first
      if (reg.dtype == DType::float32) std::memcpy(regs_[i], &narrow, sizeof narrow);
    }
  }

  void set_point(const std::vector<int32_t>& dims, int64_t position) {
    for (size_t k = dims.size(); k-- > 0;) {
      const int64_t extent =
          std::max<int64_t>(plan_.extents[dims[k]], 1);  // an empty one has no point to set
      index_[dims[k]] = position % extent;
      position /= extent;
    }
  }
  void next_point(const std::vector<int32_t>& dims) {
    for (size_t k = dims.size(); k-- > 0;) {
      if (++index_[dims[k]] < plan_.extents[dims[k]]) return;
      index_[dims[k]] = 0;
    }
  }

  void point() {
    iteration_block(plan_.before);
    if (!plan_.has_reduction()) return;
    for (const Collective& c : plan_.reductions) c.reduce.init(state(c), lanes());
    reduction_pass(plan_.during);
    if (plan_.mode == Mode::inner) {
      const int64_t used = std::min({kLanes, plan_.reduction.size, kBlock});
      for (const Collective& c : plan_.reductions) {
        if (used > 1) c.reduce.combine(state(c), kLanes, used);
      }
    }
    iteration_block(plan_.after);
    if (!plan_.tail.empty()) reduction_pass(plan_.tail);
  }

  void* state(const Collective& c) const { return scratch_.data() + c.offset; }
  int64_t lanes() const { return plan_.mode == Mode::outer ? iteration_n_ : kLanes; }
  int64_t scan_lanes() const { return plan_.mode == Mode::outer ? iteration_n_ : 1; }

  void iteration_block(const std::vector<Step>& steps) {
    domain_ = &plan_.iteration;
    at_ = iteration_at_;
    n_ = iteration_n_;
    for (const Step& s : steps) step(s);
  }

  void reduction_pass(const std::vector<Step>& steps) {
    for (const Collective& c : plan_.scans) c.scan.init(state(c), scan_lanes());
    const bool along = plan_.mode == Mode::inner;
    const int64_t size = along ? plan_.reduction.size : 1;
    set_point(plan_.reduction_scalars, 0);
    for (int64_t r = 0; r < plan_.reduction_points; ++r) {
      for (int64_t at = 0; at < size; at += kBlock) {
        position_ = r * size + at;
        domain_ = along ? &plan_.reduction : &plan_.iteration;
        at_ = along ? at : iteration_at_;
        n_ = along ? std::min(kBlock, size - at) : iteration_n_;
        for (const Step& s : steps) step(s);
      }
      next_point(plan_.reduction_scalars);
    }
  }

  // --- Steps ---

  void step(const Step& s) {
    const int64_t n = s.uniform ? 1 : n_;
    switch (s.kind) {
      case StepKind::elementwise:
        if (s.direct) regs_[s.out] = address(s.access, itemsize(s.dtype));
        s.kernel(regs_[s.out], get(s.a), get(s.b), get(s.c), n);
        return;
      case StepKind::splat:
        memory_.splat[size_log2(s.dtype)](regs_[s.out], regs_[s.a], n);
        return;
      case StepKind::copy:
        std::memcpy(regs_[s.out], regs_[s.a], static_cast<size_t>(n * itemsize(s.dtype)));
        return;
      case StepKind::load:
        return load(s, n);
      case StepKind::store:
        return store(s, n);
      case StepKind::atomic_add:
        return add(s, n);
      case StepKind::iota:
        return iota(s, n);
      case StepKind::check_index:
        return check_index(s, n);
      case StepKind::random_bits:
        memory_.random_bits(ints(s.out), ints(s.a), ints(s.b), s.number, n);
        return;
      case StepKind::accumulate:
        plan_.reductions[s.number].reduce.accumulate(state(plan_.reductions[s.number]), lanes(), get(s.a),
                                                     get(s.b), get(s.c), n_, position_,
                                                     plan_.mode == Mode::inner);
        return;
      case StepKind::scan:
        plan_.scans[s.number].scan.scan(state(plan_.scans[s.number]), scan_lanes(), get(s.a), regs_[s.out],
                                        get(s.out2), n_, position_, plan_.mode == Mode::inner);
        return;
      case StepKind::finish:
        plan_.reductions[s.number].reduce.finish(state(plan_.reductions[s.number]), lanes(), s.number2,
                                                 regs_[s.out], plan_.mode == Mode::inner ? 1 : n_);
        return;
    }
  }

  void* get(int32_t r) const { return r < 0 ? nullptr : regs_[r]; }
  int64_t* ints(int32_t r) const { return static_cast<int64_t*>(regs_[r]); }
  const uint8_t* mask(int32_t r) const { return r < 0 ? nullptr : static_cast<const uint8_t*>(regs_[r]); }

  /// Offset of the block's first element, or of element 0 of the domain where the access is not linear.
  int64_t offset(const Access& a) const {
    int64_t at = a.base + a.stride * (a.linear ? at_ : 0);
    for (const auto& [dim, stride] : a.scalar) at += stride * index_[dim];
    if (a.offset >= 0) at += *ints(a.offset);
    return at;
  }
  std::byte* address(const Access& a, int64_t size) const {
    return static_cast<std::byte*>(run_.buffers[a.buffer]) + offset(a) * size;
  }

  /// Calls body(first element of the run, element offset, stride, elements) for runs along the innermost
  /// dimension of the domain that cover the block.
  template <class F>
  void segments(const Access& a, int64_t n, F&& body) const {
    const Domain& d = *domain_;
    const size_t rank = d.extents.size();
    int64_t idx[kMaxDims];
    int64_t rest = at_;
    int64_t at = 0;
    for (size_t k = rank; k-- > 0;) {
      idx[k] = rest % d.extents[k];
      rest /= d.extents[k];
      at += idx[k] * a.strides[k];
    }
    const size_t inner = rank - 1;
    for (int64_t done = 0; done < n;) {
      const int64_t count = std::min(n - done, d.extents[inner] - idx[inner]);
      body(done, at, a.strides[inner], count);
      done += count;
      idx[inner] += count;
      at += count * a.strides[inner];
      for (size_t k = inner; idx[k] == d.extents[k] && k > 0; --k) {
        at += a.strides[k - 1] - idx[k] * a.strides[k];
        idx[k] = 0;
        ++idx[k - 1];
      }
    }
  }

  /// All elements of the mask are `value`.
  static bool all(const uint8_t* m, uint8_t value, int64_t n) {
    return std::memchr(m, 1 - value, static_cast<size_t>(n)) == nullptr;
  }

  void load(const Step& s, int64_t n) {
    const int64_t size = itemsize(s.dtype);
    const Access& a = s.access;
    const uint8_t* m = mask(s.c);
    void* home = scratch_.data() + plan_.registers[s.out].offset;
    if (m && all(m, 0, n)) {
      regs_[s.out] = home;
      std::memset(home, 0, static_cast<size_t>(n * itemsize(plan_.registers[s.out].dtype)));
      return;
    }
    if (m && all(m, 1, n)) m = nullptr;
    const std::byte* from = address(a, size);
    const bool contiguous = !m && a.linear && a.offsets < 0 && (a.stride == 1 || n == 1);
    if (contiguous && !is_half(s.dtype) && !s.copies) {
      regs_[s.out] = const_cast<std::byte*>(from);
      return;
    }
    regs_[s.out] = home;
    if (!is_half(s.dtype)) return gather(s, m, from, home, n);
    if (contiguous) return widen(s.dtype, static_cast<float*>(home), from, n);
    alignas(64) uint16_t halves[kBlock];
    gather(s, m, from, halves, n);
    widen(s.dtype, static_cast<float*>(home), halves, n);
  }

  void widen(DType dtype, float* out, const void* in, int64_t n) const {
    memory_.widen[dtype == DType::float16 ? 0 : 1](out, static_cast<const uint16_t*>(in), n);
  }

  void gather(const Step& s, const uint8_t* m, const std::byte* from, void* out, int64_t n) const {
    const Access& a = s.access;
    const int log2 = size_log2(s.dtype);
    if (a.linear) {
      if (!m && a.offsets < 0 && a.stride == 1) {
        std::memcpy(out, from, static_cast<size_t>(n << log2));
      } else if (!m && a.offsets < 0) {
        memory_.gather_strided[log2](out, from, a.stride, n);
      } else {
        memory_.gather[log2](out, from, a.stride, a.offsets < 0 ? nullptr : ints(a.offsets), m, n);
      }
      return;
    }
    segments(a, n, [&](int64_t first, int64_t at, int64_t stride, int64_t count) {
      std::byte* to = static_cast<std::byte*>(out) + (first << log2);
      if (m) {
        memory_.gather[log2](to, from + at * (int64_t{1} << log2), stride, nullptr, m + first, count);
      } else {
        memory_.gather_strided[log2](to, from + at * (int64_t{1} << log2), stride, count);
      }
    });
  }

  void store(const Step& s, int64_t n) {
    const uint8_t* m = mask(s.c);
    if (m && all(m, 0, n)) return;
    const void* value = regs_[s.a];
    std::byte* to = address(s.access, itemsize(s.dtype));
    if (!is_half(s.dtype)) return scatter(s, m, to, value, n);
    const auto narrow = memory_.narrow[s.dtype == DType::float16 ? 0 : 1];
    const auto* floats = static_cast<const float*>(value);
    if (!m && s.access.linear && s.access.offsets < 0 && s.access.stride == 1) {
      return narrow(reinterpret_cast<uint16_t*>(to), floats, n);
    }
    alignas(64) uint16_t halves[kBlock];
    narrow(halves, floats, n);
    scatter(s, m, to, halves, n);
  }

  void scatter(const Step& s, const uint8_t* m, std::byte* to, const void* in, int64_t n) const {
    const Access& a = s.access;
    const int log2 = size_log2(s.dtype);
    if (a.linear) {
      if (!m && a.offsets < 0 && a.stride == 1) {
        copy_out(s, to, in, static_cast<size_t>(n << log2));
      } else if (!m && a.offsets < 0) {
        memory_.scatter_strided[log2](to, a.stride, in, n);
      } else {
        memory_.scatter[log2](to, a.stride, a.offsets < 0 ? nullptr : ints(a.offsets), m, in, n);
      }
      return;
    }
    segments(a, n, [&](int64_t first, int64_t at, int64_t stride, int64_t count) {
      const std::byte* from = static_cast<const std::byte*>(in) + (first << log2);
      std::byte* target = to + at * (int64_t{1} << log2);
      memory_.scatter[log2](target, stride, nullptr, m ? m + first : nullptr, from, count);
    });
  }

  void copy_out(const Step& s, std::byte* to, const void* in, size_t bytes) const {
    s.stream ? stream(to, static_cast<const std::byte*>(in), bytes) : void(std::memcpy(to, in, bytes));
  }

  void add(const Step& s, int64_t n) {
    const Access& a = s.access;
    const uint8_t* m = mask(s.c);
    const auto kernel = memory_.atomic_add[static_cast<int>(s.dtype)];
    const int64_t size = itemsize(s.dtype), value_size = itemsize(loops::compute_dtype(s.dtype));
    std::byte* to = address(a, size);
    const auto* in = static_cast<const std::byte*>(regs_[s.a]);
    if (a.linear) return kernel(to, a.stride, a.offsets < 0 ? nullptr : ints(a.offsets), m, in, n);
    segments(a, n, [&](int64_t first, int64_t at, int64_t stride, int64_t count) {
      kernel(to + at * size, stride, nullptr, m ? m + first : nullptr, in + first * value_size, count);
    });
  }

  void iota(const Step& s, int64_t n) {
    const Access& a = s.access;
    const int64_t first = offset(a);
    int64_t* out = ints(s.out);
    if (a.linear) return memory_.iota(out, first, a.stride, n);
    segments(a, n, [&](int64_t done, int64_t at, int64_t stride, int64_t count) {
      memory_.iota(out + done, first + at, stride, count);
    });
  }

  void check_index(const Step& s, int64_t n) {
    const int64_t size = *ints(s.b);
    const uint8_t* m = mask(s.c);
    const int64_t* index = ints(s.a);
    if (memory_.check_index(ints(s.out), index, size, m, s.number == 1, n) == 0) return;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = index[k] + (s.number == 1 && index[k] < 0 ? size : 0);
      if ((m && !m[k]) || (i >= 0 && i < size)) continue;
      return run_.failure->record(run_.node, unit_, index[k], size);
    }
  }

  const NodeRun& run_;
  const NodePlan& plan_;
  const MemoryKernels& memory_;
  Scratch scratch_;
  void** regs_ = nullptr;
  std::array<int64_t, kMaxDims> index_ = {};
  const Domain* domain_ = nullptr;
  int64_t at_ = 0, n_ = 1;  // the block: its first position in the domain, its elements
  int64_t iteration_at_ = 0, iteration_n_ = 1, position_ = 0, unit_ = 0;
};

}  // namespace

void IndexFailure::record(int64_t node, int64_t block, int64_t index, int64_t size) {
  const std::lock_guard lock(mutex_);
  if (any() && std::make_pair(node_, block_) <= std::make_pair(node, block)) return;
  node_ = node;
  block_ = block;
  index_ = index;
  size_ = size;
  any_ = true;
}

void run_node(const NodeRun& run) {
  const NodePlan& plan = run.plan;
  if (plan.empty) return;
  const int64_t chunks = (plan.iteration.size + plan.block - 1) / plan.block;
  const int64_t units = plan.iteration_points * chunks;
  const int64_t work = plan.work / std::max<int64_t>(units, 1) + 1;
  if (plan.work < kSerialWork || units == 1) return Walker(run).walk(0, units);
  device::ThreadPool::global().parallel_for(0, units, std::max<int64_t>(1, kSerialWork / work),
                                            [&](int64_t b, int64_t e) { Walker(run).walk(b, e); });
}

}  // namespace stax::reference
