// Loops whose iterations are shared out among cores. Part of gpusim_sync.h.
//
// Every core runs the loop statement and gets its part of the iterations begin .. end - 1:
//
//   for (gpusim_range_t r = gpusim_range_static(0, n, 1); gpusim_next(&r);) c[r.i] = a[r.i] +
//   b[r.i];
//
// All of it is inlined; what remains of this one is `for (i = id; i < n; i += cores)`. Or with an
// inner loop over consecutive iterations:
//
//   static gpusim_loop_t rows;
//   for (gpusim_range_t r = gpusim_range_dynamic(&rows, 0, n, 16); gpusim_next_chunk(&r);) {
//     for (int64_t i = r.first; i < r.last; ++i) ...
//   }
//
// There is no barrier at the end: call gpusim_barrier() where the next step needs the results.
// gpusim_parallel_for() at the end of this file calls a function instead, and has a barrier.
//
// Schedules, with costs per chunk:
//   static   iterations dealt out in chunks like cards, by core number; a few instructions. Chunks
//            of 1 let adjacent cores touch adjacent elements, which suits gpusim.
//   blocks   one block of consecutive iterations for each core; once a few divisions.
//   dynamic  who is free takes the next chunk: one atomic addition. For work that differs much.
//   guided   the same with chunks that become smaller: in each round half of what remains is handed
//            out, in equal chunks, as many as there are cores. Few chunks, and a balanced end.
// begin and end may be any numbers whose difference is below 2^62; end <= begin is an empty loop.
#ifndef GPUSIM_LOOP_H
#define GPUSIM_LOOP_H

#include "gpusim_guest.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the cores of a dynamic or guided loop share. Starts as zeroes (for all cores of the chip) or
// as GPUSIM_LOOP_INIT(members), for so many cores. All of them must run the loop, to its end: a
// `break` or `return` inside makes the object useless. The last core to finish makes it ready for
// the next loop, so there must be a barrier between two loops with one object.
typedef struct {
  __attribute__((aligned(64))) uint64_t next;  // iterations, or chunks, handed out
  uint32_t finished;                           // cores that found nothing more
  uint32_t members;                            // 0: all cores
} gpusim_loop_t;

#define GPUSIM_LOOP_INIT(members) \
  { 0, 0, (members) }

enum gpusim_schedule {
  GPUSIM_STATIC,
  GPUSIM_BLOCKS,
  GPUSIM_DYNAMIC,
  GPUSIM_GUIDED,
  GPUSIM_EACH /* static, chunks of 1 */
};

// One core's part of a loop. A program reads i (after gpusim_next) or first and last (after
// gpusim_next_chunk) and leaves the rest alone.
typedef struct {
  int64_t i;      // this iteration
  int64_t first;  // this chunk: first .. last - 1
  int64_t last;
  int64_t begin, end;
  int64_t upcoming;  // static: where the next chunk of this core starts
  int64_t stride;    // static: from one chunk of this core to its next
  uint64_t chunk;
  gpusim_loop_t* loop;
  uint64_t round_ticket;  // guided: number of the first chunk of this round,
  int64_t round_begin;    // and its first iteration
  int schedule;
} gpusim_range_t;

static inline gpusim_range_t gpusim_range_start(int schedule, gpusim_loop_t* loop, int64_t begin,
                                                int64_t end, uint64_t chunk) {
  gpusim_range_t r;
  r.i = r.first = r.last = r.begin = r.upcoming = r.round_begin = begin;
  r.end = end < begin ? begin : end;
  r.stride = 0;
  r.chunk = chunk == 0 ? 1 : chunk;
  r.loop = loop;
  r.round_ticket = 0;
  r.schedule = schedule;
  return r;
}

// For member number `rank` of `size`, whoever they are: what the functions below do for all cores
// of the chip.
static inline gpusim_range_t gpusim_range_static_of(uint32_t rank, uint32_t size, int64_t begin,
                                                    int64_t end, uint64_t chunk) {
  gpusim_range_t r = gpusim_range_start(chunk <= 1 ? GPUSIM_EACH : GPUSIM_STATIC, (gpusim_loop_t*)0,
                                        begin, end, chunk);
  r.upcoming = begin + (int64_t)(rank * r.chunk);
  r.stride = (int64_t)(size * r.chunk);
  return r;
}

static inline gpusim_range_t gpusim_range_blocks_of(uint32_t rank, uint32_t size, int64_t begin,
                                                    int64_t end) {
  gpusim_range_t r = gpusim_range_start(GPUSIM_STATIC, (gpusim_loop_t*)0, begin, end, 1);
  // The first `longer` blocks have one iteration more than the others.
  const uint64_t length = (uint64_t)(r.end - r.begin);
  const uint64_t share = length / size;
  const uint64_t longer = length % size;
  r.upcoming = begin + (int64_t)(rank * share + (rank < longer ? rank : longer));
  r.chunk = share + (rank < longer ? 1 : 0);
  r.stride = r.end - r.upcoming;  // there is no second block
  if (r.chunk == 0) r.upcoming = r.end;
  return r;
}

