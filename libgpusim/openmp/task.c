// Explicit tasks: creation, execution, taskwait, taskgroup, detach.
//
// A ready task is in three lists: its team's (for threads at barriers), its parent's (for taskwait)
// and its group's (for the end of a taskgroup). One lock per team guards them.
#include <stdlib.h>
#include <string.h>

#include "omp_internal.h"

enum {
  kFlagFinal = 1 << 1,
  kFlagDepend = 1 << 3,
  kFlagPriority = 1 << 4,
  kFlagDetach = 1 << 13,
};

#define TASK_OF(item, list) ((struct task*)((char*)(item)-offsetof(struct task, list)))

void omp_init_implicit_task(struct task* task, struct task* parent, const struct icvs* icvs) {
  task->parent = parent;
  task->group = 0;
  task->team = 0;
  task->icvs = *icvs;
  task->kind = kImplicit;
  task->is_final = false;
  task->references = 1;
  task->children = 0;
  task->table = 0;
  list_init(&task->ready_children);
}

void omp_finish_implicit_task(struct task* task) {
  if (task->table != 0) omp_free_dependences(task);
}

bool omp_is_cancelled(const struct team* team, const struct taskgroup* group) {
  if (!omp.cancellation) return false;
  if (team != 0 && LOAD(&team->cancelled)) return true;
  if (group == 0) return false;
  return group->cancelled ||
         (group->is_workshare && group->previous != 0 && group->previous->cancelled);
}

// ---- Life of a task; all under the team's lock -------------------------------------------------

static struct task* new_task(struct thread* me, void (*function)(void*), size_t argument_size,
                             size_t argument_align, size_t dependence_count) {
  struct task* const parent = current_task(me);
  if (argument_align == 0) argument_align = 1;
  const size_t dependences = dependence_count * omp_dependence_size;
  struct task* const task =
      omp_get_memory(sizeof *task + dependences + argument_size + argument_align - 1);
  memset(task, 0, sizeof *task);
  task->dependence = (struct dependence*)(task + 1);
  const uintptr_t room = (uintptr_t)(task + 1) + dependences;
  task->argument = (void*)((room + argument_align - 1) & ~(uintptr_t)(argument_align - 1));
  task->parent = parent;
  task->group = parent->group;
  task->team = me->now.team;
  task->function = function;
  task->icvs = parent->icvs;
  task->is_final = parent->is_final;
  task->kind = kUndeferred;
  task->references = 1;
  if (parent->kind != kImplicit) FETCH_ADD(&parent->references, 1);
  list_init(&task->ready_children);
  return task;
}

// A task keeps its parent until it is freed itself.
static void drop_reference(struct task* task) {
  while (task->kind != kImplicit && FETCH_ADD(&task->references, (uint32_t)-1) == 1) {
    struct task* const parent = task->parent;
    omp_free_dependences(task);
    free(task->successors);
    free(task);
    task = parent;
  }
}

// Into the three lists. In order of priority; among equals first come first served at barriers,
// last come first served below a parent, which keeps recursion shallow.
static void queue(struct task* task) {
  struct team* const team = task->team;
  struct link* place = &team->ready;
  while (place->previous != &team->ready &&
         TASK_OF(place->previous, in_team)->priority < task->priority)
    place = place->previous;
  list_insert_before(place, &task->in_team);
  place = task->parent->ready_children.next;
  while (place != &task->parent->ready_children &&
         TASK_OF(place, in_parent)->priority > task->priority)
    place = place->next;
  list_insert_before(place, &task->in_parent);
  if (task->group != 0) {
    place = task->group->ready.next;
    while (place != &task->group->ready && TASK_OF(place, in_group)->priority > task->priority)
      place = place->next;
    list_insert_before(place, &task->in_group);
  }
  FETCH_ADD(&team->ready_count, 1);
}

static void unqueue(struct task* task) {
  list_remove(&task->in_team);
  list_remove(&task->in_parent);
  if (task->group != 0) list_remove(&task->in_group);
  FETCH_ADD(&task->team->ready_count, (uint32_t)-1);
}

