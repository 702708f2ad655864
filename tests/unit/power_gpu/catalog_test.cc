#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "device_sim/base/error.h"
#include "energy/power/microbench/ptx.h"

namespace gpusim::power {
namespace {

TEST_CASE("every row of Table I has an instruction, and every class") {
  std::ifstream file(GPUSIM_SOURCE_DIR "/energy/targets/ptx-volta.json");
  REQUIRE(file);
  const auto table = nlohmann::json::parse(file);
  for (const auto& [key, value] : table["measurements"].items()) {
    CAPTURE(key);
    CHECK(row(key).title == value["row"].get<std::string>());
    CHECK(std::any_of(instructions().begin(), instructions().end(),
                      [&, k = key](const Instruction& i) { return i.row == k; }));
  }
  size_t published = 0;
  for (const Row& r : rows()) {
    published += r.is_published;
    CHECK(std::any_of(instructions().begin(), instructions().end(),
                      [&](const Instruction& i) { return i.row == r.key; }));
  }
  CHECK(published == table["measurements"].size());
  std::set<InsnClass> classes;
  for (const Instruction& i : instructions()) classes.insert(i.insn_class);
  CHECK(classes.size() == kInsnClassCount);
}

TEST_CASE("instructions have distinct names and known rows") {
  std::set<std::string_view> ids;
  for (const Instruction& i : instructions()) {
    CHECK(ids.insert(i.id).second);
    CHECK_NOTHROW(row(i.row));
    CHECK(find_instruction(i.id) == &i);
  }
}

TEST_CASE("selections") {
  CHECK(select_instructions("all").size() == instructions().size());
  CHECK(select_instructions("int_add").size() == 4);
  CHECK(select_instructions("int_add,add.s32").size() == 4);
  CHECK(select_instructions("class:control_flow,div.f64").size() == 2);
  for (const char* bad : {"", "no_such", "add.s32,,", "class:nothing"})
    CHECK_THROWS_AS(select_instructions(bad), Error);
}

TEST_CASE("a kernel has its instruction as often as it is unrolled, its overhead never") {
  for (const Instruction& i : instructions()) {
    CAPTURE(i.id);
    for (uint32_t unroll : {1u, 5u, 16u}) {
      const auto with = loop_body(kernel_ptx({{&i}, false, {unroll}}));
      const auto without = loop_body(kernel_ptx({{&i}, true, {unroll}}));
      const auto count = [](std::string_view text) {
        return static_cast<size_t>(std::count(text.begin(), text.end(), ';'));
      };
      CHECK(with.size() - without.size() == unroll * (count(i.measured) - count(i.instead)));
      for (const std::string& line : with) CHECK(line.find('{') == std::string::npos);
    }
  }
  const Instruction* add = find_instruction("add.s32");
  CHECK_THROWS_AS(kernel_ptx({{add}, false, {0}}), Error);
  CHECK_THROWS_AS(kernel_ptx({{add}, false, {5000}}), Error);
}

TEST_CASE("parameters are those that the kernel names") {
  const std::string ptx = kernel_ptx({{find_instruction("add.s32")}, false, {1}});
  const std::string head = ptx.substr(0, ptx.find(")\n{"));
  size_t n = 0;
  for (size_t at = 0; (at = head.find(".param ", at)) != std::string::npos; at += 7) ++n;
  CHECK(KernelParameters{}.pointers().size() == n);
}

}  // namespace
}  // namespace gpusim::power
