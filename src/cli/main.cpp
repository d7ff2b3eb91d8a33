// The `stax` program: its command line. What the commands do lies in the files of their names.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "compiler/decisions.h"
#include "compiler/pipeline.h"
#include "stax/error.h"
#include "support/log.h"
#include "support/process.h"
#include "tuning/search.h"

namespace {

using namespace stax::cli;
using Action = std::function<int()>;

std::string not_empty(const std::string& text) {
  return text.empty() ? "is empty" : "";
}
std::string not_negative(const std::string& number) {
  return number.starts_with('-') ? "is to be at least 0, not " + number : "";
}

void add_verify(CLI::App& app, Action& action) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "Replays recorded calls of operators");
  command->add_option("PATH", options->paths, "Files of recorded calls, or folders of them")
      ->required()
      ->check(not_empty);
  command
      ->add_option("--mode", options->mode,
                   "reference, compiled, dynamic, interpret, "
                   "interpret-dynamic, cuda or cuda-dynamic")
      ->required();
  command->add_option("--op", options->op, "Only this operator");
  command->add_option("--limit", options->limit, "At most so many calls of a file (default: all)")
      ->check(not_negative);
  command->add_option("--jobs", options->jobs, "Processes at a time (default: one a core)")
      ->check(not_negative);
  command->add_flag("--json", options->json, "Prints JSON");
  command->add_flag("--verbose", options->verbose, "Says why each call failed or is unknown");
  command->callback([options, &action] { action = [options] { return verify(*options); }; });
}

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Runs a model on arrays from files");
  command->add_option("MODEL", options->model, "An .onnx file")->required()->check(not_empty);
  command->add_option("--input", options->inputs, "NAME=FILE.npy, once an input");
  command->add_option("--output-dir", options->output_dir, "Folder for the outputs")
      ->required()
      ->check(not_empty);
  command->add_option("--device", options->device, "cpu");
  command->add_flag("--eager", options->eager, "Operator by operator, without compiling");
  command->add_flag("--dynamic", options->dynamic, "For all lengths of the model's symbolic dimensions");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

void add_show(CLI::App& app, Action& action) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = app.add_subcommand("show", "Prints a program at a stage of its compilation");
  command->add_option("PROGRAM", options->program, "A built-in example or an .onnx file")
      ->required()
      ->check(not_empty);
  command->add_option("--target", options->target, "cpu, cuda:sm_80, cuda:sm_90 or cuda:sm_100")->required();
  command
      ->add_option("--stage", options->stage,
                   "graph, loops, schedule, plan; kernels and cpp for cpu; triton for cuda:...")
      ->required();
  command->add_option("--batch", options->batch, "Length of a model's dimensions that have no fixed one");
  command->add_flag("--dynamic", options->dynamic, "With symbolic sizes");
  command->callback([options, &action] { action = [options] { return show(*options); }; });
}

void add_compile(CLI::App& app, Action& action) {
  auto options = std::make_shared<CompileKernelsOptions>();
  CLI::App* command = app.add_subcommand("compile", "Compiles the kernels of programs for GPUs, without one");
  command->add_option("PROGRAM", options->programs, "Built-in examples or .onnx files")
      ->required()
      ->check(not_empty);
  command
      ->add_option("--target", options->targets,
                   "cuda:sm_80, cuda:sm_90 or cuda:sm_100; or several, with commas")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--batch", options->batch, "Length of a model's dimensions that have no fixed one");
  command->add_flag("--dynamic", options->dynamic, "With symbolic sizes");
  command->add_option("--jobs", options->jobs, "Processes at a time (default: one a core)")
      ->check(not_negative);
  command->callback([options, &action] { action = [options] { return compile_kernels(*options); }; });
}

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Times a model");
  command->add_option("MODEL", options->model, "An .onnx file")->required()->check(not_empty);
  command->add_option("--input", options->inputs, "NAME=FILE.npy, once an input (default: zeros)");
  command->add_option("--batch", options->batch, "Length of dimensions that have no fixed one");
  command->add_option("--seconds", options->seconds, "How long to measure");
  command->add_flag("--json", options->json, "Prints JSON");
  command->callback([options, &action] { action = [options] { return bench(*options); }; });
}

void add_cache(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("cache", "Looks after the disk cache of compiled kernels");
  command->require_subcommand(1);
  command->add_subcommand("list", "Its entries, last used first")->callback([&] { action = cache_list; });
  command->add_subcommand("size", "How much it holds")->callback([&] { action = cache_size; });
  command->add_subcommand("clear", "Empties it")->callback([&] { action = cache_clear; });
}

/// Asks for the settings of the environment that are words, also where the command would not: a misspelt one
/// is warned of.
void look_at_environment() {
  static_cast<void>(stax::compiler::default_target());
  static_cast<void>(stax::tuning::default_strategy());
  static_cast<void>(stax::compiler::checks(""));
  static_cast<void>(stax::log::enabled(stax::log::Channel::graph));
}

/// "stax cache" for the innermost command of a command line.
std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

/// What is wrong with a command line, and where to read more.
std::string problem_of(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::string words = error.what();
  if (command->get_require_subcommand_min() > 0) {  // of which CLI11 only says that it is required
    const std::vector<std::string> rest = command->remaining();
    words = rest.empty() ? "a command is missing" : "there is no command '" + rest.front() + "'";
    words += "; there are:";
    for (const CLI::App* one : command->get_subcommands([](const CLI::App*) { return true; }))
      words += " " + one->get_name();
  }
  return words + "; see " + path_of(*command) + " --help";
}

int run_command(int argc, char** argv) {
  CLI::App app("Stax compiles tensor functions and runs them.", "stax");
  app.set_version_flag("--version", "stax " STAX_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  Action action;
  add_verify(app, action);
  add_run(app, action);
  add_show(app, action);
  add_compile(app, action);
  add_bench(app, action);
  add_cache(app, action);
  app.add_subcommand("examples", "Lists the built-in examples")->callback([&] { action = list_examples; });
  app.add_subcommand("doctor", "Says what this machine can do")->callback([&] { action = doctor; });
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "stax: error: %s\n", problem_of(app, error).c_str());
    return 2;
  }
  look_at_environment();
  return action();
}

/// A full disk or a closed stream shows when the last of the output is written.
int finish_output(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fprintf(stderr, "stax: error: cannot write the output: %s\n", std::strerror(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  stax::guard_children();
  try {
    return finish_output(run_command(argc, argv));
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "stax: error: %s\n", error.what());
    return 1;
  }
}
