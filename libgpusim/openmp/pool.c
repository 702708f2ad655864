// The threads: created when a region first wants them, one per core, parked in between.
#include <pthread.h>
#include <stdlib.h>

#include "omp_internal.h"

enum { kGroup = 64, kShares = 16, kMostThreadsElsewhere = 65536 };

// Another team's call to a pool thread.
struct mail {
  struct team* team;
  uint32_t tid;
};

static struct {
  struct lock lock;
  uint32_t size;  // threads, the initial one included: pool thread i has index i, from 1 on
  uint32_t most;
  bool exhausted;      // the system gives no more
  uint32_t main_size;  // of the main team while it is active
  uint32_t assigned;   // pool threads that serve other teams
  uint32_t search;     // where to look for a free one
  // (number of the region << 32) | size of its team: one word, so that no thread can mix up two.
  uint64_t main_call;
  struct team* main_team;
  struct thread* initial;
  uint32_t* docks;  // one word per group of threads
  uint32_t* idle;   // per group: how many wait for tasks
  struct mail* mail;
  pthread_attr_t attributes;
} pool;

__thread struct thread gpusim_omp_self;

static void begin_initial_task(struct thread* me) {
  me->own_group = 1;
  me->now.contention_group = &me->own_group;
  me->now.task = &me->implicit;
  omp_init_implicit_task(&me->implicit, 0, &omp.initial);
}

void omp_adopt_thread(struct thread* me) {
  // Never freed: a thread that leaves this one's team may still touch it.
  me->wake = omp_get_zeroed(sizeof *me->wake);
  me->idle = 0;
  begin_initial_task(me);
}

uint32_t omp_pool_limit(void) { return pool.most; }

// Called by the constructor in icv.c, in the initial thread.
void omp_pool_init(void) {
  struct thread* const me = self();
  pool.size = 1;
  pool.most = gpusim_omp_on_gpusim ? omp.cores : kMostThreadsElsewhere;
  const uint32_t groups = (pool.most + kGroup - 1) / kGroup;
  pool.docks = omp_get_zeroed(groups * sizeof *pool.docks);
  pool.idle = omp_get_zeroed(groups * sizeof *pool.idle);
  pool.mail = omp_get_zeroed((size_t)pool.most * sizeof *pool.mail);
  pool.initial = me;
  me->wake = &pool.docks[0];
  me->idle = &pool.idle[0];
  begin_initial_task(me);
}

// ---- Teams ---------------------------------------------------------------------------------

static struct team* new_team(uint32_t shares) {
  struct team* const team = omp_get_zeroed(sizeof *team + shares * sizeof(struct share));
  team->share_mask = shares - 1;
  for (uint32_t i = 0; i < shares; ++i) team->shares[i].claim = i;
  list_init(&team->ready);
  return team;
}

static void reset_shares(struct team* team, uint32_t used) {
  if (team->cancelled || used > team->share_mask) used = team->share_mask + 1;
  for (uint32_t i = 0; i < used; ++i) {
    struct share* const share = &team->shares[i];
    omp_share_free(share);
    share->claim = i;
    share->ready = share->left = 0;
  }
}

// What a thread does in a team: its implicit task, and the barrier at the end.
static void enter_team(struct thread* me, struct team* team, uint32_t tid, struct task* task) {
  struct thread_state* const now = &me->now;
  now->tid = tid;
  now->single_count = 0;
  now->share_count = team->is_preset;
  now->share = team->shares;
  now->static_next = 0;
  now->is_ordered = now->has_ordered_chunk = false;
  now->team = team;
  now->task = task;
  now->contention_group = team->saved.contention_group;
  me->team_number = team->team_number;
  me->last_team = team->last_team;
  omp_init_implicit_task(task, team->saved.task, &team->child_icvs);
  task->team = team;
  task->group = team->reduction_group;
}

static void serve(struct thread* me, struct team* team, uint32_t tid) {
  enter_team(me, team, tid, &me->implicit);
  team->function(team->argument);
  omp_barrier(me, team, &team->join, false);
  omp_finish_implicit_task(&me->implicit);
  me->now.team = 0;
  me->now.tid = 0;
}

