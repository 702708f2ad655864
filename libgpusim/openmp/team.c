// Parallel regions, barriers, single, cancellation.
#include <stdlib.h>

#include "omp_internal.h"

// How many threads a region gets that asks for `clause` (0: does not say) and can use `most`
// (0: any number).
uint32_t omp_resolve_threads(struct thread* me, uint32_t clause, uint32_t most) {
  const struct icvs* const icvs = &current_task(me)->icvs;
  uint32_t wanted = clause != 0 ? clause : icvs->threads;
  if (wanted > 1) {
    const struct team* const team = me->now.team;
    if ((team ? team->active_level : 0) >= icvs->max_active_levels) wanted = 1;
  }
  if (wanted > icvs->thread_limit) wanted = icvs->thread_limit;
  if (icvs->dynamic) {
    if (most != 0 && wanted > most) wanted = most;
    if (wanted > omp.cores) wanted = omp.cores;
  }
  if (wanted > omp_pool_limit()) {
    static uint32_t said;
    if (compare_and_set_u32(&said, 0, 1))
      omp_note("a region asks for %u threads and gets %u: one per core", wanted, omp_pool_limit());
    wanted = omp_pool_limit();
  }
  return wanted == 0 ? 1 : wanted;
}

static void parallel(void (*function)(void*), void* argument, uint32_t threads,
                     void (*prepare)(struct team*, void*), void* context) {
  struct thread* const me = self();
  omp_team_begin(me, function, argument, threads, prepare, context);
  function(argument);
  omp_team_end(me);
}

void GOMP_parallel(void (*function)(void*), void* argument, unsigned threads, unsigned flags) {
  (void)flags;  // proc_bind: a thread stays on its core
  parallel(function, argument, omp_resolve_threads(self(), threads, 0), 0, 0);
}

// Calls of older compilers' code.
void GOMP_parallel_start(void (*function)(void*), void* argument, unsigned threads) {
  struct thread* const me = self();
  omp_team_begin(me, function, argument, omp_resolve_threads(me, threads, 0), 0, 0);
}
void GOMP_parallel_end(void) { omp_team_end(self()); }

// ---- Regions that are one loop or one sections construct ------------------------------------

struct loop_arguments {
  long start, end, increment, chunk;
  uint32_t schedule;
};

static void prepare_loop(struct team* team, void* context) {
  const struct loop_arguments* const a = context;
  struct share* const share = &team->shares[0];
  omp_loop_init(share, (uint64_t)a->start, (uint64_t)a->end, (uint64_t)a->increment,
                omp_count_long(a->start, a->end, a->increment), a->schedule, (uint64_t)a->chunk);
  share->claim = 1;
  share->ready = 1;
  team->is_preset = true;
}

static void parallel_loop(void (*function)(void*), void* argument, unsigned threads, long start,
                          long end, long increment, uint32_t schedule, long chunk) {
  struct loop_arguments a = {start, end, increment, chunk, schedule};
  struct thread* const me = self();
  parallel(function, argument, omp_resolve_threads(me, threads, 0), prepare_loop, &a);
}

#define PARALLEL_LOOP(name, schedule)                                                              \
  void GOMP_parallel_loop_##name(void (*function)(void*), void* argument, unsigned threads,        \
                                 long start, long end, long increment, long chunk,                 \
                                 unsigned flags) {                                                 \
    (void)flags;                                                                                   \
    parallel_loop(function, argument, threads, start, end, increment, schedule, chunk);            \
  }                                                                                                \
  void GOMP_parallel_loop_##name##_start(void (*function)(void*), void* argument,                  \
                                         unsigned threads, long start, long end, long increment,   \
                                         long chunk) {                                             \
    struct loop_arguments a = {start, end, increment, chunk, schedule};                            \
    struct thread* const me = self();                                                              \
    omp_team_begin(me, function, argument, omp_resolve_threads(me, threads, 0), prepare_loop, &a); \
  }
