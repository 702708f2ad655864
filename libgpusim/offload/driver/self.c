// SPDX-License-Identifier: MIT
// The calling executable as a program: its ELF file for the code, its own pages for what it can
// write.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libgpusim/offload/front/internal.h"

#if UINTPTR_MAX > 0xffffffffu
typedef Elf64_Ehdr elf_header;
typedef Elf64_Phdr elf_segment;
enum { kElfClass = ELFCLASS64 };
#else
typedef Elf32_Ehdr elf_header;
typedef Elf32_Phdr elf_segment;
enum { kElfClass = ELFCLASS32 };
#endif

static const char kSelf[] = "/proc/self/exe";

struct file {
  const uint8_t* bytes;
  size_t size_bytes;
};

static int map_self(struct file* file) {
  const int fd = open(kSelf, O_RDONLY | O_CLOEXEC);
  struct stat state;
  if (fd < 0 || fstat(fd, &state) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return fail(GPUSIM_INVALID_PROGRAM, "%s: %s (is /proc mounted?)", kSelf, strerror(error));
  }
  void* const p = mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (p == MAP_FAILED) return fail(GPUSIM_OUT_OF_MEMORY, "%s: %s", kSelf, strerror(errno));
  file->bytes = p;
  file->size_bytes = (size_t)state.st_size;
  return GPUSIM_OK;
}

static int check_header(const struct file* file) {
  const elf_header* const header = (const elf_header*)(const void*)file->bytes;
  if (file->size_bytes < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != kElfClass || header->e_phentsize != sizeof(elf_segment) ||
      header->e_phoff % sizeof(uint64_t) != 0 || header->e_phoff > file->size_bytes ||
      header->e_phnum > (file->size_bytes - header->e_phoff) / sizeof(elf_segment)) {
    return fail(GPUSIM_INVALID_PROGRAM, "%s is not an ELF file of this machine", kSelf);
  }
  if (header->e_type == ET_DYN) {
    return fail(
        GPUSIM_NOT_SUPPORTED,
        "this program is position-independent: its addresses lie above those of the device; "
        "link it with -static or -no-pie");
  }
  return GPUSIM_OK;
}

static int add_range(gpusim_device* device, struct gpusim_offload_self* self, uint64_t first,
                     uint64_t last, bool read_only) {
  struct gpusim_offload_range* const larger =
      realloc(self->ranges, (self->range_count + 1) * sizeof *larger);
  if (larger == NULL) return fail(GPUSIM_OUT_OF_MEMORY, "out of memory");
  self->ranges = larger;
  struct gpusim_offload_range* const range = &larger[self->range_count];
  memset(range, 0, sizeof *range);
  const int status = gpusim_offload_attach(device, first, last, read_only, range);
  if (status == GPUSIM_OK) ++self->range_count;
  return status;
}

// The pages of [first, last), as the process may use them now: parts are protected after start-up
// (RELRO), which the file does not say exactly.
static int attach_segment(gpusim_device* device, struct gpusim_offload_self* self, uint64_t first,
                          uint64_t last) {
  FILE* const maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) {
    return fail(GPUSIM_INVALID_PROGRAM, "/proc/self/maps: %s", strerror(errno));
  }
  int status = GPUSIM_OK;
  char* line = NULL;
  size_t room = 0;
  // Mappings side by side with the same rights are one range.
  uint64_t begin = 0;
  uint64_t end = 0;
  bool read_only = false;
  while (status == GPUSIM_OK && getline(&line, &room, maps) > 0) {
    uint64_t from;
    uint64_t to;
    char rights[5];
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, rights) != 3) continue;
    if (from < first) from = first;
    if (to > last) to = last;
    if (from >= to || rights[0] != 'r') continue;
    const bool is_read_only = rights[1] != 'w';
    if (from == end && is_read_only == read_only && begin != end) {
      end = to;
      continue;
    }
    if (begin != end) status = add_range(device, self, begin, end, read_only);
    begin = from;
    end = to;
    read_only = is_read_only;
  }
  if (status == GPUSIM_OK && begin != end) status = add_range(device, self, begin, end, read_only);
  free(line);
  fclose(maps);
  return status;
}

static int attach_segments(gpusim_device* device, const struct file* file,
                           struct gpusim_offload_self* self) {
  const elf_header* const header = (const elf_header*)(const void*)file->bytes;
  const elf_segment* const segments =
      (const elf_segment*)(const void*)(file->bytes + header->e_phoff);
  const uint64_t page = device->properties.page_size_bytes;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const elf_segment* const s = &segments[i];
    if (s->p_type != PT_LOAD || s->p_memsz == 0) continue;
    const uint64_t first = s->p_vaddr & ~(page - 1);
    const uint64_t last = (s->p_vaddr + s->p_memsz + page - 1) & ~(page - 1);
    if (last > device->properties.address_space_bytes) {
      return fail(GPUSIM_NOT_SUPPORTED,
                  "this program is linked at %#" PRIx64 ", above the device's addresses", first);
    }
    if ((s->p_flags & PF_X) != 0 && self->code_count < sizeof self->code / sizeof self->code[0]) {
      self->code[self->code_count].first = s->p_vaddr;
      self->code[self->code_count++].last = s->p_vaddr + s->p_memsz;
    }
    if ((s->p_flags & PF_W) == 0) continue;
    const int status = attach_segment(device, self, first, last);
    if (status != GPUSIM_OK) return status;
  }
  return GPUSIM_OK;
}

int gpusim_offload_load_self(gpusim_device* device, struct gpusim_offload_self* self,
                             struct gpusim_offload_debug** debug, uint32_t* program) {
  struct file file = {NULL, 0};
  int status = map_self(&file);
  if (status != GPUSIM_OK) return status;
  status = check_header(&file);
  if (status == GPUSIM_OK) status = attach_segments(device, &file, self);
  if (status == GPUSIM_OK) {
    status = PORT->load(device->port, file.bytes, file.size_bytes, "this program",
                        GPUSIM_LOAD_LIVE_DATA, program);
  }
  if (status == GPUSIM_OK) *debug = gpusim_offload_debug_read(file.bytes, file.size_bytes);
  munmap((void*)(uintptr_t)file.bytes, file.size_bytes);
  if (status != GPUSIM_OK) {
    for (unsigned i = 0; i < self->range_count; ++i) {
      gpusim_offload_detach(device, &self->ranges[i]);
    }
    free(self->ranges);
    memset(self, 0, sizeof *self);
  }
  return status;
}
