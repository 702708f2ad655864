// The program break and mappings.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "device_sim/core/memory_view.h"
#include "host/linux/calls.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kProtRead = 1, kProtWrite = 2, kProtExecute = 4;
constexpr uint64_t kMapShared = 1, kMapPrivate = 2, kMapFixed = 0x10, kMapAnonymous = 0x20,
                   kMapFixedNoReplace = 0x100000;

uint8_t rights_of(uint64_t protection) {
  return static_cast<uint8_t>(((protection & kProtRead) ? kRead : 0) |
                              // Linux ISAs have no pages that can be written and not read.
                              ((protection & kProtWrite) ? kRead | kWrite : 0) |
                              ((protection & kProtExecute) ? kExecute : 0));
}

// Fresh pages are zero: memory starts so, and what is unmapped is cleared.
void map_pages(Kernel& kernel, uint32_t core, const AddressRange& range, uint8_t rights) {
  if (range.size() != 0) kernel.backend().set_permissions(core, range.begin, range.size(), rights);
}
void unmap_pages(Kernel& kernel, uint32_t core, const AddressRange& range) {
  if (range.size() == 0) return;
  kernel.backend().fill_zero(core, range.begin, range.size());
  kernel.backend().set_permissions(core, range.begin, range.size(), 0);
}

// Translated code must stay as it was translated.
bool makes_code_writable(const Module& module, uint64_t address, uint64_t size, uint8_t rights) {
  if ((rights & kWrite) == 0) return false;
  return std::any_of(module.segments.begin(), module.segments.end(), [&](const Segment& s) {
    return (s.flags & kExecute) && address < page_up(s.address + s.size_bytes) &&
           address + size > page_down(s.address);
  });
}

bool read_file_into(Call& call, int host_fd, uint64_t offset, uint64_t address, uint64_t size,
                    Kernel& kernel) {
  std::vector<uint8_t> bytes(std::min<uint64_t>(size, uint64_t{1} << 20));
  for (uint64_t done = 0; done < size;) {
    const uint64_t wish = std::min<uint64_t>(bytes.size(), size - done);
    const ssize_t n = ::pread(host_fd, bytes.data(), wish, static_cast<off_t>(offset + done));
    if (n < 0) return false;
    if (n == 0) return true;  // the rest of the last page is zero
    kernel.backend().write_memory(call.core, address + done,
                                  {bytes.data(), static_cast<size_t>(n)});
    done += static_cast<uint64_t>(n);
  }
  return true;
}

}  // namespace

Reply sys_brk(Kernel& kernel, Call& call) {
  AddressSpace& space = call.process->memory;
  if (const auto change = space.set_break(call.args[0])) {
    map_pages(kernel, call.core, change->map, kRead | kWrite);
    unmap_pages(kernel, call.core, change->unmap);
  }
  return Reply::result(static_cast<int64_t>(space.program_break()));
}

Reply sys_mmap(Kernel& kernel, Call& call) {
  const auto [hint, length, protection, flags, fd, offset] = call.args;
  if (length == 0 || (flags & 0xf) == 0 || (offset & (kPageSize - 1))) return Reply::error(EINVAL);
  if (length > uint64_t{1} << 47) return Reply::error(ENOMEM);
  const uint64_t size = page_up(length);
  const OpenFile* file = nullptr;
  if (!(flags & kMapAnonymous)) {
    file = call.process->files.find(call.int_arg(4));
    if (!file) return Reply::error(EBADF);
    // A shared mapping would have to carry stores to the file.
    if ((flags & 0xf) != kMapPrivate && (protection & kProtWrite)) {
      kernel.note_once("mmap shared", "shared writable file mappings are not provided (ENODEV)");
      return Reply::error(ENODEV);
    }
  }
  AddressSpace& space = call.process->memory;
  uint64_t address;
  if (flags & (kMapFixed | kMapFixedNoReplace)) {
    if (hint & (kPageSize - 1)) return Reply::error(EINVAL);
    if (!space.can_place_at(hint, size)) return Reply::error(ENOMEM);
    if ((flags & kMapFixedNoReplace) && space.is_mapped(hint, size)) return Reply::error(EEXIST);
    for (const AddressRange& old : space.place_at(hint, size)) unmap_pages(kernel, call.core, old);
    address = hint;
  } else {
    const auto place = space.place(size, page_down(hint));
    if (!place) return Reply::error(ENOMEM);
    address = *place;
  }
  if (file && !read_file_into(call, file->host_fd(), offset, address, length, kernel)) {
    const int error = errno == ESPIPE ? ENODEV : errno;
    for (const AddressRange& r : space.remove(address, size)) unmap_pages(kernel, call.core, r);
    return Reply::error(error);
  }
  map_pages(kernel, call.core, {address, address + size}, rights_of(protection));
  return Reply::result(static_cast<int64_t>(address));
}

