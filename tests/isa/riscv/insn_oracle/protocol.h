/* What the host and the guest program of the oracle say to each other. Plain C, little-endian.
 *
 * Input: a header, then its number of cases. Output: per case a result, then its changed words. */
#ifndef GPUSIM_RISCV_INSN_ORACLE_PROTOCOL_H_
#define GPUSIM_RISCV_INSN_ORACLE_PROTOCOL_H_
#include <stdint.h>

#include "../../oracle/window.h"

#define ORACLE_MAGIC 0x6f72616372763634ull

/* A case's code is followed by EBREAK, twice: where it ends, and where its branches lead. */
#define ORACLE_MAX_BYTES 64u
#define ORACLE_EBREAK 0x00100073u

/* Where the guest handles signals: 64 KiB that cases do not use. */
#if defined(GPUSIM_ORACLE_BITS) && GPUSIM_ORACLE_BITS == 32
#define ORACLE_STACK 0x2f315000ull
#else
#define ORACLE_STACK 0x2f31579000ull
#endif
#define ORACLE_VECTOR_WORDS 2 /* of a register: 128 bits */

struct oracle_state {
  uint64_t x[32]; /* x[0] is 0; RV32's are zero-extended */
  uint64_t f[32];
  uint64_t fcsr;
  uint64_t v[32 * ORACLE_VECTOR_WORDS];
  uint64_t vl, vtype, vstart, vcsr;
};

struct oracle_case {
  uint8_t bytes[ORACLE_MAX_BYTES];
  uint32_t byte_count;
  uint32_t code_offset; /* from ORACLE_CODE */
  struct oracle_state state;
};

struct oracle_result {
  uint32_t signal; /* every case ends with one */
  uint32_t change_count;
  uint64_t pc;
  struct oracle_state state;
};

struct oracle_header {
  uint64_t magic, case_count;
};

#endif
