// Compiled like the kernels, to tell the rest for which chip they are.
#include "standin/chip.h"

namespace cuda_emulated {

extern const int compiled_for = __CUDA_ARCH__;

}  // namespace cuda_emulated
