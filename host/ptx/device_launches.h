// Kernels that kernels launch (CUDA dynamic parallelism), and copies and sets that go with them.
//
// They run when the grid that asked for them has ended, in the order in which it asked: block by
// block, and then its tail launches. What they launch comes before the next one. A program cannot
// tell that from a device that begins them earlier: nothing promises that it does.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "host/ptx/engine.h"
#include "host/ptx/memory.h"
#include "translator/ptx/device_call.h"

namespace gpusim::ptx {

/// A thread that asks, and how many launches by kernels led to its grid, but for those at tails.
struct DeviceCaller {
  uint64_t cta = 0;
  uint32_t thread = 0, depth = 0;
};

/// Results of enum cudaError.
enum class DeviceError : uint32_t {
  kNone = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInvalidConfiguration = 9,
  kMostDepthExceeded = 65,
  kMostPendingExceeded = 69,
  kInvalidDeviceFunction = 98,
};

struct DeviceWork {
  enum class Kind : uint8_t { kLaunch, kSet, kCopy };
  Kind kind = Kind::kLaunch;
  uint64_t cta = 0;  // that asked
  bool is_tail = false;
  // Of launches.
  uint32_t depth = 0;
  const Function* kernel = nullptr;
  Dim3 grid, block;
  uint32_t shared_bytes = 0;
  uint64_t params = 0;
  uint32_t param_bytes = 0;
  // Of sets (a byte) and copies.
  uint64_t to = 0, from = 0, size_bytes = 0;
};

/// Of a whole launch by the host, with all that follows from it.
class DeviceLaunches {
 public:
  /// Makes room for parameters, which kernels may write. Throws Error.
  explicit DeviceLaunches(ProcessMemory& memory);

  /// Forgets the last launch by the host.
  void begin();
  /// 0, with an error of the thread: that is no kernel of the list, or no shape of a grid. Threads
  /// of several machines may call.
  uint64_t parameter_buffer(const DeviceCaller& caller, std::span<const Function* const> kernels,
                            uint64_t kernel, Dim3 grid, Dim3 block, uint32_t shared_bytes);
  /// An error: no buffer begins there that was not launched yet, or launches nest too deep.
  DeviceError launch(const DeviceCaller& caller, uint64_t buffer, uint64_t stream);
  void add(const DeviceWork& work);
  uint64_t make_handle();
  /// What cudaGetLastError of that thread will say. No error changes nothing.
  void keep(const DeviceCaller& caller, DeviceError error);
  DeviceError last_error(const DeviceCaller& caller, bool is_taken);
  /// Addresses of an error's name and text, which kernels may read.
  uint64_t name_of(int error);
  uint64_t text_of(int error);

  /// Of the grid that has ended, in the order in which it runs.
  std::vector<DeviceWork> take();

 private:
  uint64_t place_of(const char* text);

  Pages buffers_, texts_;
  uint64_t texts_bytes_ = 0;
  std::map<std::string, uint64_t, std::less<>> places_;  // of texts
  std::mutex mutex_;
  uint64_t used_bytes_ = 0, handles_ = 0;
  std::map<uint64_t, DeviceWork> prepared_;  // by the address of their parameters
  std::vector<DeviceWork> waiting_;
  std::map<std::pair<uint64_t, uint32_t>, DeviceError> errors_;  // by CTA and thread
};

}  // namespace gpusim::ptx
