// Runtime API: allocation in the order of streams, pools.
#include <fmt/format.h>

#include <map>

#include "host/cuda_api/alias.h"
#include "host/cuda_api/copies.h"
#include "host/cuda_api/graph_nodes.h"
#include "host/cuda_api/runtime.h"

using namespace gpusim::cuda_api;

namespace {

// Pools only keep their attributes: memory comes from one place.
struct Pool {
  std::map<int, uint64_t> attributes;
  uint64_t used = 0, most_used = 0;
};

struct Pools {
  std::mutex mutex;
  std::map<Pool*, std::unique_ptr<Pool>> all;
  std::map<const void*, std::pair<Pool*, size_t>> blocks;
  Pool* standard = nullptr;
  Pool* current = nullptr;
  Pools() { standard = current = make(); }
  Pool* make() {
    auto pool = std::make_unique<Pool>();
    Pool* const p = pool.get();
    p->attributes = {{1, 1}, {2, 1}, {3, 1}, {4, 0}};
    all[p] = std::move(pool);
    return p;
  }
  Pool& find(void* handle) {
    const auto at = all.find(static_cast<Pool*>(handle));
    require(at != all.end());
    return *at->second;
  }
};

Pools& pools() {
  static Pools* const only = new Pools;
  return *only;
}

bool is_captured(void* stream) {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  return r.stream(stream).capture != nullptr;
}

void allocate_from(void* pool, void** pointer, size_t size, void* stream) {
  require(pointer != nullptr);
  if (is_captured(stream)) {
    Node node = allocation_node(size);
    *pointer = node.memory->address;
    return runtime().submit(stream, std::move(node));
  }
  *pointer = allocate(size, kDeviceMemory);
  if (*pointer == nullptr) return;
  Pools& p = pools();
  const std::lock_guard lock(p.mutex);
  Pool& from = pool != nullptr ? p.find(pool) : *p.current;
  from.used += size;
  from.most_used = std::max(from.most_used, from.used);
  p.blocks[*pointer] = {&from, size};
}

}  // namespace

GPUSIM_CUDA_API int cudaMallocAsync(void** pointer, size_t size, void* stream) {
  return call("cudaMallocAsync", [&] { allocate_from(nullptr, pointer, size, stream); });
}
GPUSIM_CUDA_API int cudaMallocFromPoolAsync(void** pointer, size_t size, void* pool, void* stream) {
  return call("cudaMallocFromPoolAsync", [&] { allocate_from(pool, pointer, size, stream); });
}
GPUSIM_CUDA_API int cudaFreeAsync(void* pointer, void* stream) {
  return call("cudaFreeAsync", [&] {
    const std::string by = numbered_call();
    if (pointer == nullptr) return;
    Runtime& r = runtime();
    if (is_captured(stream)) return r.submit(stream, free_node(pointer));
    r.leave_graph(pointer);
    check_release(pointer, false, by);
    {
      Pools& p = pools();
      const std::lock_guard lock(p.mutex);
      const auto at = p.blocks.find(pointer);
      if (at != p.blocks.end()) {
        at->second.first->used -= at->second.second;
        p.blocks.erase(at);
      }
    }
    r.submit(stream, {.type = NodeType::kFree, .work = [&r, pointer, by] {
                        r.engine_for_memory().remove_memory(pointer, "freed by " + by);
                        if (!r.memory.remove(pointer, "freed by " + by) && r.checks.memory)
                          r.report.add_misuse(
                              "double free", pointer,
                              fmt::format("{} of {}, which its stream has freed", by, pointer));
                      }});
  });
}
GPUSIM_CUDA_API int cudaDeviceGetDefaultMemPool(void** pool, int device) {
  return call("cudaDeviceGetDefaultMemPool", [&] {
    require(pool != nullptr && device == 0);
    *pool = pools().standard;
  });
}
GPUSIM_CUDA_API int cudaDeviceGetMemPool(void** pool, int device) {
  return call("cudaDeviceGetMemPool", [&] {
    require(pool != nullptr && device == 0);
    const std::lock_guard lock(pools().mutex);
    *pool = pools().current;
  });
}
GPUSIM_CUDA_API int cudaDeviceSetMemPool(int device, void* pool) {
  return call("cudaDeviceSetMemPool", [&] {
    require(device == 0);
    const std::lock_guard lock(pools().mutex);
    pools().current = &pools().find(pool);
  });
}
GPUSIM_CUDA_API int cudaMemPoolCreate(void** pool, const void*) {
  return call("cudaMemPoolCreate", [&] {
    require(pool != nullptr);
    const std::lock_guard lock(pools().mutex);
    *pool = pools().make();
  });
}
GPUSIM_CUDA_API int cudaMemPoolDestroy(void* pool) {
  return call("cudaMemPoolDestroy", [&] {
    Pools& p = pools();
    const std::lock_guard lock(p.mutex);
    Pool* const found = &p.find(pool);
    require(found != p.standard);
    if (p.current == found) p.current = p.standard;
    std::erase_if(p.blocks, [&](const auto& item) { return item.second.first == found; });
    p.all.erase(found);
  });
}
GPUSIM_CUDA_API int cudaMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return call("cudaMemPoolSetAttribute", [&] {
    require(value != nullptr && attribute >= 1 && attribute <= 8);
    const std::lock_guard lock(pools().mutex);
    Pool& p = pools().find(pool);
    if (attribute == 8)
      p.most_used = p.used;
    else if (attribute >= 4)
      p.attributes[attribute] = *static_cast<uint64_t*>(value);
    else
      p.attributes[attribute] = static_cast<uint64_t>(*static_cast<int*>(value));
  });
}
GPUSIM_CUDA_API int cudaMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return call("cudaMemPoolGetAttribute", [&] {
    require(value != nullptr && attribute >= 1 && attribute <= 8);
    const std::lock_guard lock(pools().mutex);
    const Pool& p = pools().find(pool);
    if (attribute <= 3)
      *static_cast<int*>(value) = static_cast<int>(p.attributes.at(attribute));
    else if (attribute == 4)
      *static_cast<uint64_t*>(value) = p.attributes.at(attribute);
    else
      *static_cast<uint64_t*>(value) = attribute % 2 == 1 ? p.used : p.most_used;
  });
}
GPUSIM_CUDA_API int cudaMemPoolTrimTo(void* pool, size_t) {
  return call("cudaMemPoolTrimTo", [&] {
    const std::lock_guard lock(pools().mutex);
    pools().find(pool);
  });
}
GPUSIM_CUDA_API int cudaMemPoolSetAccess(void* pool, const void*, size_t) {
  return call("cudaMemPoolSetAccess", [&] {
    const std::lock_guard lock(pools().mutex);
    pools().find(pool);
  });
}

GPUSIM_ALIAS(cudaMallocAsync, _ptsz)
GPUSIM_ALIAS(cudaMallocFromPoolAsync, _ptsz)
GPUSIM_ALIAS(cudaFreeAsync, _ptsz)
