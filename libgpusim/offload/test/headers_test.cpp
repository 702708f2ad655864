// SPDX-License-Identifier: MIT
// The public header alone, as C++, and the internal ones that C++ sees.
#include "libgpusim/offload/gpusim.h"

#include "libgpusim/offload/port.h"

static_assert(GPUSIM_CLASS_COUNT == GPUSIM_CLASSES);
static_assert(GPUSIM_INTERNAL == -12);
