// Torture of the locks in locks.S: every core takes each lock many times and changes, behind it,
// what only one core may change. A lost update, two owners at a time, a node that two cores have:
// all show at the end.
//
//   locks ROUNDS MASK     prints a line for each kind whose bit is set: number, takes, errors,
//                         microseconds, name
#include <string.h>

#include "gpusim_guest.h"

#define DECLARE_LOCK(name) void name##_lock(void*, uint64_t)
DECLARE_LOCK(exclusive);
DECLARE_LOCK(swap);
DECLARE_LOCK(cas);
DECLARE_LOCK(barrier);
DECLARE_LOCK(ticket);
DECLARE_LOCK(ticket_exclusive);
DECLARE_LOCK(ticket_counting);
DECLARE_LOCK(mcs);
DECLARE_LOCK(peterson);
DECLARE_LOCK(peterson_rcsc);
DECLARE_LOCK(dekker);
void word_unlock(void*, uint64_t);
void barrier_unlock(void*, uint64_t);
void ticket_unlock(void*, uint64_t);
void mcs_unlock(void*, uint64_t);
void peterson_unlock(void*, uint64_t);
void peterson_rcsc_unlock(void*, uint64_t);
void dekker_unlock(void*, uint64_t);
void push_pair(void*, void*);
void* pop_pair(void*);
void push_exclusive_pair(void*, void*);
void* pop_exclusive_pair(void*);
void push_number(void*, void*, uint64_t);
uint64_t pop_number(void*, void*);
void seq_write(void*, uint64_t);
uint64_t seq_read(void*);
void spin_barrier(void*, uint64_t);

enum { kMaxCores = 1 << 16, kLine = 64, kNodes = 64, kMaxLevels = 16 };

typedef union {
  struct {
    uint64_t next;
    uint64_t owner, takes;
  } s;
  char line[kLine];
} node_t;

static _Alignas(kLine) char lock[kLine];
static _Alignas(kLine) struct { volatile uint64_t takes, owner; } guarded;
static node_t mcs_nodes[kMaxCores];
static node_t nodes[kNodes + 1];
static _Alignas(kLine) uint32_t tree[kMaxCores][4];  // locks for two, a heap
static _Alignas(kLine) uint32_t errors;
static _Alignas(kLine) uint64_t takes;

static void wrong(void) { gpusim_fetch_add_u32(&errors, 1); }

static void guarded_work(uint32_t core) {
  if (guarded.owner != 0) wrong();
  guarded.owner = core + 1;
  guarded.takes = guarded.takes + 1;
  if (guarded.owner != core + 1) wrong();
  guarded.owner = 0;
}

typedef void lock_fn(void*, uint64_t);
typedef struct {
  const char* name;
  lock_fn *lock, *unlock;
  int is_pairwise;  // a lock for two: cores play a tournament
  int has_nodes;
} lock_t;
static const lock_t kLocks[] = {
    {"ldaxr/stxr", exclusive_lock, word_unlock, 0, 0},
    {"ldxr/stxr with dmb", barrier_lock, barrier_unlock, 0, 0},
    {"swpa", swap_lock, word_unlock, 0, 0},
    {"casa", cas_lock, word_unlock, 0, 0},
    {"tickets by ldadda", ticket_lock, ticket_unlock, 0, 0},
    {"tickets by ldaxr/stxr", ticket_exclusive_lock, ticket_unlock, 0, 0},
    {"mcs", mcs_lock, mcs_unlock, 0, 1},
    {"peterson", peterson_lock, peterson_unlock, 1, 0},
    {"peterson by ldar/stlr", peterson_rcsc_lock, peterson_rcsc_unlock, 1, 0},
    {"dekker", dekker_lock, dekker_unlock, 1, 0},
    {"tickets, counted by those who wait", ticket_counting_lock, ticket_unlock, 0, 0},
};
enum { kLockCount = sizeof kLocks / sizeof *kLocks };

static uint32_t levels_of(uint32_t cores) {
  return cores <= 1 ? 1 : 32 - (uint32_t)__builtin_clz(cores - 1);
}

static void take(const lock_t* kind, uint32_t core, uint32_t levels) {
  if (kind->has_nodes) return kind->lock(lock, (uint64_t)&mcs_nodes[core]);
  if (!kind->is_pairwise) return kind->lock(lock, 0);
  for (uint32_t place = core + (1u << levels); place > 1; place >>= 1)
    kind->lock(tree[place >> 1], place & 1);
}
static void give(const lock_t* kind, uint32_t core, uint32_t levels) {
  if (kind->has_nodes) return kind->unlock(lock, (uint64_t)&mcs_nodes[core]);
  if (!kind->is_pairwise) return kind->unlock(lock, 0);
  const uint32_t place = core + (1u << levels);
  for (uint32_t level = levels; level-- > 0;) kind->unlock(tree[place >> (level + 1)], place >> level & 1);
}

static void lock_round(const lock_t* kind, uint32_t core, uint32_t rounds) {
  const uint32_t levels = levels_of(gpusim_core_count());
  for (uint32_t i = 0; i < rounds; ++i) {
    take(kind, core, levels);
    guarded_work(core);
    give(kind, core, levels);
  }
}

