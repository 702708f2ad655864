#include "standin/shared_memory.h"

// Defined around the kernels' thread-local variables (shared_begin.S, localise.cmake).
extern thread_local uint8_t cuda_emulated_shared_begin[64];
extern thread_local uint8_t cuda_emulated_dynamic_shared[];

namespace cuda_emulated {

size_t static_shared_bytes() {
  return static_cast<size_t>(cuda_emulated_dynamic_shared -
                             (cuda_emulated_shared_begin + sizeof cuda_emulated_shared_begin));
}

std::span<uint8_t> shared_memory(size_t dynamic_bytes) {
  return {cuda_emulated_shared_begin + sizeof cuda_emulated_shared_begin,
          static_shared_bytes() + dynamic_bytes};
}

}  // namespace cuda_emulated
