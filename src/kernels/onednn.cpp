#include "kernels/onednn.h"

#include <dnnl.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/check.h"

namespace stax::kernels::onednn {
namespace {

void check(dnnl_status_t status, const char* what) {
  STAX_RUNTIME_CHECK(status == dnnl_success, "oneDNN: {} failed with status {}", what,
                     static_cast<int>(status));
}

dnnl_engine_t engine() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t e = nullptr;
    check(dnnl_engine_create(&e, dnnl_cpu, 0), "creating the engine");
    return e;
  }();
  return engine;
}

// The CPU stream holds no state between calls.
dnnl_stream_t stream() {
  static const dnnl_stream_t stream = [] {
    dnnl_stream_t s = nullptr;
    check(dnnl_stream_create(&s, engine(), dnnl_stream_default_flags), "creating the stream");
    return s;
  }();
  return stream;
}

struct Operand {
  int slot;  // DNNL_ARG_SRC, ...
  dnnl_memory_desc_t desc;
};

dnnl_memory_desc_t strided(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  dnnl_memory_desc_t desc;
  check(dnnl_memory_desc_init_by_strides(&desc, static_cast<int>(sizes.size()), sizes.data(), dnnl_f32,
                                         strides.data()),
        "describing a tensor");
  return desc;
}

using Memory = std::unique_ptr<void, decltype(&std::free)>;

// Null for no bytes.
Memory allocate(const dnnl_memory_desc_t& desc) {
  const size_t bytes = dnnl_memory_desc_get_size(&desc);
  Memory memory(bytes == 0 ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
  STAX_RUNTIME_CHECK(bytes == 0 || memory, "oneDNN: no memory for {} bytes", bytes);
  return memory;
}

struct Destroy {
  void operator()(dnnl_primitive_attr_t attributes) const { dnnl_primitive_attr_destroy(attributes); }
  void operator()(dnnl_primitive_desc_t desc) const { dnnl_primitive_desc_destroy(desc); }
};
using Attributes = std::unique_ptr<dnnl_primitive_attr, Destroy>;
using Description = std::unique_ptr<dnnl_primitive_desc, Destroy>;

// Scratch memory is given by each call, which makes primitives shareable.
Attributes user_scratchpad() {
  dnnl_primitive_attr_t attributes = nullptr;
  check(dnnl_primitive_attr_create(&attributes), "creating attributes");
  Attributes owned(attributes);
  check(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
        "choosing the scratchpad");
  return owned;
}

// Null where oneDNN has no implementation.
Description try_describe(const_dnnl_op_desc_t operation) {
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status =
      dnnl_primitive_desc_create(&desc, operation, user_scratchpad().get(), engine(), nullptr);
  if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) return nullptr;
  check(status, "describing a primitive");
  return Description(desc);
}

Description describe(const_dnnl_op_desc_t operation) {
  Description desc = try_describe(operation);
  check(desc ? dnnl_success : dnnl_unimplemented, "describing a primitive");
  return desc;
}

// A primitive and what its operands look like.
class Primitive {
 public:
  Primitive(const Description& desc, std::vector<Operand> operands) : operands_(std::move(operands)) {
    scratchpad_ = *dnnl_primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
    check(dnnl_primitive_create(&primitive_, desc.get()), "creating a primitive");
  }
  ~Primitive() { dnnl_primitive_destroy(primitive_); }
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  /// Pointers parallel to the operands.
  void run(std::span<void* const> data) const {
    Memories memories;
    for (size_t k = 0; k < operands_.size(); ++k) memories.add(operands_[k].slot, operands_[k].desc, data[k]);
    const Memory scratch = allocate(scratchpad_);
    if (scratch) memories.add(DNNL_ARG_SCRATCHPAD, scratchpad_, scratch.get());
    check(dnnl_primitive_execute(primitive_, stream(), static_cast<int>(memories.list.size()),
                                 memories.list.data()),
          "running a primitive");
    check(dnnl_stream_wait(stream()), "waiting");
  }

 private:
  struct Memories {
    std::vector<dnnl_exec_arg_t> list;
    ~Memories() {
      for (const dnnl_exec_arg_t& m : list) dnnl_memory_destroy(m.memory);
    }
    void add(int slot, const dnnl_memory_desc_t& desc, void* data) {
      dnnl_memory_t memory = nullptr;
      check(dnnl_memory_create(&memory, &desc, engine(), data), "wrapping a tensor");
      list.push_back({slot, memory});
    }
  };

  std::vector<Operand> operands_;
  dnnl_memory_desc_t scratchpad_{};
  dnnl_primitive_t primitive_ = nullptr;
};

size_t hash_of(std::initializer_list<int64_t> numbers,
               std::initializer_list<const std::array<int64_t, 3>*> lists) {
  size_t h = 0;
  const auto mix = [&](int64_t v) { h = (h ^ static_cast<size_t>(v)) * 0x9e3779b97f4a7c15u; };
  for (const int64_t v : numbers) mix(v);
  for (const auto* list : lists) {
    for (const int64_t v : *list) mix(v);
  }
  return h ^ (h >> 32);
}

