// Where the library begins its work: before the program's own constructors, which register their
// kernels.
#include "host/cuda_api/nvrtc.h"
#include "host/cuda_api/redirect.h"

namespace gpusim::cuda_api {

__attribute__((constructor)) static void take_over() { use_nvrtc(redirect_static_runtimes()); }

}  // namespace gpusim::cuda_api
