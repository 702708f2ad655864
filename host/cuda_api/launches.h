// Launches, for the functions of runtime, graphs and driver.
#pragma once
#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {

// cudaLimit
inline constexpr int kLimitStackBytes = 0, kLimitHeapBytes = 2;

// Copies the arguments: pointers to them, one for each parameter. Throws Refusal where the device
// cannot run such a launch.
KernelCall make_call(const void* function, Dim3 grid, Dim3 block, void** arguments,
                     size_t shared_bytes, const LaunchModes& modes);
void launch(const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
            void* stream, const LaunchModes& modes);
LaunchModes modes_of(std::span<const LaunchAttribute> attributes);
// Of a kernel whose clusters have so many blocks, where the launch does not say it:
// .reqnctapercluster, or what the function's attributes require.
std::optional<Dim3> required_cluster(const Function& function);
// How large a cluster such a launch may have, and how many of its clusters run at once. Chips are
// taken to have groups of 16 multiprocessors, each of which has a cluster to itself.
int largest_cluster(const void* function, Dim3 block, size_t dynamic_shared_bytes);
int active_clusters(const void* function, Dim3 block, size_t dynamic_shared_bytes,
                    const LaunchModes& modes);
// The numbers of enum cudaFuncAttribute.
void set_attribute(Function& function, int attribute, int value);

// Null: unknown.
const char* error_name(int number, bool is_driver);
const char* error_text(int number);

}  // namespace gpusim::cuda_api
