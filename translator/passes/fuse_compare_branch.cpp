#include "translator/passes/fuse_compare_branch.h"

#include <bit>
#include <optional>
#include <utility>

#include "translator/passes/conditions.h"
#include "translator/passes/difference.h"

namespace gpusim {
namespace {

// Relations that have branches; the others swap operands or adjust the constant.
enum class Relation : uint8_t { kEq, kNe, kLt, kGe, kLtu, kGeu };

Op branch_op(Relation r, bool wide) {
  constexpr Op k64[] = {Op::br_eq64, Op::br_ne64,  Op::br_lt64,
                        Op::br_ge64, Op::br_ltu64, Op::br_geu64};
  constexpr Op k32[] = {Op::br_eq32, Op::br_ne32,  Op::br_lt32,
                        Op::br_ge32, Op::br_ltu32, Op::br_geu32};
  return (wide ? k64 : k32)[static_cast<int>(r)];
}
Op branch_imm_op(Relation r, bool wide) {
  constexpr Op k64[] = {Op::bri_eq64, Op::bri_ne64,  Op::bri_lt64,
                        Op::bri_ge64, Op::bri_ltu64, Op::bri_geu64};
  constexpr Op k32[] = {Op::bri_eq32, Op::bri_ne32,  Op::bri_lt32,
                        Op::bri_ge32, Op::bri_ltu32, Op::bri_geu32};
  return (wide ? k64 : k32)[static_cast<int>(r)];
}

class Fuser {
 public:
  Fuser(const GuestIsa& isa, DraftBlock& block) : isa_(isa), block_(block), uops_(block.uops) {}

  void run() {
    if (!block_.end.present || uops_.back().op != Op::br_cond) return;
    const Slot flags = uops_.back().a;
    const auto def = last_write(uops_, flags, uops_.size() - 1);
    if (!def) return;
    const Uop& u = uops_[*def];
    std::optional<Uop> fused;
    switch (u.op) {
      case Op::fl_sub64:
      case Op::fl_sub32:
        fused = fuse_subtraction(*def, u.op == Op::fl_sub64);
        break;
      case Op::fl_nz64:
      case Op::fl_nz32:
        fused = fuse_test(*def, u.op == Op::fl_nz64);
        break;
      default:
        break;
    }
    if (fused) uops_.back() = *fused;
  }

 private:
  bool unchanged_since(Slot s, size_t from) const {
    const auto written = last_write(uops_, s, uops_.size() - 1);
    return !written || *written <= from;
  }
  static Uop make(Op op, Slot a, Slot b) { return {.op = op, .a = a, .b = b}; }

  // a ? c for a small constant c.
  static std::optional<Uop> compare_imm(Relation r, bool wide, Slot a, uint64_t c) {
    const int64_t value = wide ? static_cast<int64_t>(c) : static_cast<int32_t>(c);
    if (value != static_cast<int16_t>(value)) return std::nullopt;
    return Uop{.op = branch_imm_op(r, wide), .a = a}.with_imm16(static_cast<uint16_t>(value));
  }

  std::optional<Uop> fuse_subtraction(size_t def, bool wide) const {
    using namespace conditions;
    const uint16_t cond = uops_.back().imm16();
    const Slot a = uops_[def].a, b = uops_[def].b;
    if (!unchanged_since(a, def)) return fuse_difference(def, wide);
    if (const auto c = constant_before(isa_, uops_, b, def))
      if (const auto fused = fuse_constant(cond, wide, a, *c)) return fused;
    if (!unchanged_since(b, def)) return std::nullopt;
    switch (cond) {
      case kEq:
        return make(branch_op(Relation::kEq, wide), a, b);
      case kNe:
        return make(branch_op(Relation::kNe, wide), a, b);
      case kHs:
        return make(branch_op(Relation::kGeu, wide), a, b);
      case kLo:
        return make(branch_op(Relation::kLtu, wide), a, b);
      case kHi:
        return make(branch_op(Relation::kLtu, wide), b, a);
      case kLs:
        return make(branch_op(Relation::kGeu, wide), b, a);
      case kGe:
        return make(branch_op(Relation::kGe, wide), a, b);
      case kLt:
        return make(branch_op(Relation::kLt, wide), a, b);
      case kGt:
        return make(branch_op(Relation::kLt, wide), b, a);
      case kLe:
        return make(branch_op(Relation::kGe, wide), b, a);
      default:
        return std::nullopt;
    }
  }