static void work(void* argument) {
  const uint32_t index = (uint32_t)(uintptr_t)argument;
  struct thread* const me = self();
  me->wake = &pool.docks[index / kGroup];
  me->idle = &pool.idle[index / kGroup];
  struct mail* const mail = &pool.mail[index];
  uint64_t answered = 0;  // regions before this thread's creation were smaller than `index`
  for (;;) {
    const uint32_t seen = LOAD(me->wake);
    const uint64_t call = LOAD(&pool.main_call);
    if (call != answered) {
      answered = call;
      if (index < (uint32_t)call) {
        gpusim_time_acquire(&pool.main_call, call >> 32);
        serve(me, pool.main_team, index);
        continue;
      }
    }
    struct team* const team = LOAD(&mail->team);
    if (team != 0) {
      gpusim_time_acquire(mail, 0);
      serve(me, team, mail->tid);
      uint32_t* const master_word = team->master_word;
      STORE(&mail->team, (struct team*)0);
      FETCH_ADD(&team->detached, 1);  // the team may be gone from here on
      bump(master_word);
      continue;
    }
    wait_while_u32(me->wake, seen);
  }
}

static void* thread_main(void* argument) {
  omp_leave_small_stack(work, argument);
  return 0;
}

// ---- Creation ------------------------------------------------------------------------------

// Makes the pool larger, up to `wanted` threads; fewer if the system has no more.
static void grow(uint32_t wanted) {
  if (wanted > pool.most) wanted = pool.most;
  if (pool.size >= wanted || pool.exhausted) return;
  if (pool.size == 1) omp_prepare_stacks(&pool.attributes, pool.most);
  while (pool.size < wanted) {
    pthread_t thread;
    if (!omp_next_stack(&pool.attributes) ||
        pthread_create(&thread, &pool.attributes, thread_main, (void*)(uintptr_t)pool.size) != 0) {
      pool.exhausted = true;
      omp_note("the system gives no more than %u threads", pool.size);
      return;
    }
    ++pool.size;
  }
}

static bool is_free(uint32_t index) {
  return index >= pool.main_size && LOAD(&pool.mail[index].team) == 0;
}

// Calls up to `wanted` free pool threads into the team; they wait until they are woken.
static void call_threads(struct team* team, uint32_t wanted, uint32_t* chosen) {
  uint32_t found = 0;
  for (int round = 0; round < 2 && found < wanted; ++round) {
    for (uint32_t tried = 1; tried < pool.size && found < wanted; ++tried) {
      const uint32_t index = 1 + pool.search++ % (pool.size - 1);
      bool taken = !is_free(index);
      for (uint32_t i = 0; i < found && !taken; ++i) taken = chosen[i] == index;
      if (!taken) chosen[found++] = index;
    }
    if (round == 0 && found < wanted) grow(pool.size + wanted - found);
  }
  team->size = 1 + found;
}

// ---- Regions -------------------------------------------------------------------------------

static struct team* take_main_team(struct thread* me, uint32_t wanted) {
  grow(wanted);
  if (pool.main_team == 0) pool.main_team = new_team(kShares);
  struct team* const team = pool.main_team;
  team->size = wanted < pool.size ? wanted : pool.size;
  team->master_word = me->wake;
  pool.main_size = team->size;
  return team;
}

static struct team* take_single_team(struct thread* me) {
  struct team* team = me->spare_team;
  me->spare_team = 0;
  if (team == 0) team = new_team(1);
  team->size = 1;
  team->master_word = me->wake;
  return team;
}

