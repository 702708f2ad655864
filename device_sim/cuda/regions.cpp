#include "device_sim/cuda/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace gpusim::cuda {
namespace {

// What region code executes inside of a block. Not what cores may wait for one another with: they
// would do so apart.
bool is_plain(const Uop& u) {
  switch (op_info(u.op).shape) {
    case Shape::kCas:
    case Shape::kCas128:
    case Shape::kStx:
    case Shape::kStx128:
    case Shape::kFence:
    case Shape::kNote:
    case Shape::kVector:
      return false;
    default:
      return !is_of_warps(op_info(u.op).shape) && !shape_info(op_info(u.op).shape).ends_block;
  }
}

bool is_call(const Uop& u) { return u.aux == static_cast<uint8_t>(JumpHint::kCall); }

// Micro-ops from a place on, up to where control may go elsewhere.
struct Stretch {
  uint32_t end = 0;               // that micro-op, or the first that is not executed here
  bool is_left = false;           // the latter
  std::vector<uint32_t> targets;  // of direct ways on; of a branch the one that is taken, the other
};

Stretch stretch_at(const Module& module, uint32_t place) {
  Stretch s;
  for (s.end = place; s.end < module.uops.size() && is_plain(module.uops[s.end]);) ++s.end;
  const Uop& u = module.uops[s.end];
  const Shape shape = op_info(u.op).shape;
  switch (shape) {
    case Shape::kBrAB:
    case Shape::kBrAI:
      s.targets = {u.target(), s.end + 1};
      break;
    case Shape::kJmp:
    case Shape::kLink:
      s.targets = {u.target()};
      break;
    case Shape::kJmpReg:
      s.is_left = u.aux != static_cast<uint8_t>(JumpHint::kReturn);
      break;
    default:
      s.is_left = true;
  }
  return s;
}

// Where a call returns to, if that is translated.
std::optional<uint32_t> place_behind(const Module& module, uint32_t block) {
  const uint64_t unit = module.code.unit_of(end_pc(module, module.blocks[block]));
  if (unit >= module.code.uop_at.size() || module.code.uop_at[unit] == kNoUop) return {};
  return module.code.uop_at[unit];
}

class Chooser {
 public:
  Chooser(const Module& module, std::span<const uint64_t> counts, const RegionLimits& limits)
      : module_(module), is_hot_(module.blocks.size()) {
    find_hot(counts, limits);
    find_places();
  }

  std::vector<CodeRegion> regions() {
    std::map<uint32_t, std::vector<uint32_t>> parts;
    for (const auto& [place, stretch] : stretches_) parts[root(place)].push_back(place);
    const std::set<uint32_t> entered = entered_from_outside();
    std::vector<CodeRegion> regions;
    for (auto& [first, places] : parts) {
      CodeRegion region = describe(places, entered);
      if (has_loop(places) && regions.size() < 255) regions.push_back(std::move(region));
    }
    return regions;
  }

