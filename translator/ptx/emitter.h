// What rows of the table translate with: operands as slots, and the block that is being made.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/uir/compare.h"
#include "translator/common/block_builder.h"
#include "translator/ptx/slots.h"
#include "translator/ptx/unit.h"

namespace gpusim::ptx {

/// Where variables lie: generic addresses (memory_map.h), and offsets of parameters.
struct Place {
  Space space = Space::kGlobal;
  uint64_t address = 0;
  uint64_t size = 0;  // of the windows only
};
using Places = std::map<std::string, Place, std::less<>>;
/// All of a module's constants, and all of a kernel's parameters, are at these names.
inline constexpr const char *kConstWindow = "@const", *kParamWindow = "@param";

/// A comparison whose result a predicate holds: (x relation y) != inverted.
struct CompareFact {
  CompareRelation relation = CompareRelation::kEqual;
  bool is_32bit = true, is_inverted = false;
  Slot x = 0, y = 0;
  std::optional<int16_t> imm{};  // instead of y
};

struct MemoryPlace {
  Slot base = 0;
  uint64_t offset = 0;
};

class Emitter {
 public:
  /// `colours`: per register of the function, its slot's distance from kFirstRegister, or -1.
  Emitter(const Function& function, const std::vector<int>& colours, int colour_count,
          const Places& places);

  BlockBuilder b;

  const Function& function() const { return function_; }
  Type reg_type(const Operand& o) const { return function_.registers[o.reg].type; }

  // Operands. A register of n bits holds them zero-extended in its slot.
  Slot reg(uint32_t number) const;
  Slot reg(const Operand& o) const { return reg(o.reg); }
  /// Of 128 bits: the halves of a source, the low one first, and the high half of a destination.
  std::pair<Slot, Slot> halves(const Instruction& i, const Operand& o);
  Slot high_dst(const Operand& o);
  /// A source of this type. Predicates that are negated, and constants, go through other slots.
  Slot src(const Operand& o, Type t);
  /// The same, sign-extended to 64 bits.
  Slot src_signed(const Operand& o, Type t);
  std::optional<uint64_t> constant(const Operand& o, Type t) const;
  /// Where the result goes; what is known of it is forgotten. An instruction writes its result
  /// last, since it may share a slot with a source.
  Slot dst(const Operand& o);
  Slot temp() { return b.temp(); }
  /// A slot that holds a value.
  Slot konst(uint64_t value);
  /// A slot with the thread's clock (Special::kClock).
  Slot clock();
  bool is_sink(const Operand& o) const { return o.is(Operand::Kind::kSink); }

  // Micro-ops with a state word.
  static softfloat::Rounding rounding(const Instruction& i);
  Slot state(const Instruction& i) const { return fp_slot(rounding(i), i.has("ftz")); }
  static constexpr Slot kExact = fp_slot(softfloat::Rounding::kTieEven, false);
  Uop& fp(Op op, Slot state, Slot d, Slot a, Slot b2 = 0, Slot c = 0, uint8_t aux = 0,
          uint64_t imm = 0) {
    Uop& u = b.emit(op, d, a, b2, c, imm, aux);
    u.e = state;
    return u;
  }

  // Values of fewer bits than their slot.
  void zero_extend(Slot d, Slot a, int bits);
  void sign_extend(Slot d, Slot a, int bits);  // to 64 bits

  MemoryPlace address(const Operand& o, Space space);
  Place place_of(const Operand& symbol) const;
  /// Empty if there is nothing of the kind.
  Place window(std::string_view name) const;

  // Predicates.
  void set_predicate(const Operand& o, const CompareFact& fact);
  /// Both of p|q, from a slot that holds 0 or 1 and is not the predicates' own.
  void set_predicates(const Operand& o, Slot truth);
  std::optional<CompareFact> fact(const Operand& p) const;
  /// d = p ? a : b
  void select(Slot d, Slot a, Slot b2, const Operand& p);
  void branch(const Operand& p, uint64_t target_pc);

  // Control.
  uint64_t label_pc(const std::string& label) const;
  void set_label_pcs(std::map<std::string, uint64_t> pcs) { label_pcs_ = std::move(pcs); }
  /// The block ends with the thread.
  void end_thread() {
    b.emit(Op::end_thread);
    ends_thread_ = true;
  }
  bool ends_thread() const { return ends_thread_; }
  uint64_t next_pc = 0;  // of what follows the instruction
  void begin_block(uint64_t pc) {
    b.begin_block(pc);
    ends_thread_ = false;
    facts_.clear();
  }
  [[noreturn]] void unsupported(const Instruction& i, const std::string& why) const;

  /// What a guarded instruction writes goes to another slot, chosen afterwards.
  void redirect(std::optional<Slot> to) { redirected_ = to; }
  const std::map<uint64_t, Slot>& constants() const { return constants_; }

 private:
  void forget(Slot s);

  const Function& function_;
  const std::vector<int>& colours_;
  const Places& places_;
  int next_constant_;
  bool ends_thread_ = false;
  std::map<uint64_t, Slot> constants_{};
  std::map<uint32_t, CompareFact> facts_{};  // per predicate register
  std::map<std::string, uint64_t> label_pcs_{};
  std::optional<Slot> redirected_{};
};

}  // namespace gpusim::ptx
