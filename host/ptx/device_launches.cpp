#include "host/ptx/device_launches.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "host/ptx/error_texts.h"
#include "translator/ptx/memory_map.h"

namespace gpusim::ptx {
namespace {

// Addresses only, until they are written.
constexpr uint64_t kBufferBytes = uint64_t{1} << 30;
constexpr uint64_t kAlign = 64;
constexpr uint64_t kTextsBytes = 1 << 16;  // of all errors
constexpr const char* kNoSuchError = "unrecognized error code";
// cuda_device_runtime_api.h: cudaStreamTailLaunch. All other streams keep their order.
constexpr uint64_t kTailStream = 3;
constexpr uint64_t kFirstHandle = 0x1000;
// A kernel that launches itself without an end would fill memory.
constexpr uint32_t kMostDepth = 1024;

uint32_t param_bytes(const Function& kernel) {
  uint64_t at = 0;
  for (const Variable& p : kernel.params) at = (at + p.align - 1) / p.align * p.align + p.size;
  return static_cast<uint32_t>(at);
}

bool is_shape(const Dim3& grid, const Dim3& block) {
  return grid.count() != 0 && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535 &&
         block.x <= 1024 && block.y <= 1024 && block.z <= 64 && block.count() != 0 &&
         block.count() <= 1024;
}

}  // namespace

DeviceLaunches::DeviceLaunches(ProcessMemory& memory)
    : buffers_(kBufferBytes), texts_(kTextsBytes) {
  memory.add(buffers_.address(), buffers_.size_bytes(), kRead | kWrite,
             {"parameters of launches by kernels"});
  memory.add(texts_.address(), texts_.size_bytes(), kRead, {"texts of errors"});
}

void DeviceLaunches::begin() {
  const std::lock_guard lock(mutex_);
  used_bytes_ = 0;
  prepared_.clear();
  waiting_.clear();
  errors_.clear();
}

void DeviceLaunches::keep(const DeviceCaller& caller, DeviceError error) {
  if (error == DeviceError::kNone) return;
  const std::lock_guard lock(mutex_);
  errors_[{caller.cta, caller.thread}] = error;
}

uint64_t DeviceLaunches::name_of(int error) {
  const ErrorText* const e = find_error(error);
  return place_of(e != nullptr ? e->runtime : kNoSuchError);
}

uint64_t DeviceLaunches::text_of(int error) {
  const ErrorText* const e = find_error(error);
  return place_of(e != nullptr ? e->text : kNoSuchError);
}

uint64_t DeviceLaunches::place_of(const char* text) {
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = places_.try_emplace(text, texts_.address() + texts_bytes_);
  if (is_new) {
    const size_t size = std::strlen(text) + 1;
    std::memcpy(texts_.data() + texts_bytes_, text, size);
    texts_bytes_ += size;
  }
  return place->second;
}

DeviceError DeviceLaunches::last_error(const DeviceCaller& caller, bool is_taken) {
  const std::lock_guard lock(mutex_);
  const auto found = errors_.find({caller.cta, caller.thread});
  if (found == errors_.end()) return DeviceError::kNone;
  const DeviceError error = found->second;
  if (is_taken) errors_.erase(found);
  return error;
}

uint64_t DeviceLaunches::parameter_buffer(const DeviceCaller& caller,
                                          std::span<const Function* const> kernels, uint64_t kernel,
                                          Dim3 grid, Dim3 block, uint32_t shared_bytes) {
  const uint64_t number = (kernel - kKernelBase) / kKernelUnit;
  const bool is_kernel =
      kernel >= kKernelBase && kernel % kKernelUnit == 0 && number < kernels.size();
  if (!is_kernel || !is_shape(grid, block)) {
    keep(caller,
         is_kernel ? DeviceError::kInvalidConfiguration : DeviceError::kInvalidDeviceFunction);
    return 0;
  }
  DeviceWork work{.kernel = kernels[number],
                  .grid = grid,
                  .block = block,
                  .shared_bytes = shared_bytes,
                  .param_bytes = param_bytes(*kernels[number])};
  const uint64_t size = std::max<uint64_t>(1, work.param_bytes);
  const std::lock_guard lock(mutex_);
  if (size > kBufferBytes - used_bytes_) {
    errors_[{caller.cta, caller.thread}] = DeviceError::kMostPendingExceeded;
    return 0;
  }
  work.params = buffers_.address() + used_bytes_;
  used_bytes_ = std::min(kBufferBytes, (used_bytes_ + size + kAlign - 1) / kAlign * kAlign);
  prepared_[work.params] = work;
  return work.params;
}

DeviceError DeviceLaunches::launch(const DeviceCaller& caller, uint64_t buffer, uint64_t stream) {
  const std::lock_guard lock(mutex_);
  const auto found = prepared_.find(buffer);
  if (found == prepared_.end()) return DeviceError::kInvalidValue;
  DeviceWork work = found->second;
  prepared_.erase(found);
  work.cta = caller.cta;
  work.is_tail = stream == kTailStream;
  work.depth = caller.depth + (work.is_tail ? 0 : 1);
  if (work.depth > kMostDepth) return DeviceError::kMostDepthExceeded;
  waiting_.push_back(work);
  return DeviceError::kNone;
}

void DeviceLaunches::add(const DeviceWork& work) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(work);
}

uint64_t DeviceLaunches::make_handle() {
  const std::lock_guard lock(mutex_);
  return kFirstHandle + ++handles_;
}

std::vector<DeviceWork> DeviceLaunches::take() {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceWork> all;
  all.swap(waiting_);
  errors_.clear();
  // A block's own order is kept; which block came first is no matter of chance.
  std::stable_sort(all.begin(), all.end(), [](const DeviceWork& a, const DeviceWork& b) {
    return std::pair(a.is_tail, a.cta) < std::pair(b.is_tail, b.cta);
  });
  return all;
}

}  // namespace gpusim::ptx
