#include "translator/ptx/spill.h"

#include <algorithm>
#include <set>
#include <utility>

#include "translator/ptx/rows.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

constexpr uint32_t kWordBytes = 8;
constexpr int kMostRounds = 24;

template <class F>
void for_registers(Operand& o, F f) {
  if (o.is(Operand::Kind::kRegister)) f(o.reg);
  for (Operand& e : o.elements) for_registers(e, f);
}

class Spiller {
 public:
  explicit Spiller(Function& f) : f_(f) {}

  uint32_t bytes() const { return bytes_; }

  // Those with few uses for the places where they are live. Returns none if none may go.
  std::vector<uint32_t> choose(const Allocation& a, size_t count) {
    constexpr size_t kNowhere = ~size_t{0}, kShort = 16;
    std::vector<uint32_t> uses(f_.registers.size());
    std::vector<bool> stays(f_.registers.size());
    std::vector<size_t> first(f_.registers.size(), kNowhere), last(f_.registers.size());
    for (const uint32_t r : a.live_at_entry) stays[r] = true;  // zero, which memory is not
    for (size_t i = 0; i < f_.body.size(); ++i) {
      Instruction& insn = f_.body[i];
      if (insn.guard != kNoRegister) stays[insn.guard] = true;
      for (Operand& o : insn.operands)
        for_registers(o, [&](uint32_t r) {
          ++uses[r];
          first[r] = std::min(first[r], i);
          last[r] = i;
        });
    }
    // Where a register lives within a block, its instructions tell how long, in blocks of the
    // usual size.
    const double block_size =
        static_cast<double>(f_.body.size()) / static_cast<double>(f_.labels.size() + 1);
    const auto length = [&](uint32_t r) {
      if (a.live_blocks[r] != 0) return static_cast<double>(a.live_blocks[r]);
      const bool is_long = first[r] != kNowhere && last[r] - first[r] >= kShort;
      return is_long ? static_cast<double>(last[r] - first[r]) / block_size : 0;
    };
    std::vector<std::pair<double, uint32_t>> found;
    for (uint32_t r = 0; r < f_.registers.size(); ++r) {
      const Type t = f_.registers[r].type;
      const bool is_half = r > 0 && f_.registers[r - 1].type.bits == 128;
      if (stays[r] || is_own_.contains(r) || t.is_predicate() || t.bits > 64 || t.bits < 16 ||
          is_half || length(r) == 0)
        continue;
      found.emplace_back(uses[r] / length(r), r);
    }
    const size_t size = std::min(count, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(size),
                      found.end());
    std::vector<uint32_t> out;
    for (size_t k = 0; k < size; ++k) out.push_back(found[k].second);
    return out;
  }

  void spill(const std::vector<uint32_t>& registers) {
    offset_.assign(f_.registers.size(), kNotSpilled);
    for (const uint32_t r : registers) {
      offset_[r] = bytes_;
      bytes_ += kWordBytes;
    }
    std::set<uint32_t> labelled;
    for (const auto& [label, at] : f_.labels) labelled.insert(at);
    std::vector<Instruction> body = std::move(f_.body);
    std::vector<uint32_t> place(body.size() + 1);
    f_.body.clear();
    for (uint32_t i = 0; i < body.size(); ++i) {
      place[i] = static_cast<uint32_t>(f_.body.size());
      rewrite(std::move(body[i]), labelled.contains(i + 1));
    }
    place[body.size()] = static_cast<uint32_t>(f_.body.size());
    for (auto& [label, at] : f_.labels) at = place[at];
  }

 private:
  // `is_followed`: a label stands behind the instruction.
  void rewrite(Instruction insn, bool is_followed) {
    std::vector<std::pair<uint32_t, uint32_t>> own;  // per spilled register, one for this use
    std::set<uint32_t> read, written;
    for (size_t k = 0; k < insn.operands.size(); ++k) {
      const bool writes = is_destination(insn, k);
      for_registers(insn.operands[k], [&](uint32_t& r) {
        if (r >= offset_.size() || offset_[r] == kNotSpilled) return;
        (writes ? written : read).insert(r);
        auto at = std::find_if(own.begin(), own.end(), [&](const auto& x) { return x.first == r; });
        if (at == own.end()) {
          const auto number = static_cast<uint32_t>(f_.registers.size());
          f_.registers.push_back({f_.registers[r].name + "@", f_.registers[r].type});
          is_own_.insert(number);
          at = own.insert(own.end(), {r, number});
        }
        r = at->second;
      });
    }
    if (own.empty()) {
      f_.body.push_back(std::move(insn));
      return;
    }
    const Instruction like = insn;
    // What a false guard leaves is what was there.
    if (insn.guard != kNoRegister) read.insert(written.begin(), written.end());
    for (const auto& [r, number] : own)
      if (read.contains(r)) f_.body.push_back(load(like, number, offset_[r]));
    f_.body.push_back(std::move(insn));
    for (const auto& [r, number] : own)
      if (written.contains(r)) f_.body.push_back(store(like, number, offset_[r]));
    // What begins a block has a code address of its own.
    if (is_followed && !written.empty()) f_.body.back().more_units = 1;
  }

  Instruction load(const Instruction& like, uint32_t number, uint32_t offset) const {
    Instruction insn = access(kLoadSpilled, like, number);
    insn.operands = {value(number), address(offset)};
    return insn;
  }
  Instruction store(const Instruction& like, uint32_t number, uint32_t offset) const {
    Instruction insn = access(kStoreSpilled, like, number);
    insn.operands = {address(offset), value(number)};
    return insn;
  }
  Instruction access(const Row& row, const Instruction& like, uint32_t number) const {
    Instruction insn{.line = like.line, .location = like.location};
    insn.base = insn.opcode = row.syntax;
    insn.modifiers = {"local"};
    insn.row = &row;
    insn.types = {{Kind::kBits, f_.registers[number].type.bits}};
    insn.counts = false;
    return insn;
  }
  static Operand value(uint32_t number) {
    return {.kind = Operand::Kind::kRegister, .reg = number};
  }
  static Operand address(uint32_t offset) {
    Operand o{.kind = Operand::Kind::kAddress, .value = offset};
    o.elements.push_back({.kind = Operand::Kind::kSymbol, .symbol = kSpillVariable});
    return o;
  }

  static constexpr uint32_t kNotSpilled = ~0u;
  Function& f_;
  std::vector<uint32_t> offset_;
  std::set<uint32_t> is_own_;
  uint32_t bytes_ = 0;
};

}  // namespace

SpilledAllocation allocate_and_spill(Function& f, int most) {
  Spiller spiller(f);
  SpilledAllocation out{allocate_registers(f)};
  for (int round = 0; round < kMostRounds && out.allocation.count > most; ++round) {
    const auto excess = static_cast<size_t>(out.allocation.count - most);
    const std::vector<uint32_t> chosen = spiller.choose(out.allocation, 8 + 2 * excess);
    if (chosen.empty()) break;
    spiller.spill(chosen);
    out.allocation = allocate_registers(f);
  }
  out.spill_bytes = spiller.bytes();
  return out;
}

}  // namespace gpusim::ptx
