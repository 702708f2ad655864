#include "device_sim/cuda/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "device_sim/uir/access.h"

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

// Whether the upper half of the result is 0, if it is in `narrow` slots.
bool fits_32_bits(const Uop& u, const std::set<Slot>& narrow) {
  const AccessInfo access = access_info(u.op);
  if (access.size != 0) return access.is_narrow();
  const Traits row = op_info(u.op).traits;
  const bool a = narrow.contains(u.a), b = narrow.contains(u.b), i = u.imm >> 32 == 0;
  const auto has = [&](Traits traits) { return (row & traits) != 0; };
  return has(traits::kFits) || (has(traits::kFitsA) && a) || (has(traits::kFitsB) && b) ||
         (has(traits::kFitsI) && i) || (has(traits::kFitsAB) && a && b) ||
         (has(traits::kFitsAI) && a && i) || (has(traits::kFitsBI) && b && i);
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

// Adds the micro-op's slots.
void note_slots(const Uop& u, std::set<Slot>& used, std::set<Slot>& written) {
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

class Chooser {
 public:
  Chooser(const Module& module, std::span<const uint64_t> counts, const RegionLimits& limits)
      : module_(module), counts_(counts), limits_(limits), is_hot_(module.blocks.size()) {
    find_hot(counts, limits);
    find_places();
  }

  std::vector<CodeRegion> regions() {
    std::map<uint32_t, std::vector<uint32_t>> parts;
    for (const auto& [place, stretch] : stretches_) parts[root(place)].push_back(place);
    if (limits_.with_straight_code) share_numbers(parts);
    const std::set<uint32_t> entered = entered_from_outside();
    std::vector<CodeRegion> regions;
    for (auto& [first, places] : parts) {
      if (!limits_.with_straight_code && !has_loop(places)) continue;
      if (regions.size() < kMostRegions) regions.push_back(describe(places, entered));
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

  static void share_numbers(std::map<uint32_t, std::vector<uint32_t>>& parts) {
    const size_t share = parts.size() / kMostRegions + 1;
    size_t number = 0;
    for (auto at = parts.begin(), first = at; at != parts.end(); ++number) {
      if (number % share == 0) {
        first = at++;
      } else {
        first->second.insert(first->second.end(), at->second.begin(), at->second.end());
        std::ranges::sort(first->second);
        at = parts.erase(at);
      }
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
      if (limits_.with_straight_code || entered.contains(place)) entries.insert(place);
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
    find_narrow(region);
    find_rare(region);
    return region;
  }

  // Slots all of whose writes have upper halves of 0. Each must be written in the first stretch
  // from every place where a loop comes back: a core that holds something else there is let in
  // after one turn.
  void find_narrow(CodeRegion& region) const {
    std::set<Slot> narrow(region.written.begin(), region.written.end());
    for (const uint32_t place : region.places)
      for (const uint32_t target : stretches_.at(place).targets) {
        if (target > place || !stretches_.contains(target)) continue;
        std::set<Slot> used, written;
        for (uint32_t i = target; i < stretches_.at(target).end; ++i)
          note_slots(module_.uops[i], used, written);
        std::erase_if(narrow, [&](Slot slot) { return !written.contains(slot); });
      }
    for (bool changes = true; changes;) {
      changes = false;
      for (const uint32_t place : region.places) {
        const Stretch& s = stretches_.at(place);
        for (uint32_t i = place; i < s.end; ++i) {
          const Uop& u = module_.uops[i];
          std::set<Slot> used, written;
          note_slots(u, used, written);
          if (fits_32_bits(u, narrow)) written.erase(u.d);
          for (const Slot slot : written) changes |= narrow.erase(slot) != 0;
        }
      }
    }
    region.narrow.assign(narrow.begin(), narrow.end());
  }

  // Narrow slots have one register each, and code relies on them.
  void find_rare(CodeRegion& region) const {
    const auto executions = [&](uint32_t place) {
      const uint32_t block = module_.uop_block[place];
      return block < counts_.size() ? counts_[block] : 0;
    };
    uint64_t most = 0;
    for (const uint32_t place : region.places) most = std::max(most, executions(place));
    std::set<Slot> often(region.narrow.begin(), region.narrow.end());
    for (const uint32_t place : region.places) {
      if (executions(place) < most / limits_.rare_part) continue;
      const Stretch& s = stretches_.at(place);
      std::set<Slot> written;
      for (uint32_t i = place; i < s.end + !s.is_left; ++i)
        note_slots(module_.uops[i], often, written);
    }
    std::ranges::set_difference(region.slots, often, std::back_inserter(region.rare));
  }

  const Module& module_;
  std::span<const uint64_t> counts_;  // of blocks
  const RegionLimits limits_;
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
    for (const Slot slot : region_.slots)
      if (!is_rare(slot)) line("  s.set({0}, slots.get({0}));", slot);
    if (!region_.narrow.empty()) {
      line("  if ((0{}) != 0) return at;", [&] {
        std::string halves;
        for (const Slot slot : region_.narrow) halves += fmt::format(" | s.high[{}]", slot);
        return halves;
      }());
      for (const Slot slot : region_.narrow) line("  s.high[{}] = 0;", slot);
    }
    counted_apart_ = block_without_counter();
    if (counted_apart_) line("  const int32_t budget = left;");
    for (size_t i = 0; i < region_.blocks.size(); ++i) line("  uint32_t n{} = 0;", i);
    line("  switch (at) {{");
    for (const uint32_t entry : region_.entries) line("    case {0}: goto P{0};", entry);
    line("    default: goto leave;");
    line("  }}");
    for (const uint32_t place : region_.places) write_place(place);
    line("leave:");
    line("  slots.find_again();");
    for (const Slot slot : region_.written)
      if (!is_rare(slot)) line("  slots.set({0}, s.get({0}));", slot);
    if (counted_apart_) {
      // Its executions took what the others did not take of the budget.
      std::string others;
      for (size_t i = 0; i < region_.blocks.size(); ++i)
        if (region_.blocks[i] != *counted_apart_)
          others += fmt::format(" - {}u * n{}", insn_count(region_.blocks[i]), i);
      line("  n{} = (static_cast<uint32_t>(budget - left){}) / {}u;", number_of(*counted_apart_),
           others, insn_count(*counted_apart_));
    }
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

  bool is_rare(Slot slot) const { return std::ranges::binary_search(region_.rare, slot); }
  bool has(uint32_t place) const {
    return std::binary_search(region_.places.begin(), region_.places.end(), place);
  }
  // Goes on at `target`. A way back to the front looks at the budget.
  std::string go(uint32_t from, uint32_t target) const {
    if (!has(target)) return fmt::format("{{ at = {}; goto leave; }}", target);
    if (target > from) return fmt::format("goto P{};", target);
    return fmt::format("{{ if (left <= 0) {{ at = {0}; goto leave; }} goto P{0}; }}", target);
  }
  uint32_t insn_count(uint32_t block) const { return module_.blocks[block].insn_count; }
  size_t number_of(uint32_t block) const {
    const auto at = std::lower_bound(region_.blocks.begin(), region_.blocks.end(), block);
    return static_cast<size_t>(at - region_.blocks.begin());
  }
  std::string complete(const Uop& u) const {
    const uint32_t block = u.block();
    const std::string budget = fmt::format("left -= {};", insn_count(block));
    if (block == counted_apart_) return budget;
    return fmt::format("++n{}; {}", number_of(block), budget);
  }
  // The one that most likely is executed most: a loop of its own.
  std::optional<uint32_t> block_without_counter() const {
    for (const uint32_t place : region_.places) {
      const Stretch s = stretch_at(module_, place);
      if (s.is_left || s.targets.empty() || s.targets[0] != place) continue;
      const Uop& u = module_.uops[s.end];
      if (op_info(u.op).shape != Shape::kLink && insn_count(u.block()) != 0) return u.block();
    }
    return {};
  }

  void write_place(uint32_t place) {
    const Stretch s = stretch_at(module_, place);
    line("P{}:  // block {}, {:#x}", place, module_.uop_block[place],
         module_.blocks[module_.uop_block[place]].pc);
    if (module_.blocks[module_.uop_block[place]].first_uop == place)
      line("  GPUSIM_MARK({})", module_.uop_block[place]);
    read_rare_slots(place, s.end + !s.is_left);
    write_stretch(place, s.end);
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
        line("    const bool taken = GPUSIM_IS_TAKEN({});", op_info(u.op).name);
        // One test and one jump where the loop goes on.
        if (has(s.targets[0]) && s.targets[0] <= place)
          line("    if (taken & (left > 0)) goto P{};", s.targets[0]);
        line("    if (taken) {}", go(place, s.targets[0]));
        line("    {} }}", go(place, s.targets[1]));
    }
  }

  // Of a stretch. What it writes of them it stores at once.
  void read_rare_slots(uint32_t place, uint32_t end) {
    std::set<Slot> used, written;
    for (uint32_t i = place; i < end; ++i) note_slots(module_.uops[i], used, written);
    for (const Slot slot : used)
      if (is_rare(slot)) line("  s.set({0}, slots.get({0}));", slot);
  }
  void store_rare_slots(const Uop& u) {
    std::set<Slot> used, written;
    note_slots(u, used, written);
    for (const Slot slot : written)
      if (is_rare(slot)) line("  slots.set({0}, s.get({0}));", slot);
  }

  // Micro-ops one after the other. Where accesses have addresses that are known before, one
  // question at the front answers whether all are to open memory; then nobody asks again.
  void write_stretch(uint32_t place, uint32_t end) {
    const Ahead ahead = look_ahead(place, end);
    if (ahead.accesses.empty()) {
      for (uint32_t i = place; i < end; ++i) write_step(i, false);
      return;
    }
    // What is behind the last access is there twice, too, so that nobody waits for what was loaded
    // where the two ways meet; but floating point, which is long.
    const auto computes = [&](uint32_t i) { return shape_of(i).fp_state; };
    uint32_t fork_end = end;
    for (uint32_t i = end; i > *ahead.accesses.rbegin(); --i)
      if (i < end && computes(i)) fork_end = i;
    line("  {{ auto ahead = s; bool are_open = true;");
    for (const uint32_t i : ahead.steps) {
      const Uop& u = module_.uops[i];
      line("  {{ {} {}({}) }}", constant(u),
           ahead.accesses.contains(i) ? "GPUSIM_LOOK_AHEAD" : "GPUSIM_AHEAD", op_info(u.op).name);
    }
    line("  if (are_open) {{");
    for (uint32_t i = place; i < fork_end; ++i) write_step(i, ahead.accesses.contains(i));
    line("  }} else {{");
    for (uint32_t i = place; i < fork_end; ++i) write_step(i, false);
    line("  }} }}");
    for (uint32_t i = fork_end; i < end; ++i) write_step(i, false);
  }
  ShapeInfo shape_of(uint32_t i) const { return shape_info(op_info(module_.uops[i].op).shape); }
  void write_step(uint32_t i, bool is_open) {
    const Uop& u = module_.uops[i];
    if (is_open)
      line("  {{ {} GPUSIM_STEP_OPEN({}) }}", constant(u), op_info(u.op).name);
    else
      line("  {{ {} GPUSIM_STEP({}, {}) }}", constant(u), op_info(u.op).name, i);
    store_rare_slots(u);
  }
  // Of a stretch, what computes addresses from what slots hold before it, and the accesses there.
  struct Ahead {
    std::vector<uint32_t> steps;  // in order, with the accesses
    std::set<uint32_t> accesses;
  };
  Ahead look_ahead(uint32_t place, uint32_t end) const {
    std::set<Slot> unknown;
    std::set<uint32_t> values;
    Ahead ahead;
    for (uint32_t i = place; i < end; ++i) {
      const Uop& u = module_.uops[i];
      const ShapeInfo shape = shape_info(op_info(u.op).shape);
      if (is_plain_access(op_info(u.op).shape)) {
        if (!unknown.contains(u.a) && (shape.b.reads == 0 || !unknown.contains(u.b)))
          ahead.accesses.insert(i);
      } else if (shape.pure && reads_known(u, shape, unknown)) {
        values.insert(i);
        unknown.erase(u.d);
        continue;
      }
      for (Slot n = 0; n < shape.d.writes; ++n) unknown.insert(u.d + n);
      if (shape.fp_state) unknown.insert(u.e);
    }
    std::set<Slot> needed;
    for (uint32_t i = end; i-- > place;) {
      const Uop& u = module_.uops[i];
      const ShapeInfo shape = shape_info(op_info(u.op).shape);
      if (ahead.accesses.contains(i)) {
        needed.insert(u.a);
        if (shape.b.reads != 0) needed.insert(u.b);
      } else if (values.contains(i) && needed.erase(u.d) != 0) {
        for (const auto& [use, slot] : sources(u, shape))
          if (use.reads != 0) needed.insert(slot);
      } else {
        continue;
      }
      ahead.steps.insert(ahead.steps.begin(), i);
    }
    return ahead;
  }
  static std::array<std::pair<OperandUse, Slot>, 4> sources(const Uop& u, const ShapeInfo& shape) {
    return {{{shape.a, u.a}, {shape.b, u.b}, {shape.c, u.c}, {shape.e, u.e}}};
  }
  static bool reads_known(const Uop& u, const ShapeInfo& shape, const std::set<Slot>& unknown) {
    return std::ranges::none_of(sources(u, shape), [&](const auto& source) {
      return source.first.reads != 0 && unknown.contains(source.second);
    });
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
  std::optional<uint32_t> counted_apart_;  // the block whose executions follow from the others'
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
  // Of floating point four blocks' registers would not be enough.
  const bool computes = std::ranges::any_of(regions, [&](const CodeRegion& region) {
    return std::ranges::any_of(region.blocks, [&](uint32_t b) {
      const Block& block = module.blocks[b];
      return std::any_of(module.uops.begin() + block.first_uop,
                         module.uops.begin() + block.first_uop + block.uop_count,
                         [](const Uop& u) { return shape_info(op_info(u.op).shape).fp_state; });
    });
  });
  std::string text = fmt::format(
      "#ifndef GPUSIM_RESIDENT_BLOCKS\n#define GPUSIM_RESIDENT_BLOCKS {}\n#endif\n"
      "#include \"device_sim/cuda/region_code.cuh\"\n\nnamespace gpusim::cuda {{\n\n",
      computes ? kMostResidentBlocks / 2 : kMostResidentBlocks);
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

namespace {

constexpr char kSharedWithHost[] = "#define GPUSIM_MEMORY_IS_SHARED_WITH_HOST\n";

const char* view_name(bool in_place) { return in_place ? "InPlaceView" : "DeviceView"; }

}  // namespace

std::string kernel_source(const std::string& text, bool has_vectors, bool in_place) {
  return fmt::format(
      "{}#include \"device_sim/cuda/kernel.cuh\"\n{}\n"
      "namespace gpusim::cuda {{\n"
      "extern \"C\" __global__ void __launch_bounds__(kMaxCompiledThreads, 1)\n"
      "    {}(const __grid_constant__ Launch launch) {{\n"
      "  simulate_slice<{}, {}, Regions>(launch);\n"
      "}}\n"
      "}}\n",
      in_place ? kSharedWithHost : "", text, kCompiledKernel, has_vectors, view_name(in_place));
}

std::string regions_source(const std::string& text, bool in_place) {
  return fmt::format(
      "{}#include \"device_sim/cuda/region_kernel.cuh\"\n{}\n"
      "namespace gpusim::cuda {{\n"
      "extern \"C\" __global__ void __launch_bounds__(kMaxCompiledThreads, "
      "GPUSIM_RESIDENT_BLOCKS)\n"
      "    {}(const __grid_constant__ Launch launch) {{\n"
      "  run_regions<{}, Regions>(launch);\n"
      "}}\n"
      "}}\n",
      in_place ? kSharedWithHost : "", text, kRegionsKernel, view_name(in_place));
}

}  // namespace gpusim::cuda
