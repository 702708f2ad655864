#include "translator/ptx/emitter.h"

#include <fmt/format.h>

#include <bit>

#include "device_sim/base/error.h"
#include "device_sim/uir/compare.h"
#include "translator/ptx/memory_map.h"

namespace gpusim::ptx {
namespace {

uint64_t mask_of(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

uint8_t pack(const CompareFact& f) { return CompareKind{f.relation, f.is_32bit, false}.pack(); }

}  // namespace

Emitter::Emitter(const Function& function, const std::vector<int>& colours, int colour_count,
                 const Places& places)
    : b(Emitter::kExact, kFirstTemp, kTempCount),
      function_(function),
      colours_(colours),
      places_(places),
      next_constant_(kFirstRegister + colour_count) {}

Slot Emitter::reg(uint32_t number) const {
  return static_cast<Slot>(kFirstRegister + std::max(0, colours_[number]));
}

void Emitter::forget(Slot s) {
  std::erase_if(facts_, [&](const auto& fact) {
    return fact.second.x == s || (!fact.second.imm && fact.second.y == s) || reg(fact.first) == s;
  });
}

Slot Emitter::konst(uint64_t value) {
  if (value == 0) return kZeroSlot;
  if (value == 1) return kOneSlot;
  const auto found = constants_.find(value);
  if (found != constants_.end()) return found->second;
  if (next_constant_ < 256 && constants_.size() < kMostConstants)
    return constants_[value] = static_cast<Slot>(next_constant_++);
  const Slot t = temp();
  b.konst(t, value);
  return t;
}

std::optional<uint64_t> Emitter::constant(const Operand& o, Type t) const {
  const uint64_t mask = mask_of(t.bits);
  if (o.is(Operand::Kind::kInteger)) return o.value & mask;
  if (!o.is(Operand::Kind::kFloat)) return std::nullopt;
  if (o.bits == t.bits || !t.is_float()) return o.value & mask;
  if (t.bits == 32)
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(o.value)));
  return std::bit_cast<uint64_t>(
      static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(o.value))));
}

// The clock's slot is ahead: it has all instructions of the block. The translator, which knows how
// many those are, fills in how far.
Slot Emitter::clock() {
  const Slot t = temp();
  b.addi64(t, special_slot(Special::kClock), 0);
  return t;
}

Slot Emitter::src(const Operand& o, Type t) {
  if (const auto value = constant(o, t)) return konst(*value);
  const Slot s = reg(o);
  if (!o.is_negated) return s;
  const Slot not_s = temp();
  b.xori64(not_s, s, 1);
  return not_s;
}

Slot Emitter::src_signed(const Operand& o, Type t) {
  if (const auto value = constant(o, t)) {
    const int up = 64 - t.bits;
    return konst(static_cast<uint64_t>(static_cast<int64_t>(*value << up) >> up));
  }
  if (t.bits == 64) return reg(o);
  const Slot s = temp();
  sign_extend(s, reg(o), t.bits);
  return s;
}

Slot Emitter::dst(const Operand& o) {
  if (is_sink(o)) return temp();
  if (redirected_) return *redirected_;
  const Slot s = reg(o);
  forget(s);
  return s;
}

std::pair<Slot, Slot> Emitter::halves(const Instruction& i, const Operand& o) {
  if (o.is(Operand::Kind::kRegister)) return {reg(o), reg(o.reg + 1)};
  if (static_cast<int64_t>(o.value) < 0) unsupported(i, "a negative constant of 128 bits");
  return {konst(o.value), kZeroSlot};
}

Slot Emitter::high_dst(const Operand& o) {
  const Slot s = reg(o.reg + 1);
  forget(s);
  return s;
}

void Emitter::zero_extend(Slot d, Slot a, int bits) {
  if (bits == 64) {
    if (d != a) b.mov(d, a);
  } else if (bits == 32) {
    b.mov32(d, a);
  } else {
    b.andi64(d, a, mask_of(bits));
  }
}

void Emitter::sign_extend(Slot d, Slot a, int bits) {
  const auto up = static_cast<uint8_t>(64 - bits);
  if (bits == 64)
    b.mov(d, a);
  else
    b.sbf64(d, a, up, up);
}

softfloat::Rounding Emitter::rounding(const Instruction& i) {
  using softfloat::Rounding;
  if (i.has("rz") || i.has("rzi")) return Rounding::kZero;
  if (i.has("rm") || i.has("rmi")) return Rounding::kNegInf;
  if (i.has("rp") || i.has("rpi")) return Rounding::kPosInf;
  return Rounding::kTieEven;
}

Place Emitter::place_of(const Operand& symbol) const {
  const auto found = places_.find(symbol.symbol);
  if (found == places_.end())
    throw Error(fmt::format("'{}' is not declared, or nothing defines it", symbol.symbol));
  Place p = found->second;
  p.address += symbol.value;
  return p;
}

Place Emitter::window(std::string_view name) const {
  const auto found = places_.find(name);
  return found != places_.end() ? found->second : Place{};
}

