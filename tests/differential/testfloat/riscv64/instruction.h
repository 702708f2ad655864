// How guest.c runs a RISC-V instruction, and what it must leave behind. CONTROL is fcsr.frm.
#ifndef GPUSIM_TESTFLOAT_INSTRUCTION_H
#define GPUSIM_TESTFLOAT_INSTRUCTION_H

#include <stdint.h>

// `low` is the floating-point result register, `high` the integer one; the flags as in fcsr.
typedef struct {
  uint64_t low, high, flags;
} result_t;

// Floating-point formats, integers of 32 and 64 bits.
typedef enum { H, S, D, W, X } format_t;

// How the result follows from TestFloat's `z`: is it, or is chosen by "a is less than b".
typedef enum { IS_Z, FMIN, FMAX, FMINM, FMAXM, FCVTMOD } rule_t;

// Where the rounding mode is from; an instruction with its own runs while fcsr says another one.
typedef enum { DYNAMIC, STATIC } rounding_t;

typedef struct {
  const char* name;
  void (*run)(const uint64_t* operands, uint64_t frm, result_t* result);
  format_t from, to;
  rule_t rule;
} instruction_t;

#define UNTOUCHED UINT64_C(0xa5a5a5a5a5a5a5a5)

static uint64_t bits_of(format_t format) {
  return format == H ? 16 : format == S || format == W ? 32 : 64;
}

static uint64_t mask_of(format_t format) { return ~UINT64_C(0) >> (64 - bits_of(format)); }

static uint64_t sign_of(format_t format) { return UINT64_C(1) << (bits_of(format) - 1); }

// A register with the value: NaN-boxed, or an integer with bits above it that nobody may look at.
static uint64_t as_operand(format_t format, uint64_t value) {
  const uint64_t above = format == W ? UNTOUCHED : ~UINT64_C(0);
  return (value & mask_of(format)) | (above & ~mask_of(format));
}

// Operands are in fa0, fa1 and fa2, an integer in t0; the result goes to fa3 or t1.
#define OPERATION(NAME, FROM, TO, RULE, ROUNDING, INSTRUCTION)                             \
  static void run_##NAME(const uint64_t* operands, uint64_t frm, result_t* result) {       \
    uint64_t low, high, flags, old;                                                        \
    const uint64_t a = as_operand(FROM, operands[0]), b = as_operand(FROM, operands[1]),   \
                   c = as_operand(FROM, operands[2]), untouched = UNTOUCHED;               \
    const uint64_t fcsr = ((ROUNDING) == STATIC ? (frm + 1) % 5 : frm) << 5;               \
    __asm__ volatile(                                                                      \
        "fmv.d.x fa0, %[a]\n\tfmv.d.x fa1, %[b]\n\tfmv.d.x fa2, %[c]\n\tmv t0, %[a]\n\t"   \
        "fmv.d.x fa3, %[untouched]\n\tmv t1, %[untouched]\n\tfscsr %[old], "               \
        "%[fcsr]\n\t" INSTRUCTION                                                          \
        "\n\tfrflags %[flags]\n\tfscsr %[old]\n\tfmv.x.d %[low], fa3\n\tmv %[high], t1"    \
        : [low] "=&r"(low), [high] "=&r"(high), [flags] "=&r"(flags), [old] "=&r"(old)     \
        : [a] "r"(a), [b] "r"(b), [c] "r"(c), [fcsr] "r"(fcsr), [untouched] "r"(untouched) \
        : "fa0", "fa1", "fa2", "fa3", "t0", "t1", "memory");                               \
    result->low = low;                                                                     \
    result->high = high;                                                                   \
    result->flags = flags;                                                                 \
  }
#include "instructions.def"
#undef OPERATION

static const instruction_t kInstructions[] = {
#define OPERATION(NAME, FROM, TO, RULE, ROUNDING, INSTRUCTION) {#NAME, run_##NAME, FROM, TO, RULE},
#include "instructions.def"
#undef OPERATION
};

static uint64_t infinity_of(format_t format) {
  return format == H ? 0x7c00 : format == S ? 0x7f800000 : UINT64_C(0x7ff0000000000000);
}

static int is_nan(format_t format, uint64_t value) {
  return (value & ~sign_of(format)) > infinity_of(format);
}

// FMIN and FMAX prefer a number to a NaN; for FMINM and FMAXM of Zfa a NaN decides.
static uint64_t chosen(format_t format, rule_t rule, uint64_t a, uint64_t b, int is_less) {
  const uint64_t canonical = infinity_of(format) | infinity_of(format) >> 1;
  const int a_is_nan = is_nan(format, a), b_is_nan = is_nan(format, b);
  if (a_is_nan || b_is_nan) {
    if ((a_is_nan && b_is_nan) || rule == FMINM || rule == FMAXM) return canonical;
    return a_is_nan ? b : a;
  }
  const int is_minimum = rule == FMIN || rule == FMINM;
  if (((a | b) & ~sign_of(format)) == 0) return is_minimum ? a | b : a & b;  // zeros
  return is_less == is_minimum ? a : b;
}

// FCVTMOD.W.D of Zfa: the integer part modulo 2^32, 0 for infinities and NaNs.
static uint64_t modular(uint64_t value) {
  const int exponent = (int)(value >> 52 & 0x7ff) - 1075;  // of the fraction's lowest bit
  const uint64_t fraction = (value & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  if (exponent >= 32 || exponent <= -53) return 0;
  const uint64_t magnitude = exponent < 0 ? fraction >> -exponent : fraction << exponent;
  return value >> 63 != 0 ? -magnitude : magnitude;
}

static void expect(const instruction_t* instruction, const uint64_t* operands, uint64_t z,
                   result_t* result) {
  const rule_t rule = instruction->rule;
  const format_t to = instruction->to;
  if (rule == FCVTMOD)
    z = modular(operands[0]);
  else if (rule != IS_Z)
    z = chosen(to, rule, operands[0], operands[1], z != 0);
  result->low = to == W || to == X ? UNTOUCHED : as_operand(to, z);
  // Integers of 32 bits, unsigned ones too, are sign-extended.
  result->high = to == W ? (uint64_t)(int64_t)(int32_t)z : to == X ? z : UNTOUCHED;
}

// The five bits of fcsr are those of TestFloat.
static uint64_t as_flags(uint64_t flags) { return flags; }

#endif
