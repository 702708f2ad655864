#include "translator/passes/zero_extension.h"

#include "device_sim/uir/access.h"
#include "device_sim/uir/compare.h"

namespace gpusim {

bool result_is_zero_extended(const Uop& u, const SlotSet& zx) {
  const Traits row = op_info(u.op).traits;
  const AccessInfo access = access_info(u.op);
  if (access.size != 0) return shape_of(u.op).d.writes != 0 && access.is_narrow();
  const bool a = zx[u.a], b = zx[u.b], i = u.imm >> 32 == 0;
  if ((row & traits::kFits) || ((row & traits::kFitsA) && a) || ((row & traits::kFitsB) && b) ||
      ((row & traits::kFitsI) && i) || ((row & traits::kFitsAB) && a && b) ||
      ((row & traits::kFitsAI) && a && i) || ((row & traits::kFitsBI) && b && i))
    return true;
  // Fields may say so, too.
  switch (u.op) {
    case Op::lsri64:
      return u.imm >= 32;
    case Op::sel_cmp:
    case Op::sel_cmpi:
      return CompareKind::unpack(u.aux).narrow_result;
    default:
      return false;
  }
}

void step_zero_extended(const Uop& u, SlotSet& zx) {
  const bool result = result_is_zero_extended(u, zx);
  const Slot d = u.d;
  for_each_operand(u, [&](Slot s, uint8_t, uint8_t writes) {
    for (int i = 0; i < writes; ++i) zx.reset(static_cast<size_t>(s + i));
  });
  if (result) zx.set(d);
}

std::vector<SlotSet> find_zero_extended(const GuestIsa& isa, const std::vector<CodeBlock>& blocks,
                                        const std::vector<Successors>& successors,
                                        const std::vector<bool>& is_root) {
  SlotSet nothing;
  nothing.set(isa.roles.zero);
  // From "everything" down to the largest solution; roots are where the truth comes in.
  std::vector<SlotSet> in(blocks.size(), SlotSet{}.set());
  std::vector<size_t> work;
  std::vector<bool> queued(blocks.size(), true);
  for (size_t i = blocks.size(); i-- > 0;) {
    if (is_root[i]) in[i] = nothing;
    work.push_back(i);
  }
  while (!work.empty()) {
    const size_t i = work.back();
    work.pop_back();
    queued[i] = false;
    SlotSet out = in[i];
    for (const Uop& u : blocks[i].draft.uops) step_zero_extended(u, out);
    const auto flow = [&](int to, const SlotSet& facts) {
      if (to < 0) return;
      const auto t = static_cast<size_t>(to);
      const SlotSet met = in[t] & facts;
      if (met == in[t]) return;
      in[t] = met;
      if (!queued[t]) work.push_back(t);
      queued[t] = true;
    };
    // The host may have written any register before a service goes on.
    const bool is_service =
        blocks[i].draft.end.present && blocks[i].draft.uops.back().op == Op::service;
    flow(successors[i].taken, is_service ? nothing : out);
    flow(successors[i].next, out);
  }
  return in;
}

}  // namespace gpusim
