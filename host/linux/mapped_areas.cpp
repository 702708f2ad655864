#include "host/linux/mapped_areas.h"

#include <algorithm>

#include "device_sim/core/memory_view.h"

namespace gpusim::host {
namespace {

// Pages of the range with equal rights together; mapped ones only, unless a mapping has none.
void add_area(std::vector<MappedArea>& areas, Kernel& kernel, uint32_t core, AddressRange range,
              const std::string& name, bool is_mapping = false) {
  const auto rights = [&](uint64_t address) {
    return static_cast<uint8_t>(kernel.backend().permissions(core, address) &
                                (kRead | kWrite | kExecute));
  };
  for (uint64_t at = range.begin; at < range.end;) {
    const uint8_t first = rights(at);
    uint64_t end = at + kPageSize;
    while (end < range.end && rights(end) == first) end += kPageSize;
    if (first != 0 || is_mapping) areas.push_back({at, end, first, name});
    at = end;
  }
}

}  // namespace

std::vector<MappedArea> mapped_areas(Kernel& kernel, const Process& process, uint32_t core,
                                     const std::vector<uint32_t>& stacks) {
  std::vector<MappedArea> all;
  for (const Segment& s : kernel.module().segments)
    add_area(all, kernel, core, {page_down(s.address), page_up(s.address + s.size_bytes)},
             kernel.paths().program());
  const AddressSpace& space = process.memory;
  const uint64_t heap_end = page_up(space.program_break());
  for (const auto& [begin, end] : space.mapped()) {
    add_area(all, kernel, core, {begin, std::min(end, heap_end)}, "[heap]");
    add_area(all, kernel, core, {std::max(begin, heap_end), end}, {}, /*is_mapping=*/true);
  }
  for (const uint32_t of : stacks)
    add_area(all, kernel, core, {kernel.plan().stack_bottom(of), kernel.plan().stack_top(of)},
             "[stack]");
  std::sort(all.begin(), all.end(),
            [](const MappedArea& a, const MappedArea& b) { return a.begin < b.begin; });
  return all;
}

}  // namespace gpusim::host
