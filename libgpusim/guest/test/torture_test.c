// Torture of locks and barriers: every core does a random mix of what the library offers, on a few
// shared objects, and then all compare what happened with what must have happened.
//
//   torture_test ROUNDS [SEED]      (SEED: 1 if not given; the report says which)
//
// How it would notice:
//   - lost mutual exclusion: plain counters under each lock lose additions, and `owner` changes;
//   - a lost wake-up: somebody waits for ever (gpusim then says where);
//   - a barrier that lets a core overtake, or stay behind: `stage` of other cores of the group is
//   off.
#include "check.h"

enum { kMaxCores = 65536, kLocks = 4, kGroups = 8, kKinds = 6 };

// ---- What is tortured

// Each lock with what it protects, in lines of their own.
typedef struct {
  GPUSIM_LINE gpusim_mutex_t mutex;
  gpusim_spinlock_t spin;
  gpusim_lock_t ticket;
  gpusim_rwlock_t rwlock;
  gpusim_semaphore_t binary;
  GPUSIM_LINE uint32_t owner;  // number of the core inside, plus 1
  uint64_t entries;
  uint64_t checksum;
} place_t;

static place_t place[kKinds][kLocks];
static gpusim_group_t group[kGroups];
static uint32_t stage[kMaxCores];
static uint64_t entries_due, checksum_due;

// What the critical section does: several plain accesses, and time to be disturbed.
static void inside(place_t* p, uint32_t id, uint32_t value) {
  CHECK(p->owner == 0, "mutual exclusion: somebody is inside");
  p->owner = id + 1;
  const uint64_t entries = *(volatile uint64_t*)&p->entries;
  p->checksum += value;
  if (value % 2 == 0) gpusim_yield();
  *(volatile uint64_t*)&p->entries = entries + 1;
  CHECK(p->owner == id + 1, "mutual exclusion: somebody else has come in");
  p->owner = 0;
}

static void visit(uint32_t kind, place_t* p, uint32_t id, uint32_t value) {
  switch (kind) {
    case 0:
      gpusim_mutex_lock(&p->mutex);
      inside(p, id, value);
      gpusim_mutex_unlock(&p->mutex);
      break;
    case 1:
      gpusim_spin_lock(&p->spin);
      inside(p, id, value);
      gpusim_spin_unlock(&p->spin);
      break;
    case 2:
      gpusim_lock(&p->ticket);
      inside(p, id, value);
      gpusim_unlock(&p->ticket);
      break;
    case 3:
      gpusim_write_lock(&p->rwlock);
      inside(p, id, value);
      gpusim_write_unlock(&p->rwlock);
      break;
    case 4:
      gpusim_semaphore_wait(&p->binary);
      inside(p, id, value);
      gpusim_semaphore_post(&p->binary);
      break;
    default:
      // Two locks, in a fixed order; the inner one protects.
      gpusim_spin_lock(&p->spin);
      gpusim_mutex_lock(&p->mutex);
      gpusim_spin_unlock(&p->spin);
      inside(p, id, value);
      gpusim_mutex_unlock(&p->mutex);
      break;
  }
}

static void read_side(place_t* p) {
  gpusim_read_lock(&p->rwlock);
  const volatile uint64_t* const entries = &p->entries;
  const uint64_t before = *entries;
  gpusim_yield();
  CHECK(p->owner == 0, "a writer is inside with a reader");
  CHECK(*entries == before, "a writer writes while a reader reads");
  gpusim_read_unlock(&p->rwlock);
}

// ---- Many cores on few locks take long where giving back wakes all that wait: then only some
// cores take those, the others the mutex and what is built on it.
static uint32_t kind_for(uint32_t random, uint32_t id) {
  static const uint32_t kScalable[] = {0, 3, 4};
  const uint32_t kind = random % kKinds;
  return id < 256 ? kind : kScalable[kind % 3];
}

static void check_stages(uint32_t id, uint32_t count, uint32_t step, uint32_t expected,
                         const char* what) {
  const uint32_t other = id + step < count ? id + step : id % step;
  CHECK(stage[other] == expected, what);
}

static uint32_t number(const char* text) {
  uint32_t n = 0;
  for (; *text >= '0' && *text <= '9'; ++text) n = n * 10 + (uint32_t)(*text - '0');
  return n;
}

static int finish(uint32_t seed) {
  const int status = test_finish("torture");
  if (status != 0 && gpusim_core_id() == 0) {
    gpusim_line_t line;
    gpusim_line_start(&line);
    gpusim_line_str(&line, "replay: torture_test ROUNDS ");
    gpusim_line_u64(&line, seed);
    gpusim_line_write(&line, GPUSIM_STDERR);
  }
  return status;
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();
  const uint32_t rounds = gpusim_argc() > 1 ? number(gpusim_argv()[1]) : 0;
  const uint32_t seed = gpusim_argc() > 2 ? number(gpusim_argv()[2]) : 1;
  if (rounds == 0 || count > kMaxCores) {
    if (id == 0) gpusim_puts("usage: torture_test ROUNDS [SEED], on at most 65,536 cores\n");
    return 2;
  }
  const uint32_t groups = count < kGroups ? count : kGroups;
  const uint32_t mine = id % groups;
  if (id < groups) gpusim_group_init(&group[id], (count - id + groups - 1) / groups);
  for (uint32_t k = id; k < kLocks; k += count) gpusim_semaphore_init(&place[4][k].binary, 1);
  gpusim_barrier();

  uint64_t entries = 0;
  uint64_t checksum = 0;
  uint32_t at = 0;  // this core's stage: group barriers, and chip barriers times 2^16
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint32_t random = test_random(seed ^ test_random(round * kMaxCores + id));
    const uint32_t kind = kind_for(random >> 8, id);
    place_t* const p = &place[kind][random % kLocks];
    visit(kind, p, id, random);
    ++entries;
    checksum += random;
    if ((random >> 16) % 4 == 0) read_side(&place[3][(random >> 18) % kLocks]);
    // What comes next is the same for all members of a group, and differs between groups.
    const uint32_t common = test_random(seed + round * kGroups + mine);
    if (common % 3 == 0) {
      stage[id] = ++at;
      gpusim_group_barrier(&group[mine]);
      check_stages(id, count, groups, at, "a group's barrier was overtaken");
      gpusim_group_barrier(&group[mine]);
    } else if (common % 3 == 1) {
      const uint64_t members = (count - mine + groups - 1) / groups;
      CHECK(gpusim_group_sum_u64(&group[mine], random % 2 + 2) >= 2 * members, "group: sum");
    }
    // And for all cores of the chip, now and then.
    if (test_random(seed ^ ~round) % 4 == 0) {
      gpusim_barrier();
      stage[id] = at += UINT32_C(1) << 16;
      gpusim_barrier();
      CHECK(stage[(id + 1) % count] >> 16 == at >> 16, "the chip's barrier was overtaken");
      gpusim_barrier();
    }
  }
  gpusim_fetch_add_u64(&entries_due, entries);
  gpusim_fetch_add_u64(&checksum_due, checksum);
  gpusim_barrier();
  if (id == 0) {
    entries = checksum = 0;
    for (uint32_t kind = 0; kind < kKinds; ++kind) {
      for (uint32_t k = 0; k < kLocks; ++k) {
        entries += place[kind][k].entries;
        checksum += place[kind][k].checksum;
      }
    }
    CHECK(entries == entries_due, "mutual exclusion: additions were lost");
    CHECK(checksum == checksum_due, "mutual exclusion: values were lost");
  }
  return finish(seed);
}