// Addresses of all state spaces but parameters are generic ones (memory_map.h), so that there is
// nothing to add.
MemoryPlace Emitter::address(const Operand& o, Space space) {
  const Operand& base = o.elements[0];
  if (base.is(Operand::Kind::kInteger))
    return {kZeroSlot, (space == Space::kShared ? kCtaBase : 0) + o.value};
  if (base.is(Operand::Kind::kRegister)) return {reg(base), o.value};
  const Place p = place_of(base);
  return {p.space == Space::kParam ? kParamBase : kZeroSlot, p.address + o.value};
}

void Emitter::set_predicate(const Operand& o, const CompareFact& f) {
  const auto set = [&](const Operand& p, bool inverted) {
    if (is_sink(p)) return;
    const bool is_true = f.is_inverted == inverted;
    const Slot yes = is_true ? kOneSlot : kZeroSlot, no = is_true ? kZeroSlot : kOneSlot;
    const Slot d = dst(p);
    if (f.imm)
      b.sel_cmpi(d, yes, no, f.x, static_cast<uint64_t>(int64_t{*f.imm}), pack(f));
    else
      b.sel_cmp(d, yes, no, f.x, f.y, pack(f));
    if (redirected_) return;
    CompareFact known = f;
    known.is_inverted = !is_true;
    const auto is_temp = [](Slot s) { return s >= kFirstTemp && s < kFirstTemp + kTempCount; };
    // A source that dies here may share its slot with the predicate.
    const auto lasts = [&](Slot s) { return !is_temp(s) && s != d; };
    if (lasts(f.x) && (f.imm || lasts(f.y))) facts_[p.reg] = known;
  };
  if (!o.is(Operand::Kind::kPair)) return set(o, false);
  set(o.elements[0], false);
  set(o.elements[1], true);
}

void Emitter::set_predicates(const Operand& o, Slot truth) {
  if (!o.is(Operand::Kind::kPair)) {
    b.mov(dst(o), truth);
    return;
  }
  if (!is_sink(o.elements[0])) b.mov(dst(o.elements[0]), truth);
  if (!is_sink(o.elements[1])) b.xori64(dst(o.elements[1]), truth, 1);
}

std::optional<CompareFact> Emitter::fact(const Operand& p) const {
  if (!p.is(Operand::Kind::kRegister)) return std::nullopt;
  const auto found = facts_.find(p.reg);
  if (found == facts_.end()) return std::nullopt;
  CompareFact f = found->second;
  f.is_inverted ^= p.is_negated;
  return f;
}

void Emitter::select(Slot d, Slot a, Slot b2, const Operand& p) {
  if (const auto f = fact(p)) {
    if (f->is_inverted) std::swap(a, b2);
    if (f->imm)
      b.sel_cmpi(d, a, b2, f->x, static_cast<uint64_t>(int64_t{*f->imm}), pack(*f));
    else
      b.sel_cmp(d, a, b2, f->x, f->y, pack(*f));
    return;
  }
  if (const auto value = constant(p, kPredicateType)) {
    b.mov(d, *value != 0 ? a : b2);
    return;
  }
  if (!p.is_negated) std::swap(a, b2);
  const CompareKind is_zero{CompareRelation::kEqual, false, false};
  b.sel_cmpi(d, a, b2, reg(p), 0, is_zero.pack());
}

void Emitter::branch(const Operand& p, uint64_t target_pc) {
  const auto f = fact(p);
  if (!f) return b.branch_imm(p.is_negated ? Op::bri_eq64 : Op::bri_ne64, reg(p), 0, target_pc);
  // In the order of CompareRelation, then inverted; 64 bits, then 32.
  static constexpr Op kOfSlots[2][3][2] = {
      {{Op::br_eq64, Op::br_ne64}, {Op::br_lt64, Op::br_ge64}, {Op::br_ltu64, Op::br_geu64}},
      {{Op::br_eq32, Op::br_ne32}, {Op::br_lt32, Op::br_ge32}, {Op::br_ltu32, Op::br_geu32}}};
  static constexpr Op kOfImmediates[2][3][2] = {
      {{Op::bri_eq64, Op::bri_ne64}, {Op::bri_lt64, Op::bri_ge64}, {Op::bri_ltu64, Op::bri_geu64}},
      {{Op::bri_eq32, Op::bri_ne32}, {Op::bri_lt32, Op::bri_ge32}, {Op::bri_ltu32, Op::bri_geu32}}};
  const auto relation = static_cast<size_t>(f->relation);
  if (f->imm)
    b.branch_imm(kOfImmediates[f->is_32bit][relation][f->is_inverted], f->x,
                 static_cast<uint16_t>(*f->imm), target_pc);
  else
    b.branch(kOfSlots[f->is_32bit][relation][f->is_inverted], f->x, f->y, target_pc);
}

uint64_t Emitter::label_pc(const std::string& label) const {
  const auto found = label_pcs_.find(label);
  if (found == label_pcs_.end())
    throw Error(fmt::format("label '{}' is not in '{}'", label, function_.name));
  return found->second;
}

void Emitter::unsupported(const Instruction& i, const std::string& why) const {
  throw Error(fmt::format("line {}: '{}': {}", i.line, i.opcode, why));
}

}  // namespace gpusim::ptx
