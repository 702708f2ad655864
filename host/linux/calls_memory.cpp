// The program break and mappings.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "device_sim/core/memory_view.h"
#include "host/linux/calls.h"
#include "host/linux/pages.h"
#include "translator/common/limits.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kProtRead = 1, kProtWrite = 2, kProtExecute = 4;
constexpr uint64_t kMapShared = 1, kMapPrivate = 2, kMapFixed = 0x10, kMapAnonymous = 0x20,
                   kMapNoReserve = 0x4000, kMapStack = 0x20000, kMapFixedNoReplace = 0x100000;

uint8_t rights_of(uint64_t protection) {
  return static_cast<uint8_t>(((protection & kProtRead) ? kRead : 0) |
                              // Linux ISAs have no pages that can be written and not read.
                              ((protection & kProtWrite) ? kRead | kWrite : 0) |
                              ((protection & kProtExecute) ? kExecute : 0));
}

// Whole pages of so many bytes, in the guest's arithmetic.
uint64_t pages_of(const Call& call, uint64_t size) {
  const uint64_t bytes = page_up(size);
  return call.word_bytes == 4 ? static_cast<uint32_t>(bytes) : bytes;
}
// Whether the range leaves the addresses of the guest's pointers.
bool overflows(const Call& call, uint64_t address, uint64_t size) {
  return call.word_bytes == 4 ? address + size > uint64_t{1} << 32 : address + size < address;
}

