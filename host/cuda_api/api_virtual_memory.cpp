// Driver API: ranges of addresses, memory, and which lies where (cuMem*). Memory is a file without
// a name, so that it can be mapped at several places and passed to other processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "host/cuda_api/driver.h"

using namespace gpusim::cuda_api;

namespace {

using Address = uint64_t;

constexpr size_t kGranularity = 2 << 20;
constexpr int kPinned = 1, kOnDevice = 1, kFileDescriptor = 1;
constexpr unsigned long long kReadable = 1, kWritable = 3;

struct MemoryLocation {
  int type, id;
};
struct AllocationProperties {
  int type, handle_types;
  MemoryLocation location;
  void* windows_only;
  unsigned char compression, is_for_rdma;
  unsigned short usage;
  unsigned char reserved[4];
};
struct AccessDescription {
  MemoryLocation location;
  int flags;
};
static_assert(sizeof(AllocationProperties) == 32 && sizeof(AccessDescription) == 12);

// What cuMemCreate made. It lives while a handle or a mapping has it.
struct Memory {
  int file = -1;
  size_t size_bytes = 0;
  AllocationProperties properties{};
  unsigned handles = 1;
  ~Memory() {
    if (file >= 0) ::close(file);
  }
};

struct Mapping {
  size_t size_bytes = 0;
  std::shared_ptr<Memory> memory;
  unsigned long long access = 0;
};

struct Range {
  size_t size_bytes = 0;
  std::map<Address, Mapping> mappings;
  std::vector<Address> visible;  // blocks that kernels may access now
};

struct VirtualMemory {
  std::mutex mutex;
  std::map<Address, Range> ranges;
  std::map<Memory*, std::shared_ptr<Memory>> handles;

  Memory& memory(uint64_t handle) {
    const auto at = handles.find(reinterpret_cast<Memory*>(handle));
    require(at != handles.end());
    return *at->second;
  }
  // The range that has all of those bytes.
  Range& range(Address address, size_t size_bytes) {
    auto at = ranges.upper_bound(address);
    require(at != ranges.begin());
    --at;
    require(address - at->first <= at->second.size_bytes &&
            size_bytes <= at->second.size_bytes - (address - at->first));
    return at->second;
  }
  const Mapping& mapping(Address address) {
    const Range& in = range(address, 1);
    auto at = in.mappings.upper_bound(address);
    require(at != in.mappings.begin());
    --at;
    require(address - at->first < at->second.size_bytes);
    return at->second;
  }
};

VirtualMemory& all() {
  static VirtualMemory* const only = new VirtualMemory;
  return *only;
}

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

void require_whole(size_t size_bytes) {
  require(size_bytes != 0 && size_bytes % kGranularity == 0);
}

// Kernels and copies see neighbours as one block.
void hide(Range& range) {
  Runtime& r = runtime();
  for (const Address address : range.visible) {
    r.engine_for_memory().remove_memory(pointer(address), "unmapped");
    r.memory.remove(pointer(address), "unmapped");
  }
  range.visible.clear();
}
void show(Range& range) {
  Runtime& r = runtime();
  const std::string origin = "mapped by " + numbered_call();
  for (auto at = range.mappings.begin(); at != range.mappings.end();) {
    const Address begin = at->first;
    Address end = begin;
    for (; at != range.mappings.end() && at->first == end && at->second.access != 0; ++at)
      end += at->second.size_bytes;
    if (end == begin) {
      ++at;
      continue;
    }
    r.memory.add(pointer(begin), end - begin, kDeviceMemory, origin);
    r.engine_for_memory().add_memory(pointer(begin), end - begin, "mapped memory", origin, false);
    range.visible.push_back(begin);
  }
}

// Those from `address` on whose sizes add up to `size_bytes`. Throws Refusal if there are none.
template <typename F>
void for_mappings(Range& range, Address address, size_t size_bytes, F&& f) {
  auto at = range.mappings.find(address);
  for (const Address end = address + size_bytes; address != end;) {
    require(at != range.mappings.end() && at->first == address &&
            at->second.size_bytes <= end - address);
    address += at->second.size_bytes;
    f(at++);
  }
}

uint64_t add_handle(std::shared_ptr<Memory> made) {
  Memory* const memory = made.get();
  all().handles[memory] = std::move(made);
  return reinterpret_cast<uint64_t>(memory);
}

}  // namespace

