// What the parts of the OpenMP run-time share. docs/howto/openmp.md is the user's view; entry
// points and their arguments are those that GCC 12 emits calls of.
//
// thread   one per POSIX thread, in thread-local storage; `tid` is its number in its team
// team     the threads of one parallel region; threads outside of any have none
// task     implicit (one per thread of a team, one for the initial thread) or explicit
// share    one work-sharing construct (loop, sections, scope) of a team
//
// Waiting. A thread of a team waits for "anything" on its group's dock word: 64 neighbouring pool
// threads share one, so that a barrier wakes 65,536 cores with 1,024 stores and cores that wait in
// lockstep watch the same address. A changed word means only "look again".
#ifndef GPUSIM_OMP_INTERNAL_H
#define GPUSIM_OMP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock.h"
#include "wait.h"

enum schedule { kRuntime = 0, kStatic = 1, kDynamic = 2, kGuided = 3, kAuto = 4 };
#define SCHEDULE_MONOTONIC UINT32_C(0x80000000)

// Internal control variables that each task has its own copy of.
struct icvs {
  uint32_t threads;  // for the next parallel region
  uint32_t thread_limit;
  uint32_t schedule;  // enum schedule, perhaps | SCHEDULE_MONOTONIC
  uint8_t dynamic;
  uint8_t max_active_levels;
  long chunk;
};

struct thread;
struct task;
struct taskgroup;
struct dependences;

// Doubly linked, circular, with a head: a task is in up to three lists.
struct link {
  struct link* next;
  struct link* previous;
};

// One word, so that who is late cannot open the barrier of a later generation: the number of
// threads that have arrived, and above it the generation.
struct barrier {
  uint64_t state;
};
static inline uint32_t barrier_generation(const struct barrier* barrier) {
  return (uint32_t)(__atomic_load_n(&barrier->state, __ATOMIC_SEQ_CST) >> 32);
}

// ---- Work shares ---------------------------------------------------------------------------

struct doacross;

struct share {
  uint32_t claim;  // number of the construct that may claim it, then that number + 1
  uint32_t ready;  // number + 1 of the construct that it is initialised for
  uint32_t left;   // threads that have left
  uint32_t schedule;
  // Iterations are numbered 0 .. count - 1 whatever the type and direction of the loop variable.
  uint64_t start, end, increment, count, chunk;
  uint64_t next;           // first iteration (or section) not handed out
  uint64_t ordered_next;   // first iteration of the chunk whose turn it is
  uint32_t ordered_turns;  // changes with it
  uintptr_t* reductions;
  void* memory;  // zeroed, for what the compiler keeps per construct
  struct doacross* doacross;
};

// ---- Teams ---------------------------------------------------------------------------------

// Where a thread is; saved while it is the master of an inner region.
struct thread_state {
  uint32_t tid;
  uint32_t single_count;
  uint32_t share_count;  // work-sharing constructs begun
  struct team* team;     // null outside of all regions
  struct task* task;
  uint32_t* contention_group;  // how many threads it has; the thread limit is one of a group
  struct share* share;
  uint64_t static_next;             // chunk number
  uint64_t chunk_begin, chunk_end;  // iterations handed out last
  bool is_ordered, has_ordered_chunk;
};

struct team {
  uint32_t size;
  uint32_t level, active_level;
  struct thread_state saved;  // of the master, outside of this region
  void (*function)(void*);
  void* argument;
  bool is_preset;  // the first share is the one of GOMP_parallel_loop_* or _sections

  struct barrier inner, join;
  uint32_t single_count;
  void* single_data;
  uint32_t cancelled, share_cancelled;

  struct lock task_lock;  // guards what follows but the atomic counters, and links between tasks
  struct link ready;      // tasks that may start, in order
  uint32_t ready_count;
  uint32_t claims;      // threads on their way to take one
  uint32_t task_count;  // not complete yet
  uint32_t tasks_used;  // there has been a task: waiting threads count themselves as idle
  uint32_t next_group;  // to wake

