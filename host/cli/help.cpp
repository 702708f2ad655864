#include "host/cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "energy/builtin_targets.h"
#include "host/cli/help_texts.h"
#include "host/exit_status.h"
#include "translator/common/isa_list.h"

namespace gpusim::host {
namespace {

using Json = nlohmann::ordered_json;

std::string examples_text(std::string_view command) {
  std::string text;
  for (const Example& example : kExamples)
    if (example.command == command)
      text += fmt::format("\n  {}\n      {}", example.line, example.note);
  return text.empty() ? text : "Examples:" + text + "\n";
}

std::string statuses_text() {
  std::string text = "Exit status:";
  for (const ExitStatus& status : kExitStatuses)
    text += fmt::format("\n  {:<9} {}", status.status, status.when);
  return text + "\n\n`gpusim COMMAND --help` tells more; so does gpusim(1).\n";
}

std::vector<CLI::App*> children(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

void add_examples(CLI::App& app, const std::string& path) {
  app.footer("\n" + examples_text(path));
  for (CLI::App* child : children(app))
    add_examples(*child, path.empty() ? child->get_name() : path + " " + child->get_name());
}

// Values that an option takes, where they can be listed.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string name = option.get_lnames().empty() ? "" : option.get_lnames()[0];
  std::vector<std::string> choices;
  if (name == "backend") {
    choices.push_back("auto");
    for (const BackendInfo& backend : all_backends()) choices.emplace_back(backend.name);
  } else if (name == "cpu") {
    for (const GuestIsa* isa : all_isas())
      for (const GuestCpu& cpu : isa->cpus) choices.emplace_back(cpu.name);
  } else if (name == "energy" || name == "target" || name == "cpu-target") {
    for (const EmbeddedFile& target : energy::builtin_target_files())
      choices.push_back(std::string(target.name).substr(0, std::string(target.name).find('.')));
  } else {
    // A set of values calls itself {a,b,c}.
    const std::string type = option.get_type_name();
    const size_t open = type.find('{'), close = type.find('}');
    if (open == std::string::npos || close == std::string::npos || close < open) return choices;
    std::string inner = type.substr(open + 1, close - open - 1);
    for (size_t comma; (comma = inner.find(',')) != std::string::npos; inner.erase(0, comma + 1))
      choices.push_back(inner.substr(0, comma));
    choices.push_back(inner);
  }
  return choices;
}

Json describe_option(const CLI::Option& option) {
  Json names = Json::array();
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return {{"names", names},
          {"positional", names.empty()},
          {"value", names.empty() ? option.get_single_name() : option.get_type_name()},
          {"takes_value", option.get_type_size() != 0 && option.get_expected_min() > 0},
          {"required", option.get_required()},
          {"repeatable", option.get_expected_max() > 1 ||
                             option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll},
          {"choices", choices_of(option)},
          {"description", option.get_description()}};
}

Json describe(const CLI::App& app, const std::string& path) {
  Json options = Json::array(), commands = Json::array(), examples = Json::array();
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) options.push_back(describe_option(*option));
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!child->get_group().empty())
      commands.push_back(
          describe(*child, path.empty() ? child->get_name() : path + " " + child->get_name()));
  for (const Example& example : kExamples)
    if (example.command == path)
      examples.push_back({{"line", example.line}, {"note", example.note}});
  return {{"command", path},
          {"description", app.get_description()},
          {"takes_rest", std::ranges::find(kTakesRest, path) != std::end(kTakesRest)},
          {"options", options},
          {"examples", examples},
          {"commands", commands}};
}

}  // namespace

void add_help_texts(CLI::App& app) {
  add_examples(app, "");
  app.footer("\n" + examples_text("") + "\n" + statuses_text());
}

Json describe_program(const CLI::App& app) {
  Json json = describe(app, "");
  json["version"] = GPUSIM_VERSION;
  json["exit_status"] = Json::array();
  for (const ExitStatus& status : kExitStatuses)
    json["exit_status"].push_back({{"status", status.status}, {"when", status.when}});
  json["environment"] = Json::array();
  for (const Variable& variable : kEnvironment)
    json["environment"].push_back({{"name", variable.name}, {"meaning", variable.meaning}});
  return json;
}

}  // namespace gpusim::host
