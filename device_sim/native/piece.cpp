#include "device_sim/native/piece.h"

#include <bit>
#include <cstddef>

namespace gpusim::native {

void Piece::begin(Label cold) {
  ins_.clear();
  cold_ = cold;
  next_id_ = kFirstId;
  last_cold_ = 0;
  cold_used_ = takes_pair_ = gave_up_ = false;
}

// Calls f(register id, is it an xmm register, function that replaces it).
template <class F>
void Piece::for_registers(Ins& ins, F f) {
  for (uint32_t k = 0; k < ins.count; ++k) {
    Operand& operand = ins.operands[k];
    if (operand.isReg()) {
      auto& reg = operand.as<x86::Reg>();
      f(reg.id(), reg.isXmm(), [&](uint32_t id) { reg.setId(id); });
    } else if (operand.isMem()) {
      auto& mem = operand.as<x86::Mem>();
      if (mem.hasBaseReg()) f(mem.baseId(), false, [&](uint32_t id) { mem.setBase(x86::gpq(id)); });
      if (mem.hasIndexReg())
        f(mem.indexId(), false, [&](uint32_t id) { mem.setIndex(x86::gpq(id), mem.shift()); });
    }
  }
}

bool Piece::refers(const Ins& ins, uint32_t id, bool is_xmm) const {
  bool found = false;
  for_registers(const_cast<Ins&>(ins), [&](uint32_t other, bool other_is_xmm, auto) {
    found |= other == id && other_is_xmm == is_xmm;
  });
  return found;
}

// Replaces a 64-bit instruction by the 32-bit one that gives the low half and zero above it.
bool Piece::narrow(Ins& ins) const {
  switch (ins.id) {
    case x86::Inst::kIdShl:
      if (ins.operands[1].as<asmjit::Imm>().value() >= 32) return false;
      break;
    case x86::Inst::kIdAdd:
    case x86::Inst::kIdSub:
    case x86::Inst::kIdAnd:
    case x86::Inst::kIdOr:
    case x86::Inst::kIdXor:
    case x86::Inst::kIdImul:
    case x86::Inst::kIdMov:
    case x86::Inst::kIdNeg:
    case x86::Inst::kIdNot:
    case x86::Inst::kIdLea:
      break;
    default:
      return false;
  }
  for (uint32_t k = 0; k < ins.count; ++k) {
    const Operand& operand = ins.operands[k];
    if (operand.isReg() && !operand.as<x86::Reg>().isGpq()) return false;
    if (operand.isMem() && ins.id != x86::Inst::kIdLea && operand.size() != 8) return false;
    // An immediate of 64 bits stays what it is modulo 2^32.
  }
  for (uint32_t k = 0; k < ins.count; ++k) {
    Operand& operand = ins.operands[k];
    if (operand.isReg())
      operand = x86::gpd(operand.as<x86::Reg>().id());
    else if (operand.isMem() && ins.id != x86::Inst::kIdLea)
      operand.as<x86::Mem>().setSize(4);
    else if (operand.isImm())
      operand = asmjit::imm(static_cast<int32_t>(operand.as<asmjit::Imm>().value()));
  }
  return true;
}

// mov x32, y32 after the last use of y otherwise: y is computed with 32 bits instead.
void Piece::narrow_masks(const x86::Reg& result) {
  for (size_t i = 1; i < ins_.size(); ++i) {
    Ins& mask = ins_[i];
    if (mask.id != x86::Inst::kIdMov || !mask.operands[0].isReg() || !mask.operands[1].isReg() ||
        !mask.operands[0].as<x86::Reg>().isGpd() || !mask.operands[1].as<x86::Reg>().isGpd())
      continue;
    const uint32_t id = mask.operands[1].as<x86::Reg>().id();
    if (id < kFirstId || mask.operands[0].as<x86::Reg>().id() < kFirstId) continue;
    if (is_gp(result, id)) continue;
    bool used_later = false;
    for (size_t j = i + 1; j < ins_.size(); ++j) used_later |= refers(ins_[j], id, false);
    if (used_later) continue;
    Ins& before = ins_[i - 1];
    if (before.count == 0 || !before.operands[0].isReg() ||
        before.operands[0].as<x86::Reg>().id() != id || !narrow(before))
      continue;
    rename(0, id, x86::gpq(mask.operands[0].as<x86::Reg>().id()));
    ins_.erase(ins_.begin() + static_cast<std::ptrdiff_t>(i--));
  }
}

// mov x, y after the last use of y and before the first of x: both are one.
void Piece::join_copies(const x86::Reg& result) {
  const auto virtual_gp = [](const Operand& operand) {
    return operand.isReg() && operand.as<x86::Reg>().isGpq() &&
           operand.as<x86::Reg>().id() >= kFirstId;
  };
  for (size_t i = 0; i < ins_.size(); ++i) {
    const Ins& copy = ins_[i];
    if (copy.id != x86::Inst::kIdMov || !virtual_gp(copy.operands[0]) ||
        !virtual_gp(copy.operands[1]))
      continue;
    const uint32_t to = copy.operands[0].as<x86::Reg>().id();
    const uint32_t from = copy.operands[1].as<x86::Reg>().id();
    bool apart = !is_gp(result, from);
    for (size_t j = 0; j < i && apart; ++j) apart = !refers(ins_[j], to, false);
    for (size_t j = i + 1; j < ins_.size() && apart; ++j) apart = !refers(ins_[j], from, false);
    if (!apart) continue;
    rename(0, from, x86::gpq(to));
    ins_.erase(ins_.begin() + static_cast<std::ptrdiff_t>(i--));
  }
}

void Piece::rename(size_t from, uint32_t id, const x86::Reg& to) {
  for (size_t i = from; i < ins_.size(); ++i)
    for_registers(ins_[i], [&](uint32_t other, bool is_xmm, auto replace) {
      if (other == id && is_xmm == to.isXmm()) replace(to.id());
    });
}

void Piece::finish_in(const x86::Reg& to, const x86::Reg& from, InstId copy, bool is_source) {
  narrow_masks(from);
  join_copies(from);
  size_t first = 0;
  while (first < ins_.size() && !refers(ins_[first], from.id(), from.isXmm())) ++first;
  // In place, unless something that is computed after it, or elsewhere, reads the old value.
  bool in_place = from.id() >= kFirstId && !(is_source && last_cold_ > first);
  for (size_t i = first + 1; i < ins_.size() && in_place; ++i)
    in_place = !refers(ins_[i], to.id(), to.isXmm());
  if (in_place)
    rename(first, from.id(), to);
  else
    emit(copy, to, from);
}

void Piece::finish(x86::Gp to, x86::Gp from, bool is_source) {
  finish_in(to, from, x86::Inst::kIdMov, is_source);
}
void Piece::finish(x86::Xmm to, x86::Xmm from, bool is_source) {
  finish_in(to, from, x86::Inst::kIdVmovaps, is_source);
}

// Gives virtual registers machine registers, from their first instruction to their last.
bool Piece::assign() {
  constexpr uint32_t kScratchXmm = 4;  // xmm0 to xmm3
  const size_t count = next_id_ - kFirstId;
  std::vector<size_t> last(count, 0);
  std::vector<uint32_t> place(count, ~uint32_t{0});
  for (size_t i = 0; i < ins_.size(); ++i)
    for_registers(ins_[i], [&](uint32_t id, bool, auto) {
      if (id >= kFirstId) last[id - kFirstId] = i;
    });
  const uint32_t scratch = takes_pair_ ? 2 : kScratch.size();
  uint32_t free_gp = 0, free_xmm = (1u << kScratchXmm) - 1;
  for (uint32_t k = 0; k < scratch; ++k) free_gp |= 1u << kScratch[k];
  const auto take = [](uint32_t& free) {
    const auto id = static_cast<uint32_t>(std::countr_zero(free));
    free &= free - 1;
    return id;
  };
  for (size_t i = 0; i < ins_.size(); ++i) {
    Ins& ins = ins_[i];
    // Sources that end here make room for what the instruction writes.
    for_registers(ins, [&](uint32_t id, bool is_xmm, auto) {
      if (id < kFirstId || last[id - kFirstId] != i || place[id - kFirstId] == ~uint32_t{0}) return;
      (is_xmm ? free_xmm : free_gp) |= 1u << place[id - kFirstId];
    });
    bool full = false;
    for_registers(ins, [&](uint32_t id, bool is_xmm, auto) {
      if (id < kFirstId || place[id - kFirstId] != ~uint32_t{0}) return;
      uint32_t& free = is_xmm ? free_xmm : free_gp;
      if (free == 0)
        full = true;
      else
        place[id - kFirstId] = take(free);
      // Written and never read.
      if (!full && last[id - kFirstId] == i) free |= 1u << place[id - kFirstId];
    });
    if (full) return false;
  }
  for (Ins& ins : ins_)
    for_registers(ins, [&](uint32_t id, bool, auto replace) {
      if (id >= kFirstId) replace(place[id - kFirstId]);
    });
  return true;
}

void Piece::write_division(const Ins& ins) {
  x86::Assembler& a = *assembler_;
  const auto d = ins.operands[0].as<x86::Gp>(), x = ins.operands[1].as<x86::Gp>(),
             y = ins.operands[2].as<x86::Gp>();
  if (ins.id == kHighUnsigned || ins.id == kHighSigned) {
    a.mov(x86::rax, x);
    if (ins.id == kHighSigned)
      a.imul(y);
    else
      a.mul(y);
    a.mov(d, x86::rdx);
    return;
  }
  const Label zero = a.newLabel(), minus = a.newLabel(), done = a.newLabel();
  a.mov(x86::rax, x);
  a.test(y, y);
  a.jz(zero);
  if (ins.id == kDivideSigned) {
    a.cmp(y, -1);  // the one quotient that does not fit makes the machine trap
    a.je(minus);
    a.cqo();
    a.idiv(y);
    a.jmp(done);
    a.bind(minus);
    a.neg(x86::rax);
    a.jmp(done);
  } else {
    a.xor_(x86::edx, x86::edx);
    a.div(y);
    a.jmp(done);
  }
  a.bind(zero);
  a.xor_(x86::eax, x86::eax);
  a.bind(done);
  a.mov(d, x86::rax);
}

// The machine's flags, gathered from bits 15 (N), 14 (Z) and 8 (C) of ax, and bit 0 (V).
// AMD's first Zens take 18 cycles and more.
static bool has_fast_pext() {
  static const bool is_fast = !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
  return is_fast;
}

void Piece::write_flags(const Ins& ins) {
  x86::Assembler& a = *assembler_;
  const auto d = ins.operands[0].as<x86::Gp>(), x = ins.operands[1].as<x86::Gp>(),
             y = ins.operands[2].as<x86::Gp>();
  if (ins.id == kFlagsOfDifference) {
    a.cmp(x, y);
  } else {
    const x86::Gp sum = x.isGpd() ? x86::Gp(x86::eax) : x86::Gp(x86::rax);
    a.mov(sum, x);
    a.add(sum, y);
  }
  if (ins.id == kFlagsOfDifference) a.cmc();  // C means that nothing was borrowed
  a.lahf();
  a.seto(x86::al);
  if (has_fast_pext()) {
    a.mov(x86::edx, 0xc101);
    a.pext(d.r32(), x86::eax, x86::edx);
  } else {
    a.and_(x86::eax, 0xc101);
    a.imul(x86::eax, x86::eax, 1 + (1 << 5) + (1 << 12));
    a.shr(x86::eax, 12);
    a.and_(x86::eax, 15);
    a.mov(d.r32(), x86::eax);
  }
}

void Piece::write(const Ins& ins) {
  if (ins.id == kBind) {
    assembler_->bind(ins.operands[0].as<Label>());
    return;
  }
  if (ins.id >= kFlagsOfSum) return write_flags(ins);
  if (ins.id > kBind) return write_division(ins);
  const bool is_copy = ins.id == x86::Inst::kIdMov || ins.id == x86::Inst::kIdVmovaps;
  if (is_copy && ins.operands[0] == ins.operands[1] && !ins.operands[0].as<x86::Reg>().isGpd())
    return;
  assembler_->emitOpArray(ins.id, ins.operands.data(), ins.count);
}

bool Piece::flush() {
  if (gave_up_) return false;
  narrow_masks(x86::Reg());
  if (!assign()) return false;
  for (const Ins& ins : ins_) write(ins);
  return true;
}

}  // namespace gpusim::native
