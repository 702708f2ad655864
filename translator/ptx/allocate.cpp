#include "translator/ptx/allocate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "device_sim/base/error.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {

bool is_branch(const Instruction& insn) {
  static const Row* const bra = rows_of("bra").front();
  return insn.row == bra || insn.row == &kBranchIfBelow;
}

bool falls_through(const Instruction& insn) {
  if (insn.guard != kNoRegister || insn.row == &kBranchIfBelow) return true;
  return !is_branch(insn) && insn.base != "ret" && insn.base != "exit" && insn.base != "trap";
}

namespace {

struct Names {
  std::vector<uint32_t> reads, writes;
};

void add_registers(const Operand& o, const Function& f, std::vector<uint32_t>& out) {
  if (o.is(Operand::Kind::kRegister)) {
    out.push_back(o.reg);
    if (f.registers[o.reg].type.bits == 128) out.push_back(o.reg + 1);
  }
  for (const Operand& e : o.elements) add_registers(e, f, out);
}

Names names_of(const Instruction& insn, const Function& f) {
  Names n;
  for (size_t k = 0; k < insn.operands.size(); ++k)
    add_registers(insn.operands[k], f, is_destination(insn, k) ? n.writes : n.reads);
  if (insn.guard != kNoRegister) {
    n.reads.push_back(insn.guard);
    n.reads.insert(n.reads.end(), n.writes.begin(), n.writes.end());  // may keep what it had
  }
  return n;
}

// Whether source and result have the same value in their slots, so that they may share one.
bool is_copy(const Instruction& insn, const Function& f) {
  if (insn.guard != kNoRegister || insn.operands.size() != 2 ||
      !insn.operands[0].is(Operand::Kind::kRegister) ||
      !insn.operands[1].is(Operand::Kind::kRegister) || insn.operands[1].is_negated)
    return false;
  const int to = f.registers[insn.operands[0].reg].type.bits;
  const int from = f.registers[insn.operands[1].reg].type.bits;
  if (to == 128 || from == 128) return false;
  if (insn.base == "mov" || insn.base == "cvta") return true;
  const Type t = insn.type();
  if (insn.row == &kLoadParamRegister) return !t.is_signed() || t.bits == to;
  if (insn.row == &kStoreParamRegister) return from == t.bits;
  const auto is_integer = [](Type of) {
    return of.kind == Kind::kUnsigned || of.kind == Kind::kSigned;
  };
  return insn.base == "cvt" && !insn.has("sat") && insn.types[1].kind == Kind::kUnsigned &&
         is_integer(t) && from == insn.types[1].bits && t.bits >= from;
}

class Allocator {
 public:
  explicit Allocator(const Function& f) : f_(f), size_(f.body.size()) {
    for (const Instruction& insn : f.body) names_.push_back(names_of(insn, f));
    find_blocks();
    find_live();
  }

  Allocation run() {
    Allocation a;
    a.live_blocks.resize(f_.registers.size());
    for (const Block& b : blocks_)
      for (const uint32_t r : b.live_in) ++a.live_blocks[r];
    neighbours_.resize(f_.registers.size());
    copies_.resize(f_.registers.size());
    std::vector<uint32_t> order;
    if (!blocks_.empty()) {
      a.live_at_entry = order = blocks_[0].live_in;
      for (const uint32_t x : a.live_at_entry)
        for (const uint32_t y : a.live_at_entry)
          if (x != y) neighbours_[x].push_back(y);
    }
    for (const Block& b : blocks_) interfere(b);
    for (const Names& n : names_) order.insert(order.end(), n.writes.begin(), n.writes.end());
    for (const Names& n : names_) order.insert(order.end(), n.reads.begin(), n.reads.end());
    colour(order, a);
    return a;
  }

  std::vector<uint32_t> live_before(size_t at) const {
    const auto& b = *std::find_if(blocks_.begin(), blocks_.end(),
                                  [&](const Block& x) { return x.begin <= at && at < x.end; });
    std::set<uint32_t> live;
    for (const size_t next : b.next)
      live.insert(blocks_[next].live_in.begin(), blocks_[next].live_in.end());
    for (size_t i = b.end; i-- > at;) {
      for (const uint32_t r : names_[i].writes) live.erase(r);
      live.insert(names_[i].reads.begin(), names_[i].reads.end());
    }
    return {live.begin(), live.end()};
  }

 private:
  struct Block {
    size_t begin, end;
    std::vector<size_t> next, before;
    std::vector<uint32_t> live_in;  // ascending
  };

  void find_blocks() {
    std::vector<bool> starts(size_ + 1);
    if (size_ == 0) return;
    starts[0] = true;
    for (const auto& [label, at] : f_.labels) starts[at] = true;
    for (size_t i = 0; i < size_; ++i)
      if (is_branch(f_.body[i]) || !falls_through(f_.body[i])) starts[i + 1] = true;
    block_at_.assign(size_ + 1, ~size_t{0});
    for (size_t i = 0; i < size_;) {
      size_t end = i + 1;
      while (end < size_ && !starts[end]) ++end;
      block_at_[i] = blocks_.size();
      blocks_.push_back({i, end, {}, {}, {}});
      i = end;
    }
    for (size_t k = 0; k < blocks_.size(); ++k) {
      Block& b = blocks_[k];
      const Instruction& last = f_.body[b.end - 1];
      if (falls_through(last) && b.end < size_) b.next.push_back(block_at_[b.end]);
      if (is_branch(last)) {
        const auto label = f_.labels.find(last.operands[0].symbol);
        if (label != f_.labels.end() && label->second < size_)
          b.next.push_back(block_at_[label->second]);
      }
      for (const size_t next : b.next) blocks_[next].before.push_back(k);
    }
  }

