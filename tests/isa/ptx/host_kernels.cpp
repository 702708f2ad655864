// host_kernels.cu as the host's functions.
#include "tests/isa/ptx/host_kernels.cu"
