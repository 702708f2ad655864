/* Where oracles put code and data, in the guest programs and on our side. Plain C. */
#ifndef GPUSIM_ORACLE_WINDOW_H_
#define GPUSIM_ORACLE_WINDOW_H_
#include <stdint.h>

/* Guest addresses. The window is within reach of every literal load, with unmapped gaps around it;
 * its last page can only be read. GPUSIM_ORACLE_BITS: of addresses, where they are not 64. */
#if defined(GPUSIM_ORACLE_BITS) && GPUSIM_ORACLE_BITS == 32
#define ORACLE_CODE 0x50000000ull
#else
#define ORACLE_CODE 0x500000000ull
#endif
#define ORACLE_CODE_BYTES 0x80000u
#define ORACLE_MAX_CASES 65536u
#define ORACLE_WINDOW (ORACLE_CODE + 0xa0000u)
#define ORACLE_WINDOW_BYTES 0x8000u
#define ORACLE_READ_ONLY (ORACLE_WINDOW + ORACLE_WINDOW_BYTES - 0x1000)

struct oracle_change {
  uint64_t offset; /* in the window, a multiple of 8 */
  uint64_t value;
};

/* What word i of the window holds before every case. */
static inline uint64_t oracle_window_word(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

#endif
