// ordered: chunks take turns in the order of their iterations. ordered(n): each iteration says
// how far it has come, and others wait for that.
#include <stdarg.h>
#include <stdlib.h>

#include "omp_internal.h"

// The caller's chunk may run its ordered parts once all earlier chunks are through theirs.
static void wait_for_turn(struct share* share, uint64_t begin) {
  for (;;) {
    const uint32_t turns = LOAD(&share->ordered_turns);
    if (LOAD(&share->ordered_next) == begin) return;
    wait_while_u32(&share->ordered_turns, turns);
  }
}

void omp_ordered_chunk(struct thread* me, uint64_t begin, uint64_t end) {
  me->now.chunk_begin = begin;
  me->now.chunk_end = end;
  me->now.has_ordered_chunk = true;
}

// Done with the chunk, whether or not it had an ordered part.
void omp_ordered_pass(struct thread* me) {
  struct share* const share = me->now.share;
  if (!me->now.has_ordered_chunk) return;
  me->now.has_ordered_chunk = false;
  wait_for_turn(share, me->now.chunk_begin);
  STORE(&share->ordered_next, me->now.chunk_end);
  bump(&share->ordered_turns);
}

void GOMP_ordered_start(void) {
  struct thread* const me = self();
  if (me->now.team == 0 || !me->now.has_ordered_chunk) return;
  wait_for_turn(me->now.share, me->now.chunk_begin);
}

void GOMP_ordered_end(void) {}

// ---- ordered(n) with depend(sink), depend(source) ------------------------------------------

// For each iteration of the outermost loop: 1 + the number of the last inner iteration (of all
// inner loops as one) that has been posted. Iterations are posted in order.
struct doacross {
  uint32_t loops;
  uint64_t counts[];  // of the loops; posted[] follows
};

static uint64_t* posted(struct doacross* d) { return d->counts + d->loops; }

void omp_doacross_free(struct doacross* d) { free(d); }

static void init_doacross(struct share* share, uint32_t loops, const uint64_t* counts) {
  if (counts[0] > UINT64_C(1) << 40)
    omp_fatal("a loop with ordered(%u) has %llu outer iterations: too many to keep track of", loops,
              (unsigned long long)counts[0]);
  struct doacross* const d = omp_get_zeroed(sizeof *d + (loops + counts[0]) * sizeof d->counts[0]);
  d->loops = loops;
  for (uint32_t i = 0; i < loops; ++i) d->counts[i] = counts[i];
  share->doacross = d;
}

static uint64_t inner_number(const struct doacross* d, const uint64_t* iteration) {
  uint64_t number = 0;
  for (uint32_t i = 1; i < d->loops; ++i) number = number * d->counts[i] + iteration[i];
  return number;
}

static void post(const uint64_t* iteration) {
  struct doacross* const d = self()->now.share->doacross;
  if (d == 0) return;
  uint64_t* const place = &posted(d)[iteration[0]];
  STORE(place, inner_number(d, iteration) + 1);
  wake_u64(place);
}

static void wait_for_post(const uint64_t* iteration) {
  struct doacross* const d = self()->now.share->doacross;
  if (iteration[0] >= d->counts[0]) return;
  const uint64_t number = inner_number(d, iteration);
  uint64_t* const place = &posted(d)[iteration[0]];
  for (;;) {
    const uint64_t seen = LOAD(place);
    if (seen > number) return;
    wait_while_u64(place, seen);
  }
}

void GOMP_doacross_post(long* iteration) { post((const uint64_t*)iteration); }
void GOMP_doacross_ull_post(unsigned long long* iteration) { post((const uint64_t*)iteration); }

enum { kMostLoops = 64 };
#define WAIT_FOR_ARGUMENTS(type)                                                    \
  uint64_t iteration[kMostLoops];                                                   \
  const uint32_t loops = self()->now.share->doacross->loops;                        \
  va_list rest;                                                                     \
  va_start(rest, first);                                                            \
  iteration[0] = (uint64_t)first;                                                   \
  for (uint32_t i = 1; i < loops; ++i) iteration[i] = (uint64_t)va_arg(rest, type); \
  va_end(rest);                                                                     \
  wait_for_post(iteration)

void GOMP_doacross_wait(long first, ...) { WAIT_FOR_ARGUMENTS(long); }
void GOMP_doacross_ull_wait(unsigned long long first, ...) {
  WAIT_FOR_ARGUMENTS(unsigned long long);
}

// The loop over the outermost iterations themselves.
static bool start_doacross(unsigned loops, const uint64_t* counts, uint32_t schedule,
                           uint64_t chunk, void* first_value, void* last_value,
                           uintptr_t* reductions, void** memory) {
  if (loops > kMostLoops) omp_fatal("ordered(%u): at most %d loops", loops, kMostLoops);
  struct thread* const me = self();
  bool first;
  struct share* const share = omp_share_begin(me, &first);
  if (first) {
    omp_loop_init(share, 0, counts[0], 1, counts[0], schedule, chunk);
    init_doacross(share, loops, counts);
    if (memory != 0) share->memory = omp_get_zeroed((size_t)*memory);
  }
  if (reductions != 0) omp_share_reductions(me, share, reductions, first);
  if (first) omp_share_ready(me, share);
  if (memory != 0) *memory = share->memory;
  return first_value == 0 || omp_loop_next(first_value, last_value);
}

#define DOACROSS(prefix, type)                                                                     \
  bool GOMP_loop_##prefix##doacross_static_start(unsigned loops, type* counts, type chunk,         \
                                                 type* first, type* last) {                        \
    return start_doacross(loops, (uint64_t*)counts, kStatic, (uint64_t)chunk, first, last, 0, 0);  \
  }                                                                                                \
  bool GOMP_loop_##prefix##doacross_dynamic_start(unsigned loops, type* counts, type chunk,        \
                                                  type* first, type* last) {                       \
    return start_doacross(loops, (uint64_t*)counts, kDynamic, (uint64_t)chunk, first, last, 0, 0); \
  }                                                                                                \
  bool GOMP_loop_##prefix##doacross_guided_start(unsigned loops, type* counts, type chunk,         \
                                                 type* first, type* last) {                        \
    return start_doacross(loops, (uint64_t*)counts, kGuided, (uint64_t)chunk, first, last, 0, 0);  \
  }                                                                                                \
  bool GOMP_loop_##prefix##doacross_runtime_start(unsigned loops, type* counts, type* first,       \
                                                  type* last) {                                    \
    return start_doacross(loops, (uint64_t*)counts, kRuntime, 0, first, last, 0, 0);               \
  }                                                                                                \
  bool GOMP_loop_##prefix##doacross_start(unsigned loops, type* counts, long schedule, type chunk, \
                                          type* first, type* last, uintptr_t* reductions,          \
                                          void** memory) {                                         \
    return start_doacross(loops, (uint64_t*)counts, (uint32_t)schedule & ~SCHEDULE_MONOTONIC,      \
                          (uint64_t)chunk, first, last, reductions, memory);                       \
  }
DOACROSS(, long)
DOACROSS(ull_, unsigned long long)
