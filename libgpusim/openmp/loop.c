// Loops: every schedule, for variables of type long and unsigned long long.
//
// Iterations are numbered from 0 in the order of the loop; a chunk is handed out as numbers and
// only then turned into values of the variable, so that both types and directions share all code.
#include <stdlib.h>

#include "omp_internal.h"

typedef unsigned long long ull;

void omp_loop_init(struct share* share, uint64_t start, uint64_t end, uint64_t increment,
                   uint64_t count, uint32_t schedule, uint64_t chunk) {
  if (schedule == kRuntime) {
    const struct icvs* const icvs = &current_task(self())->icvs;
    schedule = icvs->schedule;
    chunk = (uint64_t)icvs->chunk;
  }
  schedule &= ~SCHEDULE_MONOTONIC;
  if (schedule == kAuto) {
    schedule = kStatic;
    chunk = 0;
  }
  share->start = start;
  share->end = end;
  share->increment = increment;
  share->count = count;
  share->schedule = schedule;
  share->chunk = schedule != kStatic && chunk == 0 ? 1 : chunk;
  share->next = 0;
  share->ordered_next = 0;
}

uint64_t omp_count_long(long start, long end, long increment) {
  if (increment > 0) {
    if (start >= end) return 0;
    return ((uint64_t)end - (uint64_t)start - 1) / (uint64_t)increment + 1;
  }
  if (start <= end) return 0;
  return ((uint64_t)start - (uint64_t)end - 1) / (0 - (uint64_t)increment) + 1;
}

static uint64_t count_ull(bool up, ull start, ull end, ull increment) {
  if (up) return start >= end ? 0 : (end - start - 1) / increment + 1;
  return start <= end ? 0 : (start - end - 1) / (0 - increment) + 1;
}

// ---- Handing out ---------------------------------------------------------------------------

// The schedule(static) of the standard: without a chunk size one block per thread, the first ones
// longer by one; else chunks dealt out like cards.
static bool static_chunk(struct thread* me, const struct share* share, uint64_t* begin,
                         uint64_t* end) {
  const struct team* const team = me->now.team;
  const uint64_t threads = team != 0 ? team->size : 1, tid = me->now.tid;
  const uint64_t turn = me->now.static_next++;
  if (share->chunk == 0) {
    const uint64_t each = share->count / threads, more = share->count % threads;
    *begin = each * tid + (tid < more ? tid : more);
    *end = *begin + each + (tid < more);
    return turn == 0 && *begin < *end;
  }
  const uint64_t chunks = (share->count - 1) / share->chunk + 1;  // of at least one iteration
  if (share->count == 0 || turn > (chunks - 1) / threads) return false;
  const uint64_t number = turn * threads + tid;
  if (number >= chunks) return false;
  *begin = number * share->chunk;
  *end = share->count - *begin > share->chunk ? *begin + share->chunk : share->count;
  return true;
}

static bool dynamic_chunk(struct share* share, uint64_t* begin, uint64_t* end) {
  const uint64_t limit = UINT64_C(1) << 62;
  if (share->count < limit && share->chunk < UINT64_C(1) << 40) {
    // One addition even if nothing is left: 2^21 threads too late do not overflow it.
    if (RELAXED(&share->next) >= share->count) return false;
    *begin = FETCH_ADD(&share->next, share->chunk);
    if (*begin >= share->count) return false;
    *end = share->count - *begin > share->chunk ? *begin + share->chunk : share->count;
    return true;
  }
  uint64_t next = LOAD(&share->next);
  do {
    if (next >= share->count) return false;
    *begin = next;
    *end = share->count - next > share->chunk ? next + share->chunk : share->count;
  } while (!__atomic_compare_exchange_n(&share->next, &next, *end, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST));
  return true;
}

static bool guided_chunk(const struct team* team, struct share* share, uint64_t* begin,
                         uint64_t* end) {
  const uint64_t threads = team != 0 ? team->size : 1;
  uint64_t next = LOAD(&share->next);
  do {
    if (next >= share->count) return false;
    const uint64_t left = share->count - next;
    uint64_t chunk = (left - 1) / threads + 1;
    if (chunk < share->chunk) chunk = share->chunk;
    if (chunk > left) chunk = left;
    *begin = next;
    *end = next + chunk;
  } while (!__atomic_compare_exchange_n(&share->next, &next, *end, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST));
  return true;
}