static void wake_group(struct task* task) {
  if (task->group != 0 && task->group->owner != 0) bump(&task->group->owner->word);
}

// All that the task depends on has completed.
static void released(struct task* task) {
  task->is_ready = true;
  if (task->kind == kUndeferred) {
    bump(&task->parent->word);  // its parent's thread waits to execute it
    return;
  }
  queue(task);
  bump(&task->parent->word);
  wake_group(task);
  omp_wake_for_task(task->team);
}

static void complete(struct task* task) {
  struct team* const team = task->team;
  omp_depend_done(task, released);
  struct task* const parent = task->parent;
  STORE(&parent->children, parent->children - 1);
  bump(&parent->word);
  if (task->group != 0) {
    STORE(&task->group->count, task->group->count - 1);
    wake_group(task);
  }
  drop_reference(task);
  FETCH_ADD(&team->task_count, (uint32_t)-1);
}

static void add_to_parent(struct task* task) {
  struct task* const parent = task->parent;
  STORE(&parent->children, parent->children + 1);
  if (task->group != 0) STORE(&task->group->count, task->group->count + 1);
  FETCH_ADD(&task->team->task_count, 1);
}

static void use_tasks(struct team* team) {
  if (RELAXED(&team->tasks_used)) return;
  STORE(&team->tasks_used, 1);
  omp_wake_team(team);  // threads already at a barrier begin to look for tasks
}

// ---- Execution -------------------------------------------------------------------------------

// The task has been taken out of its lists; the lock is not held.
static void execute(struct thread* me, struct task* task) {
  struct team* const team = task->team;
  struct task* const before = me->now.task;
  if (task->keeps_going || !omp_is_cancelled(team, task->group)) {
    me->now.task = task;
    task->function(task->argument);
    me->now.task = before;
  } else if (task->has_event) {
    task->is_fulfilled = true;  // a task that never ran cannot hand out its event
  }
  lock_acquire(&team->task_lock);
  task->is_executed = true;
  if (!task->has_event || task->is_fulfilled) complete(task);
  lock_release(&team->task_lock);
  if (LOAD(&team->task_count) == 0) omp_try_release(team);
}

// A ready task of the team, if nobody else is on the way to it.
void omp_run_one(struct thread* me, struct team* team, const struct barrier* barrier,
                 uint32_t generation) {
  while (FETCH_ADD(&team->claims, 1) >= LOAD(&team->ready_count)) {
    FETCH_ADD(&team->claims, (uint32_t)-1);
    // Who looked at a task queued in between left it to this claim.
    if (LOAD(&team->ready_count) <= LOAD(&team->claims)) return;
  }
  lock_acquire(&team->task_lock);
  FETCH_ADD(&team->claims, (uint32_t)-1);
  struct task* task = 0;
  if (barrier_generation(barrier) != generation) {
    // The task belongs to a later region, of which this thread need not be: somebody else's.
    if (!list_is_empty(&team->ready)) omp_wake_for_task(team);
  } else if (!list_is_empty(&team->ready)) {
    task = TASK_OF(team->ready.next, in_team);
    unqueue(task);
  }
  lock_release(&team->task_lock);
  if (task != 0) execute(me, task);
}

static bool run_child(struct thread* me, struct task* parent) {
  struct team* const team = me->now.team;
  lock_acquire(&team->task_lock);
  struct task* task = 0;
  if (!list_is_empty(&parent->ready_children)) {
    task = TASK_OF(parent->ready_children.next, in_parent);
    unqueue(task);
  }
  lock_release(&team->task_lock);
  if (task == 0) return false;
  execute(me, task);
  return true;
}

