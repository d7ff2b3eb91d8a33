// The `stax` program: its command line. What the commands do lies in the files of their names.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>

#include "cli/commands.h"
#include "stax/error.h"

namespace {

using namespace stax::cli;
using Action = std::function<int()>;

void add_verify(CLI::App& app, Action& action) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "Replays recorded calls of operators");
  command->add_option("PATH", options->paths, "Files of recorded calls, or folders of them")->required();
  command->add_option("--mode", options->mode, "reference or compiled")->required();
  command->add_option("--op", options->op, "Only this operator");
  command->add_option("--limit", options->limit, "At most so many calls of a file");
  command->add_option("--jobs", options->jobs, "Processes at a time (default: one a core)");
  command->add_flag("--json", options->json, "Prints JSON");
  command->add_flag("--verbose", options->verbose, "Says why each call failed or is unknown");
  command->callback([options, &action] { action = [options] { return verify(*options); }; });
}

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Runs a model on arrays from files");
  command->add_option("MODEL", options->model, "An .onnx file")->required();
  command->add_option("--input", options->inputs, "NAME=FILE.npy, once an input");
  command->add_option("--output-dir", options->output_dir, "Folder for the outputs")->required();
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

int run_command(int argc, char** argv) {
  CLI::App app("Stax compiles tensor functions and runs them.", "stax");
  app.require_subcommand(1);
  Action action;
  add_verify(app, action);
  add_run(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "stax: error: %s\n", error.what());
    return 2;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_command(argc, argv);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "stax: error: %s\n", error.what());
    return 1;
  }
}
