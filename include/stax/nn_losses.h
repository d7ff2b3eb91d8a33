// nn::functional: losses and distances. A loss is zero-dim, or of the shape of its elements with kNone.
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
STAX_LOSS(mse_loss)          // (x - y)^2
STAX_LOSS(l1_loss)           // |x - y|
STAX_LOSS(soft_margin_loss)  // log(1 + exp(-y x)) for targets 1 and -1
// Scores [C] or [N, C] with int64 targets of the same shape, those of a row ending at its first negative one:
// the sum over targets t and other classes j of max(0, 1 - x[t] + x[j]) / C.
STAX_LOSS(multilabel_margin_loss)
#undef STAX_LOSS

/// 0.5 (x - y)^2 / beta where |x - y| < beta, |x - y| - 0.5 beta elsewhere.
class SmoothL1LossFuncOptions {
  STAX_OPTION(SmoothL1LossFuncOptions, std::string_view, reduction, = kMean);
  STAX_OPTION(SmoothL1LossFuncOptions, double, beta, = 1.0);
};
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                             const SmoothL1LossFuncOptions& o = {}) {
  return stax::smooth_l1_loss(input, target, o.reduction(), o.beta());
}

/// 0.5 (x - y)^2 where |x - y| <= delta, delta (|x - y| - 0.5 delta) elsewhere.
class HuberLossFuncOptions {
  STAX_OPTION(HuberLossFuncOptions, std::string_view, reduction, = kMean);
  STAX_OPTION(HuberLossFuncOptions, double, delta, = 1.0);
};
inline Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o = {}) {
  return stax::huber_loss(input, target, o.reduction(), o.delta());
}

/// y (log(y) - x) for log-probabilities x; `log_target` says that y is a logarithm, too. kBatchMean divides
/// the sum by the first size.
class KLDivFuncOptions {
  STAX_OPTION(KLDivFuncOptions, std::string_view, reduction, = kMean);
  STAX_OPTION(KLDivFuncOptions, bool, log_target, = false);
};
inline Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o = {}) {
  return stax::kl_div(input, target, o.reduction(), o.log_target());
}

/// -weight[t] x[t] for log-probabilities x, [C] or [N, C, d...], and integer targets t without the dimension
/// C. The mean is weighted; targets that are ignore_index do not count. `weight` is [C].
class NLLLossFuncOptions {
  STAX_OPTION(NLLLossFuncOptions, Tensor, weight, );
  STAX_OPTION(NLLLossFuncOptions, int64_t, ignore_index, = -100);
  STAX_OPTION(NLLLossFuncOptions, std::string_view, reduction, = kMean);
};
inline Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& o = {}) {
  return stax::nll_loss(input, target, o.weight(), o.ignore_index(), o.reduction());
}

/// nll_loss of log_softmax(x) along C. The target may also be probabilities of the shape of x. Label
/// smoothing mixes it with the same probability for each class.
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

/// -(y log(x) + (1 - y) log(1 - x)) for probabilities x, the logarithms kept at -100 or above; times
/// `weight`, which broadcasts. The target is of the shape of x.
class BinaryCrossEntropyFuncOptions {
  STAX_OPTION(BinaryCrossEntropyFuncOptions, Tensor, weight, );
  STAX_OPTION(BinaryCrossEntropyFuncOptions, std::string_view, reduction, = kMean);
};
inline Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                   const BinaryCrossEntropyFuncOptions& o = {}) {
  return stax::binary_cross_entropy(input, target, o.weight(), o.reduction());
}

/// binary_cross_entropy of sigmoid(x), in a form that does not overflow. pos_weight multiplies the part of y;
/// it broadcasts.
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
/// x where the target is 1, max(0, margin - x) where it is -1.
inline Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                                   const HingeEmbeddingLossFuncOptions& o = {}) {
  return stax::hinge_embedding_loss(input, target, o.margin(), o.reduction());
}
/// max(0, -y (x1 - x2) + margin) for targets y of 1 and -1.
inline Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                  const MarginRankingLossFuncOptions& o = {}) {
  return stax::margin_ranking_loss(input1, input2, target, o.margin(), o.reduction());
}
/// Along the last dimension: 1 - cos where the target is 1, max(0, cos - margin) where it is -1.
inline Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                    const CosineEmbeddingLossFuncOptions& o = {}) {
  return stax::cosine_embedding_loss(input1, input2, target, o.margin(), o.reduction());
}

/// max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is pairwise_distance with p and eps;
/// `swap` takes d(positive, negative) instead where it is smaller.
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

/// The sum over classes j other than the int64 target t of weight[t] max(0, margin - x[t] + x[j])^p / C, for
/// scores [C] or [N, C] and p of 1 or 2.
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

/// The mean over the last dimension of -(y logsigmoid(x) + (1 - y) logsigmoid(-x)), times `weight`.
class MultilabelSoftMarginLossFuncOptions {
  STAX_OPTION(MultilabelSoftMarginLossFuncOptions, Tensor, weight, );
  STAX_OPTION(MultilabelSoftMarginLossFuncOptions, std::string_view, reduction, = kMean);
};
inline Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                          const MultilabelSoftMarginLossFuncOptions& o = {}) {
  return stax::multilabel_soft_margin_loss(input, target, o.weight(), o.reduction());
}

/// exp(x) - y x, or x - y log(x + eps) without log_input; `full` adds Stirling's approximation of log(y!)
/// where y > 1.
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

/// The product of x1 and x2, which broadcast, summed along `dim`, over their norms, each kept at eps or
/// above.
class CosineSimilarityFuncOptions {
  STAX_OPTION(CosineSimilarityFuncOptions, int64_t, dim, = 1);
  STAX_OPTION(CosineSimilarityFuncOptions, double, eps, = 1e-8);
};
inline Tensor cosine_similarity(const Tensor& x1, const Tensor& x2,
                                const CosineSimilarityFuncOptions& o = {}) {
  return stax::cosine_similarity(x1, x2, o.dim(), o.eps());
}

/// The p-norm of x1 - x2 + eps along the last dimension.
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
