#include "host/cli/strict_values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpusim::host {
namespace {

// Empty: nothing is wrong.
std::string wrong_integer(const std::string& value, bool is_signed) {
  std::string_view digits = value;
  const bool negative = digits.starts_with('-');
  if (negative && !is_signed) return "is negative";
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
  if (hex) digits.remove_prefix(2);
  // 8 for some readers, 10 for others.
  if (!hex && digits.size() > 1 && digits[0] == '0') return "begins with a zero";
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number, hex ? 16 : 10);
  if (error == std::errc::result_out_of_range && stop == end) return "is too large";
  if (error != std::errc{} || stop != end) return "is not a whole number";
  return {};
}

std::string wrong_float(const std::string& value) {
  std::string_view digits = value;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error == std::errc::result_out_of_range && stop == end) return "is too large or too small";
  if (error != std::errc{} || stop != end) return "is not a number";
  return std::isfinite(number) ? std::string() : "is not a finite number";
}

void check_value(CLI::Option& option) {
  if (option.get_expected_max() == 0) return;  // a flag
  // "UINT", "[INT,FLOAT]" and the like, then what checks added.
  const std::string type = option.get_type_name();
  const bool is_float = type.starts_with("FLOAT"), is_unsigned = type.starts_with("UINT"),
             is_integer = is_unsigned || type.starts_with("INT");
  option.transform(CLI::Validator(
      [is_float, is_unsigned, is_integer](std::string& value) {
        const std::string wrong = value.empty() ? "is empty"
                                  : is_integer  ? wrong_integer(value, !is_unsigned)
                                  : is_float    ? wrong_float(value)
                                                : std::string();
        return wrong.empty() ? wrong : fmt::format("the value \"{}\" {}", value, wrong);
      },
      ""));
}

}  // namespace

CLI::Validator list_value() {
  return CLI::Validator(
      [](std::string& list) {
        const bool has_empty =
            list.starts_with(',') || list.ends_with(',') || list.find(",,") != std::string::npos;
        return has_empty ? fmt::format("the list \"{}\" has an empty element", list)
                         : std::string();
      },
      "");
}

void check_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) check_value(*option);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    check_values(*command);
}

}  // namespace gpusim::host
