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

// A primitive and what its operands look like. Its scratch memory is given by each call, which makes it
// shareable.
class Primitive {
 public:
  Primitive(const_dnnl_op_desc_t description, std::vector<Operand> operands)
      : operands_(std::move(operands)) {
    dnnl_primitive_attr_t attributes = nullptr;
    check(dnnl_primitive_attr_create(&attributes), "creating attributes");
    const auto attributes_guard =
        std::unique_ptr<dnnl_primitive_attr, decltype(&dnnl_primitive_attr_destroy)>(
            attributes, dnnl_primitive_attr_destroy);
    check(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
          "choosing the scratchpad");
    dnnl_primitive_desc_t desc = nullptr;
    check(dnnl_primitive_desc_create(&desc, description, attributes, engine(), nullptr),
          "describing a primitive");
    const auto desc_guard = std::unique_ptr<dnnl_primitive_desc, decltype(&dnnl_primitive_desc_destroy)>(
        desc, dnnl_primitive_desc_destroy);
    scratchpad_ = *dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    check(dnnl_primitive_create(&primitive_, desc), "creating a primitive");
  }
  ~Primitive() { dnnl_primitive_destroy(primitive_); }
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  /// Pointers parallel to the operands.
  void run(std::span<void* const> data) const {
    Memories memories;
    for (size_t k = 0; k < operands_.size(); ++k) memories.add(operands_[k].slot, operands_[k].desc, data[k]);
    const size_t bytes = dnnl_memory_desc_get_size(&scratchpad_);
    const std::unique_ptr<void, decltype(&std::free)> scratch(
        bytes == 0 ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
    STAX_RUNTIME_CHECK(bytes == 0 || scratch, "oneDNN: no memory for a scratchpad of {} bytes", bytes);
    if (bytes > 0) memories.add(DNNL_ARG_SCRATCHPAD, scratchpad_, scratch.get());
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

struct MatmulHash {
  size_t operator()(const MatmulProblem& p) const {
    size_t h = 0;
    const auto mix = [&](int64_t v) { h = (h ^ static_cast<size_t>(v)) * 0x9e3779b97f4a7c15u; };
    for (const int64_t v : {p.batch, p.m, p.n, p.k}) mix(v);
    for (const auto* strides : {&p.a_strides, &p.b_strides, &p.c_strides}) {
      for (const int64_t v : *strides) mix(v);
    }
    return h ^ (h >> 32);
  }
};

// Primitives by problem. A program whose shapes never repeat starts afresh now and then.
template <class Problem, class Hash>
class Cache {
 public:
  template <class Make>
  std::shared_ptr<const Primitive> get(const Problem& problem, Make&& make) {
    const std::lock_guard lock(mutex_);
    const auto it = map_.find(problem);
    if (it != map_.end()) return it->second;
    if (map_.size() >= kLimit) map_.clear();
    return map_.emplace(problem, make(problem)).first->second;
  }

 private:
  static constexpr size_t kLimit = 1024;
  std::mutex mutex_;
  std::unordered_map<Problem, std::shared_ptr<const Primitive>, Hash> map_;
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
  return std::make_shared<Primitive>(&op, operands);
}

}  // namespace

bool reads_directly(const std::array<int64_t, 3>& strides, int64_t batch, int64_t rows, int64_t columns) {
  const bool by_rows = strides[2] == 1 && strides[1] >= columns;
  const bool by_columns = strides[1] == 1 && strides[2] >= rows;
  if (!by_rows && !by_columns) return false;
  return batch == 1 || strides[0] >= (by_rows ? rows * strides[1] : columns * strides[2]);
}

void matmul(const MatmulProblem& problem, const float* a, const float* b, float* c) {
  static Cache<MatmulProblem, MatmulHash> cache;
  const std::array<void*, 3> data = {const_cast<float*>(a), const_cast<float*>(b), c};
  cache.get(problem, make_matmul)->run(data);
}

}  // namespace stax::kernels::onednn