  // One register after the other, from the blocks that read it back to those that write it: the
  // work is the number of pairs of a block and a register that is live there.
  void find_live() {
    const size_t count = f_.registers.size();
    std::vector<std::vector<size_t>> read_in(count), written_in(count);
    std::vector<size_t> written(count, kNoBlock);  // in the block that is looked at
    for (size_t k = 0; k < blocks_.size(); ++k)
      for (size_t i = blocks_[k].begin; i < blocks_[k].end; ++i) {
        for (const uint32_t r : names_[i].reads)
          if (written[r] != k && (read_in[r].empty() || read_in[r].back() != k))
            read_in[r].push_back(k);
        for (const uint32_t r : names_[i].writes) {
          if (written[r] != k) written_in[r].push_back(k);
          written[r] = k;
        }
      }
    std::vector<uint32_t> writes(blocks_.size(), kNowhere);  // per block: the register if it does
    std::vector<size_t> open;
    for (uint32_t r = 0; r < count; ++r) {
      const auto enter = [&](size_t k) {
        std::vector<uint32_t>& live = blocks_[k].live_in;
        if (!live.empty() && live.back() == r) return;
        live.push_back(r);
        open.push_back(k);
      };
      for (const size_t k : written_in[r]) writes[k] = r;
      for (const size_t k : read_in[r]) enter(k);
      while (!open.empty()) {
        const size_t k = open.back();
        open.pop_back();
        for (const size_t before : blocks_[k].before)
          if (writes[before] != r) enter(before);
      }
    }
  }

  void edge(uint32_t x, uint32_t y) {
    if (x == y) return;
    neighbours_[x].push_back(y);
    neighbours_[y].push_back(x);
  }

  void interfere(const Block& b) {
    // A set with its members in a list.
    std::vector<uint32_t> live;
    place_.resize(f_.registers.size(), kNowhere);
    const auto add = [&](uint32_t r) {
      if (place_[r] != kNowhere) return;
      if (live.size() == kMostLive)
        throw Error(fmt::format("more than {} values are live at once", kMostLive));
      place_[r] = static_cast<uint32_t>(live.size());
      live.push_back(r);
    };
    const auto remove = [&](uint32_t r) {
      if (place_[r] == kNowhere) return;
      place_[live.back()] = place_[r];
      live[place_[r]] = live.back();
      live.pop_back();
      place_[r] = kNowhere;
    };
    for (const size_t next : b.next)
      for (const uint32_t r : blocks_[next].live_in) add(r);
    for (size_t i = b.end; i-- > b.begin;) {
      const Names& n = names_[i];
      const Instruction& insn = f_.body[i];
      const bool copies = is_copy(insn, f_);
      if (copies) {
        copies_[n.writes[0]].push_back(n.reads[0]);
        copies_[n.reads[0]].push_back(n.writes[0]);
      }
      for (const uint32_t w : n.writes) {
        for (const uint32_t l : live)
          if (!copies || l != n.reads[0]) edge(w, l);
        // Several results are written one after the other, while sources are still needed.
        if (n.writes.size() == 1) continue;
        for (const uint32_t other : n.writes) edge(w, other);
        for (const uint32_t r : n.reads) edge(w, r);
      }
      for (const uint32_t w : n.writes) remove(w);
      for (const uint32_t r : n.reads) add(r);
    }
    for (const uint32_t r : live) place_[r] = kNowhere;
  }

  void colour(const std::vector<uint32_t>& order, Allocation& a) {
    a.colours.assign(f_.registers.size(), -1);
    std::vector<uint32_t> taken;  // per colour: by a neighbour of the register with this number
    uint32_t stamp = 0;
    for (const uint32_t r : order) {
      if (a.colours[r] >= 0) continue;
      ++stamp;
      for (const uint32_t n : neighbours_[r])
        if (a.colours[n] >= 0) {
          const auto c = static_cast<size_t>(a.colours[n]);
          if (taken.size() <= c) taken.resize(c + 1);
          taken[c] = stamp;
        }
      const auto is_free = [&](int c) {
        return static_cast<size_t>(c) >= taken.size() || taken[static_cast<size_t>(c)] != stamp;
      };
      int chosen = -1;
      for (const uint32_t other : copies_[r])
        if (a.colours[other] >= 0 && is_free(a.colours[other])) chosen = a.colours[other];
      if (chosen < 0)
        for (chosen = 0; !is_free(chosen); ++chosen) {
        }
      a.colours[r] = chosen;
      a.count = std::max(a.count, chosen + 1);
    }
  }

  static constexpr uint32_t kNowhere = ~0u;
  static constexpr size_t kMostLive = 8192;  // all pairs of them are in memory
  static constexpr size_t kNoBlock = ~size_t{0};
  const Function& f_;
  size_t size_;
  std::vector<Names> names_;
  std::vector<Block> blocks_;
  std::vector<size_t> block_at_;
  std::vector<std::vector<uint32_t>> neighbours_, copies_;
  std::vector<uint32_t> place_;
};

}  // namespace

Allocation allocate_registers(const Function& f) { return Allocator(f).run(); }

std::vector<std::vector<uint32_t>> live_before(const Function& f,
                                               const std::vector<uint32_t>& instructions) {
  const Allocator a(f);
  std::vector<std::vector<uint32_t>> out;
  for (const uint32_t i : instructions) out.push_back(a.live_before(i));
  return out;
}

}  // namespace gpusim::ptx