static bool next_chunk(struct thread* me, uint64_t* first, uint64_t* last) {
  struct share* const share = me->now.share;
  struct team* const team = me->now.team;
  if (me->now.is_ordered) omp_ordered_pass(me);
  uint64_t begin, end;
  bool found;
  switch (share->schedule) {
    case kStatic:
      found = static_chunk(me, share, &begin, &end);
      break;
    case kDynamic:
      found = dynamic_chunk(share, &begin, &end);
      break;
    case kGuided:
      found = guided_chunk(team, share, &begin, &end);
      break;
    default:
      omp_fatal("unknown loop schedule %u", share->schedule);
  }
  if (!found) return false;
  if (me->now.is_ordered) omp_ordered_chunk(me, begin, end);
  *first = share->start + begin * share->increment;
  // The end as the program gave it: the last iteration plus the increment may not be a number.
  *last = end == share->count ? share->end : share->start + end * share->increment;
  return true;
}

bool omp_loop_next(long* first, long* last) {
  uint64_t a, b;
  if (!next_chunk(self(), &a, &b)) return false;
  *first = (long)a;
  *last = (long)b;
  return true;
}

static bool next_ull(ull* first, ull* last) {
  uint64_t a, b;
  if (!next_chunk(self(), &a, &b)) return false;
  *first = a;
  *last = b;
  return true;
}

struct loop {
  uint64_t start, end, increment, count, chunk;
  uint32_t schedule;
  bool is_ordered;
  uintptr_t* reductions;
  void** memory;
};

static void begin_loop(const struct loop* loop) {
  struct thread* const me = self();
  bool first;
  struct share* const share = omp_share_begin(me, &first);
  if (first) {
    omp_loop_init(share, loop->start, loop->end, loop->increment, loop->count, loop->schedule,
                  loop->chunk);
    if (loop->memory != 0) share->memory = omp_get_zeroed((size_t)*loop->memory);
  }
  if (loop->reductions != 0) omp_share_reductions(me, share, loop->reductions, first);
  if (first) omp_share_ready(me, share);
  if (loop->memory != 0) *loop->memory = share->memory;
  me->now.is_ordered = loop->is_ordered;
}

// ---- Entry points: long ---------------------------------------------------------------------

static bool start_long(long start, long end, long increment, uint32_t schedule, long chunk,
                       bool is_ordered, long* first, long* last) {
  const struct loop loop = {.start = (uint64_t)start,
                            .end = (uint64_t)end,
                            .increment = (uint64_t)increment,
                            .count = omp_count_long(start, end, increment),
                            .chunk = (uint64_t)chunk,
                            .schedule = schedule,
                            .is_ordered = is_ordered};
  begin_loop(&loop);
  return omp_loop_next(first, last);
}

#define LOOP(name, schedule, is_ordered)                                                       \
  bool GOMP_loop_##name##_start(long start, long end, long increment, long chunk, long* first, \
                                long* last) {                                                  \
    return start_long(start, end, increment, schedule, chunk, is_ordered, first, last);        \
  }                                                                                            \
  bool GOMP_loop_##name##_next(long* first, long* last) { return omp_loop_next(first, last); }
LOOP(static, kStatic, false)
LOOP(dynamic, kDynamic, false)
LOOP(guided, kGuided, false)
LOOP(nonmonotonic_dynamic, kDynamic, false)
LOOP(nonmonotonic_guided, kGuided, false)
LOOP(ordered_static, kStatic, true)
LOOP(ordered_dynamic, kDynamic, true)
LOOP(ordered_guided, kGuided, true)

#define LOOP_RUNTIME(name, is_ordered)                                                           \
  bool GOMP_loop_##name##_start(long start, long end, long increment, long* first, long* last) { \
    return start_long(start, end, increment, kRuntime, 0, is_ordered, first, last);              \
  }                                                                                              \
  bool GOMP_loop_##name##_next(long* first, long* last) { return omp_loop_next(first, last); }
LOOP_RUNTIME(runtime, false)
LOOP_RUNTIME(nonmonotonic_runtime, false)
LOOP_RUNTIME(maybe_nonmonotonic_runtime, false)
LOOP_RUNTIME(ordered_runtime, true)