struct MatmulHash {
  size_t operator()(const MatmulProblem& p) const {
    return hash_of({p.batch, p.m, p.n, p.k}, {&p.a_strides, &p.b_strides, &p.c_strides});
  }
};

struct ConvolutionHash {
  size_t operator()(const ConvolutionProblem& p) const {
    return hash_of({p.batch, p.groups, p.in, p.out, p.spatial, p.bias, p.transposed},
                   {&p.in_sizes, &p.out_sizes, &p.window, &p.stride, &p.padding, &p.dilation});
  }
};

// Primitives by problem. A program whose shapes never repeat starts afresh now and then.
template <class Problem, class Hash, class Made>
class Cache {
 public:
  template <class Make>
  std::shared_ptr<const Made> get(const Problem& problem, Make&& make) {
    const std::lock_guard lock(mutex_);
    const auto it = map_.find(problem);
    if (it != map_.end()) return it->second;
    if (map_.size() >= kLimit) map_.clear();
    return map_.emplace(problem, make(problem)).first->second;
  }

 private:
  static constexpr size_t kLimit = 1024;
  std::mutex mutex_;
  std::unordered_map<Problem, std::shared_ptr<const Made>, Hash> map_;
};

std::shared_ptr<const Primitive> make_matmul(const MatmulProblem& p) {
  const auto desc = [&](int64_t rows, int64_t columns, const std::array<int64_t, 3>& strides) {
    const std::array<int64_t, 3> sizes = {p.batch, rows, columns};
    const size_t skip = p.batch == 1 ? 1 : 0;
    return strided(std::span(sizes).subspan(skip), std::span(strides).subspan(skip));
  };
  const std::vector<Operand> operands = {{DNNL_ARG_SRC, desc(p.m, p.k, p.a_strides)},
                                         {DNNL_ARG_WEIGHTS, desc(p.k, p.n, p.b_strides)},
                                         {DNNL_ARG_DST, desc(p.m, p.n, p.c_strides)}};
  dnnl_matmul_desc_t op;
  check(dnnl_matmul_desc_init(&op, &operands[0].desc, &operands[1].desc, nullptr, &operands[2].desc),
        "describing a matrix product");
  return std::make_shared<Primitive>(describe(&op), operands);
}

// The sizes and row-major strides of an operand, as oneDNN counts dimensions.
using Dims = std::vector<dnnl_dim_t>;

Dims tail(const std::array<int64_t, 3>& list, int32_t spatial) {
  return {list.end() - spatial, list.end()};
}

Dims with_lead(std::initializer_list<dnnl_dim_t> lead, const Dims& spatial) {
  Dims out(lead);
  out.insert(out.end(), spatial.begin(), spatial.end());
  return out;
}

dnnl_memory_desc_t dense(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  return strided(sizes, strides);
}

dnnl_memory_desc_t in_any_layout(const dnnl_memory_desc_t& plain) {
  dnnl_memory_desc_t desc;
  check(dnnl_memory_desc_init_by_tag(&desc, plain.ndims, plain.dims, dnnl_f32, dnnl_format_tag_any),
        "describing a tensor");
  return desc;
}

// The weights as oneDNN names their dimensions: groups, outputs, inputs, window. Ours lie with inputs before
// outputs when the convolution is transposed.
dnnl_memory_desc_t weights_of(const ConvolutionProblem& p) {
  const Dims window = tail(p.window, p.spatial);
  Dims sizes =
      p.transposed ? with_lead({p.groups, p.in, p.out}, window) : with_lead({p.groups, p.out, p.in}, window);
  Dims strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  if (p.transposed) {
    std::swap(sizes[1], sizes[2]);
    std::swap(strides[1], strides[2]);
  }
  const size_t skip = p.groups == 1 ? 1 : 0;
  return strided(std::span(sizes).subspan(skip), std::span(strides).subspan(skip));
}

// A convolution in the layouts that oneDNN likes best, with copies from and to the plain ones.
class Convolution {
 public:
  /// Null where oneDNN has no implementation.
  static std::shared_ptr<const Convolution> make(const ConvolutionProblem& p);

  /// Pointers parallel to the operands: input, weights, result, and the bias where there is one.
  void run(std::span<void* const> data) const {
    std::vector<void*> used(data.begin(), data.end());
    std::vector<Memory> copies;
    for (size_t k = 0; k < wanted_.size(); ++k) {
      if (!reorders_[k]) continue;
      copies.push_back(allocate(wanted_[k].desc));
      used[k] = copies.back().get();
      if (k != kResult) reorders_[k]->run(std::array<void*, 2>{data[k], used[k]});
    }
    primitive_->run(used);
    if (reorders_[kResult]) reorders_[kResult]->run(std::array<void*, 2>{used[kResult], data[kResult]});
  }

 private:
  static constexpr size_t kResult = 2;

