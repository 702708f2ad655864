// Mapped files that somebody else cuts short: who touches what is beyond the new end gets SIGBUS. A
// daemon must survive that. Where it does, zeros take the place of what is gone, for this process
// alone, and the kernel that is concerned ends with an error.
//
// For the one thread at a time that uses the Simulators of a process; its helpers touch memory only
// while it waits for them.
#pragma once
#include <cstdint>
#include <optional>

namespace gpusim::offload {

// From here on SIGBUS in a mapping that was noted is survived; anywhere else it is what it was.
void survive_lost_pages();

// A piece of a file was mapped at, or removed from, these addresses.
void note_mapped(const void* begin, uint64_t size_bytes);
void note_unmapped(const void* begin, uint64_t size_bytes);
// The address of a page in this range that was lost and is still mapped.
std::optional<uintptr_t> lost_page(const void* begin, uint64_t size_bytes);

}  // namespace gpusim::offload
