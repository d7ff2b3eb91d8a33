// What is raised for an index that a kernel found out of range.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_info.h"
#include "support/call_stack.h"

namespace stax::runtime {

/// `origins` and `places`: of Plan, by node.
[[noreturn]] void throw_index_error(const codegen::KernelStatus& status,
                                    const std::vector<std::string>& origins,
                                    const std::vector<CallStack>& places);

}  // namespace stax::runtime
