#include "translator/module_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "device_sim/base/error.h"
#include "device_sim/uir/check_fields.h"
#include "device_sim/uir/warp.h"
#include "translator/common/isa_list.h"
#include "translator/common/limits.h"
#include "translator/passes/operands.h"
#include "translator/passes/renumber_slots.h"

namespace gpusim {
namespace {

class Checker {
 public:
  Checker(const Module& m, const std::string& name) : m_(m), name_(name) {}

  void check() {
    check_sizes();
    check_image();
    check_registers();
    check_blocks();
    check_code_map();
    for (uint32_t i = 0; i < m_.uops.size(); ++i) {
      check_operands(i);
      check_flow(i);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(name_ + ": damaged module file (" + what +
                "). Translate the program again with gpusim translate");
  }
  void require(bool ok, const char* what) const {
    if (!ok) fail(what);
  }
  void require_of(bool ok, uint32_t uop, const char* what) const {
    if (!ok) fail(fmt::format("micro-op {}, {}: {}", uop, op_info(m_.uops[uop].op).name, what));
  }

  void check_sizes() {
    isa_ = find_isa(m_.isa);
    if (!isa_) throw Error(name_ + ": a module for ISA '" + m_.isa + "', which this gpusim lacks");
    require(find_cpu(*isa_, m_.cpu).has_value(), "CPU");
    require(!m_.uops.empty() && m_.uops.size() < kNoUop, "micro-ops");
    require(m_.uop_insn.size() == m_.uops.size() && m_.uop_block.size() == m_.uops.size(),
            "micro-ops");
    for (const Uop& u : m_.uops) require(static_cast<int>(u.op) < kOpCount, "micro-op number");
    require(m_.warp_size == 0 || m_.warp_size == kWarpLanes, "warp size");
    for (const uint32_t block : m_.uop_block)
      require(block < m_.blocks.size(), "micro-op's block");
    const CodeMap& code = m_.code;
    require(code.pc_shift == isa_->pc_shift(), "instruction size");
    require(!code.uop_at.empty() && code.uop_at.size() == code.insn_class.size(), "code map");
    require(code.text_base < kAddressLimit && code.uop_at.size() <= kCodeLimit >> code.pc_shift,
            "code map");
    require((code.text_base & (isa_->insn_align - 1)) == 0, "code map");
  }

  void check_image() const {
    require(m_.segments.size() <= kSegmentLimit, "segments");
    uint64_t free_from = 0;
    for (const Segment& s : m_.segments) {
      require(s.address >= free_from && s.address < kAddressLimit &&
                  s.size_bytes <= kAddressLimit - s.address && s.bytes.size() <= s.size_bytes &&
                  s.flags <= (kRead | kWrite | kExecute),
              "segments");
      free_from = s.address + s.size_bytes;
    }
    require(m_.segments.empty() || free_from - m_.segments.front().address <= kImageLimit,
            "segments spread too far");
    require(std::is_sorted(
                m_.symbols.begin(), m_.symbols.end(),
                [](const Symbol& x, const Symbol& y) { return x.address < y.address; }),
            "symbols");
  }

  // Slots are numbered in the order of their names, which say everything else.
  void check_registers() const {
    require(m_.slot_count > 0 && m_.slot_count <= kMaxSlots, "registers");
    for (size_t i = 0; i < m_.slot_names.size(); ++i)
      require(m_.slot_names[i].slot == i, "registers");
    Module expected;
    describe_slots(*isa_, recover_slot_map(*isa_, m_), expected);
    require(expected.slot_count == m_.slot_count && expected.slot_names == m_.slot_names &&
                expected.initial_values == m_.initial_values && expected.abi == m_.abi,
            "registers");
  }

  void check_blocks() {
    outside_.assign(m_.uops.size(), true);
    starts_block_.assign(m_.uops.size(), false);
    std::vector<uint32_t> uops_of_block(m_.blocks.size());
    for (const uint32_t block : m_.uop_block) ++uops_of_block[block];
    for (uint32_t number = 0; number < m_.blocks.size(); ++number) {
      const Block& b = m_.blocks[number];
      require(b.uop_count > 0 && b.first_uop < m_.uops.size() &&
                  b.uop_count <= m_.uops.size() - b.first_uop,
              "blocks");
      require(b.insn_count <= kMaxBlockInsns &&
                  uops_of_block[number] <= kMaxInsnUops * std::max(b.insn_count, 1u),
              "blocks of such length");
      starts_block_[b.first_uop] = true;
      check_range(number);
      check_instructions(b);
    }
  }

  // Of a block's own micro-ops only the last one ends it, and that counts the block, or traps.
  void check_range(uint32_t number) {
    const Block& b = m_.blocks[number];
    uint32_t insn = 0;
    for (uint32_t i = b.first_uop; i < b.first_uop + b.uop_count; ++i) {
      outside_[i] = false;
      const bool is_last = i + 1 == b.first_uop + b.uop_count;
      const Uop& u = m_.uops[i];
      require_of(m_.uop_block[i] == number, i, "in two blocks");
      require_of(shape_of(u.op).ends_block == is_last && u.op != Op::link, i, "end of a block");
      require_of(!is_last || u.block() == number, i, "the end of another block");
      require_of(m_.uop_insn[i] >= insn && m_.uop_insn[i] < std::max(b.insn_count, 1u), i,
                 "instruction");
      insn = m_.uop_insn[i];
    }
    // Without instructions it stands for a bad target.
    require(b.insn_count > 0 || (b.uop_count == 1 && m_.uops[b.first_uop].op == Op::trap),
            "a block without instructions");
  }

  void check_instructions(const Block& b) const {
    BlockClassCounts classes{};
    if (b.insn_count > 0) {
      check_addresses(b);
      for (uint32_t i = 0; i < b.insn_count; ++i) {
        const uint8_t c = m_.code.insn_class[m_.code.unit_of(insn_pc(m_, b, i))];
        require(c < kInsnClassCount, "instruction class");
        ++classes[c];
      }
    }
    require(classes == b.classes, "block counts");
  }

  void check_addresses(const Block& b) const {
    const CodeMap& code = m_.code;
    if (isa_->has_one_length()) {
      require(m_.insn_offsets.empty(), "instruction addresses");
    } else {
      require(b.first_offset < m_.insn_offsets.size() &&
                  b.insn_count < m_.insn_offsets.size() - b.first_offset &&
                  m_.insn_offsets[b.first_offset] == 0,
              "instruction addresses");
      const uint16_t* offset = m_.insn_offsets.data() + b.first_offset;
      for (uint32_t i = 0; i < b.insn_count; ++i, ++offset) {
        const int length = offset[1] - offset[0];
        require(length > 0 && length <= static_cast<int>(isa_->longest_insn) &&
                    code.is_aligned(static_cast<uint64_t>(length)),
                "instruction addresses");
      }
    }
    const uint64_t first = code.unit_of(b.pc), units = (end_pc(m_, b) - b.pc) >> code.pc_shift;
    require(code.is_aligned(b.pc) && first < code.insn_class.size() &&
                units <= code.insn_class.size() - first,
            "block addresses");
  }

  void check_code_map() const {
    const CodeMap& code = m_.code;
    for (size_t i = 0; i < code.uop_at.size(); ++i) {
      const uint32_t at = code.uop_at[i];
      require(code.insn_class[i] < kInsnClassCount ||
                  (code.insn_class[i] == CodeMap::kNotCode && at == kNoUop),
              "instruction class");
      if (at == kNoUop) continue;
      require(at < m_.uops.size() && starts_block_[at], "code map");
      const Block& b = m_.blocks[m_.uop_block[at]];
      require(b.insn_count > 0 && b.pc == code.text_base + (uint64_t{i} << code.pc_shift),
              "code map");
    }
    const auto is_there = [&](uint64_t pc) { return code.unit_of(pc) < code.uop_at.size(); };
    require(is_there(m_.entry), "entry point");
    require(std::ranges::all_of(m_.unknown, is_there), "unknown instructions");
  }

  void check_operands(uint32_t i) const {
    const Uop& u = m_.uops[i];
    const auto is_slot = [&](int s) { return static_cast<uint32_t>(s) < m_.slot_count; };
    // Runners may look at all four fields, whatever the shape.
    require_of(is_slot(u.d) && is_slot(u.a) && is_slot(u.b) && is_slot(u.c), i, "register");
    require_of(!shape_of(u.op).fp_state || u.e != u.d, i,
               "register of the floating-point state");
    for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
      require_of(is_slot(s + std::max({1, int{reads}, int{writes}}) - 1), i, "register");
    });
    require_of(has_valid_fields(u), i, "immediates");
    require_of(m_.warp_size != 0 || !is_of_warps(op_info(u.op).shape), i,
               "only for programs with warps");
    // Made anew for each run that wants them.
    require_of(u.op != Op::note &&
                   (u.op != Op::service ||
                    u.aux <= static_cast<uint8_t>(Service::kReadCounterFrequency)),
               i, "only for observing a run");
  }

