#include "translator/passes/fuse_compare_select.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "device_sim/uir/compare.h"
#include "translator/passes/conditions.h"
#include "translator/passes/difference.h"

namespace gpusim {
namespace {

// left relation right, or left relation imm.
struct Comparison {
  CompareRelation relation;
  Slot left;
  std::optional<uint64_t> imm;
  Slot right = 0;
  bool negated = false;
};

class Fuser {
 public:
  Fuser(const GuestIsa& isa, DraftBlock& block)
      : isa_(isa),
        flags_(static_cast<Slot>(isa.roles.flags)),
        block_(block),
        uops_(block.uops) {}

  void run() {
    if (uses_select_temps()) return;
    for (size_t def = 0; def < uops_.size(); ++def)
      if (is_definition(uops_[def])) fuse(def);
    if (!replaced_.empty()) apply();
  }

 private:
  // What each temporary holds, from a definition of flags to its last reader.
  enum Temp : int { kLeft, kRight, kResult, kAdjusted };
  struct Insertion {
    size_t before;
    Uop uop;
  };
  struct Replacement {
    size_t at;
    Uop uop;
  };

  Slot temp(Temp t) const { return select_temp(isa_.roles, t); }

  bool uses_select_temps() const {
    const Slot lowest = temp(static_cast<Temp>(kSelectTemps - 1)), highest = temp(kLeft);
    bool used = false;
    for (const Uop& u : uops_)
      for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
        used |= s + std::max(reads, writes) > lowest && s <= highest;
      });
    return used;
  }

  bool is_definition(const Uop& u) const {
    switch (u.op) {
      case Op::fl_sub64:
      case Op::fl_sub32:
      case Op::fl_add64:
      case Op::fl_add32:
      case Op::fl_nz64:
      case Op::fl_nz32:
        return u.d == flags_;
      default:
        return false;
    }
  }

  void fuse(size_t def) {
    new_insertions_.clear();
    new_replacements_.clear();
    made_ = {};
    for (size_t i = def + 1; i < uops_.size(); ++i) {
      if (reads_slot(uops_[i], flags_) && !plan(def, i)) return;
      if (writes_slot(uops_[i], flags_)) break;
    }
    inserted_.insert(inserted_.end(), new_insertions_.begin(), new_insertions_.end());
    replaced_.insert(replaced_.end(), new_replacements_.begin(), new_replacements_.end());
  }

  // The select at `use` without flags.
  bool plan(size_t def, size_t use) {
    const Uop& u = uops_[use];
    const bool is_cset = u.op == Op::cset;
    if (!is_cset && (!is_select(u.op) || u.c != flags_ || u.a == flags_ || u.b == flags_))
      return false;
    const auto comparison = comparison_at(def, use, u.imm16());
    if (!comparison) return false;
    Slot if_true = u.a, if_false = u.b;
    if (is_cset) {
      new_insertions_.push_back({use, {.op = Op::konst, .d = temp(kAdjusted), .imm = 1}});
      if_true = temp(kAdjusted);
      if_false = isa_.roles.zero;
    } else if (const auto adjusted = adjust(u)) {
      new_insertions_.push_back({use, *adjusted});
      if_false = temp(kAdjusted);
    }
    if (comparison->negated) std::swap(if_true, if_false);
    const CompareKind kind{.relation = comparison->relation,
                           .is_32bit = !is_wide(uops_[def].op),
                           .narrow_result = !is_cset && !is_wide(u.op)};
    Uop fused{.op = comparison->imm ? Op::sel_cmpi : Op::sel_cmp,
              .d = u.d,
              .a = if_true,
              .b = if_false,
              .c = comparison->left,
              .aux = kind.pack()};
    if (comparison->imm)
      fused.imm = *comparison->imm;
    else
      fused.e = comparison->right;
    new_replacements_.push_back({use, fused});
    return true;
  }

  static bool is_select(Op op) {
    switch (op) {
      case Op::csel64:
      case Op::csel32:
      case Op::csinc64:
      case Op::csinc32:
      case Op::csinv64:
      case Op::csinv32:
      case Op::csneg64:
      case Op::csneg32:
        return true;
      default:
        return false;
    }
  }
  static bool is_wide(Op op) {
    switch (op) {
      case Op::fl_sub64:
      case Op::fl_add64:
      case Op::fl_nz64:
      case Op::csel64:
      case Op::csinc64:
      case Op::csinv64:
      case Op::csneg64:
        return true;
      default:
        return false;
    }
  }