 private:
  void find_hot(std::span<const uint64_t> counts, const RegionLimits& limits) {
    const size_t blocks = std::min(counts.size(), module_.blocks.size());
    std::vector<uint64_t> work(blocks);
    uint64_t all = 0;
    for (size_t b = 0; b < blocks; ++b) all += work[b] = counts[b] * module_.blocks[b].uop_count;
    std::vector<uint32_t> order(blocks);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t x, uint32_t y) { return work[x] > work[y]; });
    size_t micro_ops = 0;
    for (const uint32_t b : order) {
      micro_ops += module_.blocks[b].uop_count;
      if (work[b] == 0 || work[b] < all / limits.hot_part || micro_ops > limits.most_micro_ops)
        return;
      is_hot_[b] = true;
    }
  }

  bool is_hot(uint32_t place) const { return is_hot_[module_.uop_block[place]]; }

  void find_places() {
    std::vector<uint32_t> open;
    for (uint32_t b = 0; b < is_hot_.size(); ++b)
      if (is_hot_[b]) open.push_back(module_.blocks[b].first_uop);
    while (!open.empty()) {
      const uint32_t place = open.back();
      open.pop_back();
      if (stretches_.contains(place)) continue;
      Stretch s = stretch_at(module_, place);
      if (s.is_left && s.end == place) continue;  // nothing to do here
      parent_[place] = place;
      for (const uint32_t target : s.targets)
        if (is_hot(target)) open.push_back(target);
      stretches_.emplace(place, std::move(s));
    }
    for (const auto& [place, s] : stretches_) {
      for (const uint32_t target : s.targets) join(place, target);
      // A function that returns belongs to who calls it.
      if (!s.targets.empty() && is_call(module_.uops[s.end]))
        if (const auto behind = place_behind(module_, module_.uops[s.end].block()))
          join(place, *behind);
    }
  }

  uint32_t root(uint32_t place) {
    while (parent_[place] != place) place = parent_[place] = parent_[parent_[place]];
    return place;
  }
  void join(uint32_t x, uint32_t y) {
    if (stretches_.contains(x) && stretches_.contains(y)) parent_[root(y)] = root(x);
  }

  // Places that other code leads to: cold code, what follows a micro-op that is left to the
  // interpreter, and callees that return.
  std::set<uint32_t> entered_from_outside() const {
    std::vector<bool> is_inside(module_.uops.size() + 1);
    for (const auto& [place, s] : stretches_)
      for (uint32_t i = place; i < s.end + !s.is_left; ++i) is_inside[i] = true;
    std::set<uint32_t> entered;
    for (uint32_t i = 0; i < module_.uops.size(); ++i) {
      if (is_inside[i]) continue;
      const ShapeInfo shape = shape_info(op_info(module_.uops[i].op).shape);
      if (shape.has_target) entered.insert(module_.uops[i].target());
      if (!shape.ends_block || shape.falls_through) entered.insert(i + 1);
    }
    for (const Block& block : module_.blocks) {
      const Uop& end = module_.uops[block.first_uop + block.uop_count - 1];
      const Shape shape = op_info(end.op).shape;
      if ((shape == Shape::kJmp || shape == Shape::kJmpReg) && is_call(end))
        if (const auto behind = place_behind(module_, end.block())) entered.insert(*behind);
    }
    return entered;
  }

  bool has_loop(const std::vector<uint32_t>& places) const {
    return std::any_of(places.begin(), places.end(), [&](uint32_t place) {
      const std::vector<uint32_t>& targets = stretches_.at(place).targets;
      return std::any_of(targets.begin(), targets.end(), [&](uint32_t target) {
        return target <= place && stretches_.contains(target);
      });
    });
  }

  CodeRegion describe(const std::vector<uint32_t>& places,
                      const std::set<uint32_t>& entered) const {
    CodeRegion region{.places = places};
    std::set<uint32_t> entries, blocks;
    std::set<Slot> used, written;
    for (const uint32_t place : places) {
      if (entered.contains(place)) entries.insert(place);
      const Stretch& s = stretches_.at(place);
      for (const uint32_t target : s.targets)
        if (target <= place && stretches_.contains(target)) entries.insert(target);
      for (uint32_t i = place; i < s.end + !s.is_left; ++i)
        note_slots(module_.uops[i], used, written);
      if (!s.is_left && op_info(module_.uops[s.end].op).shape != Shape::kLink)
        blocks.insert(module_.uops[s.end].block());
    }
    region.entries.assign(entries.begin(), entries.end());
    region.blocks.assign(blocks.begin(), blocks.end());
    region.slots.assign(used.begin(), used.end());
    region.written.assign(written.begin(), written.end());
    return region;
  }

  static void note_slots(const Uop& u, std::set<Slot>& used, std::set<Slot>& written) {
    const ShapeInfo shape = shape_info(op_info(u.op).shape);
    const auto note = [&](Slot first, OperandUse use) {
      for (Slot i = 0; i < std::max(use.reads, use.writes); ++i) used.insert(first + i);
      for (Slot i = 0; i < use.writes; ++i) written.insert(first + i);
    };
    note(u.d, shape.d);
    note(u.a, shape.a);
    note(u.b, shape.b);
    note(u.c, shape.c);
    note(u.e, shape.e);
    if (shape.fp_state) note(u.e, {1, 1});
  }

  const Module& module_;
  std::vector<bool> is_hot_;               // blocks
  std::map<uint32_t, Stretch> stretches_;  // by place
  std::map<uint32_t, uint32_t> parent_;    // of places, towards one of their region
};