static bool run_of_group(struct thread* me, struct taskgroup* group) {
  struct team* const team = me->now.team;
  lock_acquire(&team->task_lock);
  struct task* task = 0;
  if (!list_is_empty(&group->ready)) {
    task = TASK_OF(group->ready.next, in_group);
    unqueue(task);
  }
  lock_release(&team->task_lock);
  if (task == 0) return false;
  execute(me, task);
  return true;
}

// ---- Creation --------------------------------------------------------------------------------

static void copy_argument(struct thread* me, struct task* task, void* data,
                          void (*copy)(void*, void*), size_t size) {
  if (copy == 0) {
    memcpy(task->argument, data, size);
    return;
  }
  struct task* const before = me->now.task;
  me->now.task = task;
  copy(task->argument, data);
  me->now.task = before;
  task->keeps_going = true;
}

// Executed by the creating thread before it goes on.
static void run_undeferred(struct thread* me, struct task* task, void** depend) {
  struct team* const team = task->team;
  struct task* const parent = task->parent;
  task->kind = kUndeferred;
  if (team == 0) {  // outside of parallel regions there are no other threads and no queue
    me->now.task = task;
    task->function(task->argument);
    me->now.task = parent;
    if (task->has_event) wait_while_u32(&task->word, 0);
    drop_reference(task);
    return;
  }
  if (depend == 0 && !task->has_event) {
    // Nobody can wait for it: only its own children may look at it.
    me->now.task = task;
    task->function(task->argument);
    me->now.task = parent;
    drop_reference(task);
    return;
  }
  use_tasks(team);
  lock_acquire(&team->task_lock);
  add_to_parent(task);
  FETCH_ADD(&task->references, 1);
  if (depend != 0) omp_depend(task, parent, depend);
  if (task->predecessors == 0) task->is_ready = true;
  lock_release(&team->task_lock);
  for (;;) {
    const uint32_t seen = LOAD(&parent->word);
    if (LOAD(&task->is_ready)) break;
    if (!run_child(me, parent)) wait_while_u32(&parent->word, seen);
  }
  execute(me, task);
  for (;;) {  // whoever fulfils the event completes the task, which changes its parent's word
    const uint32_t seen = LOAD(&parent->word);
    if (!task->has_event || LOAD(&task->is_fulfilled)) break;
    if (!run_child(me, parent)) wait_while_u32(&parent->word, seen);
  }
  lock_acquire(&team->task_lock);  // whoever fulfilled the event is through with it
  lock_release(&team->task_lock);
  drop_reference(task);
}

static bool has_too_many(const struct team* team) {
  const uint32_t most = team->size < 1024 ? 64 * team->size : 65536;
  return LOAD(&team->task_count) > most;
}

static void no_work(void* argument) { (void)argument; }

static void start_deferred(struct task** tasks, size_t count, void** depend) {
  struct team* const team = tasks[0]->team;
  use_tasks(team);
  lock_acquire(&team->task_lock);
  for (size_t i = 0; i < count; ++i) {
    struct task* const task = tasks[i];
    task->kind = kDeferred;
    add_to_parent(task);
    if (depend != 0) omp_depend(task, task->parent, depend);
    if (task->predecessors != 0) continue;
    task->is_ready = true;
    queue(task);
    wake_group(task);
    omp_wake_for_task(team);
  }
  lock_release(&team->task_lock);
}

void GOMP_task(void (*function)(void*), void* data, void (*copy)(void*, void*), long size,
               long align, bool may_defer, unsigned flags, void** depend, int priority,
               void* event) {
  struct thread* const me = self();
  struct team* const team = me->now.team;
  struct task* const parent = current_task(me);
  if (!(flags & kFlagDepend)) depend = 0;
  if (omp_is_cancelled(team, parent->group)) return;
  struct task* const task = new_task(me, function, (size_t)size, (size_t)align,
                                     depend != 0 ? omp_depend_count(depend) : 0);
  const bool had_to = parent->is_final;
  task->is_final |= (flags & kFlagFinal) != 0;
  if (flags & kFlagPriority)
    task->priority = priority < omp.max_task_priority ? priority : omp.max_task_priority;
  if (flags & kFlagDetach) {
    task->has_event = true;
    *(void**)event = task;
    if (data != 0) *(void**)data = task;
  }
  if (team == 0 || !may_defer || had_to || (has_too_many(team) && !task->has_event)) {
    // The data are alive until it is done; without copy constructors no copy is needed.
    if (copy != 0)
      copy_argument(me, task, data, copy, (size_t)size);
    else
      task->argument = data;
    run_undeferred(me, task, depend);
    return;
  }
  copy_argument(me, task, data, copy, (size_t)size);
  struct task* one = task;
  start_deferred(&one, 1, depend);
}

