/* What the host and the guest program of the oracle say to each other. Plain C, little-endian.
 *
 * Input: a header, then its number of cases. Output: per case a result, then its changed words. */
#ifndef GPUSIM_INSN_ORACLE_PROTOCOL_H_
#define GPUSIM_INSN_ORACLE_PROTOCOL_H_
#include <stdint.h>

#include "../../oracle/window.h"

#define ORACLE_MAGIC 0x6f7261636c653031ull

/* A case's code is one word of ours, its own words and two branches out; cases that follow each
 * other may share it. */
#define ORACLE_MAX_WORDS 32u

struct oracle_state {
  uint64_t x[31];
  uint64_t sp;
  uint64_t nzcv; /* bits 31:28 */
  uint64_t fpcr, fpsr;
  uint64_t v[64]; /* low and high halves */
};

struct oracle_case {
  uint32_t words[ORACLE_MAX_WORDS];
  uint32_t word_count;
  uint32_t uses_memory; /* look for changes in the window */
  uint32_t code_offset; /* of the first word, from ORACLE_CODE */
  struct oracle_state state;
};

struct oracle_result {
  uint32_t signal; /* 0, or the signal that ended the case */
  uint32_t exit;   /* 0: fell through; 1: went one instruction further */
  uint32_t change_count;
  uint32_t reserved;
  struct oracle_state state;
  uint64_t pc; /* where the signal came from */
};

struct oracle_header {
  uint64_t magic, case_count;
};

#endif