struct team* omp_team_begin(struct thread* me, void (*function)(void*), void* argument,
                            uint32_t wanted, void (*prepare)(struct team*, void*), void* context) {
  struct task* const task = current_task(me);
  struct team* team = 0;
  uint32_t* chosen = 0;
  if (wanted > 1) {
    lock_acquire(&pool.lock);
    if (me == pool.initial && pool.main_size == 0 && LOAD(&pool.assigned) == 0) {
      team = take_main_team(me, wanted);
    } else if (pool.most > 1) {
      const uint32_t busy = LOAD(me->now.contention_group);
      const uint32_t limit = task->icvs.thread_limit;
      const uint32_t more = limit > busy ? limit - busy : 0;
      if (wanted - 1 > more) wanted = 1 + more;
      team = new_team(kShares);
      chosen = omp_get_memory(wanted * sizeof *chosen);
      call_threads(team, wanted - 1, chosen);
      team->master_word = me->wake;
      team->members = omp_get_memory(team->size * sizeof *team->members);
      team->members[0] = me->wake;
      for (uint32_t i = 1; i < team->size; ++i)
        team->members[i] = &pool.docks[chosen[i - 1] / kGroup];
      FETCH_ADD(&pool.assigned, team->size - 1);
    }
    if (team != 0) FETCH_ADD(me->now.contention_group, team->size - 1);
    // Threads of others must not take those chosen: the lock is kept until they are called.
    if (team == 0 || team->members == 0) lock_release(&pool.lock);
  }
  if (team == 0) team = take_single_team(me);

  struct team* const outer = me->now.team;
  team->level = (outer ? outer->level : 0) + 1;
  team->active_level = (outer ? outer->active_level : 0) + (team->size > 1);
  team->saved = me->now;
  team->team_number = me->team_number;
  team->last_team = me->last_team;
  team->function = function;
  team->argument = argument;
  team->is_preset = false;
  team->inner.state &= ~(uint64_t)UINT32_MAX;  // who left a cancelled region had arrived
  team->single_count = 0;
  team->cancelled = team->share_cancelled = 0;
  team->tasks_used = 0;
  team->reduction_group = 0;
  team->child_icvs = task->icvs;
  if (omp.nested_threads_count != 0) {  // OMP_NUM_THREADS=4,2: the level inside takes the next
    const uint32_t level =
        team->level < omp.nested_threads_count ? team->level : omp.nested_threads_count - 1;
    team->child_icvs.threads = omp.nested_threads[level];
  }
  if (prepare) prepare(team, context);

  if (team->members != 0) {
    for (uint32_t i = 1; i < team->size; ++i) {
      struct mail* const mail = &pool.mail[chosen[i - 1]];
      mail->tid = i;
      gpusim_time_release(mail, 0);
      STORE(&mail->team, team);
    }
    lock_release(&pool.lock);
    free(chosen);
    omp_wake_team(team);
  } else if (team == pool.main_team) {
    const uint64_t number = (pool.main_call >> 32) + 1;
    gpusim_time_release(&pool.main_call, number);
    STORE(&pool.main_call, number << 32 | team->size);
    omp_wake_team(team);
  }
  struct task* master_task = team->master_task;
  if (master_task == 0) master_task = team->master_task = omp_get_zeroed(sizeof *master_task);
  enter_team(me, team, 0, master_task);
  return team;
}

void omp_team_end(struct thread* me) {
  struct team* const team = me->now.team;
  const uint32_t shares_used = me->now.share_count;
  omp_barrier(me, team, &team->join, false);
  omp_finish_implicit_task(team->master_task);
  if (RELAXED(&team->tasks_used)) {  // a thread of another team may have completed the last task
    lock_acquire(&team->task_lock);
    lock_release(&team->task_lock);
  }
  me->now = team->saved;
  if (team->size > 1) FETCH_ADD(me->now.contention_group, -(team->size - 1));
  if (team->members != 0) {
    for (;;) {  // until no thread looks at the team any more
      const uint32_t seen = LOAD(team->master_word);
      if (LOAD(&team->detached) == team->size - 1) break;
      wait_while_u32(team->master_word, seen);
    }
    FETCH_ADD(&pool.assigned, -(team->size - 1));
    reset_shares(team, team->share_mask + 1);
    free(team->members);
    free(team->master_task);
    free(team);
    return;
  }
  reset_shares(team, shares_used);
  if (team == pool.main_team) {
    STORE(&pool.main_size, 0);
  } else if (me->spare_team == 0) {
    me->spare_team = team;
  } else {
    free(team->master_task);
    free(team);
  }
}

// ---- Waking --------------------------------------------------------------------------------

void omp_wake_team(struct team* team) {
  if (team->members != 0) {
    for (uint32_t i = 0; i < team->size; ++i) bump(team->members[i]);
  } else if (team->size == 1) {
    bump(team->master_word);
  } else {
    const uint32_t groups = (team->size + kGroup - 1) / kGroup;
    for (uint32_t i = 0; i < groups; ++i) bump(&pool.docks[i]);
  }
}

// One more task is ready: somebody who waits should look.
void omp_wake_for_task(struct team* team) {
  if (LOAD(&team->idle) == 0) return;
  if (team->members != 0 || team->size == 1) {
    omp_wake_team(team);
    return;
  }
  const uint32_t groups = (team->size + kGroup - 1) / kGroup;
  for (uint32_t i = 0; i < groups; ++i) {
    const uint32_t group = team->next_group++ % groups;
    if (LOAD(&pool.idle[group]) == 0) continue;
    bump(&pool.docks[group]);
    return;
  }
}
