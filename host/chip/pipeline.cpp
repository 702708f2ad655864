#include "host/chip/pipeline.h"

#include <algorithm>

#include "translator/passes/operands.h"

namespace gpusim::host::chip {
namespace {

bool multiplies(Op op) {
  return op == Op::mul64 || op == Op::mul32 || op == Op::mulw || op == Op::smulh || op == Op::umulh;
}

bool loads(Op op) {
  const Shape shape = op_info(op).shape;
  return shape == Shape::kLdI || shape == Shape::kLdX || shape == Shape::kLdW;
}

// Instructions do not wait for flags that floating point leaves behind, nor for vectors of a length
// that is known only when they run.
constexpr uint8_t kMostOfRun = 4;

}  // namespace

Pipeline::Pipeline(const Module& module, const ChipShape& shape) : module_(module) {
  const Latencies& of = *shape.cores.latency;
  for (size_t c = 0; c < latency_.size(); ++c) latency_[c] = ticks(of.of_class[c]);
  // What a load of several instructions' worth leaves in its address register.
  for (const InsnClass c : {InsnClass::kOnChipMemory, InsnClass::kOffChipMemory})
    latency_[static_cast<size_t>(c)] =
        ticks(of.of_class[static_cast<size_t>(InsnClass::kIntegerArithmetic)]);
  multiplication_ = ticks(of.multiplication);
  load_ = ticks(shape.l1_data ? shape.l1_data->hit_cycles : 1);
}

Pipeline::Code Pipeline::code_of(const Block& block, std::span<const Ticks> costs) const {
  Code code(block.insn_count);
  std::vector<InsnClass> classes(block.insn_count, InsnClass::kOther);
  for (uint32_t i = 0; i < block.insn_count; ++i) {
    code[i].cost = costs[i];
    code[i].unit = static_cast<uint32_t>(module_.code.unit_of(insn_pc(module_, block, i)));
    if (code[i].unit < module_.code.insn_class.size() &&
        module_.code.insn_class[code[i].unit] < kInsnClassCount)
      classes[i] = static_cast<InsnClass>(module_.code.insn_class[code[i].unit]);
  }
  std::vector<uint8_t> is_product(block.insn_count);
  for (uint32_t at = block.first_uop; at < block.first_uop + block.uop_count; ++at) {
    const Uop& u = module_.uops[at];
    const uint32_t i = module_.uop_insn[at];
    if (i >= block.insn_count || u.op == Op::note) continue;
    Insn& insn = code[i];
    const auto written = [&](int slot) {
      return std::ranges::find_if(insn.results,
                                  [&](const Result& r) { return int{r.slot} == slot; });
    };
    is_product[i] |= multiplies(u.op);
    bool is_load = loads(u.op);
    const auto each = [&](auto f) {
      for_each_operand(u, [&](Slot first, uint8_t reads, uint8_t writes) {
        if (first == module_.abi.fp_state || std::max(reads, writes) > kMostOfRun) return;
        f(first, reads, writes);
      });
    };
    each([&](Slot first, uint8_t reads, uint8_t) {
      for (int s = first; s < first + reads; ++s) {
        const auto own = written(s);
        if (own != insn.results.end())
          is_load |= own->is_load;
        else if (std::ranges::find(insn.reads, static_cast<Slot>(s)) == insn.reads.end())
          insn.reads.push_back(static_cast<Slot>(s));
      }
    });
    each([&](Slot first, uint8_t, uint8_t writes) {
      for (int s = first; s < first + writes; ++s) {
        const auto own = written(s);
        if (own != insn.results.end())
          own->is_load = is_load;
        else
          insn.results.push_back({static_cast<Slot>(s), is_load, 0});
      }
    });
  }
  for (uint32_t i = 0; i < block.insn_count; ++i) {
    const bool is_multiplication = is_product[i] && classes[i] == InsnClass::kIntegerArithmetic;
    for (Result& r : code[i].results)
      r.latency = r.is_load           ? load_
                  : is_multiplication ? multiplication_
                                      : latency_[static_cast<size_t>(classes[i])];
  }
  return code;
}

Pipeline::Schedule Pipeline::schedule(const Code& code, std::span<const Underway> before,
                                      Ticks after) {
  std::array<Ticks, kMaxSlots> ready{};
  std::array<bool, kMaxSlots> is_load{};
  std::array<uint8_t, kMaxSlots> ends{};
  std::vector<Slot> used;
  for (const Underway& u : before) {
    if (u.left <= after) continue;
    ready[u.slot] = u.left - after;
    is_load[u.slot] = u.is_load;
    ends[u.slot] = u.ends;
    used.push_back(u.slot);
  }
  Schedule s;
  Point now;
  for (uint32_t i = 0; i < code.size(); ++i) {
    const Insn& insn = code[i];
    Ticks begin = now.at;
    bool is_l1 = false;
    for (const Slot slot : insn.reads) {
      if (ready[slot] <= begin) continue;
      begin = ready[slot];
      is_l1 = is_load[slot];
    }
    if (const Ticks stall = begin - now.at; stall != 0) {
      s.stalls.push_back({i, stall, is_l1});
      (is_l1 ? now.stalls.l1 : now.stalls.dependence) += stall;
      now.at = begin;
    }
    s.begin.push_back(now);
    for (const Result& r : insn.results) {
      ready[r.slot] = begin + r.latency;
      is_load[r.slot] = r.is_load;
      ends[r.slot] = 0;
      used.push_back(r.slot);
    }
    now.at += insn.cost;
  }
  s.begin.push_back(now);
  std::ranges::sort(used);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (const Slot slot : used)
    if (ready[slot] > now.at && ends[slot] < kMostEnds)
      s.left.push_back(
          {slot, is_load[slot], ready[slot] - now.at, static_cast<uint8_t>(ends[slot] + 1)});
  return s;
}

}  // namespace gpusim::host::chip