void omp_fulfill_event(uintptr_t event) {
  struct task* const task = (struct task*)event;
  struct team* const team = task->team;
  if (team == 0) {  // the store ends the wait in run_undeferred, and perhaps the task
    STORE(&task->word, 1);
    wake_u32(&task->word);
    return;
  }
  lock_acquire(&team->task_lock);
  if (task->is_fulfilled) omp_fatal("omp_fulfill_event: the event has been fulfilled before");
  STORE(&task->is_fulfilled, true);
  const bool now = task->is_executed;
  if (now) complete(task);
  // Whoever waits at a barrier must not leave before we are through with the team.
  if (now && LOAD(&team->task_count) == 0) omp_try_release(team);
  lock_release(&team->task_lock);
}

// ---- Waiting ---------------------------------------------------------------------------------

void GOMP_taskwait(void) {
  struct thread* const me = self();
  struct team* const team = me->now.team;
  struct task* const task = current_task(me);
  if (team == 0) return;
  while (LOAD(&task->children) != 0) {
    const uint32_t seen = LOAD(&task->word);
    if (LOAD(&task->children) == 0) break;
    if (!run_child(me, task)) wait_while_u32(&task->word, seen);
  }
}

void GOMP_taskwait_depend(void** depend) {
  struct thread* const me = self();
  if (me->now.team == 0 || current_task(me)->table == 0) return;
  run_undeferred(me, new_task(me, no_work, 0, 1, omp_depend_count(depend)), depend);
}

void GOMP_taskyield(void) {
  struct thread* const me = self();
  if (me->now.team != 0 && LOAD(&current_task(me)->children) != 0 && run_child(me, me->now.task))
    return;
  pause_briefly();  // who asks for it may be waiting for another thread
}

struct taskgroup* omp_group_begin(struct thread* me) {
  struct task* const task = current_task(me);
  struct taskgroup* const group = omp_get_zeroed(sizeof *group);
  list_init(&group->ready);
  group->owner = task;
  group->previous = task->group;
  group->reductions = group->previous != 0 ? group->previous->reductions : 0;
  return task->group = group;
}

void GOMP_taskgroup_start(void) { omp_group_begin(self()); }

void omp_group_end(struct thread* me) {
  struct team* const team = me->now.team;
  struct task* const task = current_task(me);
  struct taskgroup* const group = task->group;
  if (team != 0) {
    for (;;) {
      const uint32_t seen = LOAD(&task->word);
      if (LOAD(&group->count) == 0) break;
      // What the group's tasks wait for may be a sibling outside of it.
      if (!run_of_group(me, group) && !run_child(me, task)) wait_while_u32(&task->word, seen);
    }
    lock_acquire(&team->task_lock);  // the last task is through with the group
    lock_release(&team->task_lock);
  }
  task->group = group->previous;
  free(group);
}

void GOMP_taskgroup_end(void) { omp_group_end(self()); }

int omp_in_final(void) { return current_task(self())->is_final; }

// ---- Taskloop --------------------------------------------------------------------------------

enum {
  kFlagUp = 1 << 8,
  kFlagGrainsize = 1 << 9,
  kFlagIf = 1 << 10,
  kFlagNogroup = 1 << 11,
  kFlagReduction = 1 << 12,
  kFlagStrict = 1 << 14,
};

