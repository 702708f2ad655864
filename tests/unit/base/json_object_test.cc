#include "device_sim/base/json_object.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device_sim/base/error.h"

using namespace gpusim;

namespace {

std::string refused(const std::string& text) {
  try {
    parse_json(text, "a.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

template <class T>
std::string refused_value(const std::string& text) {
  const nlohmann::ordered_json json = parse_json("{\"key\": " + text + "}", "a.json");
  try {
    T value;
    JsonObject(json, "a.json").read("key", value);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what is no JSON is refused with its line and column") {
  CHECK(refused("{\"a\": 1}") == "");
  CHECK(refused("") == "a.json: not JSON, at line 1, column 1");
  CHECK(refused("{") == "a.json: not JSON, at line 1, column 2");
  CHECK(refused("{\n  \"a\": 1,\n  \"b\" 2\n}\n") == "a.json: not JSON, at line 3, column 7");
  CHECK(refused("[1,\n\n") == "a.json: not JSON, at line 3, column 1");
  CHECK(refused("[\"a\nb\"]") == "a.json: not JSON, at line 1, column 4");
  CHECK(refused("[1] x") == "a.json: not JSON, at line 1, column 5");
  CHECK(refused("[1e999]") == "a.json: a number in it is too large");
}

TEST_CASE("values of another type are refused in our words") {
  CHECK(refused_value<std::string>("\"x\"") == "");
  CHECK(refused_value<std::string>("3") == "a.json: \"key\" cannot be 3");
  CHECK(refused_value<double>("\"x\"") == "a.json: \"key\" cannot be \"x\"");
  CHECK(refused_value<double>("-1.5") == "");
  CHECK(refused_value<bool>("true") == "");
  CHECK(refused_value<std::vector<std::string>>("[\"a\", 1]") ==
        "a.json: \"key\" cannot be [\"a\",1]");
  CHECK(refused_value<uint32_t>("4294967295") == "");
  for (const char* number : {"4294967296", "-1", "1.5", "null"})
    CHECK(refused_value<uint32_t>(number) == std::string("a.json: \"key\" cannot be ") + number);
  CHECK(refused_value<std::vector<uint32_t>>("[1, 4294967295]") == "");
  CHECK(refused_value<std::vector<uint32_t>>("[]") == "");
  for (const char* list : {"[1,-1]", "[4294967296]", "[1.5]", "[[1]]", "{\"a\":1}", "1"})
    CHECK(refused_value<std::vector<uint32_t>>(list) ==
          std::string("a.json: \"key\" cannot be ") + list);
}
