#include "compiler/eager.h"

#include "compiler/eager_program.h"
#include "graph/op.h"
#include "kernels/dynamic.h"
#include "kernels/external.h"
#include "ops/table.h"
#include "support/check.h"
#include "symbolic/shape_env.h"
#include "tensor/device_copy.h"

namespace stax {

capture::EagerBackend& capture::default_eager_backend() {
  static compiler::Eager backend;
  return backend;
}

bool copy_by_kernel(const TensorView& source, const TensorView& target) {
  return static_cast<compiler::Eager&>(capture::default_eager_backend()).copy(source, target);
}

namespace compiler {
namespace {

std::vector<Argument<graph::TensorMeta>> metas_of(const capture::Arguments& arguments) {
  std::vector<Argument<graph::TensorMeta>> metas;
  metas.reserve(arguments.size());
  for (const auto& argument : arguments) {
    metas.push_back(map_tensors<graph::TensorMeta>(
        argument, [](const Tensor& tensor) { return relative_meta(strided(tensor)); }));
  }
  return metas;
}

std::vector<graph::TensorMeta> result_metas(const graph::Op& op, const capture::Arguments& arguments) {
  ShapeEnv env;
  return graph::infer_meta(ops::table(), op, env, metas_of(arguments));
}

std::vector<Tensor> call_view(const graph::Op& op, const capture::Arguments& arguments) {
  const Tensor& self = arguments.at(0).tensor();
  const StridedImpl& base = strided(self);
  // The metas are relative to the tensor; an offset that as_strided is given is not.
  const bool absolute = op.schema.name == "as_strided" && !arguments.at(3).is_none();
  std::vector<Tensor> results;
  for (const graph::TensorMeta& meta : result_metas(op, arguments)) {
    const int64_t start =
        absolute ? 0 : static_cast<int64_t>(base.offset()) * itemsize(base.dtype()) / itemsize(meta.dtype);
    results.push_back(new_view(base, meta.dtype, extents_of(meta), start + meta.offset.value()));
  }
  return results;
}

std::vector<Argument<TensorView>> views_of(const capture::Arguments& arguments) {
  std::vector<Argument<TensorView>> views;
  views.reserve(arguments.size());
  for (const auto& argument : arguments) {
    views.push_back(
        map_tensors<TensorView>(argument, [](const Tensor& tensor) { return strided(tensor).view(); }));
  }
  return views;
}

std::vector<Tensor> call_external(const graph::Op& op, const capture::Arguments& arguments) {
  std::vector<Tensor> results;
  std::vector<TensorView> views;
  for (const graph::TensorMeta& meta : result_metas(op, arguments)) {
    results.push_back(new_tensor(meta.dtype, extents_of(meta), meta.device));
    views.push_back(strided(results.back()).view());
  }
  kernels::find_external(op.schema.full_name())(views_of(arguments), views);
  return results;
}

std::vector<Tensor> call_dynamic(const graph::Op& op, const capture::Arguments& arguments) {
  std::vector<Tensor> results;
  const auto allocate = [&](DType dtype, const std::vector<int64_t>& sizes) {
    results.push_back(new_tensor(dtype, sizes));
    return strided(results.back()).view();
  };
  kernels::find_dynamic(op.schema.full_name())(views_of(arguments), allocate);
  return results;
}

/// The number that a call fills a tensor with; nothing for other operators.
std::optional<Scalar> fill_value(const graph::Op& op, const capture::Arguments& arguments) {
  if (op.schema.name == "zeros") return Scalar(0);
  if (op.schema.name == "ones") return Scalar(1);
  if (op.schema.name != "full") return std::nullopt;
  const Number& value = arguments.at(1).number();
  return value.is_float() ? Scalar(value.floating) : Scalar(value.integer.value());
}

}  // namespace

Eager::Eager() = default;
Eager::~Eager() = default;

std::vector<Tensor> Eager::call(const graph::Op& op, const capture::Arguments& arguments) {
  if (op.op_class != graph::OpClass::view) {
    if (const auto device = EagerGpu::device_of(op, arguments)) {
      return on_gpu_.call(op, arguments, *device, *this);
    }
  }
  switch (op.op_class) {
    case graph::OpClass::view:
      return call_view(op, arguments);
    case graph::OpClass::external:
      return call_external(op, arguments);
    case graph::OpClass::dynamic:
      return call_dynamic(op, arguments);
    case graph::OpClass::pointwise:
    case graph::OpClass::composite:
    case graph::OpClass::decomposed:
    case graph::OpClass::lowered:
      break;
  }
  return call_lowered(op, arguments);
}

std::vector<Tensor> Eager::call_on(const graph::Op& op, const capture::Arguments& arguments, Device device) {
  const std::optional<Scalar> value = fill_value(op, arguments);
  if (!value) return on_gpu_.call_without_tensors(op, arguments, device, *this);
  const graph::TensorMeta meta = result_metas(op, arguments).at(0);
  const Tensor result = new_tensor(meta.dtype, extents_of(meta), device);
  fill_elements(strided(result).view(), *value);
  return {result};
}

std::vector<Tensor> Eager::call_lowered(const graph::Op& op, const capture::Arguments& arguments) {
  std::vector<const StridedImpl*> inputs;
  std::vector<const Tensor*> handles;
  inputs.reserve(arguments.size());
  handles.reserve(arguments.size());
  for_each_tensor(arguments, [&](const Tensor& tensor) {
    inputs.push_back(&strided(tensor));
    handles.push_back(&tensor);
  });
  const StridedImpl* shape = nullptr;
  const Layout layout = layout_of(op, arguments, &shape);
  CallKey key = make_key(op, arguments, layout);
  const int64_t count = shape == nullptr ? 0 : shape->element_count();
  key.add(static_cast<uint64_t>(count));
  const uint64_t hash = key.hash();
  std::shared_ptr<const EagerProgram> program = find(key, hash);
  if (!program && shape != nullptr && count >= 2) {
    if (const auto general = find_general(op, arguments, count)) {
      return run_general_program(*general, op, arguments, *shape);
    }
  }
  if (!program) {
    program = make_program(op, arguments, layout, count);
    insert(key, hash, program);
  }
  if (program->graph) return interpret(*program->graph, handles, *this);
  return run_program(*program, inputs, handles, shape);
}

std::shared_ptr<const EagerProgram> Eager::find_general(const graph::Op& op,
                                                        const capture::Arguments& arguments, int64_t count) {
  const CallKey key = make_general_key(op, arguments);
  const uint64_t hash = key.hash();
  if (auto program = find(key, hash)) return program;
  {
    Shard& shard = shards_[hash % kShards];
    const std::lock_guard lock(shard.mutex);
    if (++shard.made[hash] <= kSpecialPrograms) return nullptr;
  }
  auto program = make_general_program(op, arguments, count);
  insert(key, hash, program);
  return program;
}

std::shared_ptr<const EagerProgram> Eager::find(const CallKey& key, uint64_t hash) const {
  const Shard& shard = shards_[hash % kShards];
  const std::lock_guard lock(shard.mutex);
  const auto [begin, end] = shard.entries.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (key.equals(it->second.key)) return it->second.program;
  }
  return nullptr;
}

void Eager::insert(const CallKey& key, uint64_t hash, std::shared_ptr<const EagerProgram> program) {
  Shard& shard = shards_[hash % kShards];
  const std::lock_guard lock(shard.mutex);
  if (shard.entries.size() >= kShardLimit) {
    shard.entries.clear();
    shard.made.clear();
  }
  shard.entries.emplace(hash, Entry{key.words(), std::move(program)});
}

size_t Eager::cached_programs() const {
  size_t count = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    count += shard.entries.size();
  }
  return count;
}

}  // namespace compiler
}  // namespace stax
