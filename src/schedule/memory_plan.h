// The order of groups, and where their intermediates lie.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace stax::schedule {

inline constexpr int64_t kSlotAlignment = 64;

/// Bytes from element 0 to the end of the last element of `buffer`.
Expr storage_bytes(const loops::Buffer& buffer);

/// By buffer: whether its memory is allocated apart when it is first written, because a size that only data
/// determines is in it, or because the function that writes it allocates it.
std::vector<char> late_buffers(const loops::Program& program);

/// For every group the groups that must run before it; `groups` in any order.
std::vector<std::vector<int32_t>> group_dependences(const std::vector<Group>& groups,
                                                    const std::vector<std::vector<int32_t>>& dependences);

/// An order of execution that respects `before` and keeps the peak of live intermediates low: program order,
/// unless a greedy choice by bytes freed does better. Positions into `groups`.
std::vector<int32_t> execution_order(const loops::Program& program, const std::vector<Group>& groups,
                                     const std::vector<std::vector<int32_t>>& before, const Sizes& sizes);

/// Fills in slots and arena_bytes: one slot for each intermediate that is not local, alive from its first to
/// its last use, both included. Fixed sizes: greedy best fit, largest first. Symbolic sizes: shelves, one
/// after another, of slots that are never alive together, each as large as its largest slot in the call at
/// hand. Who shares a shelf is chosen by the hints.
void plan_memory(const loops::Program& program, Schedule& schedule, const Sizes& sizes = {});

}  // namespace stax::schedule
