// Reductions in which tasks take part: memory for each thread, and the way from a variable to it.
//
// The compiler describes them by arrays of words:
//   [0] entries  [1] bytes per thread  [2] alignment, then the memory  [3] allocator (~0: malloc)
//   [4] next array  [5] ours: this is the last one registered together  [6] ours: memory's end
//   then per entry: address of the variable, offset in a thread's memory, not used
#include <stdlib.h>
#include <string.h>

#include "omp_internal.h"

enum { kEntries, kSize, kMemory, kAllocator, kNext, kIsLast, kEnd, kFirstEntry, kEntrySize = 3 };

void omp_reductions_register(uintptr_t* data, uintptr_t* old, uintptr_t* original,
                             uint32_t threads) {
  for (uintptr_t* d = data;; d = (uintptr_t*)d[kNext]) {
    if (original != 0) {  // another thread of the construct has allocated the memory
      d[kMemory] = original[kMemory];
      d[kEnd] = original[kEnd];
      original = (uintptr_t*)original[kNext];
    } else {
      const size_t size = d[kSize] * threads;
      void* memory;
      const size_t align = d[kMemory] < sizeof(void*) ? sizeof(void*) : d[kMemory];
      if (posix_memalign(&memory, align, size) != 0) omp_fatal("out of memory");
      memset(memory, 0, size);
      d[kMemory] = (uintptr_t)memory;
      d[kEnd] = d[kMemory] + size;
    }
    d[kIsLast] = d[kNext] == 0;
    if (d[kIsLast]) {
      d[kNext] = (uintptr_t)old;
      return;
    }
  }
}

static void unregister(uintptr_t* data) {
  for (uintptr_t* d = data;; d = (uintptr_t*)d[kNext]) {
    free((void*)d[kMemory]);
    if (d[kIsLast]) return;
  }
}

void GOMP_taskgroup_reduction_register(uintptr_t* data) {
  struct thread* const me = self();
  struct taskgroup* const group = current_task(me)->group;
  const struct team* const team = me->now.team;
  omp_reductions_register(data, group->reductions, 0, team != 0 ? team->size : 1);
  group->reductions = data;
}

void GOMP_taskgroup_reduction_unregister(uintptr_t* data) { unregister(data); }

void omp_share_reductions(struct thread* me, struct share* share, uintptr_t* reductions,
                          bool first) {
  struct taskgroup* const group = omp_group_begin(me);
  const struct team* const team = me->now.team;
  group->is_workshare = true;
  omp_reductions_register(reductions, group->reductions, first ? 0 : share->reductions,
                          team != 0 ? team->size : 1);
  group->reductions = reductions;
  if (first) share->reductions = reductions;
}

void GOMP_workshare_task_reduction_unregister(bool cancelled) {
  struct thread* const me = self();
  struct team* const team = me->now.team;
  uintptr_t* const data = current_task(me)->group->reductions;
  omp_group_end(me);
  if (me->now.tid == 0) unregister(data);
  if (!cancelled && team != 0) omp_barrier(me, team, &team->inner, false);
}

// The caller's own copy of a variable; `original` becomes the variable's address where asked for.
static bool find(uintptr_t* d, uint32_t tid, void** pointer, void** original) {
  const uintptr_t address = (uintptr_t)*pointer;
  for (; d != 0; d = (uintptr_t*)d[kNext]) {
    const bool is_copy = address >= d[kMemory] && address < d[kEnd];
    for (uintptr_t i = 0; i < d[kEntries]; ++i) {
      const uintptr_t* const entry = d + kFirstEntry + i * kEntrySize;
      if (is_copy ? (address - d[kMemory]) % d[kSize] != entry[1] : address != entry[0]) continue;
      *pointer = (void*)(d[kMemory] + tid * d[kSize] + entry[1]);
      if (original != 0) *original = (void*)entry[0];
      return true;
    }
    if (!is_copy) continue;  // part of a variable: no entry begins there
    *pointer = (void*)(d[kMemory] + tid * d[kSize] + (address - d[kMemory]) % d[kSize]);
    return original == 0;
  }
  return false;
}

void GOMP_task_reduction_remap(size_t count, size_t original_count, void** pointers) {
  struct thread* const me = self();
  const struct taskgroup* const group = current_task(me)->group;
  for (size_t i = 0; i < count; ++i) {
    void* const address = pointers[i];
    void** const original = i < original_count ? &pointers[count + i] : 0;
    if (group == 0 || !find(group->reductions, me->now.tid, &pointers[i], original))
      omp_fatal(
          "in_reduction: no task_reduction or reduction with task modifier is known for "
          "the variable at %p",
          address);
  }
}
