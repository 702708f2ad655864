// The micro-op `vector`: one instruction of an ISA whose vector length and type of elements are
// state of the core. docs/adr/0032 says why it is one.
//
// c names a run of slots: Slots, then the registers, kWords slots each. d, a and b are general or
// floating-point registers, e is the floating-point state, imm an Insn. core/vector.h executes it.
#pragma once
#include <cstdint>

#include "device_sim/uir/hd.h"

namespace gpusim {

enum class VectorOp : uint8_t {
#define GPUSIM_VECTOR(name, kind, widths, flags) name,
#include "device_sim/uir/vector.def"
#undef GPUSIM_VECTOR
};

inline constexpr int kVectorOpCount = 0
#define GPUSIM_VECTOR(name, kind, widths, flags) +1
#include "device_sim/uir/vector.def"
#undef GPUSIM_VECTOR
    ;
static_assert(kVectorOpCount <= 256);

namespace vector {

inline constexpr int kLogBits = 7;  // of a register
inline constexpr int kWords = 1 << (kLogBits - 6);
inline constexpr int kBytes = 8 * kWords;
inline constexpr int kRegisters = 32;
inline constexpr int kLogElen = 3;  // log2 bytes of the widest element

// State of a core before its vector registers.
enum Slots : uint8_t {
  kVl,
  kVtype,   // bit 63: illegal; 5:3 log2 bytes of an element, 2:0 log2 registers of a group, signed
  kVstart,  // the first element that an instruction works on
  kVcsr,    // rounding of fixed-point results << 1 | whether one was saturated
  kFirstRegister,
};
inline constexpr int kSlotCount = kFirstRegister + kRegisters * kWords;
inline constexpr uint64_t kIllegalType = uint64_t{1} << 63;

// Where the second operand comes from. Of kConfigure: where the wanted length does.
enum class Source : uint8_t { kVector, kScalar, kFloat, kImmediate };
enum class Length : uint8_t { kScalar, kLongest, kKeep };

struct Insn {
  VectorOp op{};
  uint8_t d = 0, a = 0, b = 0;  // vector registers; b may be an immediate
  bool masked = false;          // elements whose bit in register 0 is clear stay as they are
  uint8_t source = 0;           // Source or Length
  uint8_t fields = 1;           // of a memory instruction's segments, 1 .. 8; or whole registers
  uint8_t log_size = 0;         // of a memory instruction: log2 bytes of an element or an index

