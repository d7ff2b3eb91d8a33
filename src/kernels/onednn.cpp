#include "kernels/onednn.h"

#include <dlfcn.h>
#include <dnnl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/cpu_allocator.h"
#include "device/thread_pool.h"
#include "kernels/onednn_problem.h"
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

// oneDNN brings OpenMP threads of its own, which keep spinning for milliseconds after a call and take the
// processors from the pool's. So it computes on the thread that calls it, and the pool shares out the work.
// OpenMP keeps the number for each calling thread; without OpenMP oneDNN has no other threads.
class OneThread {
 public:
  OneThread() : before_(functions().get ? functions().get() : 1) {
    if (before_ != 1) functions().set(1);
  }
  ~OneThread() {
    if (before_ != 1) functions().set(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  struct Functions {
    int (*get)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
    void (*set)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  };
  static const Functions& functions() {
    static const Functions found;
    return found;
  }
  int before_;
};

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

// A block of the allocator, which keeps it for the next call. Null for no bytes.
class Memory {
 public:
  Memory() = default;
  explicit Memory(const dnnl_memory_desc_t& desc) : bytes_(dnnl_memory_desc_get_size(&desc)) {
    if (bytes_ > 0) data_ = device::CpuAllocator::global().allocate(static_cast<int64_t>(bytes_));
  }
  Memory(Memory&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Memory() { device::CpuAllocator::global().deallocate(data_, static_cast<int64_t>(bytes_)); }
  void* get() const { return data_; }

 private:
  size_t bytes_ = 0;
  void* data_ = nullptr;
};

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
    const Memory scratch(scratchpad_);
    if (scratch.get()) memories.add(DNNL_ARG_SCRATCHPAD, scratchpad_, scratch.get());
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

// ---- matrix products ----

struct MatmulOperands {
  Operand a, b, c;
};

MatmulOperands operands_of(const MatmulProblem& p) {
  const auto desc = [&](int64_t rows, int64_t columns, const std::array<int64_t, 3>& strides) {
    const std::array<int64_t, 3> sizes = {p.batch, rows, columns};
    const size_t skip = p.batch == 1 ? 1 : 0;
    return strided(std::span(sizes).subspan(skip), std::span(strides).subspan(skip));
  };
  return {{DNNL_ARG_SRC, desc(p.m, p.k, p.a_strides)},
          {DNNL_ARG_WEIGHTS, desc(p.k, p.n, p.b_strides)},
          {DNNL_ARG_DST, desc(p.m, p.n, p.c_strides)}};
}

std::shared_ptr<const Primitive> make_matmul(const MatmulOperands& o, dnnl_memory_desc_t* packed = nullptr) {
  const OneThread one;
  std::vector<Operand> operands = {o.a, o.b, o.c};
  if (packed != nullptr) operands[1].desc = *packed;
  dnnl_matmul_desc_t op;
  check(dnnl_matmul_desc_init(&op, &operands[0].desc, &operands[1].desc, nullptr, &operands[2].desc),
        "describing a matrix product");
  const Description desc = describe(&op);
  if (packed != nullptr) {
    *packed = *dnnl_primitive_desc_query_md(desc.get(), dnnl_query_exec_arg_md, DNNL_ARG_WEIGHTS);
    operands[1].desc = *packed;
  }
  return std::make_shared<Primitive>(desc, std::move(operands));
}

// Calls f(problem, column piece, offsets into a, b and c) for each piece, on the pool's threads.
template <class F>
void for_each_piece(const MatmulProblem& p, const Pieces& pieces, F&& f) {
  device::ThreadPool::global().parallel_for(0, pieces.count(), 1, [&](int64_t begin, int64_t end) {
    const OneThread one;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t column = t % pieces.columns, row = t / pieces.columns % pieces.rows;
      const int64_t b = t / (pieces.columns * pieces.rows) * pieces.batch, i = row * pieces.m,
                    j = column * pieces.n;
      MatmulProblem part = p;
      part.batch = std::min(pieces.batch, p.batch - b);
      part.m = std::min(pieces.m, p.m - i);
      part.n = std::min(pieces.n, p.n - j);
      f(part, static_cast<size_t>(column), b * p.a_strides[0] + i * p.a_strides[1],
        b * p.b_strides[0] + j * p.b_strides[2],
        b * p.c_strides[0] + i * p.c_strides[1] + j * p.c_strides[2]);
    }
  });
}

std::shared_ptr<const Primitive> find_matmul(const MatmulProblem& problem) {
  static Cache<MatmulProblem, MatmulHash, Primitive> cache;
  return cache.get(problem, [](const MatmulProblem& p) { return make_matmul(operands_of(p)); });
}

std::unique_ptr<Primitive> reorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to) {
  dnnl_primitive_desc_t desc = nullptr;
  check(dnnl_reorder_primitive_desc_create(&desc, &from, engine(), &to, engine(), user_scratchpad().get()),
        "describing a copy");
  return std::make_unique<Primitive>(Description(desc),
                                     std::vector<Operand>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

dnnl_memory_desc_t in_any_layout(const dnnl_memory_desc_t& plain) {
  dnnl_memory_desc_t desc;
  check(dnnl_memory_desc_init_by_tag(&desc, plain.ndims, plain.dims, dnnl_f32, dnnl_format_tag_any),
        "describing a tensor");
  return desc;
}

// ---- convolutions ----

// The weights as oneDNN names their dimensions: groups, outputs, inputs, window. Ours lie with inputs before
// outputs when the convolution is transposed.
dnnl_memory_desc_t weights_of(const ConvolutionProblem& p) {
  const Dims window = tail(p.window, p.spatial);
  Dims sizes =
      p.transposed ? with_lead({p.groups, p.in, p.out}, window) : with_lead({p.groups, p.out, p.in}, window);
  Dims strides = dense_strides(sizes);
  if (p.transposed) {
    std::swap(sizes[1], sizes[2]);
    std::swap(strides[1], strides[2]);
  }
  const size_t skip = p.groups == 1 ? 1 : 0;
  return strided(std::span(sizes).subspan(skip), std::span(strides).subspan(skip));
}

// The layouts in which a part's operands are wanted; `weights` and later ones as the first part has them.
struct Wanted {
  dnnl_memory_desc_t x, weights, y;
};

Description describe_convolution(const ConvolutionProblem& p, const Slice& s, const Wanted& wanted) {
  const Dims stride = tail(p.stride, p.spatial);
  Dims dilation = tail(p.dilation, p.spatial);  // oneDNN counts the elements left out
  for (dnnl_dim_t& d : dilation) --d;
  Dims before = tail(p.padding, p.spatial), behind = before;
  before[0] = s.before;
  behind[0] = s.behind;
  const size_t skip = 3 - static_cast<size_t>(p.spatial);
  for (size_t d = 0; p.transposed && d < behind.size(); ++d) {
    // What the window reaches beyond the result: less than in front of it by the output padding.
    const size_t at = skip + d;
    behind[d] = (p.in_sizes[at] - 1) * p.stride[at] + p.dilation[at] * (p.window[at] - 1) + 1 -
                p.out_sizes[at] - p.padding[at];
  }
  const dnnl_memory_desc_t offsets = strided(Dims{p.groups * p.out}, Dims{1});
  const dnnl_memory_desc_t* bias = p.bias ? &offsets : nullptr;
  if (p.transposed) {
    dnnl_deconvolution_desc_t op;
    const dnnl_status_t status = dnnl_dilated_deconvolution_forward_desc_init(
        &op, dnnl_forward_inference, dnnl_deconvolution_direct, &wanted.x, &wanted.weights, bias, &wanted.y,
        stride.data(), dilation.data(), before.data(), behind.data());
    return status == dnnl_success ? try_describe(&op) : nullptr;
  }
  dnnl_convolution_desc_t op;
  const dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
      &op, dnnl_forward_inference, dnnl_convolution_direct, &wanted.x, &wanted.weights, bias, &wanted.y,
      stride.data(), dilation.data(), before.data(), behind.data());
  return status == dnnl_success ? try_describe(&op) : nullptr;
}

// The primitive for slices of one shape, with copies where it wants its operands laid out otherwise.
class ConvolutionPart {
 public:
  /// Null where oneDNN has no implementation. `weights` is how the packed weights lie: any layout for the
  /// first part, which sets it.
  static std::unique_ptr<ConvolutionPart> make(const ConvolutionProblem& p, const Slice& s,
                                               dnnl_memory_desc_t& weights) {
    const size_t axis = 3 - static_cast<size_t>(p.spatial);
    ConvolutionProblem part = p;
    part.batch = s.images;
    part.in_sizes[axis] = s.in_rows;
    part.out_sizes[axis] = s.rows;
    // The elements lie as those of the whole tensors do: with the channels last, rows of one image are dense.
    const Dims x_strides = image_strides(x_sizes(p.x_channels_last ? part : p), p.x_channels_last);
    const Dims y_strides = image_strides(y_sizes(p.y_channels_last ? part : p), p.y_channels_last);
    const dnnl_memory_desc_t x = strided(x_sizes(part), x_strides), y = strided(y_sizes(part), y_strides);
    const Description desc = describe_convolution(
        p, s, {p.x_channels_last ? x : in_any_layout(x), weights, p.y_channels_last ? y : in_any_layout(y)});
    if (!desc) return nullptr;
    const auto layout = [&](int slot) {
      return *dnnl_primitive_desc_query_md(desc.get(), dnnl_query_exec_arg_md, slot);
    };
    auto made = std::make_unique<ConvolutionPart>();
    made->x_ = layout(DNNL_ARG_SRC);
    made->y_ = layout(DNNL_ARG_DST);
    weights = layout(DNNL_ARG_WEIGHTS);
    std::vector<Operand> operands = {
        {DNNL_ARG_SRC, made->x_}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, made->y_}};
    if (p.bias) operands.push_back({DNNL_ARG_BIAS, layout(DNNL_ARG_BIAS)});
    if (!dnnl_memory_desc_equal(&made->x_, &x)) made->copy_in_ = reorder(x, made->x_);
    if (!dnnl_memory_desc_equal(&made->y_, &y)) made->copy_out_ = reorder(made->y_, y);
    made->primitive_ = std::make_unique<Primitive>(desc, std::move(operands));
    return made;
  }

  /// `weights` packed; `bias` null where there is none.
  void run(const float* x, const void* weights, const float* bias, float* y) const {
    std::array<void*, 4> data = {const_cast<float*>(x), const_cast<void*>(weights), y,
                                 const_cast<float*>(bias)};
    Memory x_copy, y_copy;
    if (copy_in_) {
      x_copy = Memory(x_);
      copy_in_->run(std::array<void*, 2>{data[0], x_copy.get()});
      data[0] = x_copy.get();
    }
    if (copy_out_) {
      y_copy = Memory(y_);
      data[2] = y_copy.get();
    }
    primitive_->run(std::span(data).first(bias == nullptr ? 3 : 4));
    if (copy_out_) copy_out_->run(std::array<void*, 2>{y_copy.get(), y});
  }

 private:
  dnnl_memory_desc_t x_{}, y_{};
  std::unique_ptr<Primitive> copy_in_, copy_out_, primitive_;
};

// A convolution, cut into slices that the pool's threads compute.
class Convolution {
 public:
  /// Null where oneDNN has no implementation.
  static std::shared_ptr<const Convolution> make(const ConvolutionProblem& p) {
    auto made = std::make_shared<Convolution>();
    const std::vector<Slice> slices = slices_of(p);
    // One slice of a transposed convolution may be large: better OpenMP's threads than one alone. Images by
    // themselves have one thread each.
    std::optional<OneThread> one;
    if (slices.size() > 1 || !p.transposed || p.by_images) one.emplace();
    made->shared_out_ = one.has_value();
    const dnnl_memory_desc_t plain = weights_of(p);
    made->weights_ = in_any_layout(plain);
    std::vector<Slice> shapes;
    const int64_t x_row = image_strides(x_sizes(p), p.x_channels_last)[2],
                  y_row = image_strides(y_sizes(p), p.y_channels_last)[2];
    for (const Slice& s : slices) {
      const auto known =
          std::find_if(shapes.begin(), shapes.end(), [&](const Slice& other) { return s.same_shape(other); });
      const auto part = static_cast<size_t>(known - shapes.begin());
      if (known == shapes.end()) {
        shapes.push_back(s);
        made->parts_.push_back(ConvolutionPart::make(p, s, made->weights_));
        if (!made->parts_.back()) return nullptr;
      }
      const int64_t x_image = p.groups * p.in * p.in_sizes[0] * p.in_sizes[1] * p.in_sizes[2];
      const int64_t y_image = p.groups * p.out * p.out_sizes[0] * p.out_sizes[1] * p.out_sizes[2];
      made->steps_.push_back({part, s.image * x_image + s.in_row * x_row, s.image * y_image + s.row * y_row});
    }
    if (!dnnl_memory_desc_equal(&made->weights_, &plain)) made->pack_ = reorder(plain, made->weights_);
    return made;
  }