  struct taskgroup* reduction_group;  // of GOMP_parallel_reductions
  uint32_t team_number, last_team;    // of the league that it belongs to
  struct icvs child_icvs;             // what its implicit tasks start with
  struct task* master_task;           // implicit task of the master

  // Whom to wake. Null in the main team, whose threads are the first of the pool.
  uint32_t** members;
  uint32_t* master_word;
  uint32_t idle;  // threads that wait for tasks
  uint32_t detached;

  uint32_t share_mask;    // number of shares - 1
  struct share shares[];  // a ring; how many constructs a thread may be ahead of others
};

// ---- Tasks ---------------------------------------------------------------------------------

enum task_kind { kImplicit, kUndeferred, kDeferred };

struct task {
  struct link in_team, in_parent, in_group;  // while ready
  struct task* parent;
  struct taskgroup* group;
  struct team* team;
  void (*function)(void*);
  void* argument;
  struct icvs icvs;
  uint8_t kind;
  bool is_final;
  bool is_ready;     // all it depends on has completed
  bool keeps_going;  // runs even if its group is cancelled: it owns copies with destructors
  bool has_event;    // detach: complete only when its event is fulfilled, too
  bool is_fulfilled, is_executed;
  int32_t priority;
  uint32_t references;  // itself and its children
  uint32_t children;    // not complete
  uint32_t word;        // changes when whoever waits in this task should look again
  struct link ready_children;

  // Dependences: what it still waits for, who waits for it, and the table of its own children.
  uint32_t predecessors;
  uint32_t successor_count, successor_room;
  struct task** successors;
  uint32_t dependence_count;
  struct dependence* dependence;
  struct dependences* table;
};

struct taskgroup {
  struct taskgroup* previous;
  struct task* owner;  // whose thread waits at the end, on the task's word
  uint32_t count;      // tasks not complete
  bool cancelled;
  bool is_workshare;
  struct link ready;
  uintptr_t* reductions;
};

// ---- Threads -------------------------------------------------------------------------------

struct thread {
  struct thread_state now;
  uint32_t* wake;                   // the word that it waits on in barriers and in the pool
  uint32_t* idle;                   // where it counts itself while it waits for tasks
  uint32_t team_number, last_team;  // in a league
  uint32_t own_group;               // contention group of an initial or foreign thread
  struct task implicit;
  struct team* spare_team;  // of size 1
};

// Threads of the pool that run on their cores' own stacks keep it at the top of the stack: memory
// of cores in lockstep lies side by side there, while their thread-local storage does not. The
// first core's stack does not count.
struct core_stacks {
  uint64_t begin, size;
  uint64_t distance_mask;  // distance from one to the next - 1
};
extern struct core_stacks gpusim_omp_stacks;
enum { kThreadRoom = (sizeof(struct thread) + 63) & ~63 };

extern __thread struct thread gpusim_omp_self __attribute__((tls_model("local-exec")));
static inline struct thread* self(void) {
#ifdef GPUSIM_OMP_IN_GUEST
  const uint64_t offset = gpusim_isa_stack_pointer() - gpusim_omp_stacks.begin;
  const uint64_t top = gpusim_omp_stacks.begin + (offset | gpusim_omp_stacks.distance_mask) + 1;
  // Core 0, whose stack does not count, is in lockstep with others.
  return (struct thread*)gpusim_isa_select(offset, gpusim_omp_stacks.size,
                                           (void*)(top - kThreadRoom), &gpusim_omp_self);
#else
  return &gpusim_omp_self;
#endif
}

void omp_adopt_thread(struct thread* me);  // gives a foreign thread its initial task
static inline struct task* current_task(struct thread* me) {
  if (__builtin_expect(me->now.task == 0, false)) omp_adopt_thread(me);
  return me->now.task;
}

// ---- Process-wide --------------------------------------------------------------------------