  // What csinc, csinv and csneg do to their second source.
  std::optional<Uop> adjust(const Uop& u) const {
    const Slot d = temp(kAdjusted), zero = isa_.roles.zero;
    switch (u.op) {
      case Op::csinc64:
      case Op::csinc32:
        if (u.b == zero) return Uop{.op = Op::konst, .d = d, .imm = 1};
        return Uop{.op = Op::addi64, .d = d, .a = u.b, .imm = 1};
      case Op::csinv64:
      case Op::csinv32:
        if (u.b == zero) return Uop{.op = Op::konst, .d = d, .imm = ~uint64_t{0}};
        return Uop{.op = Op::xori64, .d = d, .a = u.b, .imm = ~uint64_t{0}};
      case Op::csneg64:
      case Op::csneg32:
        return Uop{.op = Op::sub64, .d = d, .a = zero, .b = u.b};
      default:
        return std::nullopt;
    }
  }

  std::optional<Comparison> comparison_at(size_t def, size_t use, uint16_t condition) {
    switch (uops_[def].op) {
      case Op::fl_sub64:
      case Op::fl_sub32:
        return subtraction(def, use, condition);
      case Op::fl_add64:
      case Op::fl_add32:
        return sign_or_zero(condition, [&] { return result(def, use); });
      default:
        return test(def, use, condition);
    }
  }

  // Conditions on N or Z alone.
  template <class F>
  static std::optional<Comparison> sign_or_zero(uint16_t condition, F value) {
    using namespace conditions;
    const bool sign = condition == kMi || condition == kPl;
    if (!sign && condition != kEq && condition != kNe) return std::nullopt;
    return Comparison{.relation = sign ? CompareRelation::kLessSigned : CompareRelation::kEqual,
                      .left = value(),
                      .imm = 0,
                      .negated = condition == kPl || condition == kNe};
  }

  std::optional<Comparison> subtraction(size_t def, size_t use, uint16_t condition) {
    using namespace conditions;
    const Slot a = uops_[def].a, b = uops_[def].b;
    const auto c = constant_before(isa_, uops_, b, def);
    if (condition == kMi || condition == kPl) {
      if (c && low(*c, def) == 0)
        return sign_or_zero(condition, [&] { return kept(a, kLeft, def, use); });
      return sign_or_zero(condition, [&] { return result(def, use); });
    }
    if (condition == kEq || condition == kNe) {
      const bool at_hand = is_unchanged(a, def, use) && (c || is_unchanged(b, def, use));
      if (!at_hand && existing_result(def, use))
        return sign_or_zero(condition, [&] { return result(def, use); });
    }
    struct Rule {
      uint16_t condition;
      CompareRelation relation;
      bool swapped, negated;
    };
    constexpr Rule kRules[] = {
        {kEq, CompareRelation::kEqual, false, false},
        {kNe, CompareRelation::kEqual, false, true},
        {kLo, CompareRelation::kLessUnsigned, false, false},
        {kHs, CompareRelation::kLessUnsigned, false, true},
        {kHi, CompareRelation::kLessUnsigned, true, false},
        {kLs, CompareRelation::kLessUnsigned, true, true},
        {kLt, CompareRelation::kLessSigned, false, false},
        {kGe, CompareRelation::kLessSigned, false, true},
        {kGt, CompareRelation::kLessSigned, true, false},
        {kLe, CompareRelation::kLessSigned, true, true},
    };
    for (const Rule& r : kRules) {
      if (r.condition != condition) continue;
      Comparison made{.relation = r.relation,
                      .left = kept(a, kLeft, def, use),
                      .imm = std::nullopt,
                      .negated = r.negated};
      if (c && !r.swapped) {
        made.imm = *c;
        return made;
      }
      // a > c is not a < c + 1, unless c is the largest value.
      const uint64_t all = is_wide(uops_[def].op) ? ~uint64_t{0} : 0xffffffff;
      const uint64_t largest = r.relation == CompareRelation::kLessSigned ? all >> 1 : all;
      if (c && low(*c, def) != largest) {
        made.imm = *c + 1;
        made.negated = !r.negated;
        return made;
      }
      made.right = kept(b, kRight, def, use);
      if (r.swapped) std::swap(made.left, made.right);
      return made;
    }
    return std::nullopt;
  }

