/* SPDX-License-Identifier: MIT */
/* The public header alone, as C. */
#include "libgpusim/offload/gpusim.h"

_Static_assert(sizeof(gpusim_properties) == 8 + 24 + 16 + 64 + 16 + 64 + 128 + 16 + 128, "");
_Static_assert(sizeof(gpusim_counters) == 64, "");
_Static_assert(sizeof(gpusim_limits) == 24, "");
_Static_assert(sizeof(gpusim_statistics) == 8 + 120 + 16 + 16 + 8 + 8 + 64, "");

int gpusim_headers_test_c(void);
int gpusim_headers_test_c(void) { return GPUSIM_RUNNING + GPUSIM_OK; }