  /// The weights as run() wants them; no memory where it wants them as they are.
  Memory pack(const float* weights) const {
    if (!pack_) return {};
    const OneThread one;
    Memory packed(weights_);
    pack_->run(std::array<void*, 2>{const_cast<float*>(weights), packed.get()});
    return packed;
  }

  void run(const float* x, const void* packed, const float* bias, float* y) const {
    if (!shared_out_) return parts_[0]->run(x, packed, bias, y);
    const auto count = static_cast<int64_t>(steps_.size());
    device::ThreadPool::global().parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      const OneThread one;
      for (int64_t k = begin; k < end; ++k) {
        const Step& step = steps_[static_cast<size_t>(k)];
        parts_[step.part]->run(x + step.x, packed, bias, y + step.y);
      }
    });
  }

 private:
  struct Step {
    size_t part;
    int64_t x, y;  // offsets in elements
  };
  std::vector<std::unique_ptr<ConvolutionPart>> parts_;
  std::vector<Step> steps_;
  bool shared_out_ = true;
  dnnl_memory_desc_t weights_{};
  std::unique_ptr<Primitive> pack_;  // null where the weights are wanted as they lie
};

std::shared_ptr<const Convolution> find_convolution(const ConvolutionProblem& problem) {
  static Cache<ConvolutionProblem, ConvolutionHash, Convolution> cache;
  return cache.get(problem, Convolution::make);
}

}  // namespace

