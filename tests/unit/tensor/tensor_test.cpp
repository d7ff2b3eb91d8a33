#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "stax/dlpack.h"
#include "stax/error.h"
#include "stax/factories.h"
#include "stax/io.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

template <class T>
std::vector<T> values(const Tensor& tensor) {
  const StridedImpl& impl = strided(tensor);
  const Tensor dense = new_tensor(impl.dtype(), impl.sizes().values());
  copy_elements(impl.view(), strided(dense).view());
  const T* data = dense.data_ptr<T>();
  return std::vector<T>(data, data + static_cast<int64_t>(dense.numel()));
}

TEST(Tensor, IsMadeFromNumbers) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(x.dtype(), kInt64);
  EXPECT_TRUE(x.sizes() == IntList({2, 3}));
  EXPECT_TRUE(x.strides() == IntList({3, 1}));
  EXPECT_EQ(values<int64_t>(x), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor({1.5, 2.0}).dtype(), kFloat32);
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor({1, 2}, kFloat64).dtype(), kFloat64);
  EXPECT_EQ(tensor(7).dim(), 0);
  EXPECT_EQ(tensor(7).item<int>(), 7);
  EXPECT_TRUE(tensor({{{1}, {2}}}).sizes() == IntList({1, 2, 1}));
  EXPECT_THROW(tensor({{1, 2}, {3}}), UserError);
}

TEST(Tensor, SharesMemoryItWasGiven) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  int released = 0;
  {
    const Tensor x = from_blob(data, {2, 3}, [&](void*) { ++released; });
    const Tensor copy = x;
    EXPECT_EQ(x.use_count(), 2);
    x.data_ptr<float>()[4] = 40;
    EXPECT_EQ(copy.data_ptr<float>()[4], 40);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(data[4], 40);
  const Tensor columns = from_blob(data, {3, 2}, {1, 3});
  EXPECT_FALSE(columns.is_contiguous());
  EXPECT_EQ(values<float>(columns), (std::vector<float>{0, 3, 1, 40, 2, 5}));
}

TEST(Tensor, ViewsStayInsideTheirStorage) {
  const Tensor x = tensor({1, 2, 3, 4});
  const StridedImpl& base = strided(x);
  const int64_t sizes[] = {2}, strides[] = {2};
  const Tensor view = new_view(base, kInt64, extents_of(sizes, strides), 1);
  EXPECT_EQ(values<int64_t>(view), (std::vector<int64_t>{2, 4}));
  EXPECT_TRUE(view.is_alias_of(x));
  EXPECT_EQ(view.storage_offset(), 1);
  EXPECT_THROW(new_view(base, kInt64, extents_of(sizes, strides), 2), UserError);
  EXPECT_THROW(new_view(base, kInt64, extents_of(sizes, strides), -1), UserError);
}

TEST(Tensor, KnowsWhichTensorsOverlapThemselves) {
  float data[16] = {};
  const auto overlaps = [&](IntList sizes, IntList strides) {
    return strided(from_blob(data, sizes, strides)).may_overlap_itself();
  };
  EXPECT_FALSE(overlaps({2, 3}, {3, 1}));
  EXPECT_FALSE(overlaps({3, 2}, {1, 3}));
  EXPECT_FALSE(overlaps({1, 3}, {0, 1}));
  EXPECT_TRUE(overlaps({2, 3}, {0, 1}));
  EXPECT_TRUE(overlaps({3, 3}, {1, 1}));
}

TEST(Tensor, UndefinedTensorsRaise) {
  const Tensor x;
  EXPECT_FALSE(x.defined());
  EXPECT_THROW((void)x.sizes(), UserError);
  EXPECT_THROW((void)tensor({1, 2}).item(), UserError);
  EXPECT_THROW((void)tensor({1, 2}).data_ptr<float>(), UserError);
  EXPECT_THROW((void)tensor({1, 2}).size(1), UserError);
}

// Worked by hand from the rules of casts: truncation, NaN to 0; int32 saturates, uint8 wraps
// what int32 holds and is 0 for the rest.
TEST(CopyElements, ConvertsBetweenDTypes) {
  const double in[] = {-1.9, 0.0, 300.7, 3e9, NAN, -INFINITY};
  const Tensor source = detail::tensor_of(in, kFloat64, kFloat64, {6}, {});
  const auto to = [&](DType dtype) {
    const int64_t sizes[] = {6};
    const Tensor target = new_tensor(dtype, sizes);
    copy_elements(strided(source).view(), strided(target).view());
    return target;
  };
  EXPECT_EQ(values<int32_t>(to(kInt32)), (std::vector<int32_t>{-1, 0, 300, INT32_MAX, 0, INT32_MIN}));
  EXPECT_EQ(values<uint8_t>(to(kUInt8)), (std::vector<uint8_t>{255, 0, 44, 0, 0, 0}));
  EXPECT_EQ(values<bool>(to(kBool)), (std::vector<bool>{true, false, true, true, true, true}));
  EXPECT_EQ(values<int64_t>(to(kInt64)),
            (std::vector<int64_t>{-1, 0, 300, 3000000000, 0, std::numeric_limits<int64_t>::min()}));
}