PARALLEL_LOOP(static, kStatic)
PARALLEL_LOOP(dynamic, kDynamic)
PARALLEL_LOOP(guided, kGuided)
PARALLEL_LOOP(nonmonotonic_dynamic, kDynamic)
PARALLEL_LOOP(nonmonotonic_guided, kGuided)

#define PARALLEL_LOOP_RUNTIME(name)                                                         \
  void GOMP_parallel_loop_##name(void (*function)(void*), void* argument, unsigned threads, \
                                 long start, long end, long increment, unsigned flags) {    \
    (void)flags;                                                                            \
    parallel_loop(function, argument, threads, start, end, increment, kRuntime, 0);         \
  }
PARALLEL_LOOP_RUNTIME(runtime)
PARALLEL_LOOP_RUNTIME(nonmonotonic_runtime)
PARALLEL_LOOP_RUNTIME(maybe_nonmonotonic_runtime)

void GOMP_parallel_loop_runtime_start(void (*function)(void*), void* argument, unsigned threads,
                                      long start, long end, long increment) {
  struct loop_arguments a = {start, end, increment, 0, kRuntime};
  struct thread* const me = self();
  omp_team_begin(me, function, argument, omp_resolve_threads(me, threads, 0), prepare_loop, &a);
}

static void prepare_sections(struct team* team, void* context) {
  struct share* const share = &team->shares[0];
  omp_loop_init(share, 1, 0, 1, *(unsigned*)context, kDynamic, 1);
  share->claim = 1;
  share->ready = 1;
  team->is_preset = true;
}

void GOMP_parallel_sections(void (*function)(void*), void* argument, unsigned threads,
                            unsigned count, unsigned flags) {
  (void)flags;
  parallel(function, argument, omp_resolve_threads(self(), threads, count), prepare_sections,
           &count);
}
void GOMP_parallel_sections_start(void (*function)(void*), void* argument, unsigned threads,
                                  unsigned count) {
  struct thread* const me = self();
  omp_team_begin(me, function, argument, omp_resolve_threads(me, threads, count), prepare_sections,
                 &count);
}

// The region's data begin with a pointer to the description of its task reductions.
static void prepare_reductions(struct team* team, void* context) {
  struct taskgroup* const group = omp_get_zeroed(sizeof *group);
  list_init(&group->ready);
  omp_reductions_register(context, 0, 0, team->size);
  group->reductions = context;
  team->reduction_group = group;
}

unsigned GOMP_parallel_reductions(void (*function)(void*), void* argument, unsigned threads,
                                  unsigned flags) {
  (void)flags;
  struct thread* const me = self();
  struct team* const team =
      omp_team_begin(me, function, argument, omp_resolve_threads(me, threads, 0),
                     prepare_reductions, *(void**)argument);
  const uint32_t size = team->size;
  struct taskgroup* const group = team->reduction_group;
  function(argument);
  omp_team_end(me);
  free(group);
  return size;
}

// ---- Barriers ------------------------------------------------------------------------------

// Opens whichever barrier all have reached, once no task is left. Whoever arrives last and whoever
// completes the last task calls this; the exchange decides between them.
void omp_try_release(struct team* team) {
  struct barrier* const barriers[2] = {&team->inner, &team->join};
  for (int i = 0; i < 2; ++i) {
    struct barrier* const barrier = barriers[i];
    const uint64_t all_arrived = LOAD(&barrier->state);
    if ((uint32_t)all_arrived != team->size || LOAD(&team->task_count) != 0) continue;
    const uint64_t closed = all_arrived - team->size;
    if (!compare_and_set_u64(&barrier->state, all_arrived, closed)) continue;
    if (barrier == &team->inner) team->share_cancelled = 0;
    STORE(&barrier->state, closed + (UINT64_C(1) << 32));
    omp_wake_team(team);
  }
}

