// BARRIERS whole-chip barriers and nothing else.
#include "gpusim_guest.h"

#ifndef BARRIERS
#define BARRIERS 200
#endif

int gpusim_main(void) {
  for (int i = 0; i < BARRIERS; ++i) gpusim_barrier();
  return 0;
}
