// Structures and constants as guests of 64-bit Linux see them that have the generic ones; a host's
// may differ.
#pragma once
#include <cstdint>

namespace gpusim::host {

// asm-generic/stat.h
struct GuestStat {
  uint64_t dev, ino;
  uint32_t mode, nlink, uid, gid;
  uint64_t rdev, pad1;
  int64_t size;
  int32_t blksize, pad2;
  int64_t blocks;
  int64_t atime, atime_nsec, mtime, mtime_nsec, ctime, ctime_nsec;
  uint32_t unused[2];
};
static_assert(sizeof(GuestStat) == 128);

struct GuestTimespec {
  int64_t seconds, nanoseconds;
};
struct GuestTimeval {
  int64_t seconds, microseconds;
};
struct GuestIovec {
  uint64_t base, size;
};
struct NarrowIovec {  // of 32-bit guests
  uint32_t base, size;
};
struct GuestRlimit {
  uint64_t current, most;
};

inline constexpr int64_t kAtFdCwd = -100;
inline constexpr uint64_t kAtEmptyPath = 0x1000, kAtSymlinkNofollow = 0x100,
                          kAtSymlinkFollow = 0x400, kAtEaccess = 0x200;

}  // namespace gpusim::host