struct omp_globals {
  uint32_t cores;  // processors that the process may use
  struct icvs initial;
  bool cancellation;
  int32_t max_task_priority;
  uint64_t stack_size;  // OMP_STACKSIZE in bytes; 0: not given
  uint32_t num_teams, teams_thread_limit;
  // OMP_NUM_THREADS=4,2: for regions inside of a region
  uint32_t nested_threads[8];
  uint32_t nested_threads_count;
  bool target_mandatory;
};
extern struct omp_globals omp;

__attribute__((noreturn, format(printf, 1, 2))) void omp_fatal(const char* format, ...);
__attribute__((format(printf, 1, 2))) void omp_note(const char* format, ...);
void* omp_get_memory(size_t size);  // never null
void* omp_get_zeroed(size_t size);

// pool.c
// Starts a team of at most `wanted` threads with the calling one as master, who goes on with
// `prepare`d work: prepare(team, context) runs when the size is known and nobody has started.
struct team* omp_team_begin(struct thread* me, void (*function)(void*), void* argument,
                            uint32_t wanted, void (*prepare)(struct team*, void*), void* context);
void omp_team_end(struct thread* me);
void omp_wake_team(struct team* team);
void omp_wake_for_task(struct team* team);
uint32_t omp_pool_limit(void);
void omp_pool_init(void);

// stack.c
void omp_prepare_stacks(void* attributes, uint32_t threads);
bool omp_next_stack(void* attributes);
void omp_leave_small_stack(void (*function)(void*), void* argument);

// alloc.c
void omp_read_allocator(const char* name);

// team.c
uint32_t omp_resolve_threads(struct thread* me, uint32_t clause, uint32_t most);
bool omp_barrier(struct thread* me, struct team* team, struct barrier* barrier, bool cancellable);
void omp_try_release(struct team* team);

// share.c
struct share* omp_share_begin(struct thread* me, bool* first);
void omp_share_ready(struct thread* me, struct share* share);
void omp_share_leave(struct thread* me);
void omp_share_free(struct share* share);

// loop.c
void omp_loop_init(struct share* share, uint64_t start, uint64_t end, uint64_t increment,
                   uint64_t count, uint32_t schedule, uint64_t chunk);
uint64_t omp_count_long(long start, long end, long increment);
bool omp_loop_next(long* first, long* last);

// ordered.c
void omp_ordered_chunk(struct thread* me, uint64_t begin, uint64_t end);
void omp_ordered_pass(struct thread* me);
void omp_doacross_free(struct doacross* d);

// task.c
void omp_init_implicit_task(struct task* task, struct task* parent, const struct icvs* icvs);
void omp_finish_implicit_task(struct task* task);
// Any ready task, while the barrier at which the thread waits is closed.
void omp_run_one(struct thread* me, struct team* team, const struct barrier* barrier,
                 uint32_t generation);
bool omp_is_cancelled(const struct team* team, const struct taskgroup* group);
void omp_group_end(struct thread* me);

// depend.c: all under the team's task lock
void omp_depend(struct task* task, struct task* parent, void** list);
void omp_depend_done(struct task* task, void (*released)(struct task*));
void omp_free_dependences(struct task* task);
size_t omp_depend_count(void** list);
extern const size_t omp_dependence_size;
struct taskgroup* omp_group_begin(struct thread* me);

// reduction.c
void omp_share_reductions(struct thread* me, struct share* share, uintptr_t* reductions,
                          bool first);
void omp_reductions_register(uintptr_t* data, uintptr_t* old, uintptr_t* original,
                             uint32_t threads);

// list helpers
static inline void list_init(struct link* head) { head->next = head->previous = head; }
static inline bool list_is_empty(const struct link* head) { return head->next == head; }
static inline void list_insert_before(struct link* place, struct link* item) {
  item->next = place;
  item->previous = place->previous;
  place->previous->next = item;
  place->previous = item;
}
static inline void list_remove(struct link* item) {
  item->previous->next = item->next;
  item->next->previous = item->previous;
  item->next = item->previous = 0;
}

#endif  // GPUSIM_OMP_INTERNAL_H
