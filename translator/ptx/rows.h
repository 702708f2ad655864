// The one table of PTX instructions: what each opcode accepts, its class, and what translates it.
//
// A row's syntax is the opcode and groups of modifiers; texts may have them in any order:
//   "add {rn|rz|rm|rp} {ftz} {sat} .f32"    {…}: may be left out; (…): one of them must be there;
//                                           [..]: likewise, and before all others;
//                                           .a|.b: a type. Types are taken in their order.
// Its operands:
//   d0 s0     destination, source of the first type; d1, s1 of the second
//   sf        a single
//   dw sw     the same of twice the first type's width
//   d32 s32   an integer of 32 bits; s16, s64: of 16, of 64; r32: a register
//   dp dpq sp  a predicate; a predicate or a pair p|q; a predicate, maybe negated
//   l0 t0     what is loaded, stored: registers may be wider, a vector with v2 and v4
//   c0 c1     the sides of cvt, whose registers may be wider
//   m         an address          md mv   what mov takes
//   dq dm     32 bits, or with a predicate: d|p; de: with a predicate; dl: with one that is no sink
//   dv sv     registers in { }, or one
//   dt tx gv  four results of a texture; [handle, {coordinates}]; a gradient
//   wa        registers in { }, or a descriptor of 64 bits
//   tm to     [a tensor map, {coordinates}]; {offsets} of 16 bits, two fewer
//   dx sx     what a surface's element becomes, or is made of: one register, or those in { }
//   r0        s0 that is a register
//   n i       an integer; or a register of 32 bits; lab: a label; any: anything
//   v1 vn sn  of video instructions: of the second type, maybe a part; negated, too; c negated
//   dpart     the destination, maybe a part
//   _         nothing: a sink; 128: that number
//   ?         those behind it may be left out
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "device_sim/uir/insn_class.h"
#include "translator/ptx/unit.h"

namespace gpusim::ptx {

class Emitter;
using Emit = void (*)(Emitter&, const Instruction&);

enum class RowClass : uint8_t {
  kArithmetic,
  kDivision,
  kLogical,
  kComparison,
  kSpecial,
  kMemory,
  kControl,
  kParallel,
  kOther,
};

struct Row {
  const char* syntax;
  const char* operands;
  RowClass kind;
  Emit emit;
};

/// All rows of an opcode; none if it is unknown.
std::vector<const Row*> rows_of(std::string_view base);
std::vector<const Row*> all_rows();
bool is_known_opcode(std::string_view base);
/// Whether operands may be parts of registers, and negated.
bool is_video(std::string_view base);
bool is_special_register(std::string_view name);

/// Finds the row that takes the instruction and fills in what it says. Returns what is wrong, with
/// what would have been allowed, or nothing.
std::string match(Instruction& insn, const Function& function);

/// Whether the operand is written.
bool is_destination(const Instruction& insn, size_t operand);

/// The class that is tallied.
InsnClass class_of(const Instruction& insn);

// The parts of the table (rows_*.cpp).
using RowList = std::vector<Row>;
const RowList& integer_rows();
const RowList& bit_rows();
const RowList& compare_rows();
const RowList& float_rows();
const RowList& approximate_rows();
const RowList& carry_rows();
const RowList& convert_rows();
const RowList& half_rows();
const RowList& half_compare_rows();
const RowList& narrow_rows();
const RowList& packed_rows();
const RowList& bfloat_rows();
const RowList& async_rows();
const RowList& matrix_rows();
const RowList& memory_rows();
const RowList& control_rows();
const RowList& stack_rows();
const RowList& texture_rows();
const RowList& video_rows();
const RowList& warpgroup_rows();

}  // namespace gpusim::ptx