  // Outside of blocks are ways out of one: values, then a link to the block that follows.
  void check_flow(uint32_t i) const {
    const Uop& u = m_.uops[i];
    const ShapeInfo& shape = shape_of(u.op);
    const auto leads_on = [&](uint32_t to) {
      return to < m_.uops.size() && (starts_block_[to] || outside_[to]);
    };
    if (shape.ends_block) {
      require_of(u.block() < m_.blocks.size(), i, "end of a block");
      require_of(!shape.has_target || leads_on(u.target()), i, "target");
      require_of(!shape.falls_through || leads_on(i + 1), i, "what follows");
    }
    if (!outside_[i]) return;
    require_of(m_.uop_insn[i] < std::max(m_.blocks[m_.uop_block[i]].insn_count, 1u), i,
               "instruction");
    if (u.op == Op::link) return require_of(starts_block_[u.target()], i, "target");
    require_of(shape.pure, i, "between blocks");
    require_of(i + 1 < m_.uops.size() && outside_[i + 1] && m_.uop_block[i + 1] == m_.uop_block[i],
               i, "what follows");
  }

  const Module& m_;
  const std::string& name_;
  const GuestIsa* isa_ = nullptr;
  std::vector<bool> outside_;       // per micro-op: of no block's own
  std::vector<bool> starts_block_;  // per micro-op
};

}  // namespace

void check_module(const Module& module, const std::string& name) { Checker(module, name).check(); }

}  // namespace gpusim
