// Kernels of one group for different sizes ("forms"): what a Chooser leaves to the launch.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "symbolic/sizes.h"

namespace stax::codegen {

/// At most `most` forms of a kernel, by the answers that the questions for the launch may get; the last one
/// is right for every size. make(number, chooser) decides one, number 0 first; when(kernel) is where its
/// conditions go.
template <class Kernel, class Make, class When>
std::vector<Kernel> make_forms(const Sizes& sizes, size_t most, const Make& make, const When& when) {
  // Each run of the choices that met questions for the launch leaves its turns to those that follow.
  std::deque<std::vector<bool>> paths{{}};
  std::vector<Kernel> kernels;
  while (!paths.empty() && kernels.size() < most) {
    const std::vector<bool> path = paths.front();
    paths.pop_front();
    Chooser chooser(sizes, path);
    kernels.push_back(make(kernels.size(), chooser));
    std::vector<bool> answers;
    for (const Chooser::Question& q : chooser.questions()) {
      when(kernels.back()).push_back(q.answer ? q.condition : q.condition.negated());
      if (answers.size() >= path.size()) {
        paths.push_back(answers);
        paths.back().push_back(!q.answer);
      }
      answers.push_back(q.answer);
    }
  }
  // What the first decides by itself is right for every size.
  when(kernels.front()).clear();
  std::rotate(kernels.begin(), kernels.begin() + 1, kernels.end());
  return kernels;
}

}  // namespace stax::codegen
