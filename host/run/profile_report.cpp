#include "host/run/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "device_sim/base/error.h"
#include "host/output_file.h"
#include "host/run/profile_calls.h"
#include "host/run/profile_split.h"

namespace gpusim::host {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRowsOfText = 20;

void sort_rows(std::vector<ProfileRow>& rows, const CycleTable& table) {
  std::sort(rows.begin(), rows.end(), [&](const ProfileRow& a, const ProfileRow& b) {
    const double x = table.of(a.use.classes), y = table.of(b.use.classes);
    if (x != y) return x > y;
    return std::tie(a.file, a.line, a.name) < std::tie(b.file, b.line, b.name);
  });
}

std::string base_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string row_name(const ProfileRow& row) {
  if (!row.file.empty()) return fmt::format("{}:{}", base_name(row.file), row.line);
  return row.name.empty() ? "(unknown)" : row.name;
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

// Control characters of a symbol or a file's name could garble a terminal.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

void print_rows(std::string& out, const ProfileReport& r, const std::vector<ProfileRow>& rows,
                const char* heading) {
  if (rows.empty()) return;
  out += fmt::format("\n{:>15} {:>8} {:>15} {:>9} {:>9}  {}\n", "cycles", "share", "instructions",
                     "diverged", "waiting", heading);
  const double all = r.table.of(r.total.classes);
  for (size_t i = 0; i < rows.size() && i < kRowsOfText; ++i) {
    const PlaceUse& u = rows[i].use;
    const double cycles = r.table.of(u.classes);
    out += fmt::format(
        "{:15.0f} {:>8} {:15} {:>9} {:>9}  {}\n", cycles, percent(cycles, all), u.instructions(),
        r.lanes_are_known ? percent(static_cast<double>(u.lanes - u.instructions()),
                                    static_cast<double>(u.lanes))
                          : "-",
        percent(static_cast<double>(u.in_vain), static_cast<double>(u.instructions())),
        printable(row_name(rows[i])));
  }
  if (rows.size() > kRowsOfText)
    out += fmt::format("{:>15} {} more (all of them: --profile=FILE.json)\n", "...",
                       rows.size() - kRowsOfText);
}

// KCachegrind's file dialog shows files that begin like callgrind's own.
bool is_callgrind(const std::string& path) {
  return path.ends_with(".callgrind") || base_name(path).starts_with("callgrind.out");
}

Json use_json(const ProfileReport& r, const PlaceUse& u) {
  Json classes = Json::object();
  for (int c = 0; c < kInsnClassCount; ++c)
    if (u.classes[c] != 0) classes[kInsnClassNames[c]] = u.classes[c];
  Json object = {{"guest_instructions", u.instructions()},
                 {"classes", std::move(classes)},
                 {"cycles", r.table.of(u.classes)},
                 {"waiting_instructions", u.in_vain}};
  if (r.lanes_are_known) {
    object["lane_slots"] = u.lanes;
    object["diverged_lanes"] = u.lanes - u.instructions();
  }
  return object;
}

Json rows_json(const ProfileReport& r, const std::vector<ProfileRow>& rows, bool are_lines) {
  Json list = Json::array();
  for (const ProfileRow& row : rows) {
    Json object = are_lines ? Json{{"file", row.file}, {"line", row.line}} : Json{{"function", row.name}};
    object.update(use_json(r, row.use));
    list.push_back(std::move(object));
  }
  return list;
}

// What an instruction took, by the stacks in which it was executed; no parts where that is not
// known.
struct UseByStack {
  std::span<const CallStacks::Part> parts;
  std::vector<PlaceUse> uses;

  UseByStack(const CallStacks* calls, uint64_t pc, const PlaceUse& use) {
    if (!calls || !calls->by_pc.contains(pc)) return;
    parts = calls->by_pc.at(pc);
    std::vector<uint64_t> executions;
    for (const CallStacks::Part& part : parts) executions.push_back(part.executions);
    uses = split_use(use, executions);
  }
};

// Gathers what stacks took. The names of functions get their numbers in the end, by their order.
class StackCollector {
 public:
  explicit StackCollector(const CallStacks* calls) : calls_(calls) {
    if (!calls) return;
    for (const std::string& name : calls->names) number_of(name);  // as they are numbered there
  }

  // `chain`: the innermost function first.
  void add(std::span<const Frame> chain, const PlaceUse& use, const UseByStack& by_stack) {
    std::vector<uint32_t> innermost;
    for (size_t i = chain.size(); i-- != 0;) innermost.push_back(number_of(chain[i].function));
    if (by_stack.parts.empty()) {
      stacks_[{.functions = std::move(innermost)}] += use;
      return;
    }
    for (size_t i = 0; i < by_stack.parts.size(); ++i) {
      const CallStacks::Part& part = by_stack.parts[i];
      const PlaceUse& own = by_stack.uses[i];
      if (own.instructions() == 0 && own.lanes == 0) continue;
      ProfileStack stack{part.core, calls_->callers[part.callers]};
      stack.functions.insert(stack.functions.end(), innermost.begin(), innermost.end());
      stacks_[std::move(stack)] += own;
    }
  }

  std::pair<std::vector<std::string>, std::map<ProfileStack, PlaceUse>> take() {
    std::vector<std::string> names;
    std::vector<uint32_t> order(numbers_.size());
    for (const auto& [name, number] : numbers_) {
      order[number] = static_cast<uint32_t>(names.size());
      names.push_back(name);
    }
    std::map<ProfileStack, PlaceUse> stacks;
    for (const auto& [stack, use] : stacks_) {
      ProfileStack renamed = stack;
      for (uint32_t& function : renamed.functions) function = order[function];
      stacks.emplace(std::move(renamed), use);
    }
    return {std::move(names), std::move(stacks)};
  }

 private:
  uint32_t number_of(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<uint32_t>(numbers_.size())).first->second;
  }

  const CallStacks* calls_;
  std::map<std::string, uint32_t> numbers_;
  std::map<ProfileStack, PlaceUse> stacks_;
};

}  // namespace

