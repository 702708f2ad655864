#include "host/run/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/run/profile_waiting.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

class Collector {
 public:
  explicit Collector(const Module& module) : module_(module) {}

  // The first `instructions` of a block, `times` each; `classes` counts them all. Lanes and looks in
  // vain as executions of the block. Where the code map no longer agrees, all of it counts at the
  // block's start.
  void add(const Block& block, uint32_t instructions, uint64_t times, const ClassCounts& classes,
           uint64_t lanes, uint64_t in_vain) {
    ClassCounts expected{};
    for (uint32_t i = 0; i < instructions; ++i)
      expected[class_at(insn_pc(module_, block, i))] += times;
    if (expected != classes) {
      at_[block.pc] += {classes, lanes * instructions, in_vain * instructions};
      return;
    }
    for (uint32_t i = 0; i < instructions; ++i) {
      const uint64_t pc = insn_pc(module_, block, i);
      PlaceUse& here = at_[pc];
      here.classes[class_at(pc)] += times;
      here.lanes += lanes;
      here.in_vain += in_vain;
    }
  }
  void add(uint64_t pc, const PlaceUse& use) { at_[pc] += use; }
  ProfilePlaces take() { return std::move(at_); }

 private:
  size_t class_at(uint64_t pc) const {
    const auto& classes = module_.code.insn_class;
    const uint64_t unit = module_.code.unit_of(pc);
    const size_t c = unit < classes.size() ? classes[unit] : static_cast<size_t>(InsnClass::kOther);
    return c < kInsnClassCount ? c : static_cast<size_t>(InsnClass::kOther);
  }

  const Module& module_;
  ProfilePlaces at_;
};

template <class NameOf>
std::vector<ProfilePart> parts_by(const ProfilePlaces& places, const NameOf& name_of) {
  std::unordered_map<std::string, PlaceUse> sums;
  for (const auto& [pc, use] : places) sums[name_of(pc)] += use;
  std::vector<ProfilePart> parts;
  for (auto& [name, use] : sums) parts.push_back({name, use.classes});
  std::sort(parts.begin(), parts.end(), [](const ProfilePart& a, const ProfilePart& b) {
    const uint64_t x = Tally{a.classes, 0}.instructions(), y = Tally{b.classes, 0}.instructions();
    return x != y ? x > y : a.name < b.name;
  });
  return parts;
}

}  // namespace

PlaceUse& PlaceUse::operator+=(const PlaceUse& other) {
  for (size_t c = 0; c < classes.size(); ++c) classes[c] += other.classes[c];
  lanes += other.lanes;
  in_vain += other.in_vain;
  return *this;
}

std::string function_at(const Module& module, uint64_t pc) {
  const std::string name = symbolize(module, pc);
  const SharedObject* const object = shared_object_at(module, pc);
  if (name.starts_with("0x")) return object ? fmt::format("[{}]", object->name()) : "";
  const std::string function = name.substr(0, name.rfind("+0x"));
  return object ? fmt::format("{} [{}]", function, object->name()) : function;
}

ProfilePlaces profile_places(const Module& module, Backend& backend, const Tallies& tallies) {
  Collector places(module);
  const std::vector<uint64_t> counts = backend.block_counts(), lanes = backend.block_lanes(),
                              in_vain = executions_in_vain(module, counts);
  for (size_t b = 0; b < counts.size() && b < module.blocks.size(); ++b) {
    if (counts[b] == 0) continue;
    const Block& block = module.blocks[b];
    ClassCounts classes{};
    for (size_t c = 0; c < kInsnClassCount; ++c) classes[c] = counts[b] * block.classes[c];
    places.add(block, block.insn_count, counts[b], classes, lanes.empty() ? 0 : lanes[b], in_vain[b]);
  }
  for (const auto& [place, stops] : tallies.stops())
    places.add(module.blocks[stops.block], stops.instructions, stops.count, stops.classes,
               lanes.empty() ? 0 : stops.count, 0);
  // The code that signal handlers return to has no address in the program.
  const uint64_t by_host = Tally{tallies.by_host(), 0}.instructions();
  if (by_host != 0) places.add(0, {tallies.by_host(), lanes.empty() ? 0 : by_host, 0});
  return places.take();
}

LaneSummary summarise_lanes(const Module& module, Backend& backend) {
  LaneSummary s;
  for (const GroupUse& g : backend.group_use()) {
    s.lanes_are_known = true;
    s.lanes.offered += g.offered;
    s.lanes.active += g.active;
    s.lanes.diverged += g.diverged;
    s.lanes.asleep += g.asleep;
    s.lanes.alone += g.alone;
  }
  const std::vector<uint64_t> in_vain = executions_in_vain(module, backend.block_counts());
  for (size_t b = 0; b < in_vain.size(); ++b) s.in_vain += in_vain[b] * module.blocks[b].insn_count;
  return s;
}

Profile make_profile(const Module& module, const ProfilePlaces& places, const SourceLines& source) {
  Profile profile;
  profile.functions = parts_by(places, [&](uint64_t pc) { return function_at(module, pc); });
  profile.lines = parts_by(places, [&](uint64_t pc) { return source.at(pc); });
  if (profile.lines.size() == 1 && profile.lines[0].name.empty()) profile.lines.clear();
  return profile;
}

}  // namespace gpusim::host
