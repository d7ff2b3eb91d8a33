// nn::functional: losses and distances.
#pragma once

#include <string_view>

#include "stax/functions.h"
#include "stax/nn_options.h"
#include "stax/tensor.h"

namespace stax::nn::functional {

/// Losses whose only option is how elements are joined: kMean, kSum or kNone.
class ReductionFuncOptions {
 public:
  ReductionFuncOptions() = default;
  ReductionFuncOptions(std::string_view reduction) : reduction_(reduction) {}  // NOLINT
  STAX_OPTION(ReductionFuncOptions, std::string_view, reduction, = kMean);
};
using MSELossFuncOptions = ReductionFuncOptions;
using L1LossFuncOptions = ReductionFuncOptions;
using SoftMarginLossFuncOptions = ReductionFuncOptions;
using MultilabelMarginLossFuncOptions = ReductionFuncOptions;

#define STAX_LOSS(name)                                                                                     \
  inline Tensor name(const Tensor& input, const Tensor& target, const ReductionFuncOptions& options = {}) { \
    return stax::name(input, target, options.reduction());                                                  \
  }
STAX_LOSS(mse_loss)
STAX_LOSS(l1_loss)
STAX_LOSS(soft_margin_loss)
STAX_LOSS(multilabel_margin_loss)
#undef STAX_LOSS

class SmoothL1LossFuncOptions {
  STAX_OPTION(SmoothL1LossFuncOptions, std::string_view, reduction, = kMean);
  STAX_OPTION(SmoothL1LossFuncOptions, double, beta, = 1.0);
};
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                             const SmoothL1LossFuncOptions& o = {}) {
  return stax::smooth_l1_loss(input, target, o.reduction(), o.beta());
}

class HuberLossFuncOptions {
  STAX_OPTION(HuberLossFuncOptions, std::string_view, reduction, = kMean);
  STAX_OPTION(HuberLossFuncOptions, double, delta, = 1.0);
};
inline Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o = {}) {
  return stax::huber_loss(input, target, o.reduction(), o.delta());
}

class KLDivFuncOptions {
  STAX_OPTION(KLDivFuncOptions, std::string_view, reduction, = kMean);
  STAX_OPTION(KLDivFuncOptions, bool, log_target, = false);
};
inline Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o = {}) {
  return stax::kl_div(input, target, o.reduction(), o.log_target());
}

class NLLLossFuncOptions {
  STAX_OPTION(NLLLossFuncOptions, Tensor, weight, );
  STAX_OPTION(NLLLossFuncOptions, int64_t, ignore_index, = -100);
  STAX_OPTION(NLLLossFuncOptions, std::string_view, reduction, = kMean);
};
inline Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& o = {}) {
  return stax::nll_loss(input, target, o.weight(), o.ignore_index(), o.reduction());
}

class CrossEntropyFuncOptions {
  STAX_OPTION(CrossEntropyFuncOptions, Tensor, weight, );
  STAX_OPTION(CrossEntropyFuncOptions, int64_t, ignore_index, = -100);
  STAX_OPTION(CrossEntropyFuncOptions, std::string_view, reduction, = kMean);
  STAX_OPTION(CrossEntropyFuncOptions, double, label_smoothing, = 0.0);
};
inline Tensor cross_entropy(const Tensor& input, const Tensor& target,
                            const CrossEntropyFuncOptions& options = {}) {
  return stax::cross_entropy(input, target, options.weight(), options.ignore_index(), options.reduction(),
                             options.label_smoothing());
}

class BinaryCrossEntropyFuncOptions {
  STAX_OPTION(BinaryCrossEntropyFuncOptions, Tensor, weight, );
  STAX_OPTION(BinaryCrossEntropyFuncOptions, std::string_view, reduction, = kMean);
};
inline Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                   const BinaryCrossEntropyFuncOptions& o = {}) {
  return stax::binary_cross_entropy(input, target, o.weight(), o.reduction());
}

class BinaryCrossEntropyWithLogitsFuncOptions {
  STAX_OPTION(BinaryCrossEntropyWithLogitsFuncOptions, Tensor, weight, );
  STAX_OPTION(BinaryCrossEntropyWithLogitsFuncOptions, std::string_view, reduction, = kMean);
  STAX_OPTION(BinaryCrossEntropyWithLogitsFuncOptions, Tensor, pos_weight, );
};
inline Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                               const BinaryCrossEntropyWithLogitsFuncOptions& o = {}) {
  return stax::binary_cross_entropy_with_logits(input, target, o.weight(), o.pos_weight(), o.reduction());
}