GPUSIM_CUDA_API int cuMemGetAllocationGranularity(size_t* granularity,
                                                  const AllocationProperties* properties, int) {
  return driver_call("cuMemGetAllocationGranularity", [&] {
    require(granularity != nullptr && properties != nullptr);
    *granularity = kGranularity;
  });
}
GPUSIM_CUDA_API int cuMemAddressReserve(Address* address, size_t size, size_t alignment, Address,
                                        unsigned long long flags) {
  return driver_call("cuMemAddressReserve", [&] {
    require(address != nullptr && flags == 0 && (alignment & (alignment - 1)) == 0);
    require_whole(size);
    const size_t step = std::max(alignment, kGranularity);
    require(size <= SIZE_MAX - step);
    void* const mapped =
        ::mmap(nullptr, size + step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(mapped != MAP_FAILED, kMemoryAllocation);
    const auto first = reinterpret_cast<Address>(mapped);
    const Address begin = (first + step - 1) / step * step;
    if (begin != first) ::munmap(mapped, begin - first);
    if (begin != first + step) ::munmap(pointer(begin + size), first + step - begin);
    const std::lock_guard lock(all().mutex);
    all().ranges[begin].size_bytes = size;
    *address = begin;
  });
}
GPUSIM_CUDA_API int cuMemAddressFree(Address address, size_t size) {
  return driver_call("cuMemAddressFree", [&] {
    const std::lock_guard lock(all().mutex);
    const auto at = all().ranges.find(address);
    require(at != all().ranges.end() && at->second.size_bytes == size &&
            at->second.mappings.empty());
    all().ranges.erase(at);
    ::munmap(pointer(address), size);
  });
}
GPUSIM_CUDA_API int cuMemCreate(uint64_t* handle, size_t size,
                                const AllocationProperties* properties, unsigned long long flags) {
  return driver_call("cuMemCreate", [&] {
    require(handle != nullptr && properties != nullptr && flags == 0 &&
            properties->type == kPinned &&
            (properties->location.type != kOnDevice || properties->location.id == 0));
    require((properties->handle_types & ~kFileDescriptor) == 0, kNotSupported);
    require_whole(size);
    runtime().chip();  // which says how much there is
    require(size <= runtime().memory.free_bytes(), kMemoryAllocation);
    auto made = std::make_shared<Memory>();
    made->file = ::memfd_create("device memory", MFD_CLOEXEC);
    require(made->file >= 0 && ::ftruncate(made->file, static_cast<off_t>(size)) == 0,
            kMemoryAllocation);
    made->size_bytes = size;
    made->properties = *properties;
    made->properties.compression = 0;  // attributes say that there is none
    const std::lock_guard lock(all().mutex);
    *handle = add_handle(std::move(made));
  });
}
GPUSIM_CUDA_API int cuMemRelease(uint64_t handle) {
  return driver_call("cuMemRelease", [&] {
    const std::lock_guard lock(all().mutex);
    Memory& memory = all().memory(handle);
    if (--memory.handles == 0) all().handles.erase(&memory);
  });
}
GPUSIM_CUDA_API int cuMemMap(Address address, size_t size, size_t offset, uint64_t handle,
                             unsigned long long flags) {
  return driver_call("cuMemMap", [&] {
    require(flags == 0 && address % kGranularity == 0);
    require_whole(size);
    const std::lock_guard lock(all().mutex);
    const auto memory = all().handles.find(reinterpret_cast<Memory*>(handle));
    // CUDA allows no offset but zero.
    require(memory != all().handles.end() && offset == 0 && size <= memory->second->size_bytes);
    Range& range = all().range(address, size);
    auto next = range.mappings.lower_bound(address);
    require(next == range.mappings.end() || next->first >= address + size);
    require(next == range.mappings.begin() ||
            std::prev(next)->first + std::prev(next)->second.size_bytes <= address);
    require(::mmap(pointer(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   memory->second->file, 0) != MAP_FAILED,
            kMemoryAllocation);
    range.mappings[address] = {.size_bytes = size, .memory = memory->second};
  });
}
GPUSIM_CUDA_API int cuMemUnmap(Address address, size_t size) {
  return driver_call("cuMemUnmap", [&] {
    runtime().synchronize_device();
    const std::lock_guard lock(all().mutex);
    Range& range = all().range(address, size);
    for_mappings(range, address, size, [](auto) {});
    hide(range);
    for_mappings(range, address, size, [&](auto at) { range.mappings.erase(at); });
    require(::mmap(pointer(address), size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED,
            kMemoryAllocation);
    show(range);
  });
}
// Access only to read is not kept to that.
GPUSIM_CUDA_API int cuMemSetAccess(Address address, size_t size, const AccessDescription* wanted,
                                   size_t count) {
  return driver_call("cuMemSetAccess", [&] {
    require(wanted != nullptr && count != 0);
    runtime().synchronize_device();
    const std::lock_guard lock(all().mutex);
    Range& range = all().range(address, size);
    for_mappings(range, address, size, [](auto) {});
    for (size_t k = 0; k < count; ++k) {
      const auto access = static_cast<unsigned long long>(wanted[k].flags);
      require(access == 0 || access == kReadable || access == kWritable);
      if (wanted[k].location.type != kOnDevice) continue;  // the host's
      require(wanted[k].location.id == 0, kInvalidDevice);
      for_mappings(range, address, size, [&](auto at) { at->second.access = access; });
    }
    hide(range);
    show(range);
  });
}
GPUSIM_CUDA_API int cuMemGetAccess(unsigned long long* flags, const MemoryLocation* location,
                                   Address address) {
  return driver_call("cuMemGetAccess", [&] {
    require(flags != nullptr && location != nullptr);
    const std::lock_guard lock(all().mutex);
    *flags = all().mapping(address).access;
  });
}
GPUSIM_CUDA_API int cuMemGetAllocationPropertiesFromHandle(AllocationProperties* properties,
                                                           uint64_t handle) {
  return driver_call("cuMemGetAllocationPropertiesFromHandle", [&] {
    require(properties != nullptr);
    const std::lock_guard lock(all().mutex);
    *properties = all().memory(handle).properties;
  });
}
GPUSIM_CUDA_API int cuMemRetainAllocationHandle(uint64_t* handle, void* address) {
  return driver_call("cuMemRetainAllocationHandle", [&] {
    require(handle != nullptr);
    const std::lock_guard lock(all().mutex);
    const std::shared_ptr<Memory>& memory =
        all().mapping(reinterpret_cast<Address>(address)).memory;
    memory->handles = all().handles.contains(memory.get()) ? memory->handles + 1 : 1;
    *handle = add_handle(memory);
  });
}
GPUSIM_CUDA_API int cuMemExportToShareableHandle(void* shared, uint64_t handle, int type,
                                                 unsigned long long flags) {
  return driver_call("cuMemExportToShareableHandle", [&] {
    require(shared != nullptr && flags == 0);
    require(type == kFileDescriptor, kNotSupported);
    const std::lock_guard lock(all().mutex);
    const Memory& memory = all().memory(handle);
    require((memory.properties.handle_types & kFileDescriptor) != 0);
    const int file = ::fcntl(memory.file, F_DUPFD_CLOEXEC, 0);
    require(file >= 0, kMemoryAllocation);
    *static_cast<int*>(shared) = file;
  });
}
// `shared`: the file descriptor itself.
GPUSIM_CUDA_API int cuMemImportFromShareableHandle(uint64_t* handle, void* shared, int type) {
  return driver_call("cuMemImportFromShareableHandle", [&] {
    require(handle != nullptr);
    require(type == kFileDescriptor, kNotSupported);
    auto made = std::make_shared<Memory>();
    made->file = ::fcntl(static_cast<int>(reinterpret_cast<intptr_t>(shared)), F_DUPFD_CLOEXEC, 0);
    struct stat facts {};
    require(made->file >= 0 && ::fstat(made->file, &facts) == 0 && facts.st_size > 0);
    made->size_bytes = static_cast<size_t>(facts.st_size);
    made->properties.type = kPinned;
    made->properties.handle_types = kFileDescriptor;
    made->properties.location = {kOnDevice, 0};
    const std::lock_guard lock(all().mutex);
    *handle = add_handle(std::move(made));
  });
}
