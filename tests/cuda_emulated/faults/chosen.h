// Which fault a run has: GPUSIM_EMULATED_FAULT, 0 for none.
#pragma once

int chosen_fault();
#define FAULT(n) (chosen_fault() == (n))
