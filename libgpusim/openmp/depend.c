// depend clauses: which sibling tasks a new task has to wait for.
#include <stdlib.h>

#include "omp_internal.h"

enum { kDependIn = 1, kBuckets = 64 };

struct place;

// One item of a task's depend clauses.
struct dependence {
  struct place* place;
  struct task* task;
  struct dependence *next, *previous;  // readers of the place
  bool is_reader;                      // in that list
};

const size_t omp_dependence_size = sizeof(struct dependence);

// One address that children of a task depend on.
struct place {
  void* address;
  struct place* next;
  struct task* writer;         // the last out or inout, while not complete
  struct dependence* readers;  // in, since then
};

struct dependences {
  struct place* buckets[kBuckets];
};

// The list as the compiler lays it out: {count, outs, address...} with outs first, or
// {0, count, outs, mutexinoutsets, ins, address..., depend object...}.
size_t omp_depend_count(void** list) { return (uintptr_t)(list[0] != 0 ? list[0] : list[1]); }

static struct place* find_place(struct task* parent, void* address) {
  if (parent->table == 0) parent->table = omp_get_zeroed(sizeof *parent->table);
  const uint64_t hash = ((uintptr_t)address >> 2) * UINT64_C(0x9e3779b97f4a7c15);
  struct place** const bucket = &parent->table->buckets[hash >> 58];
  for (struct place* place = *bucket; place != 0; place = place->next)
    if (place->address == address) return place;
  struct place* const place = omp_get_zeroed(sizeof *place);
  place->address = address;
  place->next = *bucket;
  return *bucket = place;
}

void omp_free_dependences(struct task* task) {
  if (task->table == 0) return;
  for (int i = 0; i < kBuckets; ++i) {
    for (struct place *place = task->table->buckets[i], *next; place != 0; place = next) {
      next = place->next;
      free(place);
    }
  }
  free(task->table);
  task->table = 0;
}

static void wait_for(struct task* task, struct task* earlier) {
  if (earlier == task) return;
  if (earlier->successor_count != 0 && earlier->successors[earlier->successor_count - 1] == task)
    return;
  if (earlier->successor_count == earlier->successor_room) {
    earlier->successor_room = earlier->successor_room != 0 ? 2 * earlier->successor_room : 4;
    earlier->successors =
        realloc(earlier->successors, earlier->successor_room * sizeof *earlier->successors);
    if (earlier->successors == 0) omp_fatal("out of memory");
  }
  earlier->successors[earlier->successor_count++] = task;
  ++task->predecessors;
}

static void leave_readers(struct dependence* d) {
  if (!d->is_reader) return;
  d->is_reader = false;
  if (d->previous != 0)
    d->previous->next = d->next;
  else
    d->place->readers = d->next;
  if (d->next != 0) d->next->previous = d->previous;
}

static void add(struct task* task, struct task* parent, void* address, bool is_in) {
  struct place* const place = find_place(parent, address);
  if (place->writer == task) return;  // said before, and more strongly
  if (is_in && place->readers != 0 && place->readers->task == task) return;
  struct dependence* const d = &task->dependence[task->dependence_count++];
  *d = (struct dependence){.place = place, .task = task};
  if (is_in) {
    if (place->writer != 0) wait_for(task, place->writer);
    d->next = place->readers;
    if (d->next != 0) d->next->previous = d;
    place->readers = d;
    d->is_reader = true;
    return;
  }
  // Readers wait for the writer before them; who waits for them waits for it, too.
  if (place->writer != 0 && place->readers == 0) wait_for(task, place->writer);
  while (place->readers != 0) {
    wait_for(task, place->readers->task);
    leave_readers(place->readers);
  }
  place->writer = task;
}

// mutexinoutset counts as inout: in order instead of in any order.
void omp_depend(struct task* task, struct task* parent, void** list) {
  const size_t count = omp_depend_count(list);
  if (list[0] != 0) {
    const size_t outs = (uintptr_t)list[1];
    for (size_t i = 0; i < count; ++i) add(task, parent, list[2 + i], i >= outs);
    return;
  }
  const size_t outs = (uintptr_t)list[2] + (uintptr_t)list[3];
  const size_t plain = outs + (uintptr_t)list[4];
  // What is written first, as `add` wants it.
  for (int reads = 0; reads <= 1; ++reads) {
    for (size_t i = 0; i < count; ++i) {
      void* const item = list[5 + i];
      if (i < plain) {
        if ((i >= outs) == reads) add(task, parent, item, reads);
        continue;
      }
      void** const object = item;  // omp_depend_t: address, kind
      const uintptr_t kind = (uintptr_t)object[1];
      if (kind < kDependIn || kind > 4) omp_fatal("depend(depobj): unknown kind %d", (int)kind);
      if ((kind == kDependIn) == reads) add(task, parent, object[0], reads);
    }
  }
}

// The task has completed: forget it, and release who waited for it alone.
void omp_depend_done(struct task* task, void (*released)(struct task*)) {
  for (uint32_t i = 0; i < task->dependence_count; ++i) {
    struct dependence* const d = &task->dependence[i];
    leave_readers(d);
    if (d->place->writer == task) d->place->writer = 0;
  }
  task->dependence_count = 0;
  for (uint32_t i = 0; i < task->successor_count; ++i)
    if (--task->successors[i]->predecessors == 0) released(task->successors[i]);
  task->successor_count = 0;
}
