// The devices that are emulated, and their chips. Limits: CUDA C++ Programming Guide, "Compute
// capabilities".
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulated/language.h"

namespace cuda_emulated {

struct Chip {
  const char* name;
  int major, minor;
  size_t memory_bytes;  // of a usual card of its kind
  size_t shared_per_block, shared_per_block_optin, shared_per_multiprocessor, shared_reserved;
  int threads_per_multiprocessor, blocks_per_multiprocessor;
  int multiprocessors;  // few, so that blocks have to wait for others
};

inline constexpr int kThreadsPerBlock = 1024;
inline constexpr int kRegisters = 65536;

// Of each device: GPUSIM_EMULATED_CHIP, names with commas between, or `none`; unless set, one
// device with the chip that the code was compiled for. Ends the process, with a sentence, if there
// is no such chip.
const std::vector<Chip>& chips();
// Of this thread, as cudaSetDevice chose it; while a device works, that device.
int current_device();
void set_current_device(int device);
// The current device's.
const Chip& chip();
// __CUDA_ARCH__ of the code.
extern const int compiled_for;

// How many threads a block of this kernel may have.
int launch_bound(const void* kernel);
// As many as ptxas may give each: what the bound leaves.
int registers_per_thread(const void* kernel);
int blocks_per_multiprocessor(const void* kernel, int threads, size_t shared_bytes);

}  // namespace cuda_emulated