  std::vector<Operand> wanted_;
  std::vector<std::unique_ptr<Primitive>> reorders_;  // null where the layouts agree
  std::unique_ptr<Primitive> primitive_;
};

std::unique_ptr<Primitive> reorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to) {
  dnnl_primitive_desc_t desc = nullptr;
  check(dnnl_reorder_primitive_desc_create(&desc, &from, engine(), &to, engine(), user_scratchpad().get()),
        "describing a copy");
  return std::make_unique<Primitive>(Description(desc),
                                     std::vector<Operand>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

Description describe_convolution(const ConvolutionProblem& p, const std::vector<Operand>& plain) {
  const Dims stride = tail(p.stride, p.spatial), padding = tail(p.padding, p.spatial);
  Dims dilation = tail(p.dilation, p.spatial);  // oneDNN counts the elements left out
  for (dnnl_dim_t& d : dilation) --d;
  Dims behind = padding;
  const size_t skip = 3 - static_cast<size_t>(p.spatial);
  for (size_t d = 0; p.transposed && d < behind.size(); ++d) {
    // What the window reaches beyond the result: less than in front of it by the output padding.
    const size_t at = skip + d;
    behind[d] = (p.in_sizes[at] - 1) * p.stride[at] + p.dilation[at] * (p.window[at] - 1) + 1 -
                p.out_sizes[at] - p.padding[at];
  }
  const auto x = in_any_layout(plain[0].desc), w = in_any_layout(plain[1].desc),
             y = in_any_layout(plain[2].desc);
  const dnnl_memory_desc_t* bias = p.bias ? &plain[3].desc : nullptr;
  if (p.transposed) {
    dnnl_deconvolution_desc_t op;
    const dnnl_status_t status = dnnl_dilated_deconvolution_forward_desc_init(
        &op, dnnl_forward_inference, dnnl_deconvolution_direct, &x, &w, bias, &y, stride.data(),
        dilation.data(), padding.data(), behind.data());
    return status == dnnl_success ? try_describe(&op) : nullptr;
  }
  dnnl_convolution_desc_t op;
  const dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
      &op, dnnl_forward_inference, dnnl_convolution_direct, &x, &w, bias, &y, stride.data(), dilation.data(),
      padding.data(), behind.data());
  return status == dnnl_success ? try_describe(&op) : nullptr;
}

std::shared_ptr<const Convolution> Convolution::make(const ConvolutionProblem& p) {
  std::vector<Operand> plain = {
      {DNNL_ARG_SRC, dense(with_lead({p.batch, p.groups * p.in}, tail(p.in_sizes, p.spatial)))},
      {DNNL_ARG_WEIGHTS, weights_of(p)},
      {DNNL_ARG_DST, dense(with_lead({p.batch, p.groups * p.out}, tail(p.out_sizes, p.spatial)))}};
  if (p.bias) plain.push_back({DNNL_ARG_BIAS, dense({p.groups * p.out})});
  const Description desc = describe_convolution(p, plain);
  if (!desc) return nullptr;
  auto made = std::make_shared<Convolution>();
  for (const Operand& o : plain) {
    const auto* md = dnnl_primitive_desc_query_md(desc.get(), dnnl_query_exec_arg_md, o.slot);
    made->wanted_.push_back({o.slot, *md});
    std::unique_ptr<Primitive> copy;
    if (!dnnl_memory_desc_equal(md, &o.desc))
      copy = o.slot == DNNL_ARG_DST ? reorder(*md, o.desc) : reorder(o.desc, *md);
    made->reorders_.push_back(std::move(copy));
  }
  made->primitive_ = std::make_unique<Primitive>(desc, made->wanted_);
  return made;
}

}  // namespace

bool reads_directly(const std::array<int64_t, 3>& strides, int64_t batch, int64_t rows, int64_t columns) {
  const bool by_rows = strides[2] == 1 && strides[1] >= columns;
  const bool by_columns = strides[1] == 1 && strides[2] >= rows;
  if (!by_rows && !by_columns) return false;
  return batch == 1 || strides[0] >= (by_rows ? rows * strides[1] : columns * strides[2]);
}

void matmul(const MatmulProblem& problem, const float* a, const float* b, float* c) {
  static Cache<MatmulProblem, MatmulHash, Primitive> cache;
  const std::array<void*, 3> data = {const_cast<float*>(a), const_cast<float*>(b), c};
  cache.get(problem, make_matmul)->run(data);
}

bool convolution(const ConvolutionProblem& problem, const float* x, const float* weight, const float* bias,
                 float* y) {
  static Cache<ConvolutionProblem, ConvolutionHash, Convolution> cache;
  const std::shared_ptr<const Convolution> made = cache.get(problem, Convolution::make);
  if (!made) return false;
  const std::array<void*, 4> data = {const_cast<float*>(x), const_cast<float*>(weight), y,
                                     const_cast<float*>(bias)};
  made->run(std::span(data).first(problem.bias ? 4 : 3));
  return true;
}

}  // namespace stax::kernels::onednn
