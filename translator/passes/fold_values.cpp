#include "translator/passes/fold_values.h"

#include <array>
#include <optional>
#include <utility>

#include "device_sim/uir/semantics_int.h"
#include "translator/passes/zero_extension.h"

namespace gpusim {
namespace {

constexpr uint64_t kLow32 = 0xffffffff;

// The result of a one-operand operation with immediates on a constant.
std::optional<uint64_t> evaluate(const Uop& u, uint64_t a) {
  using D = sem::ScalarDomain;
  switch (u.op) {
#define GPUSIM_EVALUATE(name) \
  case Op::name:              \
    return sem::name<D>(a, u);
    GPUSIM_EVALUATE(addi64)
    GPUSIM_EVALUATE(addi32)
    GPUSIM_EVALUATE(addiw)
    GPUSIM_EVALUATE(andi64)
    GPUSIM_EVALUATE(ori64)
    GPUSIM_EVALUATE(ori32)
    GPUSIM_EVALUATE(xori64)
    GPUSIM_EVALUATE(xori32)
    GPUSIM_EVALUATE(lsli64)
    GPUSIM_EVALUATE(lsli32)
    GPUSIM_EVALUATE(lsri64)
    GPUSIM_EVALUATE(lsri32)
    GPUSIM_EVALUATE(asri64)
    GPUSIM_EVALUATE(asri32)
    GPUSIM_EVALUATE(rori64)
    GPUSIM_EVALUATE(rori32)
    GPUSIM_EVALUATE(ubfx)
    GPUSIM_EVALUATE(ubfiz)
    GPUSIM_EVALUATE(sbf64)
    GPUSIM_EVALUATE(sbf32)
#undef GPUSIM_EVALUATE
    case Op::mov:
      return a;
    case Op::mov32:
      return a & kLow32;
    default:
      return std::nullopt;
  }
}

// The operation with its second operand, a constant, as an immediate.
std::optional<Uop> with_immediate(const Uop& u, uint64_t b) {
  const auto make = [&](Op op, uint64_t imm) {
    return Uop{.op = op, .d = u.d, .a = u.a, .imm = imm};
  };
  switch (u.op) {
    case Op::add64:
      return make(Op::addi64, b);
    case Op::add32:
      return make(Op::addi32, b);
    case Op::addw:
      return make(Op::addiw, b);
    case Op::subw:
      return make(Op::addiw, 0 - b);
    case Op::add_uxtw64:
      return make(Op::addi64, (b & kLow32) << u.imm);
    case Op::sub64:
      return make(Op::addi64, 0 - b);
    case Op::sub32:
      return make(Op::addi32, 0 - b);
    case Op::add_lsl64:
      return make(Op::addi64, b << u.imm);
    case Op::add_lsl32:
      return make(Op::addi32, b << u.imm);
    case Op::sub_lsl64:
      return make(Op::addi64, 0 - (b << u.imm));
    case Op::sub_lsl32:
      return make(Op::addi32, 0 - (b << u.imm));
    case Op::and64:
      return make(Op::andi64, b);
    case Op::and32:
      return make(Op::andi64, b & kLow32);
    case Op::bic64:
      return make(Op::andi64, ~b);
    case Op::or64:
      return make(Op::ori64, b);
    case Op::or32:
      return make(Op::ori32, b);
    case Op::orn64:
      return make(Op::ori64, ~b);
    case Op::xor64:
      return make(Op::xori64, b);
    case Op::xor32:
      return make(Op::xori32, b);
    case Op::eon64:
      return make(Op::xori64, ~b);
    case Op::lsl64:
      return make(Op::lsli64, b & 63);
    case Op::lsl32:
      return make(Op::lsli32, b & 31);
    case Op::lsr64:
      return make(Op::lsri64, b & 63);
    case Op::lsr32:
      return make(Op::lsri32, b & 31);
    case Op::asr64:
      return make(Op::asri64, b & 63);
    case Op::asr32:
      return make(Op::asri32, b & 31);
    case Op::ror64:
      return make(Op::rori64, b & 63);
    case Op::ror32:
      return make(Op::rori32, b & 31);
    default:
      return std::nullopt;
  }
}

class Folder {
 public:
  Folder(const GuestIsa& isa, const SlotSet& zero_extended) : isa_(isa), zx_(zero_extended) {
    zx_.set(isa.roles.zero);
    zx_without_entry_facts_.set(isa.roles.zero);
  }

  bool run(DraftBlock& block) {
    for (Uop& u : block.uops) {
      replace_copies(u);
      while (simplify(u)) {
      }
      note(u);
    }
    return used_entry_facts_;
  }

 private:
  struct Value {
    std::optional<uint64_t> constant;
    int copy_of = -1;
    uint32_t copy_version = 0;
  };

  std::optional<uint64_t> constant(Slot s) const {
    return s == isa_.roles.zero ? std::optional<uint64_t>(0) : values_[s].constant;
  }
  bool is_zero(Slot s) const { return constant(s) == uint64_t{0}; }

  bool zero_extended(Slot s) {
    if (!zx_[s]) return false;
    if (!zx_without_entry_facts_[s]) used_entry_facts_ = true;
    return true;
  }