// Iterations first .. last - 1 of the loop go to one task.
struct taskloop {
  uint64_t start, end, step, count;
};

// A task's data begin with its first value and the end; then what describes task reductions.
static void set_range(const struct taskloop* loop, void* argument, uint64_t first, uint64_t last) {
  uint64_t* const range = argument;
  range[0] = loop->start + first * loop->step;
  range[1] = last == loop->count ? loop->end : loop->start + last * loop->step;
}

static void taskloop(void (*function)(void*), void* data, void (*copy)(void*, void*), size_t size,
                     size_t align, unsigned flags, uint64_t number, int priority,
                     const struct taskloop* loop) {
  struct thread* const me = self();
  struct team* const team = me->now.team;
  struct task* const parent = current_task(me);
  const bool with_group = !(flags & kFlagNogroup);
  const bool with_reductions = with_group && (flags & kFlagReduction);
  uintptr_t* const reductions = with_reductions ? ((uintptr_t**)data)[2] : 0;
  if (loop->count == 0 || omp_is_cancelled(team, 0)) {
    if (with_reductions) reductions[2] = 0;  // tells the caller that nothing was registered
    return;
  }
  if (!with_group && omp_is_cancelled(team, parent->group)) return;

  // Into how many tasks: `strict` wants exactly `number` iterations in each but the last.
  const uint64_t count = loop->count;
  uint64_t tasks = number, strict = 0;
  if (flags & kFlagGrainsize) {
    if (flags & kFlagStrict) strict = number;
    tasks = strict != 0 ? (count - 1) / number + 1 : count / number;
    if (tasks == 0) tasks = 1;
  } else if (tasks == 0) {
    tasks = team != 0 ? team->size : 1;
  }
  if (tasks > count) tasks = count;
  const uint64_t each = count / tasks, more = count % tasks;

  if (with_group) omp_group_begin(me);
  if (with_reductions) {
    omp_reductions_register(reductions,
                            parent->group->previous != 0 ? parent->group->previous->reductions : 0,
                            0, team != 0 ? team->size : 1);
    parent->group->reductions = reductions;
  }
  if (priority > omp.max_task_priority) priority = omp.max_task_priority;

  const bool deferred = (flags & kFlagIf) && team != 0 && !parent->is_final && !has_too_many(team);
  uint64_t first = 0;
  for (uint64_t i = 0; i < tasks; ++i) {
    uint64_t last = first + each + (i < more);
    if (strict != 0) last = count - first > strict ? first + strict : count;
    struct task* task = new_task(me, function, size, align, 0);
    task->is_final |= (flags & kFlagFinal) != 0;
    task->priority = priority;
    copy_argument(me, task, data, copy, size);
    set_range(loop, task->argument, first, last);
    if (deferred)
      start_deferred(&task, 1, 0);
    else
      run_undeferred(me, task, 0);
    first = last;
  }
  if (with_group) omp_group_end(me);
}

void GOMP_taskloop(void (*function)(void*), void* data, void (*copy)(void*, void*), long size,
                   long align, unsigned flags, unsigned long number, int priority, long start,
                   long end, long step) {
  const struct taskloop loop = {(uint64_t)start, (uint64_t)end, (uint64_t)step,
                                omp_count_long(start, end, step)};
  taskloop(function, data, copy, (size_t)size, (size_t)align, flags, number, priority, &loop);
}

void GOMP_taskloop_ull(void (*function)(void*), void* data, void (*copy)(void*, void*), long size,
                       long align, unsigned flags, unsigned long number, int priority,
                       unsigned long long start, unsigned long long end, unsigned long long step) {
  struct taskloop loop = {start, end, step, 0};
  if (flags & kFlagUp)
    loop.count = start >= end ? 0 : (end - start - 1) / step + 1;
  else
    loop.count = start <= end ? 0 : (start - end - 1) / (0 - step) + 1;
  taskloop(function, data, copy, (size_t)size, (size_t)align, flags, number, priority, &loop);
}
