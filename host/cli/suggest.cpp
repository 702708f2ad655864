#include "host/cli/suggest.h"

#include <vector>

#include "device_sim/base/nearest_name.h"

namespace gpusim::host {

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
    const bool is_option = word.starts_with("--");
    const std::string found =
        did_you_mean(word.substr(0, is_option ? word.find('=') : word.size()),
                     is_option ? options : commands);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace gpusim::host
