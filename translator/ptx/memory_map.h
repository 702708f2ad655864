// Where a kernel's own memories lie in its address space. Everything else is the process's.
#pragma once
#include <cstdint>

namespace gpusim::ptx {

/// Shared memory of the thread's CTA: below 2^32, so that 32-bit arithmetic on its addresses works,
/// and kept free of the process's own memory.
inline constexpr uint64_t kCtaBase = 0xf0000000, kMostCtaBytes = 0x1000000;
/// That of the CTAs of its cluster, by their ranks, follows: so much of each.
inline constexpr uint64_t kClusterBase = kCtaBase + kMostCtaBytes;
inline constexpr uint32_t kClusterShift = 20, kMostClusterCtas = 16;
inline constexpr uint64_t kClusterCtaBytes = uint64_t{1} << kClusterShift;
inline constexpr uint64_t kSharedEnd = kClusterBase + kMostClusterCtas * kClusterCtaBytes;
static_assert(kCtaBase % kClusterCtaBytes == 0 && kSharedEnd <= uint64_t{1} << 32);
/// Code: functions whose addresses are taken have one unit each, which is their address in all
/// kernels of a program; a kernel's own code follows.
inline constexpr uint64_t kCodeBase = 0x1000, kCodeUnit = 4;
/// Kernels as their own addresses have them: the number among those of the program.
inline constexpr uint64_t kKernelBase = 0x80000000, kKernelUnit = 16;
/// Local memory of the thread: above what a process of Linux can have.
inline constexpr uint64_t kLocalWindowBase = uint64_t{1} << 47, kMostLocalBytes = uint64_t{1} << 20;

// The lowest byte of what alloca gives, in local memory.
inline constexpr const char* kStackBottom = "@alloca";

}  // namespace gpusim::ptx
