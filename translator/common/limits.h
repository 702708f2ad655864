// How large a program may be, whatever file it comes from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gpusim {

// Nothing of a user program lies above the 48-bit address space.
inline constexpr uint64_t kAddressLimit = uint64_t{1} << 48;
// 32-bit programs have no memory in the first and the last page: Linux keeps both. An address and
// an offset whose sum leaves 32 bits come there.
inline constexpr uint64_t kBegin32 = 0x1000, kEnd32 = 0xfffff000;
// From the lowest to the highest loaded byte; backends hold this range as one array.
inline constexpr uint64_t kImageLimit = uint64_t{8} << 30;
inline constexpr size_t kSegmentLimit = 1024;
// The code map has an entry per instruction of this range.
inline constexpr uint64_t kCodeLimit = uint64_t{512} << 20;

// Of one block.
inline constexpr uint32_t kMaxBlockInsns = 256;  // Module::insn_offsets has 16 bits for their bytes
inline constexpr uint32_t kMaxBlockUops = 60000;
// Of one instruction: what bounds the time between two looks at a core's budget.
inline constexpr uint32_t kMaxInsnUops = 128;

}  // namespace gpusim
