// Allocations, copies and fills.
#include <cstring>
#include <map>
#include <new>
#include <string>

#include "standin/chip.h"
#include "standin/memory.h"
#include "standin/queue.h"
#include "standin/report.h"

using namespace cuda_emulated;

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

std::map<const void*, size_t> pinned;  // host memory that copies may use later

cudaError_t sticky() { return static_cast<cudaError_t>(sticky_error()); }

bool is_pinned(const void* p) {
  const auto* const byte = static_cast<const char*>(p);
  auto it = pinned.upper_bound(p);
  return it != pinned.begin() &&
         byte < static_cast<const char*>((--it)->first) + it->second;
}

// Rows of bytes on one side of a copy.
struct Rows {
  char* begin;
  size_t pitch, width, height;
  size_t span() const { return height == 0 || width == 0 ? 0 : pitch * (height - 1) + width; }
};

// False, with a report: the rows are not where the copy's direction says.
bool judge(const char* call, const Rows& rows, bool on_device) {
  std::string why;
  if (rows.height > 1 && rows.pitch < rows.width) why = "rows overlap";
  else if (on_device) why = range_fault(rows.begin, rows.span());
  else if (is_device_memory(rows.begin)) why = "the host's side is " + describe_address(rows.begin);
  if (why.empty()) return true;
  report(cudaErrorInvalidValue, std::string(call) + ": " + why);
  return false;
}

cudaError_t copy(const char* call, Rows to, Rows from, cudaMemcpyKind kind, bool waits,
                 cudaStream_t stream) {
  const Lock lock(interface_lock());
  if (sticky_error()) return sticky();
  if (kind == cudaMemcpyDefault)
    kind = static_cast<cudaMemcpyKind>((is_device_memory(to.begin) ? 1 : 0) |
                                       (is_device_memory(from.begin) ? 2 : 0));
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (!judge(call, to, to_device) || !judge(call, from, from_device)) return sticky();
  std::string staged;  // pageable memory is read before the call returns
  const bool stages = !from_device && !is_pinned(from.begin);
  if (stages) staged.assign(from.begin, from.span());
  const bool returns_before = !waits && (to_device || is_pinned(to.begin));
  // Whoever looks before the copy is done sees that.
  if (returns_before && !to_device)
    for (size_t row = 0; row < to.height; ++row)
      std::memset(to.begin + row * to.pitch, kPoison, to.width);
  const cudaError_t status = submit(stream, [=, staged = std::move(staged)]() mutable {
    for (size_t row = 0; row < to.height; ++row)
      std::memmove(to.begin + row * to.pitch,
                   (stages ? staged.data() : from.begin) + row * from.pitch, to.width);
  });
  return returns_before ? status : waits ? finish_all() : finish(stream);
}

cudaError_t set(const char* call, Rows rows, int value, cudaStream_t stream) {
  const Lock lock(interface_lock());
  if (sticky_error() || !judge(call, rows, true)) return sticky();
  return submit(stream, [=] {
    if (rows.pitch == rows.width || rows.height == 1)
      return fill(rows.begin, static_cast<uint8_t>(value), rows.span());
    for (size_t row = 0; row < rows.height; ++row)
      fill(rows.begin + row * rows.pitch, static_cast<uint8_t>(value), rows.width);
  });
}

Rows rows_of(const void* p, size_t pitch, size_t width, size_t height) {
  return {static_cast<char*>(const_cast<void*>(p)), pitch, width, height};
}
Rows row_of(const void* p, size_t bytes) { return rows_of(p, bytes, bytes, 1); }

}  // namespace

cudaError_t cudaMalloc(void** p, size_t bytes) {
  const Lock lock(interface_lock());
  if (sticky_error()) return sticky();
  watch_faults();
  *p = bytes == 0 ? nullptr : allocate(bytes);
  return bytes == 0 || *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* p) {
  const Lock lock(interface_lock());
  const cudaError_t status = finish_all();
  if (p == nullptr) return status;
  const std::string where = describe_address(p);
  if (!free_memory(p)) {
    report(cudaErrorInvalidValue, "cudaFree of " + where);
    return sticky();
  }
  return status;
}
cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t) { return cudaMalloc(p, bytes); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return cudaFree(p); }
cudaError_t cudaMallocHost(void** p, size_t bytes, unsigned) {
  const Lock lock(interface_lock());
  *p = ::operator new(bytes, std::nothrow);
  if (!*p) return cudaErrorMemoryAllocation;
  pinned[*p] = bytes;
  return sticky();
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned flags) {
  return cudaMallocHost(p, bytes, flags);
}
cudaError_t cudaFreeHost(void* p) {
  const Lock lock(interface_lock());
  const cudaError_t status = finish_all();
  if (p && pinned.erase(p) == 0) {
    report(cudaErrorInvalidValue, "cudaFreeHost of what cudaMallocHost did not give");
    return sticky();
  }
  ::operator delete(p);
  return status;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(interface_lock());
  *free = free_bytes();
  *total = chip().memory_bytes;
  return sticky();
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return copy("cudaMemcpy", row_of(to, bytes), row_of(from, bytes), kind, true, nullptr);
}
cudaError_t cuda_emulated_set_variable(void* variable, const void* from, size_t bytes) {
  const Lock lock(interface_lock());
  if (finish(nullptr) == cudaSuccess) std::memcpy(variable, from, bytes);
  return sticky();
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy("cudaMemcpyAsync", row_of(to, bytes), row_of(from, bytes), kind, false, stream);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return copy("cudaMemcpy2D", rows_of(to, to_pitch, width, height),
              rows_of(from, from_pitch, width, height), kind, true, nullptr);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return copy("cudaMemcpy2DAsync", rows_of(to, to_pitch, width, height),
              rows_of(from, from_pitch, width, height), kind, false, stream);
}
cudaError_t cudaMemset(void* p, int value, size_t bytes) {
  return set("cudaMemset", row_of(p, bytes), value, nullptr);
}
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t stream) {
  return set("cudaMemsetAsync", row_of(p, bytes), value, stream);
}
cudaError_t cudaMemset2D(void* p, size_t pitch, int value, size_t width, size_t height) {
  return set("cudaMemset2D", rows_of(p, pitch, width, height), value, nullptr);
}
cudaError_t cudaMemset2DAsync(void* p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return set("cudaMemset2DAsync", rows_of(p, pitch, width, height), value, stream);
}
