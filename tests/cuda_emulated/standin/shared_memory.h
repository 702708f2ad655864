// Shared memory: the storage of kernels' __shared__ variables, which the running block has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace cuda_emulated {

// Of the variables that every kernel has, and then of arrays whose size a launch says.
size_t static_shared_bytes();
std::span<uint8_t> shared_memory(size_t dynamic_bytes);

}  // namespace cuda_emulated