static bool general_long(long start, long end, long increment, long schedule, long chunk,
                         bool is_ordered, long* first, long* last, uintptr_t* reductions,
                         void** memory) {
  const struct loop loop = {.start = (uint64_t)start,
                            .end = (uint64_t)end,
                            .increment = (uint64_t)increment,
                            .count = omp_count_long(start, end, increment),
                            .chunk = (uint64_t)chunk,
                            .schedule = (uint32_t)schedule & ~SCHEDULE_MONOTONIC,
                            .is_ordered = is_ordered,
                            .reductions = reductions,
                            .memory = memory};
  begin_loop(&loop);
  return first == 0 || omp_loop_next(first, last);
}

bool GOMP_loop_start(long start, long end, long increment, long schedule, long chunk, long* first,
                     long* last, uintptr_t* reductions, void** memory) {
  return general_long(start, end, increment, schedule, chunk, false, first, last, reductions,
                      memory);
}
bool GOMP_loop_ordered_start(long start, long end, long increment, long schedule, long chunk,
                             long* first, long* last, uintptr_t* reductions, void** memory) {
  return general_long(start, end, increment, schedule, chunk, true, first, last, reductions,
                      memory);
}

// ---- Entry points: unsigned long long --------------------------------------------------------

static bool general_ull(bool up, ull start, ull end, ull increment, uint32_t schedule, ull chunk,
                        bool is_ordered, ull* first, ull* last, uintptr_t* reductions,
                        void** memory) {
  const struct loop loop = {.start = start,
                            .end = end,
                            .increment = increment,
                            .count = count_ull(up, start, end, increment),
                            .chunk = chunk,
                            .schedule = schedule,
                            .is_ordered = is_ordered,
                            .reductions = reductions,
                            .memory = memory};
  begin_loop(&loop);
  return first == 0 || next_ull(first, last);
}

#define LOOP_ULL(name, schedule, is_ordered)                                                       \
  bool GOMP_loop_ull_##name##_start(bool up, ull start, ull end, ull increment, ull chunk,         \
                                    ull* first, ull* last) {                                       \
    return general_ull(up, start, end, increment, schedule, chunk, is_ordered, first, last, 0, 0); \
  }                                                                                                \
  bool GOMP_loop_ull_##name##_next(ull* first, ull* last) { return next_ull(first, last); }
LOOP_ULL(static, kStatic, false)
LOOP_ULL(dynamic, kDynamic, false)
LOOP_ULL(guided, kGuided, false)
LOOP_ULL(nonmonotonic_dynamic, kDynamic, false)
LOOP_ULL(nonmonotonic_guided, kGuided, false)
LOOP_ULL(ordered_static, kStatic, true)
LOOP_ULL(ordered_dynamic, kDynamic, true)
LOOP_ULL(ordered_guided, kGuided, true)

#define LOOP_ULL_RUNTIME(name, is_ordered)                                                     \
  bool GOMP_loop_ull_##name##_start(bool up, ull start, ull end, ull increment, ull* first,    \
                                    ull* last) {                                               \
    return general_ull(up, start, end, increment, kRuntime, 0, is_ordered, first, last, 0, 0); \
  }                                                                                            \
  bool GOMP_loop_ull_##name##_next(ull* first, ull* last) { return next_ull(first, last); }
LOOP_ULL_RUNTIME(runtime, false)
LOOP_ULL_RUNTIME(nonmonotonic_runtime, false)
LOOP_ULL_RUNTIME(maybe_nonmonotonic_runtime, false)
LOOP_ULL_RUNTIME(ordered_runtime, true)

bool GOMP_loop_ull_start(bool up, ull start, ull end, ull increment, long schedule, ull chunk,
                         ull* first, ull* last, uintptr_t* reductions, void** memory) {
  return general_ull(up, start, end, increment, (uint32_t)schedule & ~SCHEDULE_MONOTONIC, chunk,
                     false, first, last, reductions, memory);
}
bool GOMP_loop_ull_ordered_start(bool up, ull start, ull end, ull increment, long schedule,
                                 ull chunk, ull* first, ull* last, uintptr_t* reductions,
                                 void** memory) {
  return general_ull(up, start, end, increment, (uint32_t)schedule & ~SCHEDULE_MONOTONIC, chunk,
                     true, first, last, reductions, memory);
}