  void replace_copies(Uop& u) {
    for_each_operand(u, [&](Slot& s, uint8_t reads, uint8_t writes) {
      const Value& v = values_[s];
      if (reads != 1 || writes != 0 || v.copy_of < 0) return;
      const auto origin = static_cast<Slot>(v.copy_of);
      if (version_[origin] != v.copy_version) return;
      // A temporary is no better than the register it was copied to.
      if (isa_.roles.is_temp(origin) && !isa_.roles.is_temp(s)) return;
      s = origin;
    });
  }

  // One step; whether the micro-op changed.
  bool simplify(Uop& u) {
    const ShapeInfo& info = shape_of(u.op);
    if (!info.pure) return false;
    if (info.a.reads == 1 && info.b.reads == 0)
      if (const auto a = constant(u.a))
        if (const auto result = evaluate(u, *a)) return become_constant(u, *result);
    if (has_trait(u.op, traits::kCommutes) && constant(u.a) && !constant(u.b)) std::swap(u.a, u.b);
    if (info.b.reads == 1 && info.c.reads == 0)
      if (const auto b = constant(u.b))
        if (const auto shorter = with_immediate(u, *b)) return become(u, *shorter);
    return drop_neutral(u) || drop_extension(u) || multiply_without_addend(u);
  }

  bool become(Uop& u, const Uop& other) {
    u = other;
    return true;
  }
  bool become_constant(Uop& u, uint64_t value) {
    return become(u, {.op = Op::konst, .d = u.d, .imm = value});
  }
  bool become_copy(Uop& u, Slot of) { return become(u, {.op = Op::mov, .d = u.d, .a = of}); }
  bool become_copy32(Uop& u, Slot of) { return become(u, {.op = Op::mov32, .d = u.d, .a = of}); }

  // Operations whose constant changes nothing.
  bool drop_neutral(Uop& u) {
    switch (u.op) {
      case Op::addi64:
      case Op::ori64:
      case Op::xori64:
      case Op::lsli64:
      case Op::lsri64:
      case Op::asri64:
      case Op::rori64:
        return u.imm == 0 && become_copy(u, u.a);
      case Op::addi32:
      case Op::ori32:
      case Op::xori32:
      case Op::lsli32:
      case Op::lsri32:
      case Op::asri32:
      case Op::rori32:
        return u.imm == 0 && become_copy32(u, u.a);
      case Op::addiw:
        return u.imm == 0 && become(u, {.op = Op::sbf64, .d = u.d, .a = u.a, .aux = 32, .imm = 32});
      case Op::andi64:
        if (u.imm == 0) return become_constant(u, 0);
        if (u.imm == ~uint64_t{0}) return become_copy(u, u.a);
        return u.imm == kLow32 && become_copy32(u, u.a);
      case Op::add64:
      case Op::or64:
      case Op::xor64:
        if (is_zero(u.b)) return become_copy(u, u.a);
        return is_zero(u.a) && become_copy(u, u.b);
      case Op::add_lsl64:
        if (is_zero(u.a)) return become(u, {.op = Op::lsli64, .d = u.d, .a = u.b, .imm = u.imm});
        return u.imm == 0 && become(u, {.op = Op::add64, .d = u.d, .a = u.a, .b = u.b});
      case Op::add_lsl32:
        if (is_zero(u.a)) return become(u, {.op = Op::lsli32, .d = u.d, .a = u.b, .imm = u.imm});
        return u.imm == 0 && become(u, {.op = Op::add32, .d = u.d, .a = u.a, .b = u.b});
      default:
        return false;
    }
  }

  bool drop_extension(Uop& u) {
    if (u.op == Op::mov32 && zero_extended(u.a)) return become_copy(u, u.a);
    if (u.op == Op::andi64 && (u.imm & kLow32) == kLow32 && zero_extended(u.a))
      return become_copy(u, u.a);
    return false;
  }

  bool multiply_without_addend(Uop& u) {
    if (u.op == Op::madd64 && is_zero(u.c))
      return become(u, {.op = Op::mul64, .d = u.d, .a = u.a, .b = u.b});
    if (u.op == Op::madd32 && is_zero(u.c))
      return become(u, {.op = Op::mul32, .d = u.d, .a = u.a, .b = u.b});
    return false;
  }

  void note(const Uop& u) {
    step_zero_extended(u, zx_);
    step_zero_extended(u, zx_without_entry_facts_);
    for_each_operand(u, [&](Slot s, uint8_t, uint8_t writes) {
      for (int i = 0; i < writes; ++i) {
        ++version_[static_cast<size_t>(s + i)];
        values_[static_cast<size_t>(s + i)] = {};
      }
    });
    if (u.op == Op::konst) values_[u.d].constant = u.imm;
    if (u.op == Op::mov && u.a != u.d && u.a != isa_.roles.zero) {
      values_[u.d].copy_of = u.a;
      values_[u.d].copy_version = version_[u.a];
    }
    if (u.op == Op::mov) values_[u.d].constant = constant(u.a);
  }

  const GuestIsa& isa_;
  SlotSet zx_, zx_without_entry_facts_;
  bool used_entry_facts_ = false;
  std::array<Value, kMaxSlots> values_{};
  std::array<uint32_t, kMaxSlots> version_{};
};

}  // namespace

bool fold_values(const GuestIsa& isa, const SlotSet& zero_extended, DraftBlock& block) {
  return Folder(isa, zero_extended).run(block);
}

}  // namespace gpusim