// --- text

class Writer {
 public:
  Writer(const Module& module, const CodeRegion& region, size_t number)
      : module_(module), region_(region), number_(number) {}

  std::string text() {
    line("// {} places, {} blocks, {} slots", region_.places.size(), region_.blocks.size(),
         region_.slots.size());
    line("template <class Slots, class View, class Warp>");
    line(
        "__device__ __forceinline__ uint32_t region_{}(uint32_t at, Slots& slots, const View& "
        "memory,",
        number_);
    line("    uint32_t core, int32_t& left, uint32_t& depth, Warp& warp) {{");
    line("  LocalSlots<{}> s;", module_.slot_count);
    line("  StopInfo why;");
    for (const Slot slot : region_.slots) line("  s.set({0}, slots.get({0}));", slot);
    for (size_t i = 0; i < region_.blocks.size(); ++i) line("  uint32_t n{} = 0;", i);
    line("  switch (at) {{");
    for (const uint32_t entry : region_.entries) line("    case {0}: goto P{0};", entry);
    line("    default: goto leave;");
    line("  }}");
    for (const uint32_t place : region_.places) write_place(place);
    line("leave:");
    for (const Slot slot : region_.written) line("  slots.set({0}, s.get({0}));", slot);
    for (size_t i = 0; i < region_.blocks.size(); ++i)
      line("  warp.count({}, n{});", region_.blocks[i], i);
    line("  return at;");
    line("}}");
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  static std::string constant(const Uop& u) {
    return fmt::format("constexpr Uop u{{Op::{}, {}, {}, {}, {}, {}, {}, {:#x}ull}};",
                       op_info(u.op).name, u.d, u.a, u.b, u.c, u.e, u.aux, u.imm);
  }

  bool has(uint32_t place) const {
    return std::binary_search(region_.places.begin(), region_.places.end(), place);
  }
  // Goes on at `target`. A way back to the front looks at the budget.
  std::string go(uint32_t from, uint32_t target) const {
    if (!has(target)) return fmt::format("{{ at = {}; goto leave; }}", target);
    if (target > from) return fmt::format("goto P{};", target);
    return fmt::format("{{ if (left <= 0) {{ at = {0}; goto leave; }} goto P{0}; }}", target);
  }
  std::string complete(const Uop& u) const {
    const uint32_t block = u.block();
    const auto at = std::lower_bound(region_.blocks.begin(), region_.blocks.end(), block);
    return fmt::format("++n{}; left -= {};", at - region_.blocks.begin(),
                       module_.blocks[block].insn_count);
  }

  void write_place(uint32_t place) {
    const Stretch s = stretch_at(module_, place);
    line("P{}:  // block {}, {:#x}", place, module_.uop_block[place],
         module_.blocks[module_.uop_block[place]].pc);
    for (uint32_t i = place; i < s.end; ++i) {
      const Uop& u = module_.uops[i];
      line("  {{ {} GPUSIM_STEP({}, {}) }}", constant(u), op_info(u.op).name, i);
    }
    if (s.is_left) {
      line("  at = {}; goto leave;", s.end);
      return;
    }
    const Uop& u = module_.uops[s.end];
    switch (op_info(u.op).shape) {
      case Shape::kLink:
        line("  {}", go(place, s.targets[0]));
        break;
      case Shape::kJmp:
        line("  {}{} {}", complete(u), is_call(u) ? " ++depth;" : "", go(place, s.targets[0]));
        break;
      case Shape::kJmpReg:
        write_return(place, s.end);
        break;
      default:
        line("  {{ {} {}", constant(u), complete(u));
        line("    if (GPUSIM_IS_TAKEN({})) {}", op_info(u.op).name, go(place, s.targets[0]));
        line("    {} }}", go(place, s.targets[1]));
    }
  }

  // To whoever of this region called.
  void write_return(uint32_t place, uint32_t at) {
    const Uop& u = module_.uops[at];
    line("  switch (s.get({})) {{", u.a);
    std::set<uint64_t> written;
    for (const uint32_t from : region_.places) {
      const Stretch s = stretch_at(module_, from);
      if (s.is_left) continue;
      const Uop& call = module_.uops[s.end];
      if (op_info(call.op).shape != Shape::kJmp || !is_call(call)) continue;
      const auto behind = place_behind(module_, call.block());
      const uint64_t pc = end_pc(module_, module_.blocks[call.block()]);
      if (!behind || !has(*behind) || !written.insert(pc).second) continue;
      line("    case {:#x}ull: {} depth -= depth > 0; {}", pc, complete(u), go(place, *behind));
    }
    line("    default: at = {}; goto leave;", at);
    line("  }}");
  }

  const Module& module_;
  const CodeRegion& region_;
  const size_t number_;
  std::string text_;
};

}  // namespace