std::string version() {
  const dnnl_version_t& v = *dnnl_version();
  return fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
}

bool reads_directly(const std::array<int64_t, 3>& strides, int64_t batch, int64_t rows, int64_t columns) {
  const bool by_rows = strides[2] == 1 && strides[1] >= columns;
  const bool by_columns = strides[1] == 1 && strides[2] >= rows;
  if (!by_rows && !by_columns) return false;
  return batch == 1 || strides[0] >= (by_rows ? rows * strides[1] : columns * strides[2]);
}

void matmul(const MatmulProblem& problem, const float* a, const float* b, float* c) {
  for_each_piece(problem, pieces_of(problem),
                 [&](const MatmulProblem& part, size_t, int64_t at_a, int64_t at_b, int64_t at_c) {
                   find_matmul(part)->run(std::array<void*, 3>{const_cast<float*>(a + at_a),
                                                               const_cast<float*>(b + at_b), c + at_c});
                 });
}

struct PackedMatmul::State {
  struct Columns {
    dnnl_memory_desc_t desc;
    Memory packed;
    std::vector<std::pair<int64_t, std::shared_ptr<const Primitive>>> by_rows;
  };
  MatmulProblem problem;
  Pieces pieces;
  std::vector<Columns> columns;
};

PackedMatmul::PackedMatmul(std::unique_ptr<State> state) : state_(std::move(state)) {}
PackedMatmul::~PackedMatmul() = default;

