#include "host/python/run_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "device_sim/base/error.h"
#include "host/cli/commands.h"
#include "host/cli/strict_values.h"

namespace gpusim::python {
namespace {

// What belongs to a process of its own, or is told by results.
constexpr std::array<std::string_view, 8> kOnlyCommand = {
    "help",   "help-all", "checkpoint", "checkpoint-every", "checkpoint-stop",
    "resume", "quiet",    "gdb"};

bool is_here(const std::string& name) {
  return std::find(kOnlyCommand.begin(), kOnlyCommand.end(), name) == kOnlyCommand.end();
}

class Parser {
 public:
  Parser() {
    host::add_run_command(app_, guest_args_, action_, [this](const host::RunOptions& options) {
      options_ = options;
      return 0;
    });
    host::check_values(app_);
  }

  const CLI::App& command() const { return *app_.get_subcommand("run"); }

  host::RunOptions parse(std::vector<std::string> words,
                         const std::vector<std::string>& guest_args) {
    guest_args_ = guest_args;
    words.insert(words.begin(), "run");
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ParseError& e) {
      throw Error(e.what());
    }
    action_();
    return std::move(options_);
  }

 private:
  CLI::App app_;
  std::vector<std::string> guest_args_;
  host::Action action_;
  host::RunOptions options_;
};

}  // namespace

std::vector<OptionInfo> run_option_infos() {
  const Parser parser;
  std::vector<OptionInfo> infos;
  for (const CLI::Option* option : parser.command().get_options())
    for (const std::string& name : option->get_lnames())
      if (is_here(name))
        infos.push_back({.name = name,
                         .help = option->get_description(),
                         .is_flag = option->get_expected_min() == 0,
                         .is_repeatable =
                             option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll});
  return infos;
}

host::RunOptions parse_run_options(std::vector<std::string> words,
                                   const std::vector<std::string>& guest_args) {
  return Parser().parse(std::move(words), guest_args);
}

}  // namespace gpusim::python
