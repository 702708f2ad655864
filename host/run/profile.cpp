#include "host/run/profile.h"

#include <algorithm>
#include <unordered_map>

#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

// Instructions executed at each guest address, and their classes.
class Places {
 public:
  explicit Places(const Module& module) : module_(module) {}

  // The first `instructions` of a block, `times` each; `classes` counts them all. Where the code
  // map no longer agrees, all of them count at the block's start.
  void add(const Block& block, uint32_t instructions, uint64_t times, const ClassCounts& classes) {
    const CodeMap& code = module_.code;
    const uint64_t first = (block.pc - code.text_base) >> code.pc_shift;
    ClassCounts expected{};
    for (uint32_t i = 0; i < instructions; ++i) expected[class_at(first + i)] += times;
    if (expected != classes) {
      add(block.pc, classes);
      return;
    }
    for (uint32_t i = 0; i < instructions; ++i)
      at_[block.pc + (uint64_t{i} << code.pc_shift)][class_at(first + i)] += times;
  }
  void add(uint64_t pc, const ClassCounts& classes) {
    ClassCounts& here = at_[pc];
    for (size_t c = 0; c < classes.size(); ++c) here[c] += classes[c];
  }

  template <class NameOf>
  std::vector<ProfilePart> by(const NameOf& name_of) const {
    std::unordered_map<std::string, ClassCounts> sums;
    for (const auto& [pc, classes] : at_) {
      ClassCounts& sum = sums[name_of(pc)];
      for (size_t c = 0; c < classes.size(); ++c) sum[c] += classes[c];
    }
    std::vector<ProfilePart> parts;
    for (auto& [name, classes] : sums) parts.push_back({name, classes});
    std::sort(parts.begin(), parts.end(), [](const ProfilePart& a, const ProfilePart& b) {
      const uint64_t x = Tally{a.classes, 0}.instructions(), y = Tally{b.classes, 0}.instructions();
      return x != y ? x > y : a.name < b.name;
    });
    return parts;
  }

 private:
  size_t class_at(uint64_t unit) const {
    const auto& classes = module_.code.insn_class;
    const size_t c = unit < classes.size() ? classes[unit] : static_cast<size_t>(InsnClass::kOther);
    return c < kInsnClassCount ? c : static_cast<size_t>(InsnClass::kOther);
  }

  const Module& module_;
  std::unordered_map<uint64_t, ClassCounts> at_;
};

std::string function_at(const Module& module, uint64_t pc) {
  const std::string name = symbolize(module, pc);
  if (name.starts_with("0x")) return {};
  return name.substr(0, name.rfind("+0x"));
}

}  // namespace

Profile make_profile(const Module& module, Backend& backend, const Tallies& tallies,
                     const SourceLines& source) {
  Places places(module);
  const std::vector<uint64_t> counts = backend.block_counts();
  for (size_t b = 0; b < counts.size() && b < module.blocks.size(); ++b) {
    if (counts[b] == 0) continue;
    const Block& block = module.blocks[b];
    ClassCounts classes{};
    for (size_t c = 0; c < kInsnClassCount; ++c) classes[c] = counts[b] * block.classes[c];
    places.add(block, block.insn_count, counts[b], classes);
  }
  for (const auto& [place, stops] : tallies.stops())
    places.add(module.blocks[stops.block], stops.instructions, stops.count, stops.classes);
  // The code that signal handlers return to has no address in the program.
  if (Tally{tallies.by_host(), 0}.instructions() != 0) places.add(0, tallies.by_host());

  Profile profile;
  profile.functions = places.by([&](uint64_t pc) { return function_at(module, pc); });
  profile.lines = places.by([&](uint64_t pc) { return source.at(pc); });
  if (profile.lines.size() == 1 && profile.lines[0].name.empty()) profile.lines.clear();
  return profile;
}

}  // namespace gpusim::host
