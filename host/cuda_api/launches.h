// Launches, for the functions of runtime, graphs and driver.
#pragma once
#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {

// cudaLimit
inline constexpr int kLimitStackBytes = 0, kLimitHeapBytes = 2;

// Copies the arguments: pointers to them, one for each parameter. Throws Refusal where the device
// cannot run such a launch.
KernelCall make_call(const void* function, Dim3 grid, Dim3 block, void** arguments,
                     size_t shared_bytes, bool is_cooperative);
void launch(const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared_bytes,
            void* stream, bool is_cooperative);
// The numbers of enum cudaFuncAttribute.
void set_attribute(Function& function, int attribute, int value);

// Null: unknown.
const char* error_name(int number, bool is_driver);
const char* error_text(int number);

}  // namespace gpusim::cuda_api
