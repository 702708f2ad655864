// The program `gpusim`. docs/cli.md is its manual.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>

#include "device_sim/base/error.h"
#include "device_sim/base/nearest_name.h"
#include "host/cli/commands.h"
#include "host/cli/help.h"
#include "host/cli/strict_values.h"
#include "host/cli/suggest.h"
#include "host/console.h"
#include "host/exit_status.h"

namespace gpusim::host {
namespace {

// One line, whatever an exception says.
int fail(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  console::err("gpusim: error: {}\n", text);
  return kExitUserError;
}

// CLI11 would take the -3 of `--arg -3` for an option.
std::vector<std::string> join_values(std::vector<std::string> args) {
  std::vector<std::string> joined;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool takes_any = args[i] == "--arg" || args[i] == "--env" || args[i] == "--run-option";
    if (takes_any && i + 1 < args.size()) {
      joined.push_back(args[i] + "=" + args[i + 1]);
      ++i;
    } else {
      joined.push_back(args[i]);
    }
  }
  return joined;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

// `gpusim` and `gpusim power` do nothing without a command of theirs: says which there are, and is
// true where `args` are such a command.
bool list_commands(const CLI::App& app, const std::vector<std::string>& args) {
  const CLI::App* at = &app;
  std::string name = "gpusim";
  for (const std::string& word : args) {
    const auto commands = commands_of(*at);
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* c) { return c->get_name() == word; });
    if (found == commands.end()) return false;
    at = *found;
    name += " " + word;
  }
  if (at->get_require_subcommand_min() == 0) return false;
  const auto commands = commands_of(*at);
  size_t width = 0;
  for (const CLI::App* command : commands) width = std::max(width, command->get_name().size());
  console::out("{}: {}\n\n", name, at->get_description());
  for (const CLI::App* command : commands)
    console::out("  {} {:<{}}  {}\n", name, command->get_name(), width, command->get_description());
  console::out("\n--help behind any of them tells more.\n");
  fail(fmt::format("{} needs one of these commands", name));
  return true;
}

// Error for a word in the place of a command that is none.
void check_commands(const CLI::App& app, const std::vector<std::string>& args) {
  const CLI::App* at = &app;
  std::string before;
  for (const std::string& word : args) {
    if (word.starts_with('-') || at->get_require_subcommand_min() == 0) return;
    const std::vector<std::string> commands = command_names(*at);
    if (std::find(commands.begin(), commands.end(), word) == commands.end())
      throw Error(fmt::format("there is no command {}{}{}; there are: {}", before, word,
                              did_you_mean(word, commands), fmt::join(commands, ", ")));
    before += word + " ";
    at = at->get_subcommand(word);
  }
}

int run_main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc), guest_args;
  const auto dashes = std::find(args.begin(), args.end(), "--");
  if (dashes != args.end()) {
    guest_args.assign(dashes + 1, args.end());
    args.erase(dashes, args.end());
  }
  CLI::App app("Simulates thousands of CPU cores, functionally and fast.", "gpusim");
  app.set_version_flag("--version", "gpusim " GPUSIM_VERSION);
  app.require_subcommand(1);
  Action action;
  add_run_command(app, guest_args, action);
  add_translate_command(app, action);
  add_disasm_command(app, action);
  add_info_command(app, action);
  add_self_test_command(app, action);
  add_other_commands(app, guest_args, action);
  check_values(app);
  add_help_texts(app);
  if (args == std::vector<std::string>{"--dump-help"}) {  // for make_help_files.py
    console::out("{}\n", describe_program(app).dump(1));
    return 0;
  }
  check_commands(app, args);
  if (list_commands(app, args)) return kExitUserError;
  try {
    args = join_values(std::move(args));
    std::reverse(args.begin(), args.end());  // as CLI11 wants them
    app.parse(args);
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    const int status = app.exit(help, text, text);
    console::write_output(text.str());
    return status;
  } catch (const CLI::ParseError& error) {
    return fail(error.what() + suggest(app) + usage(app));
  }
  const std::string command = app.get_subcommands().front()->get_name();
  const bool takes_guest_args = command == "run" || command == "power" ||
                                command == "sweep" || command == "cuda";
  if (!takes_guest_args && !guest_args.empty())
    return fail("only `gpusim run`, `power`, `sweep` and `cuda` take arguments after --");
  return action();
}

// Whatever nobody catches is an error of ours: no SIGABRT, which stands for a guest's abort().
[[noreturn]] void on_terminate() {
  std::string what = "unknown internal error";
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  fail(std::move(what));
  ::_exit(kExitUserError);
}

int guarded_main(int argc, char** argv) {
  try {
    return run_main(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; use fewer cores or a smaller --memory-size");
  } catch (const std::exception& error) {
    return fail(error.what());
  } catch (...) {
    return fail("unknown internal error");
  }
}

// The status of a program whose work is done, and whose standard output may not have taken it all.
int status_with_output(int status) {
  const int error = console::finish_output();
  if (error == 0) return status;
  // Whoever read it has had enough.
  if (error == EPIPE) return status != 0 ? status : 128 + SIGPIPE;
  const int failed = fail(fmt::format("standard output: {}", std::strerror(error)));
  return status != 0 ? status : failed;
}

}  // namespace
}  // namespace gpusim::host

int main(int argc, char** argv) {
  using namespace gpusim::host;
  console::hold_standard_descriptors();
  std::set_terminate(on_terminate);
  // A file that grows beyond RLIMIT_FSIZE is an error of write().
  std::signal(SIGXFSZ, SIG_IGN);
  return status_with_output(guarded_main(argc, argv));
}