  // The first operand now holds the difference r = a - b.
  std::optional<Uop> fuse_difference(size_t def, bool wide) const {
    using namespace conditions;
    if (!find_difference(isa_, uops_, def)) return std::nullopt;
    const Slot r = uops_[def].a;
    const auto c = constant_before(isa_, uops_, uops_[def].b, def);
    switch (uops_.back().imm16()) {
      case kEq:
        return compare_imm(Relation::kEq, wide, r, 0);
      case kNe:
        return compare_imm(Relation::kNe, wide, r, 0);
      case kMi:
        return compare_imm(Relation::kLt, wide, r, 0);
      case kPl:
        return compare_imm(Relation::kGe, wide, r, 0);
      // No borrow from a = r + c with c > 0 means that r + c does not wrap: r < 2^width - c.
      case kHs:
        return c && low(*c, wide) ? compare_imm(Relation::kLtu, wide, r, 0 - *c) : std::nullopt;
      case kLo:
        return c && low(*c, wide) ? compare_imm(Relation::kGeu, wide, r, 0 - *c) : std::nullopt;
      default:
        return std::nullopt;
    }
  }
  static uint64_t low(uint64_t c, bool wide) { return wide ? c : c & 0xffffffff; }

  static std::optional<Uop> fuse_constant(uint16_t cond, bool wide, Slot a, uint64_t c) {
    using namespace conditions;
    if (!wide) c &= 0xffffffff;
    const uint64_t unsigned_max = wide ? ~uint64_t{0} : 0xffffffff;
    const uint64_t signed_max = unsigned_max >> 1;
    switch (cond) {
      case kEq:
        return compare_imm(Relation::kEq, wide, a, c);
      case kNe:
        return compare_imm(Relation::kNe, wide, a, c);
      case kHs:
        return compare_imm(Relation::kGeu, wide, a, c);
      case kLo:
        return compare_imm(Relation::kLtu, wide, a, c);
      case kGe:
        return compare_imm(Relation::kGe, wide, a, c);
      case kLt:
        return compare_imm(Relation::kLt, wide, a, c);
      // a > c is a >= c + 1 unless c is the largest value.
      case kHi:
      case kLs:
        if (c == unsigned_max) return std::nullopt;
        return compare_imm(cond == kHi ? Relation::kGeu : Relation::kLtu, wide, a, c + 1);
      case kGt:
      case kLe:
        if (c == signed_max) return std::nullopt;
        return compare_imm(cond == kGt ? Relation::kGe : Relation::kLt, wide, a, c + 1);
      // a - 0 neither borrows nor overflows.
      case kMi:
        return c == 0 ? compare_imm(Relation::kLt, wide, a, 0) : std::nullopt;
      case kPl:
        return c == 0 ? compare_imm(Relation::kGe, wide, a, 0) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  // N and Z of a value, C = V = 0.
  std::optional<Uop> fuse_test(size_t def, bool wide) const {
    using namespace conditions;
    const uint16_t cond = uops_.back().imm16();
    const Slot a = uops_[def].a;
    if (cond == kEq || cond == kNe)
      if (const auto bit = fuse_bit_test(def, cond == kEq)) return bit;
    if (!unchanged_since(a, def)) return std::nullopt;
    switch (cond) {
      case kEq:
        return compare_imm(Relation::kEq, wide, a, 0);
      case kNe:
        return compare_imm(Relation::kNe, wide, a, 0);
      case kMi:
      case kLt:
        return compare_imm(Relation::kLt, wide, a, 0);
      case kPl:
      case kGe:
        return compare_imm(Relation::kGe, wide, a, 0);
      case kGt:
        return compare_imm(Relation::kGe, wide, a, 1);
      case kLe:
        return compare_imm(Relation::kLt, wide, a, 1);
      default:
        return std::nullopt;
    }
  }

  // The tested value is one bit of another one.
  std::optional<Uop> fuse_bit_test(size_t def, bool taken_if_zero) const {
    const bool wide = uops_[def].op == Op::fl_nz64;
    const auto masked = last_write(uops_, uops_[def].a, def);
    if (!masked || uops_[*masked].op != Op::andi64) return std::nullopt;
    const Uop& u = uops_[*masked];
    const uint64_t mask = wide ? u.imm : u.imm & 0xffffffff;
    const bool source_kept = u.a != u.d && unchanged_since(u.a, *masked);
    if (!std::has_single_bit(mask) || !source_kept) return std::nullopt;
    return Uop{.op = taken_if_zero ? Op::br_bit0 : Op::br_bit1, .a = u.a}.with_imm16(
        static_cast<uint16_t>(std::countr_zero(mask)));
  }

  const GuestIsa& isa_;
  DraftBlock& block_;
  std::vector<Uop>& uops_;
};

}  // namespace

void fuse_compare_branch(const GuestIsa& isa, DraftBlock& block) { Fuser(isa, block).run(); }

}  // namespace gpusim