// Returns whether the region was cancelled, if the caller can be.
bool omp_barrier(struct thread* me, struct team* team, struct barrier* barrier, bool cancellable) {
  if (cancellable && LOAD(&team->cancelled)) return true;
  const uint32_t generation = barrier_generation(barrier);
  uint32_t* const wake = me->wake;
  // A group of the pool counts those of its threads that wait for tasks of the main team.
  uint32_t* const idle = team->members == 0 && team->size > 1 ? me->idle : 0;
  gpusim_time_release(barrier, generation);
  if ((uint32_t)FETCH_ADD(&barrier->state, 1) + 1 == team->size) omp_try_release(team);
  for (;;) {
    const uint32_t seen = LOAD(wake);
    if (barrier_generation(barrier) != generation) break;
    if (cancellable && LOAD(&team->cancelled)) return true;
    if (__builtin_expect(LOAD(&team->tasks_used) == 0, true)) {
      wait_while_u32(wake, seen);
      continue;
    }
    // Count as idle before the look at the queue: then a task queued later wakes us.
    FETCH_ADD(&team->idle, 1);
    if (idle != 0) FETCH_ADD(idle, 1);
    const uint32_t still = LOAD(wake);
    const bool wait = LOAD(&team->ready_count) <= LOAD(&team->claims) && still == seen;
    if (wait) wait_while_u32(wake, seen);
    if (idle != 0) FETCH_ADD(idle, (uint32_t)-1);
    FETCH_ADD(&team->idle, (uint32_t)-1);
    if (barrier_generation(barrier) != generation) break;
    omp_run_one(me, team, barrier, generation);
  }
  gpusim_time_acquire(barrier, generation);
  return cancellable && LOAD(&team->cancelled);
}

void GOMP_barrier(void) {
  struct thread* const me = self();
  struct team* const team = me->now.team;
  if (team != 0) omp_barrier(me, team, &team->inner, false);
}

bool GOMP_barrier_cancel(void) {
  struct thread* const me = self();
  struct team* const team = me->now.team;
  return team != 0 && omp_barrier(me, team, &team->inner, true);
}

// ---- Single --------------------------------------------------------------------------------

bool GOMP_single_start(void) {
  struct thread* const me = self();
  struct team* const team = me->now.team;
  if (team == 0) return true;
  const uint32_t mine = me->now.single_count++;
  return LOAD(&team->single_count) == mine &&
         compare_and_set_u32(&team->single_count, mine, mine + 1);
}

// Gives null to the thread that executes the construct, and to the others, when that is done, what
// it calls GOMP_single_copy_end with. The compiler puts another barrier after the copying.
void* GOMP_single_copy_start(void) {
  struct thread* const me = self();
  struct team* const team = me->now.team;
  if (GOMP_single_start()) return 0;
  omp_barrier(me, team, &team->inner, false);
  return team->single_data;
}

void GOMP_single_copy_end(void* data) {
  struct thread* const me = self();
  struct team* const team = me->now.team;
  if (team == 0) return;
  team->single_data = data;
  omp_barrier(me, team, &team->inner, false);
}

// ---- Cancellation --------------------------------------------------------------------------

enum { kCancelParallel = 1, kCancelLoop = 2, kCancelSections = 4, kCancelTaskgroup = 8 };

bool GOMP_cancellation_point(int which) {
  if (!omp.cancellation) return false;
  struct thread* const me = self();
  struct team* const team = me->now.team;
  if (which & (kCancelLoop | kCancelSections)) return team != 0 && LOAD(&team->share_cancelled);
  if (which & kCancelTaskgroup) return omp_is_cancelled(team, current_task(me)->group);
  return team != 0 && LOAD(&team->cancelled);
}

bool GOMP_cancel(int which, bool active) {
  if (!omp.cancellation) return false;
  if (!active) return GOMP_cancellation_point(which);
  struct thread* const me = self();
  struct team* const team = me->now.team;
  if (which & (kCancelLoop | kCancelSections)) {
    if (team != 0) STORE(&team->share_cancelled, 1);
  } else if (which & kCancelTaskgroup) {
    struct taskgroup* group = current_task(me)->group;
    if (group != 0 && group->is_workshare && group->previous != 0) group = group->previous;
    if (group != 0) group->cancelled = true;
  } else if (team != 0) {
    STORE(&team->cancelled, 1);
    omp_wake_team(team);
  }
  return true;
}
