#include "host/cli/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "device_sim/base/nearest_name.h"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace gpusim::host {
namespace {

struct ConfigEntry {
  std::string key;
  size_t line = 0;
  bool is_list = false, is_value = true;  // neither: a table
  std::vector<std::string> values;
};

// Letters of a text, and the line that the reader has come to.
class CountingText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  CountingText(const char* at, size_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingText& operator++() {
    *line_ += *at_++ == '\n';
    return *this;
  }
  bool operator==(const CountingText& o) const { return at_ == o.at_; }
  bool operator!=(const CountingText& o) const { return at_ != o.at_; }

 private:
  const char* at_;
  size_t* line_;
};

// On which line each key of the outermost object stands.
class KeyLines : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  explicit KeyLines(const size_t* line) : line_(line) {}
  std::map<std::string, size_t> lines;

  bool key(string_t& name) override {
    if (depth_ == 1) lines.emplace(name, *line_);
    return true;
  }
  bool start_object(size_t) override { return ++depth_ != 0; }
  bool end_object() override { return depth_-- != 0; }
  bool start_array(size_t) override { return ++depth_ != 0; }
  bool end_array() override { return depth_-- != 0; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  const size_t* line_;
  int depth_ = 0;
};

bool add_json_value(ConfigEntry& entry, const nlohmann::ordered_json& value) {
  if (value.is_string())
    entry.values.push_back(value.get<std::string>());
  else if (value.is_number() || value.is_boolean())
    entry.values.push_back(value.dump());
  else
    return false;
  return true;
}

std::vector<ConfigEntry> read_json_config(const std::string& text, const std::string& path) {
  const nlohmann::ordered_json json = parse_json(text, path);
  if (!json.is_object()) throw Error(fmt::format("{}: expected an object", path));
  size_t line = 1;
  KeyLines keys(&line);
  nlohmann::ordered_json::sax_parse(CountingText(text.data(), &line),
                                    CountingText(text.data() + text.size(), &line), &keys);
  std::vector<ConfigEntry> entries;
  for (const auto& item : json.items()) {
    ConfigEntry entry{.key = item.key(), .line = keys.lines[item.key()], .values = {}};
    entry.is_list = item.value().is_array();
    if (entry.is_list)
      for (const auto& value : item.value()) entry.is_value &= add_json_value(entry, value);
    else
      entry.is_value = add_json_value(entry, item.value());
    entries.push_back(std::move(entry));
  }
  return entries;
}

bool add_toml_value(ConfigEntry& entry, const toml::node& value) {
  if (const auto* text = value.as_string())
    entry.values.push_back(text->get());
  else if (const auto* number = value.as_integer())
    entry.values.push_back(std::to_string(number->get()));
  else if (const auto* real = value.as_floating_point())
    entry.values.push_back(fmt::format("{}", real->get()));
  else if (const auto* flag = value.as_boolean())
    entry.values.push_back(flag->get() ? "true" : "false");
  else
    return false;
  return true;
}

std::vector<ConfigEntry> read_toml_config(const std::string& text, const std::string& path) {
  std::vector<ConfigEntry> entries;
  try {
    const toml::table table = toml::parse(text, path);
    for (const auto& [key, value] : table) {
      ConfigEntry entry{
          .key = std::string(key.str()), .line = key.source().begin.line, .values = {}};
      if (const toml::array* list = value.as_array()) {
        entry.is_list = true;
        for (const toml::node& one : *list) entry.is_value &= add_toml_value(entry, one);
      } else {
        entry.is_value = add_toml_value(entry, value);
      }
      entries.push_back(std::move(entry));
    }
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}: line {}, column {}: {}", path, error.source().begin.line,
                            error.source().begin.column, std::string(error.description())));
  }
  // A table has its keys in the order of the alphabet.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const ConfigEntry& a, const ConfigEntry& b) { return a.line < b.line; });
  return entries;
}

std::vector<std::string> config_names(const CLI::App& command) {
  std::vector<std::string> names = {"program", "args"};
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      if (name != "help" && name != "config") names.push_back(name);
  return names;
}

}  // namespace

std::vector<std::string> apply_config(CLI::App& command, const std::string& path,
                                      const std::vector<std::string>& guest_args) {
  std::string text;
  try {
    text = read_text(path);
  } catch (const Error& error) {
    throw Error(fmt::format("--config {}; expected a file of options, one `cores = 64` a line",
                            error.what()));
  }
  const std::vector<ConfigEntry> entries =
      path.ends_with(".json") ? read_json_config(text, path) : read_toml_config(text, path);
  const std::vector<std::string> names = config_names(command);
  std::vector<std::string> args = guest_args;
  for (const ConfigEntry& entry : entries) {
    const std::string where = fmt::format("{}: line {}: {}", path, entry.line, entry.key);
    if (std::find(names.begin(), names.end(), entry.key) == names.end())
      throw Error(fmt::format("{}: gpusim run has no such option{}", where,
                              did_you_mean(entry.key, names)));
    if (!entry.is_value)
      throw Error(
          fmt::format("{}: expected a text, a number, true, false, or a list of them", where));
    if (entry.key == "args") {
      if (guest_args.empty()) args = entry.values;
      continue;
    }
    CLI::Option* option = command.get_option(entry.key == "program" ? "PROGRAM" : "--" + entry.key);
    if (option->count() != 0) continue;  // the command line goes before the file
    // A flag that may have a value, such as --profile, takes texts as well.
    const bool is_flag = option->get_expected_max() == 0;
    if (is_flag && entry.values == std::vector<std::string>{"false"}) continue;
    try {
      const bool takes_all = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
      if (entry.is_list && !takes_all)
        option->add_result(fmt::format("{}", fmt::join(entry.values, ",")));
      else
        for (const std::string& value : entry.values) option->add_result(value);
      if (option->count() != 0) option->run_callback();
    } catch (const CLI::ParseError& error) {
      throw Error(
          fmt::format("{}: {}{}", where, error.what(), is_flag ? "; expected true or false" : ""));
    }
  }
  return args;
}

}  // namespace gpusim::host
