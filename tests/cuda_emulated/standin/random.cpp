#include "standin/random.h"

#include "standin/report.h"

namespace cuda_emulated {

uint64_t seed() {
  static const uint64_t value = setting("GPUSIM_EMULATED_SEED", 1);
  return value;
}

Random& chance() {
  static Random random(seed());
  return random;
}

}  // namespace cuda_emulated
