// Memory of <omp.h>: allocators with alignment, a pool size and a fallback. All memory is alike.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "omp_internal.h"

enum trait { kAlignment = 2, kPoolSize = 4, kFallback = 5, kFallbackData = 6 };
enum fallback { kDefaultMemory = 11, kNull = 12, kAbort = 13, kAllocator = 14 };
enum { kPredefined = 8, kDefaultAllocator = 1 };

#define kNoLimit (~(uintptr_t)0)

typedef struct {
  int key;  // enum trait
  uintptr_t value;
} omp_alloctrait_t;

struct allocator {
  uintptr_t space, alignment, pool_size, fallback, fallback_data;
  uint64_t used;
};

// In front of each block.
struct header {
  void* memory;
  size_t size, total;
  struct allocator* allocator;  // the one whose pool it counts in
};

static uintptr_t default_allocator = kDefaultAllocator;

// OMP_ALLOCATOR; all predefined ones give the same memory.
void omp_read_allocator(const char* name) {
  static const char* const names[] = {"omp_default_mem_alloc", "omp_large_cap_mem_alloc",
                                      "omp_const_mem_alloc",   "omp_high_bw_mem_alloc",
                                      "omp_low_lat_mem_alloc", "omp_cgroup_mem_alloc",
                                      "omp_pteam_mem_alloc",   "omp_thread_mem_alloc"};
  for (uintptr_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (strcasecmp(name, names[i]) != 0) continue;
    default_allocator = i + 1;
    return;
  }
  omp_note("OMP_ALLOCATOR=\"%s\" is not understood and ignored", name);
}

uintptr_t omp_init_allocator(uintptr_t space, int count, const omp_alloctrait_t traits[]) {
  struct allocator a = {
      .space = space, .alignment = 1, .pool_size = kNoLimit, .fallback = kDefaultMemory};
  for (int i = 0; i < count; ++i) {
    const uintptr_t value = traits[i].value;
    const bool is_default = value == kNoLimit;
    switch (traits[i].key) {
      case kAlignment:
        if (is_default) break;
        if (value == 0 || (value & (value - 1)) != 0) return 0;
        a.alignment = value;
        break;
      case kPoolSize:
        if (!is_default && value == 0) return 0;
        a.pool_size = value;
        break;
      case kFallback:
        if (is_default) break;
        if (value < kDefaultMemory || value > kAllocator) return 0;
        a.fallback = value;
        break;
      case kFallbackData:
        a.fallback_data = value;
        break;
      default:
        if (traits[i].key < 1 || traits[i].key > 8) return 0;
        break;
    }
  }
  struct allocator* const copy = omp_get_memory(sizeof *copy);
  *copy = a;
  return (uintptr_t)copy;
}

void omp_destroy_allocator(uintptr_t allocator) {
  if (allocator > kPredefined) free((void*)allocator);
}
void omp_set_default_allocator(uintptr_t allocator) {
  default_allocator = allocator != 0 ? allocator : kDefaultAllocator;
}
uintptr_t omp_get_default_allocator(void) { return default_allocator; }

void* omp_aligned_alloc(size_t alignment, size_t size, uintptr_t handle) {
  if (size == 0) return 0;
  if (handle == 0) handle = default_allocator;
  for (;;) {
    struct allocator* const a = handle > kPredefined ? (struct allocator*)handle : 0;
    size_t align = alignment > 2 * sizeof(void*) ? alignment : 2 * sizeof(void*);
    if (a != 0 && a->alignment > align) align = a->alignment;
    const size_t total = size + sizeof(struct header) + align;
    bool fits = total > size;
    if (fits && a != 0 && a->pool_size != kNoLimit) {
      // As libgomp does, a block counts with what it costs.
      if (__atomic_add_fetch(&a->used, total, __ATOMIC_SEQ_CST) > a->pool_size) {
        __atomic_sub_fetch(&a->used, total, __ATOMIC_SEQ_CST);
        fits = false;
      }
    }
    char* const memory = fits ? malloc(total) : 0;
    if (memory != 0) {
      const uintptr_t block =
          ((uintptr_t)memory + sizeof(struct header) + align - 1) & ~(uintptr_t)(align - 1);
      ((struct header*)block)[-1] = (struct header){memory, size, total, a};
      return (void*)block;
    }
    if (fits && a != 0 && a->pool_size != kNoLimit)
      __atomic_sub_fetch(&a->used, total, __ATOMIC_SEQ_CST);
    switch (a != 0 ? a->fallback : kNull) {
      case kDefaultMemory:
        handle = kDefaultAllocator;
        break;
      case kAllocator:
        handle = a->fallback_data;
        break;
      case kAbort:
        omp_fatal("omp_alloc: no memory for %zu bytes", size);
      default:
        return 0;
    }
  }
}

void* omp_alloc(size_t size, uintptr_t allocator) { return omp_aligned_alloc(1, size, allocator); }

void omp_free(void* block, uintptr_t allocator) {
  (void)allocator;
  if (block == 0) return;
  struct header* const header = (struct header*)block - 1;
  struct allocator* const a = header->allocator;
  if (a != 0 && a->pool_size != kNoLimit)
    __atomic_sub_fetch(&a->used, header->total, __ATOMIC_SEQ_CST);
  free(header->memory);
}

void* omp_aligned_calloc(size_t alignment, size_t count, size_t size, uintptr_t allocator) {
  size_t all;
  if (__builtin_mul_overflow(count, size, &all)) return 0;
  void* const block = omp_aligned_alloc(alignment, all, allocator);
  return block != 0 ? memset(block, 0, all) : 0;
}
void* omp_calloc(size_t count, size_t size, uintptr_t allocator) {
  return omp_aligned_calloc(1, count, size, allocator);
}

void* omp_realloc(void* block, size_t size, uintptr_t allocator, uintptr_t free_allocator) {
  if (block == 0) return omp_alloc(size, allocator);
  if (size == 0) {
    omp_free(block, free_allocator);
    return 0;
  }
  struct header* const header = (struct header*)block - 1;
  struct allocator* const was = header->allocator;
  if (allocator == 0) allocator = was != 0 ? (uintptr_t)was : default_allocator;
  // Within one pool the new block may count in the old one's stead.
  const bool same_pool = was != 0 && (uintptr_t)was == allocator && was->pool_size != kNoLimit;
  if (same_pool) __atomic_sub_fetch(&was->used, header->total, __ATOMIC_SEQ_CST);
  void* const larger = omp_alloc(size, allocator);
  if (same_pool) __atomic_add_fetch(&was->used, header->total, __ATOMIC_SEQ_CST);
  if (larger == 0) return 0;
  memcpy(larger, block, header->size < size ? header->size : size);
  omp_free(block, free_allocator);
  return larger;
}

// The allocate clause and directive.
void* GOMP_alloc(size_t alignment, size_t size, uintptr_t allocator) {
  void* const block = omp_aligned_alloc(alignment, size, allocator);
  if (block == 0 && size != 0) omp_fatal("allocate: no memory for %zu bytes", size);
  return block;
}
void GOMP_free(void* block, uintptr_t allocator) { omp_free(block, allocator); }