  // N and Z of a value, C = V = 0.
  std::optional<Comparison> test(size_t def, size_t use, uint16_t condition) {
    using namespace conditions;
    const Slot a = uops_[def].a;
    const auto value = [&] { return kept(a, kLeft, def, use); };
    switch (condition) {
      case kLt:
        return sign_or_zero(kMi, value);
      case kGe:
        return sign_or_zero(kPl, value);
      case kGt:
      case kLe:
        return Comparison{.relation = CompareRelation::kLessSigned,
                          .left = value(),
                          .imm = 1,
                          .negated = condition == kGt};
      default:
        return sign_or_zero(condition, value);
    }
  }

  uint64_t low(uint64_t c, size_t def) const {
    return is_wide(uops_[def].op) ? c : c & 0xffffffff;
  }

  // Whether a slot holds before `use` what it held before `def`.
  bool is_unchanged(Slot s, size_t def, size_t use) const {
    const auto written = last_write(uops_, s, use);
    return !written || *written < def;
  }

  // A slot with the value, from the definition of the flags to the use.
  Slot kept(Slot s, Temp t, size_t def, size_t use) {
    if (s == isa_.roles.zero || is_unchanged(s, def, use)) return s;
    make(t, def, {.op = Op::mov, .d = temp(t), .a = s});
    return temp(t);
  }

  // Where the block keeps the sum or difference that the flags describe.
  std::optional<Slot> existing_result(size_t def, size_t use) const {
    if (def + 1 >= use) return std::nullopt;
    const Uop& flags = uops_[def];
    const Uop& next = uops_[def + 1];
    bool same = false;
    if (next.op == sum_op(flags.op)) same = next.a == flags.a && next.b == flags.b;
    if (next.op == (is_wide(flags.op) ? Op::addi64 : Op::addi32) && next.a == flags.a) {
      const bool subtracts = flags.op == Op::fl_sub64 || flags.op == Op::fl_sub32;
      const auto c = constant_before(isa_, uops_, flags.b, def);
      same = c && low(next.imm, def) == low(subtracts ? 0 - *c : *c, def);
    }
    if (!same || last_write(uops_, next.d, use) != def + 1) return std::nullopt;
    return next.d;
  }

  Slot result(size_t def, size_t use) {
    if (const auto slot = existing_result(def, use)) return *slot;
    const Uop& flags = uops_[def];
    make(kResult, def, {.op = sum_op(flags.op), .d = temp(kResult), .a = flags.a, .b = flags.b});
    return temp(kResult);
  }

  static Op sum_op(Op flags) {
    switch (flags) {
      case Op::fl_sub64:
        return Op::sub64;
      case Op::fl_sub32:
        return Op::sub32;
      case Op::fl_add64:
        return Op::add64;
      default:
        return Op::add32;
    }
  }

  void make(Temp t, size_t before, const Uop& uop) {
    if (std::exchange(made_[static_cast<size_t>(t)], true)) return;
    new_insertions_.push_back({before, uop});
  }

  void apply() {
    for (const Replacement& r : replaced_) uops_[r.at] = r.uop;
    std::stable_sort(inserted_.begin(), inserted_.end(),
                     [](const Insertion& x, const Insertion& y) { return x.before < y.before; });
    std::vector<Uop> uops;
    std::vector<uint16_t> insns;
    auto next = inserted_.begin();
    for (size_t i = 0; i < uops_.size(); ++i) {
      for (; next != inserted_.end() && next->before == i; ++next) {
        uops.push_back(next->uop);
        insns.push_back(block_.uop_insn[i]);
      }
      uops.push_back(uops_[i]);
      insns.push_back(block_.uop_insn[i]);
    }
    uops_ = std::move(uops);
    block_.uop_insn = std::move(insns);
  }

  const GuestIsa& isa_;
  const Slot flags_;
  DraftBlock& block_;
  std::vector<Uop>& uops_;
  std::vector<Insertion> inserted_, new_insertions_;
  std::vector<Replacement> replaced_, new_replacements_;
  std::array<bool, kSelectTemps> made_{};
};

}  // namespace

void fuse_compare_select(const GuestIsa& isa, DraftBlock& block) {
  if (isa.roles.has_flags()) Fuser(isa, block).run();
}

}  // namespace gpusim