Reply sys_munmap(Kernel& kernel, Call& call) {
  const uint64_t address = call.args[0], size = page_up(call.args[1]);
  if ((address & (kPageSize - 1)) || size == 0 || address + size < address)
    return Reply::error(EINVAL);
  for (const AddressRange& r : call.process->memory.remove(address, size))
    unmap_pages(kernel, call.core, r);
  return Reply::result(0);
}

Reply sys_mprotect(Kernel& kernel, Call& call) {
  const uint64_t address = call.args[0], size = page_up(call.args[1]);
  if ((address & (kPageSize - 1)) || address + size < address) return Reply::error(EINVAL);
  if (size == 0) return Reply::result(0);
  const uint8_t rights = rights_of(call.args[2]);
  if (makes_code_writable(kernel.module(), address, size, rights)) {
    kernel.note_once("mprotect code",
                     "code cannot be made writable: it is translated ahead of time (EACCES)");
    return Reply::error(EACCES);
  }
  // Of the image, the heap or a mapping; the stacks too.
  return kernel.backend().set_permissions(call.core, address, size, rights) ? Reply::result(0)
                                                                            : Reply::error(ENOMEM);
}

// Shrinks in place, grows by moving.
Reply sys_mremap(Kernel& kernel, Call& call) {
  constexpr uint64_t kMayMove = 1;
  const uint64_t address = call.args[0], old_size = page_up(call.args[1]),
                 new_size = page_up(call.args[2]), flags = call.args[3];
  AddressSpace& space = call.process->memory;
  if ((address & (kPageSize - 1)) || new_size == 0 || new_size > uint64_t{1} << 47 ||
      (flags & ~kMayMove))
    return Reply::error(EINVAL);
  if (old_size == 0 || address + old_size < address || !space.is_mapped(address, old_size))
    return Reply::error(EFAULT);
  if (new_size <= old_size) {
    for (const AddressRange& r : space.remove(address + new_size, old_size - new_size))
      unmap_pages(kernel, call.core, r);
    return Reply::result(static_cast<int64_t>(address));
  }
  if (!(flags & kMayMove)) return Reply::error(ENOMEM);
  const uint8_t rights = kernel.backend().permissions(call.core, address);
  const auto place = space.place(new_size);
  if (!place) return Reply::error(ENOMEM);
  std::vector<uint8_t> bytes(std::min<uint64_t>(old_size, uint64_t{1} << 20));
  for (uint64_t done = 0; done < old_size; done += bytes.size()) {
    bytes.resize(std::min<uint64_t>(bytes.size(), old_size - done));
    kernel.backend().read_memory(call.core, address + done, bytes);
    kernel.backend().write_memory(call.core, *place + done, bytes);
  }
  map_pages(kernel, call.core, {*place, *place + new_size}, rights);
  for (const AddressRange& r : space.remove(address, old_size)) unmap_pages(kernel, call.core, r);
  return Reply::result(static_cast<int64_t>(*place));
}

Reply sys_madvise(Kernel& kernel, Call& call) {
  constexpr int64_t kDontNeed = 4;
  const uint64_t address = call.args[0], size = page_up(call.args[1]);
  if ((address & (kPageSize - 1)) || address + size < address) return Reply::error(EINVAL);
  // The one advice with an effect that programs rely on: the pages read as zero afterwards.
  if (call.int_arg(2) == kDontNeed) {
    if (!call.process->memory.is_mapped(address, size)) return Reply::result(0);
    kernel.backend().fill_zero(call.core, address, size);
  }
  return Reply::result(0);
}

}  // namespace gpusim::host
