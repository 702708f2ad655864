// SPDX-License-Identifier: MIT
#include "arena.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libgpusim/offload/port.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

// Above executables and their heaps, below the end of a context's device addresses.
static const uint64_t kFirst = UINT64_C(16) << 30;
static const uint64_t kLast = UINT64_C(127) << 30;
// After something of the process's own was found in the way.
static const uint64_t kStep = UINT64_C(64) << 20;

struct piece {
  struct piece* next;
  uint64_t first, last;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct piece* pieces;  // taken, by address
static uint64_t cursor;       // where the last one ended: addresses are not used again at once

// The first address from `at` on where the arena has room, and its place in the list; 0: nowhere.
static uint64_t find_room(uint64_t at, uint64_t limit, uint64_t size_bytes, struct piece*** place) {
  struct piece** p = &pieces;
  for (; *p != NULL; p = &(*p)->next) {
    if ((*p)->last <= at) continue;
    if ((*p)->first >= at && (*p)->first - at >= size_bytes) break;
    at = (*p)->last;
  }
  *place = p;
  return at < limit && limit - at >= size_bytes ? at : 0;
}

static int try_from(uint64_t start, uint64_t limit, uint64_t size_bytes, struct piece* piece) {
  for (uint64_t at = start;;) {
    struct piece** place;
    at = find_room(at, limit, size_bytes, &place);
    if (at == 0) return ENOMEM;
    void* const want = (void*)(uintptr_t)at;
    void* const got =
        mmap(want, size_bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == want) {
      piece->first = at;
      piece->last = at + size_bytes;
      piece->next = *place;
      *place = piece;
      return 0;
    }
    if (got == MAP_FAILED && errno != EEXIST) return errno;
    // Kernels before 4.17 take the address as a hint.
    if (got != MAP_FAILED) munmap(got, size_bytes);
    at += kStep;
  }
}

int gpusim_arena_reserve(uint64_t limit, uint64_t size_bytes, uint64_t* address) {
  if (limit > kLast) limit = kLast;
  struct piece* const piece = malloc(sizeof *piece);
  if (piece == NULL) return gpusim_offload_fail(GPUSIM_OUT_OF_MEMORY, "out of memory");
  pthread_mutex_lock(&mutex);
  if (cursor < kFirst) cursor = kFirst;
  int error = try_from(cursor, limit, size_bytes, piece);
  if (error != 0) error = try_from(kFirst, limit, size_bytes, piece);
  if (error == 0) {
    cursor = piece->last;
    *address = piece->first;
  }
  pthread_mutex_unlock(&mutex);
  if (error == 0) return GPUSIM_OK;
  free(piece);
  return gpusim_offload_fail(GPUSIM_OUT_OF_MEMORY, "no room for %llu bytes in device addresses: %s",
                             (unsigned long long)size_bytes, strerror(error));
}

void gpusim_arena_release(uint64_t address, uint64_t size_bytes) {
  pthread_mutex_lock(&mutex);
  for (struct piece** p = &pieces; *p != NULL; p = &(*p)->next) {
    if ((*p)->first != address) continue;
    struct piece* const piece = *p;
    *p = piece->next;
    free(piece);
    munmap((void*)(uintptr_t)address, size_bytes);
    break;
  }
  pthread_mutex_unlock(&mutex);
}
