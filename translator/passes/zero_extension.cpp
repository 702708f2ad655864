#include "translator/passes/zero_extension.h"

#include "device_sim/uir/compare.h"

namespace gpusim {

bool result_is_zero_extended(const Uop& u, const SlotSet& zx) {
  constexpr uint64_t kLimit = uint64_t{1} << 32;
  switch (u.op) {
    case Op::mov32:
    case Op::add32:
    case Op::addi32:
    case Op::sub32:
    case Op::add_lsl32:
    case Op::sub_lsl32:
    case Op::adc32:
    case Op::and32:
    case Op::or32:
    case Op::ori32:
    case Op::xor32:
    case Op::xori32:
    case Op::lsl32:
    case Op::lsr32:
    case Op::asr32:
    case Op::ror32:
    case Op::lsli32:
    case Op::lsri32:
    case Op::asri32:
    case Op::rori32:
    case Op::sbf32:
    case Op::bfi32:
    case Op::bfxil32:
    case Op::extr32:
    case Op::clz64:
    case Op::clz32:
    case Op::cls64:
    case Op::cls32:
    case Op::rbit32:
    case Op::mul32:
    case Op::madd32:
    case Op::msub32:
    case Op::udiv32:
    case Op::sdiv32:
    case Op::cset:
    case Op::csel32:
    case Op::csinc32:
    case Op::csinv32:
    case Op::csneg32:
    case Op::ldu8:
    case Op::ldu16:
    case Op::ldu32:
    case Op::lds8w:
    case Op::lds16w:
    case Op::ldu8_x:
    case Op::ldu16_x:
    case Op::ldu32_x:
    case Op::lds8w_x:
    case Op::lds16w_x:
    case Op::ldu8_w:
    case Op::ldu16_w:
    case Op::ldu32_w:
    case Op::lds8w_w:
    case Op::lds16w_w:
    case Op::stx:
    case Op::stx128:
      return true;
    case Op::konst:
      return u.imm < kLimit;
    case Op::mov:
    case Op::rev16:
    case Op::bic64:
    case Op::asri64:
      return zx[u.a];
    case Op::lsri64:
      return u.imm >= 32 || zx[u.a];
    case Op::andi64:
    case Op::ubfx:
      return u.imm < kLimit || zx[u.a];
    case Op::ubfiz:
      return u.imm < kLimit;
    case Op::ori64:
    case Op::xori64:
      return u.imm < kLimit && zx[u.a];
    case Op::bfi64:
    case Op::bfxil64:
      return u.imm < kLimit && zx[u.b];
    case Op::and64:
      return zx[u.a] || zx[u.b];
    case Op::or64:
    case Op::xor64:
    case Op::csel64:
      return zx[u.a] && zx[u.b];
    case Op::sel_cmp:
    case Op::sel_cmpi:
      return CompareKind::unpack(u.aux).narrow_result || (zx[u.a] && zx[u.b]);
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
