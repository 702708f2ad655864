// Where code is in the source: told by line, function and the callers that it was inlined into.
#pragma once
#include <string>

namespace cuda_emulated {

// Of the call that returns to `address`: "kernel.cuh:41 in warp_min, from kernel.cuh:57 in
// is_lead".
std::string describe_place(const void* address);
// Whether both return to the same place in the source. Compilers duplicate calls, so that addresses
// may differ.
bool is_same_place(const void* x, const void* y);
std::string function_name(const void* entry);

}  // namespace cuda_emulated
