// Device memory: pages of this process that only their device's kernels, algorithms and copies may
// touch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace cuda_emulated {

inline constexpr uint8_t kPoison = 0xcb;

// On the current device. Null: its chip has no more. Contents are poison (of large pieces, the
// first and last MiB).
void* allocate(size_t bytes);
// False: nothing begins there.
bool free_memory(void* p);
void free_all_memory();
size_t free_bytes();

bool is_device_memory(const void* p);
// Where the allocation begins that `p` is in, and its bytes.
std::pair<uintptr_t, size_t> allocation_of(const void* p);
// Empty, or why [p, p + bytes) is not within one allocation of the current device.
std::string range_fault(const void* p, size_t bytes);
// "offset 12 of 4096 bytes"; for any address.
std::string describe_address(const void* p);
// As memset, but pages that become zero are given back.
void fill(void* p, uint8_t value, size_t bytes);
// Bytes between the end of one of the current device's allocations and its guard page that are not
// as they were. Empty: none.
std::string overrun();

// Device memory is refused to the host except while one of these lives, which opens the current
// device's. Closing again is left to chance after the first times, since it costs a call per
// allocation.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

// Turns faults on device memory, guard pages and lanes' stacks into reports.
void watch_faults();

}  // namespace cuda_emulated
