// What the main functions of the examples share.
#pragma once

#include <functional>
#include <string_view>

/// The exit status of `run`, which parses the arguments and prints the results: 1, with "NAME: error: ..." on
/// stderr, where it throws, or where its output cannot be written.
int run_program(std::string_view name, const std::function<int()>& run);
