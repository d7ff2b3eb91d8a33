#include "cpu/cases.h"

#include <cstdlib>

#include "stax/compile.h"
#include "tensor/moved.h"

namespace stax::cases {
namespace {

constexpr size_t kMediumLength = 37;  // two vectors of float32 on AVX-512 and a tail

Numbers repeated(const Numbers& values, size_t length) {
  Numbers out(length);
  for (size_t i = 0; i < length; ++i) out[i] = values[i % values.size()];
  return out;
}

/// Every second element of a buffer, NaN or 0 in between.
Tensor with_gaps(const Tensor& dense) {
  const int64_t length = dense.numel();
  const Tensor buffer = zeros({length, 2}, dense.dtype());
  buffer.select(1, 0).copy_(dense);
  return buffer.select(1, 0);
}

/// The same elements, stored column by column.
Tensor by_columns(const Tensor& dense, int64_t rows) {
  return dense.view({rows, -1}).t().contiguous().t();
}

/// The layouts of one argument, each with the same elements in the same order; `which` counts them.
constexpr int kLayouts = 4;
Tensor laid_out(const Numbers& values, DType dtype, int which) {
  switch (which) {
    case 0:
      return make(values, dtype);
    case 1:
      return make(repeated(values, kMediumLength), dtype);
    case 2:
      return with_gaps(make(repeated(values, kMediumLength), dtype));
    default:
      return by_columns(make(repeated(values, 5 * 7 * values.size()), dtype), 5);
  }
}

bool same_number(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (got == expected) return true;
  return std::abs(got - expected) <= tolerance * std::abs(expected);
}

}  // namespace

Function Mode::prepare(const Function& f) const {
  Function run = f;
  if (compiled_) {
    const auto compiled = compile(f, {.fullgraph = strict_, .strict_native = strict_});
    run = [compiled](const Tensors& inputs) { return compiled(inputs); };
  }
  if (device_ == kCPU) return run;
  return [run, device = device_](const Tensors& inputs) {
    const MovedTensors there(inputs, device);
    const Tensors results = run(there.tensors());
    there.copy_back();
    return there.returned(results);
  };
}

void for_each_mode(const std::function<void(const Mode&)>& body) {
  const char* name = std::getenv("STAX_TEST_DEVICE");
  const Device device = name != nullptr && std::string(name) == "cuda" ? kCUDA : kCPU;
  for (const bool compiled : {false, true}) {
    SCOPED_TRACE((compiled ? "compiled, " : "eager, ") + device.str());
    body(Mode(compiled, device));
  }
}

Tensor make(const Numbers& values, DType dtype, const std::vector<int64_t>& sizes) {
  return make(values, dtype).view(sizes);
}

Tensor make(const Numbers& values, DType dtype) {
  return tensor(values, kFloat64).to(dtype);
}

Tensor integers(const std::vector<int64_t>& values, DType dtype) {
  return tensor(values, kInt64).to(dtype);
}

Numbers numbers(const Tensor& t) {
  const Tensor flat = t.to(kFloat64).contiguous();
  const double* data = flat.data_ptr<double>();
  return {data, data + static_cast<int64_t>(flat.numel())};
}

std::vector<int64_t> whole(const Tensor& t) {
  const Tensor flat = t.to(kInt64).contiguous();
  const int64_t* data = flat.data_ptr<int64_t>();
  return {data, data + static_cast<int64_t>(flat.numel())};
}

std::vector<int64_t> shape(const Tensor& t) {
  return t.sizes().values();
}

void expect_values(const Tensor& got, const Numbers& expected, double tolerance) {
  const Numbers values = numbers(got);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (same_number(values[i], expected[i], tolerance)) continue;
    ADD_FAILURE() << "element " << i << " is " << values[i] << ", expected " << expected[i];
    return;
  }
}

void expect_signed(const Tensor& got, const Numbers& expected) {
  expect_values(got, expected);
  const Numbers values = numbers(got);
  for (size_t i = 0; i < std::min(values.size(), expected.size()); ++i) {
    if (std::isnan(expected[i])) continue;
    ASSERT_EQ(std::signbit(values[i]), std::signbit(expected[i])) << "sign of element " << i;
  }
}

void expect_whole(const Tensor& got, const std::vector<int64_t>& expected) {
  EXPECT_FALSE(got.is_floating_point());
  EXPECT_EQ(whole(got), expected);
}

void expect_values(const Tensors& got, const std::vector<Numbers>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    SCOPED_TRACE("result " + std::to_string(k));
    expect_values(got[k], expected[k], tolerance);
  }
}

void expect_whole(const Tensors& got, const std::vector<std::vector<int64_t>>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    SCOPED_TRACE("result " + std::to_string(k));
    expect_whole(got[k], expected[k]);
  }
}

void expect_form(const Tensor& got, DType dtype, const std::vector<int64_t>& sizes) {
  EXPECT_EQ(got.dtype(), dtype) << name(got.dtype());
  EXPECT_EQ(shape(got), sizes);
}

void check_pointwise(const Pointwise& probe, const std::vector<DType>& dtypes) {
  for_each_mode([&](const Mode& run) {
    const Function function = run.prepare(probe.function);
    for (const DType dtype : dtypes) {
      for (int layout = 0; layout < kLayouts; ++layout) {
        SCOPED_TRACE(std::string(name(dtype)) + ", layout " + std::to_string(layout));
        Tensors inputs;
        for (const Numbers& values : probe.inputs) inputs.push_back(laid_out(values, dtype, layout));
        const Tensors results = function(inputs);
        ASSERT_EQ(results.size(), probe.expected.size());
        for (size_t r = 0; r < results.size(); ++r) {
          SCOPED_TRACE("result " + std::to_string(r));
          EXPECT_EQ(shape(results[r]), shape(inputs[0]));
          const auto length = static_cast<size_t>(static_cast<int64_t>(results[r].numel()));
          const Numbers expected = repeated(probe.expected[r], length);
          if (probe.signed_zeros) {
            expect_signed(results[r], expected);
          } else {
            expect_values(results[r], expected, probe.tolerance);
          }
        }
      }
    }
  });
}

void expect_user_error(const std::function<void()>& call, const std::vector<std::string>& parts) {
  try {
    call();
  } catch (const UserError& error) {
    const std::string text = error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is missing in: " << text;
    }
    return;
  } catch (const std::exception& error) {
    FAIL() << "expected a UserError, got: " << error.what();
  }
  FAIL() << "expected a UserError, got a result";
}

bool huge_memory_wanted() {
  return std::getenv("STAX_TEST_HUGE") != nullptr;
}

}  // namespace stax::cases