ProfileReport make_profile_report(const Module& module, const ProfilePlaces& places,
                                  const InlineFrames& frames, ProfileInput input) {
  ProfileReport r{.program = std::move(input.program),
                  .backend = std::move(input.backend),
                  .cores = input.cores,
                  .table = std::move(input.table),
                  .lanes_are_known = input.lanes.lanes_are_known,
                  .lanes = input.lanes,
                  .total = {},
                  .functions = {},
                  .inlined = {},
                  .lines = {},
                  .names = {},
                  .stacks = {},
                  .has_callers = input.calls.has_value(),
                  .places = {},
                  .calls = {}};
  const CallStacks* const followed = input.calls ? &*input.calls : nullptr;
  StackCollector stacks(followed);
  std::optional<CallCollector> calls;
  if (followed) calls.emplace(*followed);
  std::map<std::string, PlaceUse> functions, inlined;
  std::map<std::pair<std::string, int>, PlaceUse> lines;
  for (const auto& [pc, use] : places) {
    r.total += use;
    std::string function = function_at(module, pc);
    std::vector<Frame> chain = frames.at(pc);
    if (chain.empty()) chain.emplace_back();
    // The symbol may be more than the name in the source text: mangled, or a clone.
    if (function.empty()) function = chain.back().function;
    chain.back().function = function;
    functions[function] += use;
    inlined[chain.front().function] += use;
    lines[{chain.front().file, chain.front().line}] += use;
    r.places[{function, chain.back().file, chain.front().file, chain.front().line}] += use;
    const UseByStack by_stack(followed, pc, use);
    stacks.add(chain, use, by_stack);
    for (size_t i = 0; i < by_stack.parts.size(); ++i)
      calls->add(by_stack.parts[i].callers, pc, chain.back(), by_stack.uses[i]);
  }
  if (calls) r.calls = calls->take(frames);
  std::tie(r.names, r.stacks) = stacks.take();
  for (auto& [name, use] : functions) r.functions.push_back({name, "", 0, use});
  for (auto& [name, use] : inlined) r.inlined.push_back({name, "", 0, use});
  for (auto& [place, use] : lines) r.lines.push_back({"", place.first, place.second, use});
  for (auto* rows : {&r.functions, &r.inlined, &r.lines}) sort_rows(*rows, r.table);
  return r;
}

