#include "host/loader.h"

#include <fmt/format.h>

#include "device_sim/base/error.h"
#include "device_sim/core/memory_view.h"

namespace gpusim::host {
namespace {

void require(bool done, const char* what, uint64_t address) {
  if (!done) throw Error(fmt::format("cannot {} at {:#x}: outside guest memory", what, address));
}

// Segments need not begin and end at pages: a page then has the rights of all that share it.
uint8_t page_rights(const Module& module, uint64_t page) {
  uint8_t flags = 0;
  for (const Segment& s : module.segments)
    if (s.size_bytes != 0 && page_down(s.address) <= page && page < s.address + s.size_bytes)
      flags |= s.flags;
  return flags;
}

void set_rights(Backend& backend, uint64_t address, uint64_t size_bytes, uint8_t flags,
                uint64_t seam) {
  if (address < seam && size_bytes > seam - address) {
    set_rights(backend, address, seam - address, flags, seam);
    size_bytes -= seam - address;
    address = seam;
  }
  require(backend.set_permissions_all(address, size_bytes, flags), "map a segment", address);
}

void set_segment_rights(Backend& backend, const Module& module, uint64_t seam) {
  for (const Segment& s : module.segments) {
    if (s.size_bytes == 0) continue;
    set_rights(backend, s.address, s.size_bytes, s.flags, seam);
  }
  for (const Segment& s : module.segments) {
    if (s.size_bytes == 0) continue;
    for (const uint64_t page : {page_down(s.address), page_down(s.address + s.size_bytes - 1)})
      set_rights(backend, page, kPageSize, page_rights(module, page), seam);
  }
}

}  // namespace

void map_stacks(Backend& backend, const MemoryPlan& plan) {
  for (uint32_t core = 0; core < plan.config.cores; ++core)
    require(backend.set_permissions(core, plan.stack_bottom(core), plan.stack_size_bytes,
                                    kRead | kWrite),
            "map a stack", plan.stack_bottom(core));
}

void load_image(Backend& backend, const Module& module, const MemoryPlan& plan) {
  const uint64_t seam = plan.config.window_base;
  for (const Segment& s : module.segments) {
    std::span<const uint8_t> bytes = s.bytes;
    uint64_t address = s.address;
    // What lies in the windows has another number of copies than what lies below them.
    if (address < seam && bytes.size() > seam - address) {
      require(backend.write_memory_all(address, bytes.first(seam - address)), "load a segment",
              address);
      bytes = bytes.subspan(seam - address);
      address = seam;
    }
    if (!bytes.empty())
      require(backend.write_memory_all(address, bytes), "load a segment", address);
  }
  set_segment_rights(backend, module, seam);
  if (plan.config.memory_model == MemoryModel::kPrivate) {
    require(
        backend.set_permissions_all(plan.stack_bottom(0), plan.stack_size_bytes, kRead | kWrite),
        "map a stack", plan.stack_bottom(0));
    return;
  }
  map_stacks(backend, plan);
}

}  // namespace gpusim::host
