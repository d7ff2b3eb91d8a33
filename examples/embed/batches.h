// Which texts are computed together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace embed {

/// Positions of texts, by numbers of tokens: every position once, in batches of like lengths, the longest
/// first. A batch has at most `max_tokens` tokens, padding included, and at most an eighth of them are
/// padding. Two texts are always let together: nothing is gained from a batch of one (see main.cpp).
std::vector<std::vector<size_t>> make_batches(std::span<const size_t> lengths, size_t max_tokens);

}  // namespace embed
