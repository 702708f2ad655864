// SPDX-License-Identifier: MIT
// Makes a program of the kernels.
#include "gpusim_guest.h"

int gpusim_main(void) { return 0; }
