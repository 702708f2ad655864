// What kernels call of CUDA's runtime on the device (cuda_device_runtime_api.h): launches of other
// kernels, and what goes with them. The host does it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace gpusim::ptx {

enum class DeviceCall : uint8_t {
  kGetParameterBuffer,  // kernel, grid, block, bytes of shared memory
  kLaunch,              // parameters, stream
  kMakeHandle,          // where to: of a stream or an event
  kSucceed,             // everything runs in the order of submission
  kMalloc,              // where to, bytes
  kFree,                // address
  kTakeError,           // the thread's last one
  kPeekError,
  kNameError,  // a result
  kDescribeError,
  kTellDevice,  // where to
  kTellDeviceCount,
  kTellVersion,
  kSet,   // to, byte, bytes
  kCopy,  // to, from, bytes
};

struct DeviceFunction {
  // A part of an argument: structures come in words.
  struct Piece {
    uint8_t argument, offset_bytes, bits;
  };
  std::string_view name;
  DeviceCall call;
  uint8_t parameters;
  std::vector<Piece> pieces;  // that the host reads, in their order
  uint8_t result_bits;
};

/// Null: there is no such function, or it is not supported.
const DeviceFunction* device_function(std::string_view name);

/// The words of the pieces, in local memory of the thread.
inline constexpr uint32_t kDeviceCallBytes = 64;

}  // namespace gpusim::ptx