  constexpr uint64_t pack() const {
    return static_cast<uint64_t>(op) | uint64_t{d} << 8 | uint64_t{a} << 13 | uint64_t{b} << 18 |
           uint64_t{masked} << 23 | uint64_t{source} << 24 | uint64_t{fields - 1u} << 26 |
           uint64_t{log_size} << 29;
  }
  GPUSIM_HD static constexpr Insn unpack(uint64_t imm) {
    const auto field = [&](int at, uint32_t mask) {
      return static_cast<uint8_t>(imm >> at & mask);
    };
    return {static_cast<VectorOp>(field(0, 0xff)),
            field(8, 31),
            field(13, 31),
            field(18, 31),
            field(23, 1) != 0,
            field(24, 3),
            static_cast<uint8_t>(field(26, 7) + 1),
            field(29, 3)};
  }
  // Everything else is looked at when it is executed, because it depends on the element type.
  static constexpr bool is_valid(uint64_t imm) {
    return imm >> 31 == 0 && (imm & 0xff) < kVectorOpCount;
  }
};

// How elements of the operands meet.
enum class Kind : uint8_t {
  kConfigure,
  kUnitStride,
  kMaskAccess,
  kWholeAccess,
  kStrided,
  kIndexed,
  kElements,  // d[i] = f(a[i], b[i], d[i])
  kCarryIn,   // the same, with bit i of the mask
  kCarryOut,  // the same, to a mask
  kCompare,   // mask d[i] = f(a[i], b[i])
  kReduce,
  kMaskLogic,
  kMaskToScalar,
  kMaskFirst,
  kIota,
  kIndices,
  kToScalar,
  kFromScalar,
  kSlide,
  kGather,
  kCompress,
  kWholeMove,
};
GPUSIM_HD constexpr bool is_access(Kind k) { return k >= Kind::kUnitStride && k <= Kind::kIndexed; }

// Widths of elements, as log2 of what they are to the type's.
enum class Widths : uint8_t {
  kSame,
  kWide,    // d twice as wide
  kWideA,   // d and a
  kNarrow,  // a
  kFrom2,   // a half as wide; a quarter; an eighth
  kFrom4,
  kFrom8,
  kOnlyB,  // there is no a
  kMasks,
};

using Flags = uint8_t;
inline constexpr Flags kNoFlags = 0;
inline constexpr Flags kFloat = 1;
inline constexpr Flags kUnsigned = 2;  // so is an immediate
inline constexpr Flags kUnary = 4;     // b is not an operand
inline constexpr Flags kStores = 8;
inline constexpr Flags kFirstFault = 16;  // a fault behind element 0 makes the vector shorter
inline constexpr Flags kIndices16 = 32;   // b has 16 bits
inline constexpr Flags kFromInteger = 64, kToInteger = 128;  // the narrow side is no float

struct Row {
  Kind kind;
  Widths widths;
  Flags flags;
};
GPUSIM_HD constexpr Row row_of(VectorOp op) {
  switch (op) {
#define GPUSIM_VECTOR(name, kind, widths, flags) \
  case VectorOp::name:                           \
    return {Kind::kind, Widths::widths, flags};
#include "device_sim/uir/vector.def"
#undef GPUSIM_VECTOR
  }
  return {};
}
inline constexpr const char* kNames[kVectorOpCount] = {
#define GPUSIM_VECTOR(name, kind, widths, flags) #name,
#include "device_sim/uir/vector.def"
#undef GPUSIM_VECTOR
};

// The elements of a group of registers, in their order.
struct Group {
  static constexpr int kMaxRegisters = 8;
  uint64_t words[kMaxRegisters * kWords];

  GPUSIM_HD uint64_t get(int log_size, uint64_t i) const {
    const uint64_t bit = i << (log_size + 3);
    return words[bit >> 6] >> (bit & 63) & (~uint64_t{0} >> (64 - (8 << log_size)));
  }
  GPUSIM_HD void set(int log_size, uint64_t i, uint64_t value) {
    const uint64_t bit = i << (log_size + 3), mask = ~uint64_t{0} >> (64 - (8 << log_size));
    uint64_t& word = words[bit >> 6];
    word = (word & ~(mask << (bit & 63))) | (value & mask) << (bit & 63);
  }
  GPUSIM_HD bool bit(uint64_t i) const { return words[i >> 6] >> (i & 63) & 1; }
  GPUSIM_HD void set_bit(uint64_t i, bool value) {
    words[i >> 6] = (words[i >> 6] & ~(uint64_t{1} << (i & 63))) | uint64_t{value} << (i & 63);
  }
};

// One instruction while it is executed.
struct Work {
  Insn insn;
  Kind kind;
  Flags flags;
  // State of the core; written back where `changes` says so.
  uint64_t vl, vtype, vstart, vcsr, fp;
  uint64_t x, y;        // values of the slots a and b
  uint64_t result = 0;  // for slot d
  // From the type: log2 bytes of an element, log2 registers of a group, elements of a group.
  int log_size, log_group;
  uint64_t longest;
  // log2 bytes of the elements of d, a and b; registers that are operands, 0: none.
  int d_size, a_size, b_size;
  int d_count, a_count, b_count;
  uint64_t b_scalar;
  Group d, a, b;
  uint64_t mask[kWords];

  GPUSIM_HD bool has_bit(uint64_t i) const { return mask[i >> 6] >> (i & 63) & 1; }
  GPUSIM_HD bool is_active(uint64_t i) const { return !insn.masked || has_bit(i); }
};

#if defined(__CUDACC__)  // core/vector.h includes the definitions
#define GPUSIM_VECTOR_FUNCTION inline __host__ __device__ __noinline__
#else  // vector.cpp has them, once
#define GPUSIM_VECTOR_FUNCTION
// Fills in what follows from the type. False: the instruction is illegal in this state.
bool prepare(Work& w);
// Executes what does not access memory, from operands in w.
void compute(Work& w);
#endif

}  // namespace vector
}  // namespace gpusim
