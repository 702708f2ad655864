#include "host/run/profile_waiting.h"

#include <algorithm>
#include <map>
#include <queue>

namespace gpusim::host {
namespace {

class Looks {
 public:
  explicit Looks(const Module& module) : module_(module) {}

  // The blocks of a look from the end of `from` back to it, `from` itself among them.
  std::vector<uint32_t> of(uint32_t from) {
    near_ = reachable(from);
    std::vector<uint32_t> look{from};
    if (!returns(from, from)) return look;
    for (const auto& [block, distance] : near_)
      if (block != from && !returns(from, block)) look.push_back(block);
    return look;
  }

 private:
  // The block that begins at a micro-op, or to which a stub there leads.
  uint32_t block_at(uint32_t uop) const {
    while (uop < module_.uop_block.size()) {
      const uint32_t block = module_.uop_block[uop];
      if (module_.blocks[block].first_uop == uop) return block;
      const Uop& u = module_.uops[uop];
      if (u.op == Op::link)
        uop = u.target();
      else if (shape_info(op_info(u.op).shape).ends_block)
        break;
      else
        ++uop;
    }
    return kNoBlock;
  }

  // A call goes on where it returns; other indirect jumps lead nowhere.
  std::vector<uint32_t> successors(uint32_t number) const {
    const Block& block = module_.blocks[number];
    const uint32_t at = block.first_uop + block.uop_count - 1;
    const Uop& end = module_.uops[at];
    const ShapeInfo shape = shape_info(op_info(end.op).shape);
    const bool calls = (end.op == Op::jmp || end.op == Op::jmp_reg) &&
                       end.aux == static_cast<uint8_t>(JumpHint::kCall);
    std::vector<uint32_t> next;
    const auto add = [&](uint32_t b) {
      if (b != kNoBlock) next.push_back(b);
    };
    if (shape.falls_through) add(block_at(at + 1));
    if (calls) {
      const uint64_t unit = module_.code.unit_of(end_pc(module_, block));
      add(unit < module_.code.uop_at.size() ? block_at(module_.code.uop_at[unit]) : kNoBlock);
    }
    if (!calls && shape.has_target) add(block_at(end.target()));
    return next;
  }

  // Blocks to which a way of at most kLongestLook instructions leads, that of the block included.
  std::map<uint32_t, uint32_t> reachable(uint32_t from) const {
    std::map<uint32_t, uint32_t> distance;
    using Entry = std::pair<uint32_t, uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto visit = [&](uint32_t block, uint32_t so_far) {
      const uint32_t d = so_far + module_.blocks[block].insn_count;
      if (d > kLongestLook) return;
      const auto [it, is_new] = distance.emplace(block, d);
      if (!is_new && it->second <= d) return;
      it->second = d;
      queue.push({d, block});
    };
    for (const uint32_t b : successors(from)) visit(b, 0);
    while (!queue.empty()) {
      const auto [d, block] = queue.top();
      queue.pop();
      if (d > distance[block] || block == from) continue;
      for (const uint32_t b : successors(block)) visit(b, d);
    }
    return distance;
  }

  // Whether a short way leads from the end of `from` back to it, round `without` (unless that is
  // `from`).
  bool returns(uint32_t from, uint32_t without) const {
    std::map<uint32_t, uint32_t> distance;
    using Entry = std::pair<uint32_t, uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto visit = [&](uint32_t block, uint32_t so_far) {
      if ((block == without && block != from) || !near_.contains(block)) return;
      const uint32_t d = so_far + module_.blocks[block].insn_count;
      if (d <= kLongestLook && distance.emplace(block, d).second) queue.push({d, block});
    };
    for (const uint32_t b : successors(from)) visit(b, 0);
    while (!queue.empty()) {
      const auto [d, block] = queue.top();
      queue.pop();
      if (block == from) return true;
      for (const uint32_t b : successors(block)) visit(b, d);
    }
    return false;
  }

  const Module& module_;
  std::map<uint32_t, uint32_t> near_;
};

}  // namespace

std::vector<uint64_t> executions_in_vain(const Module& module,
                                         std::span<const uint64_t> block_counts) {
  std::vector<uint64_t> in_vain(module.blocks.size());
  Looks looks(module);
  for (const Uop& u : module.uops) {
    if (u.op != Op::give_way || static_cast<Turn>(u.aux) == Turn::kSignalEvent) continue;
    const uint32_t block = u.block();
    if (block >= block_counts.size() || block_counts[block] == 0) continue;
    for (const uint32_t b : looks.of(block)) in_vain[b] += block_counts[block];
  }
  for (size_t b = 0; b < in_vain.size(); ++b)
    in_vain[b] = b < block_counts.size() ? std::min(in_vain[b], block_counts[b]) : 0;
  return in_vain;
}

}  // namespace gpusim::host