std::unique_ptr<const PackedMatmul> PackedMatmul::make(const MatmulProblem& problem, const float* b) {
  const OneThread one;
  auto state = std::make_unique<State>();
  const Pieces pieces = pieces_of(problem);
  state->problem = problem;
  state->pieces = pieces;
  for (int64_t j = 0; j < problem.n; j += pieces.n) {
    MatmulProblem part = problem;
    part.n = std::min(pieces.n, problem.n - j);
    const dnnl_memory_desc_t plain = operands_of(part).b.desc;
    State::Columns columns{in_any_layout(plain), {}, {}};
    for (const int64_t m : {pieces.m, problem.m - (pieces.rows - 1) * pieces.m}) {
      if (!columns.by_rows.empty() && columns.by_rows[0].first == m) continue;
      part.m = m;
      columns.by_rows.emplace_back(m, make_matmul(operands_of(part), &columns.desc));
    }
    columns.packed = Memory(columns.desc);
    reorder(plain, columns.desc)
        ->run(std::array<void*, 2>{const_cast<float*>(b + j * problem.b_strides[2]), columns.packed.get()});
    state->columns.push_back(std::move(columns));
  }
  return std::unique_ptr<const PackedMatmul>(new PackedMatmul(std::move(state)));
}

void PackedMatmul::run(const float* a, float* c) const {
  for_each_piece(state_->problem, state_->pieces,
                 [&](const MatmulProblem& part, size_t column, int64_t at_a, int64_t, int64_t at_c) {
                   const State::Columns& columns = state_->columns[column];
                   const bool tail = columns.by_rows[0].first != part.m;
                   columns.by_rows[tail ? 1 : 0].second->run(
                       std::array<void*, 3>{const_cast<float*>(a + at_a), columns.packed.get(), c + at_c});
                 });
}

bool convolution(const ConvolutionProblem& problem, const float* x, const float* weight, const float* bias,
                 float* y) {
  const std::shared_ptr<const Convolution> made = find_convolution(problem);
  if (!made) return false;
  const Memory packed = made->pack(weight);
  made->run(x, packed.get() ? packed.get() : weight, bias, y);
  return true;
}

struct PackedConvolution::State {
  std::shared_ptr<const Convolution> convolution;
  Memory packed;
  const float* weight;
};

PackedConvolution::PackedConvolution(std::unique_ptr<State> state) : state_(std::move(state)) {}
PackedConvolution::~PackedConvolution() = default;

std::unique_ptr<const PackedConvolution> PackedConvolution::make(const ConvolutionProblem& problem,
                                                                 const float* weight) {
  const std::shared_ptr<const Convolution> made = find_convolution(problem);
  if (!made) return nullptr;
  auto state = std::make_unique<State>();
  state->convolution = made;
  state->packed = made->pack(weight);
  state->weight = weight;
  return std::unique_ptr<const PackedConvolution>(new PackedConvolution(std::move(state)));
}

void PackedConvolution::run(const float* x, const float* bias, float* y) const {
  const State& s = *state_;
  s.convolution->run(x, s.packed.get() ? s.packed.get() : s.weight, bias, y);
}

}  // namespace stax::kernels::onednn
