// The part of CUDA's driver interface that we call or stand in for, declared by ourselves: nothing
// of the toolkit is needed to build. Names and numbers are those of NVIDIA's documented interface.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gpusim::power::cuda {

using Result = int;
inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3,
                        kNoDevice = 100, kInvalidDevice = 101, kInvalidContext = 201,
                        kInvalidPtx = 218, kNotFound = 500, kNotReady = 600, kNotSupported = 801;

using Device = int;
using DevicePointer = uint64_t;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;

// Device attributes.
inline constexpr int kWarpSize = 10, kClockKilohertz = 13, kMultiprocessors = 16, kL2Bytes = 38,
                     kThreadsPerMultiprocessor = 39, kCapabilityMajor = 75, kCapabilityMinor = 76;
// Options of the assembler in the driver.
inline constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6, kJitOptimization = 7;
inline constexpr unsigned kEventDefault = 0;

// Of cuLaunchKernelEx.
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  Stream stream;
  void* attributes;
  unsigned attribute_count;
};

}  // namespace gpusim::power::cuda