std::vector<CodeRegion> choose_regions(const Module& module, std::span<const uint64_t> block_counts,
                                       const RegionLimits& limits) {
  return Chooser(module, block_counts, limits).regions();
}

// It executes no block twice on that way.
uint32_t longest_way(const Module& module, std::span<const CodeRegion> regions) {
  uint32_t longest = 0;
  for (const CodeRegion& region : regions) {
    uint32_t all = 0;
    for (const uint32_t block : region.blocks) all += module.blocks[block].insn_count;
    longest = std::max(longest, all);
  }
  return longest;
}

std::vector<uint8_t> region_entries(const Module& module, std::span<const CodeRegion> regions) {
  std::vector<uint8_t> entries(module.uops.size() + 1);
  for (size_t i = 0; i < regions.size(); ++i)
    for (const uint32_t place : regions[i].entries) entries[place] = static_cast<uint8_t>(i + 1);
  return entries;
}

std::string text_of(const Module& module, std::span<const CodeRegion> regions) {
  std::string text = "#include \"device_sim/cuda/region_code.cuh\"\n\nnamespace gpusim::cuda {\n\n";
  for (size_t i = 0; i < regions.size(); ++i)
    text += Writer(module, regions[i], i + 1).text() + "\n";
  text +=
      "struct Regions {\n"
      "  static constexpr bool kPresent = true;\n"
      "  template <class Slots, class View, class Warp>\n"
      "  static __device__ __forceinline__ uint32_t run(uint32_t region, uint32_t at,\n"
      "      Slots& slots, const View& memory, uint32_t core, int32_t& left, uint32_t& depth,\n"
      "      Warp& warp) {\n"
      "    const auto& own = for_regions(memory);\n"
      "    switch (region) {\n";
  for (size_t i = 1; i <= regions.size(); ++i)
    text += fmt::format(
        "      case {0}: return region_{0}(at, slots, own, core, left, depth, warp);\n", i);
  text += "      default: return at;\n    }\n  }\n};\n\n}  // namespace gpusim::cuda\n";
  return text;
}

std::string kernel_source(const std::string& text, bool has_vectors, bool in_place) {
  return fmt::format(
      "{}#include \"device_sim/cuda/kernel.cuh\"\n{}\n"
      "namespace gpusim::cuda {{\n"
      "extern \"C\" __global__ void __launch_bounds__(kMaxCompiledThreads, 1)\n"
      "    {}(const __grid_constant__ Launch launch) {{\n"
      "  simulate_slice<{}, {}, Regions>(launch);\n"
      "}}\n"
      "}}\n",
      in_place ? "#define GPUSIM_MEMORY_IS_SHARED_WITH_HOST\n" : "", text, kCompiledKernel,
      has_vectors, in_place ? "InPlaceView" : "DeviceView");
}

}  // namespace gpusim::cuda