std::string profile_text(const ProfileReport& r) {
  const auto part = [](uint64_t x) { return static_cast<double>(x); };
  std::string out = fmt::format("profile of {}: {} instructions on {} cores, {:.0f} cycles ({})\n",
                                printable(r.program), r.total.instructions(), r.cores,
                                r.table.of(r.total.classes), r.table.name);
  const GroupUse& u = r.lanes.lanes;
  if (r.lanes_are_known)
    out += fmt::format("lanes: {} active, {} diverged, {} asleep, {} idle\n",
                       percent(part(u.active), part(u.offered)),
                       percent(part(u.diverged), part(u.offered)),
                       percent(part(u.asleep), part(u.offered)),
                       percent(part(u.offered - u.active - u.diverged - u.asleep), part(u.offered)));
  else
    out += "lanes: this backend does not count them\n";
  out += fmt::format("looks in vain at what others shall change: {} instructions, {}\n", r.lanes.in_vain,
                     percent(part(r.lanes.in_vain), part(r.total.instructions())));
  print_rows(out, r, r.functions, "function");
  if (r.inlined.size() != r.functions.size()) print_rows(out, r, r.inlined, "function, inlined ones apart");
  const bool has_lines = r.lines.size() > 1 || (r.lines.size() == 1 && !r.lines[0].file.empty());
  if (has_lines)
    print_rows(out, r, r.lines, "line");
  else
    out += "\nno lines: the program has no DWARF (compile it with -g)\n";
  return out;
}

Json profile_json(const ProfileReport& r) {
  Json stacks = Json::array();
  for (const auto& [stack, use] : r.stacks) {
    Json names = Json::array();
    for (const uint32_t function : stack.functions) names.push_back(r.names[function]);
    Json object = {{"stack", std::move(names)}};
    if (stack.core != CallStacks::kAllCores) object["core"] = stack.core;
    object.update(use_json(r, use));
    stacks.push_back(std::move(object));
  }
  Json cycles = Json::object();
  for (int c = 0; c < kInsnClassCount; ++c) cycles[kInsnClassNames[c]] = r.table.cycles[c];
  Json object = {{"program", r.program}, {"backend", r.backend}, {"cores", r.cores}};
  object["cycle_table"] = {{"name", r.table.name}, {"cycles", std::move(cycles)}};
  object["total"] = use_json(r, r.total);
  object["functions"] = rows_json(r, r.functions, false);
  object["inlined"] = rows_json(r, r.inlined, false);
  object["lines"] = rows_json(r, r.lines, true);
  object["stacks"] = std::move(stacks);
  return object;
}

std::string profile_folded(const ProfileReport& r) {
  std::string out;
  for (const auto& [stack, use] : r.stacks) {
    std::string line;
    if (stack.core != CallStacks::kAllCores) line = fmt::format("core {}", stack.core);
    for (const uint32_t function : stack.functions) {
      const std::string& name = r.names[function];
      std::string clean = name.empty() ? "(unknown)" : printable(name);
      std::replace(clean.begin(), clean.end(), ';', ',');
      line += (line.empty() ? "" : ";") + clean;
    }
    out += fmt::format("{} {}\n", line, use.instructions());
  }
  return out;
}

ProfileFiles parse_profile_files(const std::string& text) {
  ProfileFiles files;
  std::istringstream in(text);
  for (std::string path; std::getline(in, path, ',');) {
    if (path.empty()) continue;
    if (!path.ends_with(".json") && !path.ends_with(".html") && !path.ends_with(".folded") &&
        !is_callgrind(path))
      throw Error(fmt::format(
          "--profile={}: the name should end in .json, .html, .folded or .callgrind, which says "
          "what it holds",
          path));
    files.list.emplace_back("--profile", path);
  }
  if (files.list.empty()) throw Error("--profile=: expected FILE[,FILE...]");
  return files;
}

bool ProfileFiles::show_stacks() const {
  return std::any_of(list.begin(), list.end(), [](const OutputFile& file) {
    return file.path().ends_with(".folded") || file.path().ends_with(".html") ||
           is_callgrind(file.path());
  });
}

void write_profile(const ProfileFiles& files, const ProfileReport& report,
                   const chip::ChipReport* chip) {
  for (const OutputFile& file : files.list) {
    const std::string& path = file.path();
    file.write(
        path.ends_with(".json")
            ? profile_json(report).dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
        : path.ends_with(".html") ? profile_html(report, chip)
        : is_callgrind(path)      ? profile_callgrind(report)
                                  : profile_folded(report));
  }
}

}  // namespace gpusim::host
