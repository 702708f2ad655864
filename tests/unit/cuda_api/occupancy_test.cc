// Against the calculator that CUDA has in a header.
#include <cuda_runtime_api.h>

#include <cuda_occupancy.h>
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "host/cuda_api/chips.h"

namespace gpusim::cuda_api {

TEST_CASE("occupancy is what CUDA's calculator says") {
  for (const Chip& chip : all_chips()) {
    const DeviceProp ours = properties_of(chip);
    cudaDeviceProp theirs;
    std::memcpy(&theirs, &ours, sizeof theirs);
    const cudaOccDeviceProp device(theirs);
    for (const int threads : {1, 32, 33, 96, 128, 256, 512, 768, 1024})
      for (const int registers : {16, 32, 37, 64, 96, 128, 168, 255})
        for (const size_t shared : {0, 100, 1 << 10, 5 << 10, 16 << 10, 47 << 10, 48 << 10}) {
          cudaOccFuncAttributes function;
          function.maxThreadsPerBlock = 1024;
          function.numRegs = registers;
          function.sharedSizeBytes = shared;
          function.partitionedGCConfig = PARTITIONED_GC_OFF;
          function.shmemLimitConfig = FUNC_SHMEM_LIMIT_DEFAULT;
          function.maxDynamicSharedSizeBytes = 0;
          function.numBlockBarriers = 1;
          cudaOccDeviceState state;
          state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
          cudaOccResult result;
          const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
              &result, &device, &function, &state, threads, 0);
          INFO(std::string(chip.key), ", ", threads, " threads, ", registers, " registers, ",
               shared, " bytes");
          // Chips that the header does not know.
          if (error == CUDA_OCC_ERROR_UNKNOWN_DEVICE) continue;
          REQUIRE(error == CUDA_OCC_SUCCESS);
          CHECK(resident_blocks(chip, static_cast<uint32_t>(threads),
                                static_cast<uint32_t>(registers),
                                shared) == result.activeBlocksPerMultiprocessor);
        }
  }
}

}  // namespace gpusim::cuda_api
