#include "examples/embed/encoder.h"

#include <filesystem>
#include <map>

#include "stax/stax.h"
#include "support/check.h"
#include "support/file.h"
#include "support/json.h"

namespace embed {
namespace {

namespace F = stax::nn::functional;
using stax::SymInt;
using stax::Tensor;

struct Config {
  int64_t width = 0, layers = 0, heads = 0, inner_width = 0, vocabulary = 0, positions = 0, types = 0;
  double eps = 0;
};

Config read_config(const std::string& path) {
  const std::optional<std::string> text = stax::read_file(path);
  STAX_CHECK(text.has_value(), "{}: expected a readable file", path);
  const stax::Json json = stax::Json::parse(*text, {.what = path});
  try {
    STAX_CHECK(json.at("model_type").as_string() == "bert" && json.at("hidden_act").as_string() == "gelu",
               "expected a model of type bert with gelu, got {} with {}", json.at("model_type").as_string(),
               json.at("hidden_act").as_string());
    const auto size = [&](const char* key) {
      const int64_t value = json.at(key).as_int();
      STAX_CHECK(value >= 1 && value <= 1 << 24, "expected {} between 1 and {}, got {}", key, 1 << 24, value);
      return value;
    };
    const Config config = {.width = size("hidden_size"),
                           .layers = size("num_hidden_layers"),
                           .heads = size("num_attention_heads"),
                           .inner_width = size("intermediate_size"),
                           .vocabulary = size("vocab_size"),
                           .positions = size("max_position_embeddings"),
                           .types = size("type_vocab_size"),
                           .eps = json.at("layer_norm_eps").as_double()};
    STAX_CHECK(config.width % config.heads == 0,
               "expected a hidden_size that the number of heads divides, got {} "
               "and {}",
               config.width, config.heads);
    return config;
  } catch (const stax::UserError& error) {
    stax::throw_user_error(fmt::format("{}: {}", path, error.what()));
  }
}

/// The tensors of a file, by name, each checked for dtype and shape.
class Weights {
 public:
  explicit Weights(const std::string& path) : path_(path), tensors_(stax::load_safetensors(path)) {}

  Tensor get(const std::string& name, const std::vector<int64_t>& sizes) const {
    const auto found = tensors_.find(name);
    STAX_CHECK(found != tensors_.end(), "{}: expected a tensor '{}', got none", path_, name);
    const Tensor& tensor = found->second;
    STAX_CHECK(tensor.dtype() == stax::kFloat32 && tensor.sizes().values() == sizes,
               "{}: '{}': expected float32 of sizes [{}], got {} of sizes [{}]", path_, name, join(sizes),
               stax::name(tensor.dtype()), join(tensor.sizes().values()));
    return tensor;
  }
  Linear linear(const std::string& name, int64_t in, int64_t out) const {
    return {get(name + ".weight", {out, in}), get(name + ".bias", {out})};
  }
  LayerNorm layer_norm(const std::string& name, const Config& config) const {
    return {get(name + ".weight", {config.width}), get(name + ".bias", {config.width}), config.eps};
  }

 private:
  static std::string join(const std::vector<int64_t>& sizes) {
    std::string text;
    for (const int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return text;
  }

  std::string path_;
  std::map<std::string, Tensor> tensors_;
};

Layer load_layer(const Weights& weights, const std::string& name, const Config& config) {
  const auto square = [&](const std::string& part) {
    return weights.linear(name + part, config.width, config.width);
  };
  return {.query = square("attention.self.query"),
          .key = square("attention.self.key"),
          .value = square("attention.self.value"),
          .output = square("attention.output.dense"),
          .attention_norm = weights.layer_norm(name + "attention.output.LayerNorm", config),
          .up = weights.linear(name + "intermediate.dense", config.width, config.inner_width),
          .down = weights.linear(name + "output.dense", config.inner_width, config.width),
          .norm = weights.layer_norm(name + "output.LayerNorm", config),
          .heads = config.heads};
}

}  // namespace

Tensor Linear::operator()(const Tensor& x) const {
  return F::linear(x, weight, bias);
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  return F::layer_norm(x,
                       F::LayerNormFuncOptions(weight.sizes().values()).weight(weight).bias(bias).eps(eps));
}

Tensor Layer::operator()(const Tensor& x, const Tensor& mask) const {
  const SymInt batch = x.size(0), length = x.size(1), width = x.size(2);
  const auto split = [&](const Tensor& t) {
    return t.view({batch, length, heads, width / heads}).transpose(1, 2);
  };
  const Tensor mixed = F::scaled_dot_product_attention(split(query(x)), split(key(x)), split(value(x)), mask);
  const Tensor y = attention_norm(x + output(mixed.transpose(1, 2).reshape({batch, length, width})));
  return norm(y + down(F::gelu(up(y))));
}

Encoder Encoder::load(const std::string& folder) {
  const std::filesystem::path path(folder);
  const Config config = read_config((path / "config.json").string());
  const Weights weights((path / "model.safetensors").string());
  Encoder encoder;
  encoder.words = weights.get("embeddings.word_embeddings.weight", {config.vocabulary, config.width});
  encoder.positions = weights.get("embeddings.position_embeddings.weight", {config.positions, config.width});
  encoder.types = weights.get("embeddings.token_type_embeddings.weight", {config.types, config.width});
  encoder.norm = weights.layer_norm("embeddings.LayerNorm", config);
  for (int64_t k = 0; k < config.layers; ++k)
    encoder.layers.push_back(load_layer(weights, "encoder.layer." + std::to_string(k) + ".", config));
  return encoder;
}

int64_t Encoder::max_length() const {
  return positions.size(0).value();
}

Tensor Encoder::operator()(const Tensor& ids, const Tensor& mask) const {
  // All tokens are of type 0: there is one text, no pair.
  Tensor x = norm(F::embedding(ids, words) + positions.narrow(0, 0, ids.size(1)) + types.narrow(0, 0, 1));
  const Tensor keys = mask.unsqueeze(1).unsqueeze(1);
  for (const Layer& layer : layers) x = layer(x, keys);
  const Tensor weight = mask.to(stax::kFloat32).unsqueeze(-1);
  return F::normalize((x * weight).sum(1) / weight.sum(1));
}

}  // namespace embed
