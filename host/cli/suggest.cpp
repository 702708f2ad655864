#include "host/cli/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "device_sim/base/nearest_name.h"

namespace gpusim::host {

namespace {

// What other simulators and earlier pages call an option of ours.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"--allow-network", "--network loopback, or --network host"},
    {"--num-cpus", "--cores N"},
};

std::string_view option_of(std::string_view text) { return text.substr(0, text.find(' ')); }

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string suggest(const CLI::App& app) {
  std::vector<std::string> options, commands;
  const CLI::App* command = &app;
  for (;;) {
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    const std::vector<const CLI::App*> given =
        command->get_subcommands([](const CLI::App* sub) { return sub->parsed(); });
    if (given.empty()) break;
    command = given.back();
  }
  for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(sub->get_name());
  for (const std::string& word : app.remaining(/*recurse=*/true)) {
    for (const auto& [elsewhere, here] : kOtherNames)
      if (word.substr(0, word.find('=')) == elsewhere && contains(options, option_of(here)))
        return fmt::format(" (here it is {})", here);
    const bool is_option = word.starts_with("--");
    const std::string found =
        did_you_mean(word.substr(0, is_option ? word.find('=') : word.size()),
                     is_option ? options : commands);
    if (!found.empty()) return found;
  }
  return {};
}

std::string usage(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (;;) {
    const std::vector<const CLI::App*> given =
        command->get_subcommands([](const CLI::App* sub) { return sub->parsed(); });
    if (given.empty()) break;
    command = given.back();
    name += " " + command->get_name();
  }
  if (command == &app || command->get_require_subcommand_min() != 0)
    return fmt::format(" ({} --help tells more)", name);
  std::string words = name + " [OPTIONS]";
  for (const CLI::Option* option : command->get_options())
    if (option->get_positional()) words += " " + option->get_name(/*positional=*/true);
  return fmt::format(" (usage: {}; {} --help tells more)", words, name);
}

}  // namespace gpusim::host
