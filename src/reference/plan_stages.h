// The stages of planning a node around the one that turns its instructions into steps (node_plan.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "loops/program.h"
#include "reference/iteration.h"
#include "reference/node_plan.h"

namespace stax::reference {

/// Where a step runs: the lists of NodePlan.
enum class Phase : uint8_t { before, during, after, tail };
inline constexpr std::array<Phase, 4> kPhases = {Phase::before, Phase::during, Phase::after, Phase::tail};

std::vector<Step>& steps_of(NodePlan& plan, Phase phase);
/// What the blocks of a phase span.
const Domain& domain_of(const NodePlan& plan, Phase phase);

/// Decides the mode, what blocks span and which dimensions are walked outside of them. `plan.empty` where
/// there is nothing to compute.
void choose_domains(const Iteration& it, const loops::Body& body, NodePlan& plan);

/// By phase: the values that are computed in it, in order.
using ValuesByPhase = std::array<std::vector<loops::ValueId>, 4>;
ValuesByPhase assign_phases(const Iteration& it, const loops::Body& body);

/// A node that writes an input may write what it still has to read: its loads copy.
bool may_overwrite_loads(const loops::Program& program, const loops::Body& body);

/// A value that is stored contiguously is computed in place, unless a load could notice.
void store_in_place(const loops::Program& program, const loops::Body& body, NodePlan& plan);

/// Gives registers their places, all of one size, for only one domain of a node has vectors; within a phase,
/// places of values that are no longer used come back.
void place_registers(NodePlan& plan);

}  // namespace stax::reference