AddressRange range_of(uint64_t address, uint64_t size) { return {address, address + size}; }
AddressRange common(const AddressRange& a, const AddressRange& b) {
  const uint64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// What a process has besides its heap and mappings: image and stack. Of many stacks, the caller's.
std::vector<AddressRange> first_ranges(const Kernel& kernel, const Call& call) {
  const MemoryPlan& plan = kernel.plan();
  std::vector<AddressRange> ranges;
  for (const Segment& s : kernel.module().segments)
    if (s.size_bytes != 0)
      ranges.push_back({page_down(s.address), page_up(s.address + s.size_bytes)});
  const uint32_t core = kernel.starts_alone() ? 0 : call.core;
  ranges.push_back({plan.stack_bottom(core), plan.stack_top(core)});
  return ranges;
}

bool is_of_a_stack(const Kernel& kernel, const Call& call, uint64_t page) {
  const MemoryPlan& plan = kernel.plan();
  uint64_t core = call.core;
  if (!kernel.is_private()) {
    if (page < plan.config.window_base) return false;
    core = (page - plan.config.window_base) >> plan.config.window_shift;
    if (core >= plan.config.cores) return false;
  }
  const auto number = static_cast<uint32_t>(core);
  return page >= plan.stack_bottom(number) && page < plan.stack_top(number);
}

// Whether all pages of the range are mapped. Those of the image and the stacks always are.
bool is_mapped(const Kernel& kernel, const Call& call, const AddressRange& range) {
  const AddressSpace& space = call.process->memory;
  if (range.size() == 0 || space.is_mapped(range.begin, range.size())) return true;
  const auto is_of_image = [&](uint64_t page) {
    const auto& segments = kernel.module().segments;
    return std::any_of(segments.begin(), segments.end(), [&](const Segment& s) {
      return page >= page_down(s.address) && page < page_up(s.address + s.size_bytes);
    });
  };
  for (uint64_t page = range.begin; page < range.end; page += kPageSize)
    if (!space.is_mapped(page, kPageSize) && !is_of_image(page) &&
        !is_of_a_stack(kernel, call, page))
      return false;
  return true;
}

// Translated code must stay as it was translated.
bool holds_code(const Module& module, uint64_t address, uint64_t size) {
  return std::any_of(module.segments.begin(), module.segments.end(), [&](const Segment& s) {
    return (s.flags & kExecute) && address < page_up(s.address + s.size_bytes) &&
           address + size > page_down(s.address);
  });
}

// Where a mapping may be put that names its place.
bool can_place_at(const Kernel& kernel, const Call& call, const AddressRange& range) {
  if (call.process->memory.can_place_at(range.begin, range.size())) return true;
  const std::vector<AddressRange> own = first_ranges(kernel, call);
  return !holds_code(kernel.module(), range.begin, range.size()) &&
         std::any_of(own.begin(), own.end(), [&](const AddressRange& r) {
           return common(r, range) == range;
         });
}

// Takes the range out of the address space. Code loses its rights and stays what it is.
void unmap_range(Kernel& kernel, const Call& call, const AddressRange& range) {
  for (const AddressRange& r : call.process->memory.remove(range.begin, range.size()))
    unmap_pages(kernel, call.core, r);
  for (const AddressRange& own : first_ranges(kernel, call)) {
    const AddressRange r = common(own, range);
    if (r.size() != 0 && holds_code(kernel.module(), r.begin, r.size()))
      map_pages(kernel, call.core, r, 0);
    else
      unmap_pages(kernel, call.core, r);
  }
}

// RLIMIT_AS and RLIMIT_DATA; every mapping counts as data.
bool exceeds_limits(Kernel& kernel, const Call& call, uint64_t more) {
  const Limits& limits = call.process->limits;
  const uint64_t most = std::min(limits[Limits::kAddressSpace].current,
                                 limits[Limits::kData].current);
  if (most == Limits::kInfinite) return false;
  uint64_t data = call.process->memory.mapped_bytes(), all = data + kernel.plan().stack_size_bytes;
  for (const Segment& s : kernel.module().segments) {
    all += s.size_bytes;
    if (s.flags & kWrite) data += s.size_bytes;
  }
  return all + more > limits[Limits::kAddressSpace].current ||
         data + more > limits[Limits::kData].current;
}

// Whether what lies there can be translated.
bool may_hold_code(const Kernel& kernel, uint64_t address, uint64_t size) {
  const uint64_t base = kernel.module().code.text_base;
  return address >= base && size <= kCodeLimit && address - base <= kCodeLimit - size;
}

struct RoomWish {
  uint64_t size_bytes, hint;
  bool is_code, may_be_library;
};

// Where segments are aligned to more than a page, glibc's ld.so first takes room without rights,
// and maps the library there. Stacks of threads and heaps begin so, too, but with other flags.
bool is_reserved_for_file(uint64_t protection, uint64_t flags) {
  return protection == 0 && (flags & kMapAnonymous) && !(flags & (kMapStack | kMapNoReserve));
}

// Code lies near the program: mappings that are to be executed, what may be libraries of a dynamic
// program, and what such a program may yet make executable.
std::optional<uint64_t> place_for(const Kernel& kernel, AddressSpace& space, const RoomWish& wish) {
  constexpr uint64_t kSmall = uint64_t{4} << 20, kLargeFile = uint64_t{64} << 20;
  // What the heap of a static program may grow by before code lies in its way.
  constexpr uint64_t kRoomForHeap = uint64_t{32} << 20;
  // Near code, because code is to come there, too: V8 takes room for its own like that.
  const bool is_code = wish.is_code || (wish.hint != 0 && may_hold_code(kernel, wish.hint, 0));
  const bool has_place = wish.hint != 0 && space.is_free(wish.hint, wish.size_bytes);
  if (has_place && may_hold_code(kernel, wish.hint, wish.size_bytes))
    return space.place(wish.size_bytes, wish.hint);
  const uint64_t end = kernel.plan().heap_start, first = end - kernel.plan().code_room;
  std::optional<uint64_t> place;
  if (first == end) {
    const uint64_t last = kernel.module().code.text_base + kCodeLimit;
    if (is_code) place = space.place_between(wish.size_bytes, first + kRoomForHeap, last);
  } else if (is_code || (wish.may_be_library && wish.size_bytes <= kLargeFile)) {
    place = space.place_between(wish.size_bytes, first, end);
  } else if (wish.size_bytes <= kSmall) {
    place = space.place_between(wish.size_bytes, first, first + (end - first) / 2);
  }
  return place ? place : space.place(wish.size_bytes, wish.hint);
}

void clear_pages(Kernel& kernel, uint32_t core, const AddressRange& range) {
  kernel.backend().fill_zero(core, range.begin, range.size());
  if (LateCode* const code = kernel.late_code()) code->was_changed(core, range);
}

// Where memory of the process ended, and not a limit that the guest set itself. Programs also try
// for much address space that they can do without.
void note_that_memory_is_full(Kernel& kernel, const char* name, uint64_t size_bytes) {
  constexpr double kMiB = 1 << 20;
  kernel.note_once("memory",
                   fmt::format("the guest's memory is full: {} of {:.1f} MiB returns ENOMEM; "
                               "--memory-size gives more than {:.0f} MiB (said once)",
                               name, static_cast<double>(size_bytes) / kMiB,
                               static_cast<double>(kernel.memory_size_bytes()) / kMiB));
}

// A file without a name, for memory that a child shares with its parent: fork copies other pages.
// Null where there can be no child: the memory is the process's own.
FileRef shared_memory(Kernel& kernel, uint64_t size_bytes, int* error) {
  if (!kernel.shared_mappings().are_possible() || !kernel.found_family()) return nullptr;
  const int fd = ::memfd_create("shared", MFD_CLOEXEC);
  if (fd >= 0) {
    auto file = std::make_shared<OpenFile>(fd, /*owned=*/true, OpenFile::Kind::kMemory);
    if (::ftruncate(fd, static_cast<off_t>(size_bytes)) == 0) return file;
  }
  *error = ENOMEM;
  return nullptr;
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

// Fresh pages are zero: memory starts so, and what is unmapped is cleared.
void map_pages(Kernel& kernel, uint32_t core, const AddressRange& range, uint8_t rights) {
  if (range.size() == 0) return;
  kernel.backend().set_permissions(core, range.begin, range.size(), rights);
  if (LateCode* const code = kernel.late_code()) code->was_mapped(core, range, rights);
}
void unmap_pages(Kernel& kernel, uint32_t core, const AddressRange& range) {
  if (range.size() == 0) return;
  if (LateCode* const code = kernel.late_code()) code->was_unmapped(range);
  kernel.shared_mappings().unmap(range.begin, range.size());  // before it is cleared
  kernel.backend().fill_zero(core, range.begin, range.size());
  kernel.backend().set_permissions(core, range.begin, range.size(), 0);
}

Reply sys_brk(Kernel& kernel, Call& call) {
  AddressSpace& space = call.process->memory;
  const uint64_t now = space.program_break(), wish = call.args[0];
  if (wish > now && exceeds_limits(kernel, call, page_up(wish) - page_up(now)))
    return Reply::result(static_cast<int64_t>(now));
  if (const auto change = space.set_break(wish)) {
    map_pages(kernel, call.core, change->map, kRead | kWrite);
    for (const AddressRange& r : change->unmap) unmap_pages(kernel, call.core, r);
  }
  return Reply::result(static_cast<int64_t>(space.program_break()));
}

Reply sys_mmap(Kernel& kernel, Call& call) {
  const auto [hint, length, protection, flags, fd, offset] = call.args;
  if (length == 0 || (flags & 0xf) == 0 || (offset & (kPageSize - 1))) return Reply::error(EINVAL);
  if (length > uint64_t{1} << 47) return Reply::error(ENOMEM);
  const uint64_t size = page_up(length);
  FileRef file;
  const bool is_shared = (flags & 0xf) != kMapPrivate;
  if (!(flags & kMapAnonymous)) {
    file = call.process->files.share(call.int_arg(4));
    if (!file) return Reply::error(EBADF);
    if (is_shared && (protection & kProtWrite) && !kernel.shared_mappings().are_possible()) {
      kernel.note_once("mmap shared",
                       "shared writable file mappings need --memory shared and a backend that works in "
                       "the host's memory (ENODEV)");
      return Reply::error(ENODEV);
    }
  }
  AddressSpace& space = call.process->memory;
  if (exceeds_limits(kernel, call, size)) return Reply::error(ENOMEM);
  uint64_t address;
  if (flags & (kMapFixed | kMapFixedNoReplace)) {
    if (hint & (kPageSize - 1)) return Reply::error(EINVAL);
    if (!can_place_at(kernel, call, range_of(hint, size))) return Reply::error(ENOMEM);
    if ((flags & kMapFixedNoReplace) && !space.is_free(hint, size)) return Reply::error(EEXIST);
    unmap_range(kernel, call, range_of(hint, size));
    if (space.can_place_at(hint, size)) space.place_at(hint, size);
    address = hint;
  } else {
    const auto place = place_for(kernel, space,
                                 {.size_bytes = size,
                                  .hint = page_down(hint),
                                  .is_code = (protection & kProtExecute) != 0,
                                  .may_be_library =
                                      file || is_reserved_for_file(protection, flags)});
    if (!place) {
      const bool is_stack = (flags & kMapStack) != 0;
      if (protection != 0 || is_stack)
        note_that_memory_is_full(kernel, is_stack ? "mmap (a thread's stack)" : "mmap", size);
      return Reply::error(ENOMEM);
    }
    address = *place;
  }
  int error = 0;
  const bool is_file = file != nullptr;
  if (!is_file && is_shared) file = shared_memory(kernel, size, &error);
  if (file && is_shared && kernel.shared_mappings().are_possible())
    error = kernel.shared_mappings().map(address, size, file, is_file ? offset : 0,
                                         protection & kProtWrite);
  else if (file && !read_file_into(call, file->host_fd(), offset, address, length, kernel))
    error = errno == ESPIPE ? ENODEV : errno;
  if (error != 0) {
    for (const AddressRange& r : space.remove(address, size)) unmap_pages(kernel, call.core, r);
    return Reply::error(error);
  }
  map_pages(kernel, call.core, {address, address + size}, rights_of(protection));
  if (LateCode* const code = kernel.late_code(); code && is_file && (protection & kProtExecute))
    code->was_mapped_from(file->host_fd(), address, offset);
  return Reply::result(static_cast<int64_t>(address));
}

Reply sys_munmap(Kernel& kernel, Call& call) {
  const uint64_t address = call.args[0], size = pages_of(call, call.args[1]);
  // The last page of 32 bits is none of a process's.
  const uint64_t end = call.word_bytes == 4 ? 0xfffff000 : uint64_t{1} << 48;
  if ((address & (kPageSize - 1)) || size == 0 || size > end || address > end - size)
    return Reply::error(EINVAL);
  unmap_range(kernel, call, range_of(address, size));
  return Reply::result(0);
}

Reply sys_mprotect(Kernel& kernel, Call& call) {
  const uint64_t address = call.args[0], size = pages_of(call, call.args[1]);
  if (address & (kPageSize - 1)) return Reply::error(EINVAL);
  if (call.args[1] == 0) return Reply::result(0);
  if (size == 0 || overflows(call, address, size)) return Reply::error(ENOMEM);
  const uint8_t rights = rights_of(call.args[2]);
  if (!is_mapped(kernel, call, range_of(address, size))) return Reply::error(ENOMEM);
  if ((rights & kWrite) && holds_code(kernel.module(), address, size)) {
    kernel.note_once("mprotect code",
                     "code of the program's file cannot be made writable (EACCES): write code "
                     "into memory of mmap instead");
    return Reply::error(EACCES);
  }
  if (rights & kWrite)
    for (const SharedMappings::Mapping& m : kernel.shared_mappings().overlapping(address, size))
      if (!m.is_writable) return Reply::error(EACCES);
  // Of the image, the heap or a mapping; the stacks too.
  if (!kernel.backend().set_permissions(call.core, address, size, rights))
    return Reply::error(ENOMEM);
  if (LateCode* const code = kernel.late_code())
    code->was_mapped(call.core, range_of(address, size), rights);
  if ((rights & kExecute) && !may_hold_code(kernel, address, size))
    kernel.note_once(
        "far code", fmt::format("memory at {:#x} was made executable, but code is executed only in "
                                "the {} MiB from the program's on: map it executable (mmap with "
                                "PROT_EXEC), or link the program dynamically",
                                address, kCodeLimit >> 20));
  return Reply::result(0);
}

// Shrinks in place, grows in place where there is room, else by moving.
Reply sys_mremap(Kernel& kernel, Call& call) {
  constexpr uint64_t kMayMove = 1, kFixed = 2, kDontUnmap = 4, kMost = uint64_t{1} << 47;
  const uint64_t address = call.args[0], old_size = page_up(call.args[1]),
                 new_size = page_up(call.args[2]), flags = call.args[3], target = call.args[4];
  AddressSpace& space = call.process->memory;
  if ((address & (kPageSize - 1)) || old_size == 0 || new_size == 0 || new_size > kMost ||
      (flags & ~(kMayMove | kFixed | kDontUnmap)))
    return Reply::error(EINVAL);
  if ((flags & (kFixed | kDontUnmap)) && !(flags & kMayMove)) return Reply::error(EINVAL);
  if ((flags & kDontUnmap) && old_size != new_size) return Reply::error(EINVAL);
  if (overflows(call, address, old_size)) return Reply::error(EINVAL);
  const AddressRange old = range_of(address, old_size);
  if (flags & kFixed) {
    if ((target & (kPageSize - 1)) || target > kMost ||
        common(old, range_of(target, new_size)).size() != 0)
      return Reply::error(EINVAL);
  }
  if (!space.is_mapped(address, old_size)) return Reply::error(EFAULT);
  // Of a file that is mapped shared: the whole range, or none of it.
  std::optional<SharedMappings::Mapping> shared;
  if (const SharedMappings::Mapping* m = kernel.shared_mappings().find(address, old_size))
    shared = *m;
  else if (!kernel.shared_mappings().overlapping(address, old_size).empty())
    return Reply::error(EFAULT);
  if (shared && (flags & kDontUnmap)) return Reply::error(EINVAL);
  if (!(flags & (kFixed | kDontUnmap)) && new_size <= old_size) {
    for (const AddressRange& r : space.remove(address + new_size, old_size - new_size))
      unmap_pages(kernel, call.core, r);
    return Reply::result(static_cast<int64_t>(address));
  }
  const uint64_t more = flags & kDontUnmap ? new_size : new_size - std::min(new_size, old_size);
  if (exceeds_limits(kernel, call, more)) return Reply::error(ENOMEM);
  const uint8_t rights = kernel.backend().permissions(call.core, address);
  if (!(flags & (kFixed | kDontUnmap)) && space.is_free(old.end, more)) {
    if (shared)
      if (const int error = kernel.shared_mappings().map(
              old.end, more, shared->file, shared->offset + (old.end - shared->begin),
              shared->is_writable))
        return Reply::error(error);
    space.place_at(old.end, more);
    map_pages(kernel, call.core, range_of(old.end, more), rights);
    return Reply::result(static_cast<int64_t>(address));
  }
  if (!(flags & kMayMove)) return Reply::error(ENOMEM);
  std::optional<uint64_t> place;
  if (flags & kFixed) {
    if (!space.can_place_at(target, new_size)) return Reply::error(ENOMEM);
    unmap_range(kernel, call, range_of(target, new_size));
    space.place_at(target, new_size);
    place = target;
  } else {
    place = space.place(new_size);
  }
  if (!place) {
    note_that_memory_is_full(kernel, "mremap", new_size);
    return Reply::error(ENOMEM);
  }
  const uint64_t moved = std::min(old_size, new_size);
  if (shared) {
    const int error = kernel.shared_mappings().map(*place, new_size, shared->file,
                                                   shared->offset + (address - shared->begin),
                                                   shared->is_writable);
    if (error != 0) {
      unmap_range(kernel, call, range_of(*place, new_size));
      return Reply::error(error);
    }
  }
  std::vector<uint8_t> bytes(std::min<uint64_t>(moved, uint64_t{1} << 20));
  for (uint64_t done = 0; done < moved && !shared; done += bytes.size()) {
    bytes.resize(std::min<uint64_t>(bytes.size(), moved - done));
    kernel.backend().read_memory(call.core, address + done, bytes);
    kernel.backend().write_memory(call.core, *place + done, bytes);
  }
  map_pages(kernel, call.core, range_of(*place, new_size), rights);
  if (flags & kDontUnmap)
    kernel.backend().fill_zero(call.core, address, old_size);
  else
    unmap_range(kernel, call, old);
  return Reply::result(static_cast<int64_t>(*place));
}

Reply sys_madvise(Kernel& kernel, Call& call) {
  // Those of mman-common.h that concern private memory: hints, but for kDontNeed.
  constexpr int64_t kDontNeed = 4, kFirstLater = 8, kRemove = 9, kLast = 21;
  const uint64_t address = call.args[0], size = pages_of(call, call.args[1]);
  const int64_t advice = call.int_arg(2);
  if ((address & (kPageSize - 1)) || (size == 0 && call.args[1] != 0) ||
      overflows(call, address, size) || advice < 0 || advice > kLast ||
      (advice > kDontNeed && advice < kFirstLater) || advice == kRemove)
    return Reply::error(EINVAL);
  const AddressRange range = range_of(address, size);
  if (!is_mapped(kernel, call, range)) return Reply::error(ENOMEM);
  // The one advice with an effect that programs rely on: the pages read as zero afterwards. Not those
  // of the image, which would have the file's contents.
  const uint64_t from = std::max(range.begin, call.process->memory.start());
  if (advice == kDontNeed && from < range.end &&
      kernel.shared_mappings().overlapping(from, range.end - from).empty())
    clear_pages(kernel, call.core, {from, range.end});
  return Reply::result(0);
}

// All that is mapped is there, and stays.
Reply sys_mlock(Kernel& kernel, Call& call) {
  const uint64_t begin = page_down(call.args[0]), end = page_up(call.args[0] + call.args[1]);
  if (end < begin || overflows(call, begin, end - begin)) return Reply::error(EINVAL);
  return is_mapped(kernel, call, {begin, end}) ? Reply::result(0) : Reply::error(ENOMEM);
}
Reply sys_mincore(Kernel& kernel, Call& call) {
  const uint64_t address = call.args[0], size = pages_of(call, call.args[1]);
  if ((address & (kPageSize - 1))) return Reply::error(EINVAL);
  if ((size == 0 && call.args[1] != 0) || overflows(call, address, size) ||
      !is_mapped(kernel, call, range_of(address, size)))
    return Reply::error(ENOMEM);
  const std::vector<uint8_t> here(size / kPageSize, 1);
  return call.memory.write(call.args[2], here) ? Reply::result(0) : Reply::error(EFAULT);
}

Reply sys_msync(Kernel& kernel, Call& call) {
  constexpr uint64_t kAsync = 1, kInvalidate = 2, kSync = 4;
  const uint64_t address = call.args[0], size = page_up(call.args[1]), flags = call.args[2];
  if ((address & (kPageSize - 1)) || overflows(call, address, size) ||
      (flags & ~(kAsync | kInvalidate | kSync)) || (flags & (kAsync | kSync)) == (kAsync | kSync))
    return Reply::error(EINVAL);
  if (!(flags & kSync)) return Reply::result(0);
  const int error = kernel.shared_mappings().sync(address, size);
  return error != 0 ? Reply::error(error) : Reply::result(0);
}

}  // namespace gpusim::host