// Bit patterns from the definition of IEEE binary16: 1 sign, 5 exponent, 10 fraction bits, ties to even.
TEST(CopyElements, RoundsHalves) {
  const float in[] = {1.0f, 65504.0f, 65519.0f, 65520.0f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 2049.0f, 2051.0f};
  const uint16_t expected[] = {0x3c00, 0x7bff, 0x7bff, 0x7c00, 0x0001, 0x0000, 0x0001, 0x6800, 0x6802};
  const Tensor source = from_blob(const_cast<float*>(in), {9});
  const int64_t sizes[] = {9};
  const Tensor half = new_tensor(kFloat16, sizes), back = new_tensor(kFloat32, sizes);
  copy_elements(strided(source).view(), strided(half).view());
  for (int i = 0; i < 9; ++i) EXPECT_EQ(half.data_ptr<uint16_t>()[i], expected[i]) << in[i];
  copy_elements(strided(half).view(), strided(back).view());
  EXPECT_EQ(back.data_ptr<float>()[4], 0x1p-24f);
  EXPECT_EQ(back.data_ptr<float>()[1], 65504.0f);
}

TEST(CopyElements, WalksAnyStrides) {
  constexpr int64_t kRows = 37, kColumns = 70;
  std::vector<int32_t> in(kRows * kColumns);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(i);
  const Tensor transposed = from_blob(in.data(), {kColumns, kRows}, {1, kColumns}, kInt32);
  const auto out = values<int32_t>(transposed);
  for (int64_t c = 0; c < kColumns; ++c) {
    for (int64_t r = 0; r < kRows; ++r) ASSERT_EQ(out[c * kRows + r], r * kColumns + c);
  }
}

TEST(Print, LaysOutAsPyTorchDoes) {
  const auto text = [](const Tensor& t) {
    std::ostringstream out;
    out << t;
    return out.str();
  };
  EXPECT_EQ(text(tensor({{1, 20}, {3, 4}})), "[[ 1, 20],\n [ 3,  4]]\n[ int64[2, 2] ]");
  EXPECT_EQ(text(tensor({1.5, -2.25})), "[ 1.5000, -2.2500]\n[ float32[2] ]");
  EXPECT_EQ(text(tensor({1.0, 2.0})), "[1., 2.]\n[ float32[2] ]");
  EXPECT_EQ(text(tensor({true, false})), "[ True, False]\n[ bool[2] ]");
  EXPECT_EQ(text(tensor(3)), "3\n[ int64[] ]");
  EXPECT_EQ(text(tensor({1e-6, 1.0})), "[1.0000e-06, 1.0000e+00]\n[ float32[2] ]");
  EXPECT_EQ(text(tensor({{{1}, {2}}, {{3}, {4}}})), "[[[1],\n  [2]],\n\n [[3],\n  [4]]]\n[ int64[2, 2, 1] ]");
  EXPECT_EQ(text(Tensor()), "[undefined tensor]");
}

TEST(Print, ElidesLongDimensions) {
  const int64_t sizes[] = {2000};
  const Tensor x = new_tensor(kInt32, sizes);
  for (int i = 0; i < 2000; ++i) x.data_ptr<int32_t>()[i] = i;
  EXPECT_EQ(x.str(), "[   0,    1,    2, ..., 1997, 1998, 1999]\n[ int32[2000] ]");
}

TEST(DLPack, RoundTripSharesMemoryAndReleasesIt) {
  Tensor x = tensor({{1, 2}, {3, 4}});
  dlpack::ManagedVersioned* managed = to_dlpack(x);
  EXPECT_EQ(managed->version.major, 1u);
  EXPECT_EQ(managed->dl_tensor.ndim, 2);
  EXPECT_EQ(managed->dl_tensor.strides[0], 2);
  EXPECT_EQ(managed->dl_tensor.dtype.bits, 64);
  {
    const Tensor y = from_dlpack(managed);
    y.data_ptr<int64_t>()[3] = 40;
    EXPECT_EQ(x.use_count(), 2);
  }
  EXPECT_EQ(x.use_count(), 1) << "the deleter ran";
  EXPECT_EQ(values<int64_t>(x), (std::vector<int64_t>{1, 2, 3, 40}));
}

TEST(DLPack, RefusesOtherVersionsAndDTypesAndKeepsTheFlag) {
  const Tensor x = tensor({1.0, 2.0});
  dlpack::ManagedVersioned* managed = to_dlpack(x);
  managed->version.major = 2;
  EXPECT_THROW(from_dlpack(managed), UserError);
  managed->version.major = 1;
  managed->dl_tensor.dtype.lanes = 4;
  EXPECT_THROW(from_dlpack(managed), UserError);
  managed->dl_tensor.dtype.lanes = 1;
  managed->flags |= dlpack::kReadOnly;
  const Tensor y = from_dlpack(managed);
  EXPECT_FALSE(strided(y).storage()->writable());
  EXPECT_THROW(to_dlpack_unversioned(y), UserError);
  const Tensor z = from_dlpack(to_dlpack_unversioned(x));
  EXPECT_EQ(z.data_ptr(), x.data_ptr());
}

TEST(Files, NpyAndSafetensorsRoundTrip) {
  const auto folder = std::filesystem::temp_directory_path();
  const std::string npy = folder / "stax_tensor_test.npy", safe = folder / "stax_tensor_test.safetensors";
  float data[6] = {0, 1, 2, 3, 4, 5};
  const Tensor columns = from_blob(data, {3, 2}, {1, 3});
  save_npy(npy, columns);
  const Tensor back = load_npy(npy);
  EXPECT_EQ(back.dtype(), kFloat32);
  EXPECT_TRUE(back.sizes() == IntList({3, 2}));
  EXPECT_EQ(values<float>(back), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  save_safetensors(safe, {{"a", columns}, {"b", tensor({1, 2})}});
  const auto loaded = load_safetensors(safe);
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(values<float>(loaded.at("a")), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values<int64_t>(loaded.at("b")), (std::vector<int64_t>{1, 2}));
  std::filesystem::remove(npy);
  std::filesystem::remove(safe);
}

}  // namespace
}  // namespace stax