// A node that was popped is this core's alone until it is pushed.
static void use_node(node_t* node, uint32_t core) {
  volatile uint64_t* owner = &node->s.owner;
  if (*owner != 0) wrong();
  *owner = core + 1;
  node->s.takes = node->s.takes + 1;
  if (*owner != core + 1) wrong();
  *owner = 0;
}

static void stack_round(uint32_t kind, uint32_t core, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds;) {
    uint64_t number = 0;
    node_t* node;
    if (kind == 0) node = pop_pair(lock);
    else if (kind == 1) node = pop_exclusive_pair(lock);
    else node = (number = pop_number(lock, nodes)) ? &nodes[number] : 0;
    if (!node) continue;
    use_node(node, core);
    if (kind == 0) push_pair(lock, node);
    else if (kind == 1) push_exclusive_pair(lock, node);
    else push_number(lock, nodes, number);
    ++i;
  }
}

// One core in eight writes, with a lock among them; the others read.
static void seq_round(uint32_t core, uint32_t rounds) {
  static _Alignas(kLine) uint32_t writers;
  for (uint32_t i = 0; i < rounds; ++i) {
    if (core % 8 == 0) {
      exclusive_lock(&writers, 0);
      seq_write(lock, ((uint64_t)i << 32) + core);
      word_unlock(&writers, 0);
    } else if (seq_read(lock) != 0) {
      wrong();
    }
    gpusim_fetch_add_u64(&takes, 1);
  }
}

static void barrier_round(uint32_t core, uint32_t rounds) {
  const uint32_t cores = gpusim_core_count();
  for (uint32_t i = 0; i < rounds; ++i) {
    if (core == i % cores) guarded.takes = guarded.takes + cores;
    spin_barrier(lock, cores);
    if (guarded.takes != (uint64_t)cores * (i + 1)) wrong();
    spin_barrier(lock, cores);
  }
}

static uint64_t microseconds(void) {
  uint64_t now, frequency;
  __asm__ volatile("isb\n mrs %0, cntvct_el0\n mrs %1, cntfrq_el0" : "=r"(now), "=r"(frequency));
  return now / (frequency / 1000000 ? frequency / 1000000 : 1);
}

static uint64_t number(int i, uint64_t otherwise) {
  if (i >= gpusim_argc()) return otherwise;
  uint64_t value = 0;
  for (const char* p = gpusim_argv()[i]; *p >= '0' && *p <= '9'; ++p)
    value = 10 * value + (uint64_t)(*p - '0');
  return value;
}

enum { kStacks = 3, kKinds = kLockCount + kStacks + 2 };
static const char* const kOtherNames[] = {"stack by caspal", "stack by ldaxp/stlxp", "stack by cas",
                                          "seqlock", "spinning barrier"};

static void start(uint32_t kind) {
  memset(lock, 0, sizeof lock);
  memset(tree, 0, sizeof tree);
  memset(nodes, 0, sizeof nodes);
  guarded.takes = guarded.owner = takes = 0;
  errors = 0;
  if (kind < kLockCount || kind >= kLockCount + kStacks) return;
  for (uint64_t i = 1; i <= kNodes; ++i) {
    if (kind == kLockCount) push_pair(lock, &nodes[i]);
    else if (kind == kLockCount + 1) push_exclusive_pair(lock, &nodes[i]);
    else push_number(lock, nodes, i);
  }
}

static void finish(uint32_t kind, uint32_t rounds, uint64_t time) {
  const uint64_t all = (uint64_t)gpusim_core_count() * rounds;
  uint64_t done = takes + guarded.takes;
  if (kind >= kLockCount && kind < kLockCount + kStacks) {
    done = 0;
    for (uint32_t i = 1; i <= kNodes; ++i) {
      done += nodes[i].s.takes;
      if (kind == kLockCount + 2 ? !pop_number(lock, nodes) : !pop_pair(lock)) wrong();
    }
    if (kind == kLockCount + 2 ? pop_number(lock, nodes) != 0 : pop_pair(lock) != 0) wrong();
  }
  if (done != all) wrong();
  gpusim_line_t line;
  gpusim_line_start(&line);
  const uint64_t values[] = {kind, done, errors, time};
  for (uint32_t i = 0; i < 4; ++i) {
    gpusim_line_u64(&line, values[i]);
    gpusim_line_str(&line, " ");
  }
  gpusim_line_str(&line, kind < kLockCount ? kLocks[kind].name : kOtherNames[kind - kLockCount]);
  gpusim_line_write(&line, GPUSIM_STDOUT);
}

int gpusim_main(void) {
  const uint32_t core = gpusim_core_id(), rounds = (uint32_t)number(1, 10);
  const uint64_t mask = number(2, ~UINT64_C(0));
  for (uint32_t kind = 0; kind < kKinds; ++kind) {
    if (!(mask >> kind & 1)) continue;
    uint64_t time = 0;
    if (core == 0) {
      start(kind);
      time = microseconds();
    }
    gpusim_barrier();
    if (kind < kLockCount) lock_round(&kLocks[kind], core, rounds);
    else if (kind < kLockCount + kStacks) stack_round(kind - kLockCount, core, rounds);
    else if (kind == kLockCount + kStacks) seq_round(core, rounds);
    else barrier_round(core, rounds);
    gpusim_barrier();
    if (core == 0) finish(kind, rounds, microseconds() - time);
  }
  return 0;
}
