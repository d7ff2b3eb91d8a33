// A BERT encoder for sentences: token ids to one vector a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stax/tensor.h"

namespace embed {

struct Linear {
  stax::Tensor weight, bias;
  stax::Tensor operator()(const stax::Tensor& x) const;
};

struct LayerNorm {
  stax::Tensor weight, bias;
  double eps = 0;
  stax::Tensor operator()(const stax::Tensor& x) const;
};

/// One block: attention, then two linear maps with gelu between, each added to its input and normalised.
struct Layer {
  Linear query, key, value, output;
  LayerNorm attention_norm;
  Linear up, down;
  LayerNorm norm;
  int64_t heads = 0;

  /// x: [batch, length, width]; mask: bool [batch, 1, 1, length], true where there is a token.
  stax::Tensor operator()(const stax::Tensor& x, const stax::Tensor& mask) const;
};

/// The model of a folder with config.json and model.safetensors (float32), as the Python package
/// sentence-transformers writes them for BERT models with mean pooling. A function over tensors: to be
/// compiled.
struct Encoder {
  stax::Tensor words, positions, types;  ///< tables of embeddings, a row each
  LayerNorm norm;
  std::vector<Layer> layers;

  /// UserError naming the file where one is missing, is no BERT model, or lacks a tensor or has it in another
  /// shape.
  static Encoder load(const std::string& folder);

  int64_t max_length() const;

  /// ids: int64 [batch, length], of rows that end with any ids that `mask`, bool [batch, length], is false
  /// for; length at most max_length(). The means of the last layer's vectors over each row's tokens, divided
  /// by their Euclidean norms: float32 [batch, width].
  stax::Tensor operator()(const stax::Tensor& ids, const stax::Tensor& mask) const;
};

}  // namespace embed