static inline gpusim_range_t gpusim_range_static(int64_t begin, int64_t end, uint64_t chunk) {
  return gpusim_range_static_of(gpusim_core_id(), gpusim_core_count(), begin, end, chunk);
}

static inline gpusim_range_t gpusim_range_blocks(int64_t begin, int64_t end) {
  return gpusim_range_blocks_of(gpusim_core_id(), gpusim_core_count(), begin, end);
}

// Chunks of `chunk` iterations; the last may be shorter.
static inline gpusim_range_t gpusim_range_dynamic(gpusim_loop_t* loop, int64_t begin, int64_t end,
                                                  uint64_t chunk) {
  return gpusim_range_start(GPUSIM_DYNAMIC, loop, begin, end, chunk);
}

// Chunks of at least `chunk` iterations; the last may be shorter.
static inline gpusim_range_t gpusim_range_guided(gpusim_loop_t* loop, int64_t begin, int64_t end,
                                                 uint64_t chunk) {
  return gpusim_range_start(GPUSIM_GUIDED, loop, begin, end, chunk);
}

static inline uint32_t gpusim_loop_members(const gpusim_loop_t* loop) {
  return loop->members != 0 ? loop->members : gpusim_core_count();
}

// This core found nothing more. Returns 0.
static inline int gpusim_loop_leave(gpusim_range_t* r) {
  gpusim_loop_t* const loop = r->loop;
  if (loop == (gpusim_loop_t*)0) return 0;  // it has left before
  r->loop = (gpusim_loop_t*)0;
  if (__atomic_fetch_add(&loop->finished, 1, __ATOMIC_ACQ_REL) + 1 == gpusim_loop_members(loop)) {
    __atomic_store_n(&loop->next, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&loop->finished, 0, __ATOMIC_RELAXED);
  }
  return 0;
}

static inline int gpusim_next_guided(gpusim_range_t* r) {
  const uint64_t members = gpusim_loop_members(r->loop);
  const uint64_t ticket = __atomic_fetch_add(&r->loop->next, 1, __ATOMIC_RELAXED);
  // Where each round starts follows from the rounds before it, so cores need share nothing but the
  // number of chunks. This core's tickets only grow.
  for (;;) {
    const uint64_t remaining = (uint64_t)(r->end - r->round_begin);
    if (remaining == 0) return gpusim_loop_leave(r);
    uint64_t size = (remaining + 2 * members - 1) / (2 * members);
    if (size < r->chunk) size = r->chunk;
    const uint64_t place = ticket - r->round_ticket;
    if (place < members) {
      if (size * place >= remaining) return gpusim_loop_leave(r);
      r->first = r->round_begin + (int64_t)(size * place);
      r->last = (uint64_t)(r->end - r->first) < size ? r->end : r->first + (int64_t)size;
      return 1;
    }
    r->round_begin =
        remaining / members < size ? r->end : r->round_begin + (int64_t)(size * members);
    r->round_ticket += members;
  }
}

// Goes on to this core's next chunk. Returns 0 if there is none.
static inline int gpusim_next_chunk(gpusim_range_t* r) {
  if (r->schedule == GPUSIM_GUIDED) {
    return r->loop == (gpusim_loop_t*)0 ? 0 : gpusim_next_guided(r);
  }
  if (r->schedule == GPUSIM_DYNAMIC) {
    if (r->loop == (gpusim_loop_t*)0) return 0;
    const uint64_t taken = __atomic_fetch_add(&r->loop->next, r->chunk, __ATOMIC_RELAXED);
    if (taken >= (uint64_t)(r->end - r->begin)) return gpusim_loop_leave(r);
    r->first = r->begin + (int64_t)taken;
  } else {
    if (r->upcoming >= r->end) return 0;
    r->first = r->upcoming;
    r->upcoming += r->stride;
  }
  r->last = (uint64_t)(r->end - r->first) < r->chunk ? r->end : r->first + (int64_t)r->chunk;
  return 1;
}

// Goes on to this core's next iteration, r->i. Returns 0 if there is none.
static inline int gpusim_next(gpusim_range_t* r) {
  if (r->schedule == GPUSIM_EACH) {
    r->i = r->upcoming;
    r->upcoming += r->stride;
    return r->i < r->end;
  }
  if (r->first >= r->last) {
    if (!gpusim_next_chunk(r)) return 0;
  }
  r->i = r->first++;
  return 1;
}

// Calls body(i, argument) for each i from begin to end - 1, each on one core. All cores of the chip
// call it with the same values (`argument` may differ), and none from inside a body; it returns on
// all after the last iteration (a barrier). `chunk` as above; GPUSIM_BLOCKS has none. A call per
// iteration: where the body is short, write the loop with gpusim_next.
void gpusim_parallel_for(int64_t begin, int64_t end, enum gpusim_schedule schedule, uint64_t chunk,
                         void (*body)(int64_t i, void* argument), void* argument);

#ifdef __cplusplus
}
#endif

#endif  // GPUSIM_LOOP_H