/// A margin and how elements are joined.
template <int Margin>
class MarginFuncOptions {
  STAX_OPTION(MarginFuncOptions, double, margin, = Margin);
  STAX_OPTION(MarginFuncOptions, std::string_view, reduction, = kMean);
};
using HingeEmbeddingLossFuncOptions = MarginFuncOptions<1>;
using MarginRankingLossFuncOptions = MarginFuncOptions<0>;
using CosineEmbeddingLossFuncOptions = MarginFuncOptions<0>;
inline Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                                   const HingeEmbeddingLossFuncOptions& o = {}) {
  return stax::hinge_embedding_loss(input, target, o.margin(), o.reduction());
}
inline Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                  const MarginRankingLossFuncOptions& o = {}) {
  return stax::margin_ranking_loss(input1, input2, target, o.margin(), o.reduction());
}
inline Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                    const CosineEmbeddingLossFuncOptions& o = {}) {
  return stax::cosine_embedding_loss(input1, input2, target, o.margin(), o.reduction());
}

class TripletMarginLossFuncOptions {
  STAX_OPTION(TripletMarginLossFuncOptions, double, margin, = 1.0);
  STAX_OPTION(TripletMarginLossFuncOptions, double, p, = 2.0);
  STAX_OPTION(TripletMarginLossFuncOptions, double, eps, = 1e-6);
  STAX_OPTION(TripletMarginLossFuncOptions, bool, swap, = false);
  STAX_OPTION(TripletMarginLossFuncOptions, std::string_view, reduction, = kMean);
};
inline Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                  const TripletMarginLossFuncOptions& o = {}) {
  return stax::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(), o.swap(),
                                   o.reduction());
}

class MultiMarginLossFuncOptions {
  STAX_OPTION(MultiMarginLossFuncOptions, int64_t, p, = 1);
  STAX_OPTION(MultiMarginLossFuncOptions, double, margin, = 1.0);
  STAX_OPTION(MultiMarginLossFuncOptions, Tensor, weight, );
  STAX_OPTION(MultiMarginLossFuncOptions, std::string_view, reduction, = kMean);
};
inline Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                                const MultiMarginLossFuncOptions& o = {}) {
  return stax::multi_margin_loss(input, target, o.p(), o.margin(), o.weight(), o.reduction());
}

class MultilabelSoftMarginLossFuncOptions {
  STAX_OPTION(MultilabelSoftMarginLossFuncOptions, Tensor, weight, );
  STAX_OPTION(MultilabelSoftMarginLossFuncOptions, std::string_view, reduction, = kMean);
};
inline Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                          const MultilabelSoftMarginLossFuncOptions& o = {}) {
  return stax::multilabel_soft_margin_loss(input, target, o.weight(), o.reduction());
}

class PoissonNLLLossFuncOptions {
  STAX_OPTION(PoissonNLLLossFuncOptions, bool, log_input, = true);
  STAX_OPTION(PoissonNLLLossFuncOptions, bool, full, = false);
  STAX_OPTION(PoissonNLLLossFuncOptions, double, eps, = 1e-8);
  STAX_OPTION(PoissonNLLLossFuncOptions, std::string_view, reduction, = kMean);
};
inline Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                               const PoissonNLLLossFuncOptions& o = {}) {
  return stax::poisson_nll_loss(input, target, o.log_input(), o.full(), o.eps(), o.reduction());
}

class CosineSimilarityFuncOptions {
  STAX_OPTION(CosineSimilarityFuncOptions, int64_t, dim, = 1);
  STAX_OPTION(CosineSimilarityFuncOptions, double, eps, = 1e-8);
};
inline Tensor cosine_similarity(const Tensor& x1, const Tensor& x2,
                                const CosineSimilarityFuncOptions& o = {}) {
  return stax::cosine_similarity(x1, x2, o.dim(), o.eps());
}

class PairwiseDistanceFuncOptions {
  STAX_OPTION(PairwiseDistanceFuncOptions, double, p, = 2.0);
  STAX_OPTION(PairwiseDistanceFuncOptions, double, eps, = 1e-6);
  STAX_OPTION(PairwiseDistanceFuncOptions, bool, keepdim, = false);
};
inline Tensor pairwise_distance(const Tensor& x1, const Tensor& x2,
                                const PairwiseDistanceFuncOptions& o = {}) {
  return stax::pairwise_distance(x1, x2, o.p(), o.eps(), o.keepdim());
}

}  // namespace stax::nn::functional
