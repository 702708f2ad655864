// Compares, at each instruction, where the program's code says that a caller's registers are with
// what GCC's call frame information says.
//
//   caller_rules ELF_FILE
//
// Prints "N functions, N instructions: N agree, N unknown, N differ", and the first that
// differs of each function.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "host/run/caller_rule.h"
#include "translator/common/isa_list.h"
#include "translator/common/translator.h"

namespace {

using namespace gpusim;
using namespace gpusim::host;

using Saved = CallerRule::Saved;

// Offsets from the CFA of saved registers.
std::map<int, int64_t> saved_in(const CallerRule& rule) {
  std::map<int, int64_t> saved;
  for (const Saved& s : rule.saved)
    if (s.where == Saved::Where::kAtCfa) saved[s.reg] = s.value;
  return saved;
}

std::string text(const CallerRule& rule) {
  std::string text = fmt::format("CFA x{}{:+}", rule.cfa_register, rule.cfa_offset);
  for (const Saved& s : rule.saved)
    if (s.where == Saved::Where::kAtCfa) text += fmt::format(", x{} at {}", s.reg, s.value);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fmt::print(stderr, "usage: caller_rules ELF_FILE\n"), 2;
  const Module module = translate_file(argv[1]);
  const GuestIsa& isa = *find_isa(module.isa);
  DebugInfo debug_info(argv[1], &module);
  size_t functions = 0, agree = 0, unknown = 0, differ = 0;
  std::set<uint64_t> seen;
  for (const Symbol& function : module.symbols) {
    const uint64_t begin = function.address, end = begin + function.size_bytes;
    if (!function.is_function || !seen.insert(begin).second ||
        function.name.find(".cold") != std::string::npos)
      continue;
    bool counts = false, was_told = false;
    for (uint64_t pc = begin; pc < end;) {
      const GuestInsn insn = instruction_at(module, pc);
      if (!insn) break;
      const CallerRule expected = rule_from_debug_info(debug_info, isa.frames.slots.size(), pc);
      if (expected.is_known) {
        counts = true;
        size_t budget = ~size_t{0};
        const CallerRule found = rule_from_code(module, begin, end, pc, budget);
        const std::map<int, int64_t> saved = saved_in(expected);
        const std::map<int, int64_t> here = saved_in(found);
        // Another base cannot be compared; nor are registers that a callee may change.
        const bool is_equal = (found.cfa_register != expected.cfa_register ||
                               found.cfa_offset == expected.cfa_offset) &&
                              std::ranges::all_of(saved, [&](const auto& s) {
                                const auto at = here.find(s.first);
                                return at != here.end() && at->second == s.second;
                              });
        if (!found.is_known)
          ++unknown;
        else if (is_equal)
          ++agree;
        else if (++differ; !std::exchange(was_told, true))
          fmt::print("{} ({}+{:#x}):\n  expected {}\n  found    {}\n", symbolize(module, pc),
                     function.name, pc - begin, text(expected), text(found));
      }
      pc += insn.bytes.size();
    }
    functions += counts;
  }
  fmt::print("{} functions, {} instructions: {} agree, {} unknown, {} differ\n", functions,
             agree + unknown + differ, agree, unknown, differ);
  return 0;
}
