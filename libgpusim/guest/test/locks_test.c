// Locks, semaphores, conditions, events, once: on as many cores as there are.
#include "check.h"

// What a lock protects. Plain accesses: if two cores are inside at once an addition gets lost, one
// sees `inside` set, or the thread sanitizer says so.
typedef struct {
  uint32_t inside;
  uint32_t entries;
} protected_t;

static void enter(protected_t* p) {
  CHECK(p->inside == 0, "two cores are inside");
  p->inside = 1;
  const uint32_t entries = p->entries;
  gpusim_yield();  // who should be outside may come in now
  p->entries = entries + 1;
}

static void leave(protected_t* p) {
  CHECK(p->inside == 1, "another core has left");
  p->inside = 0;
}

static uint32_t rounds(uint32_t count) { return count > 256 ? 1 : count > 32 ? 4 : 20; }

// ---- Mutual exclusion

static gpusim_mutex_t mutex;
static gpusim_spinlock_t spin;
static gpusim_lock_t ticket;
static protected_t by_mutex, by_spin, by_ticket;
static uint32_t took_mutex, took_spin, took_ticket;

static void test_mutual_exclusion(uint32_t count) {
  const uint32_t n = rounds(count);
  for (uint32_t i = 0; i < n; ++i) {
    gpusim_mutex_lock(&mutex);
    enter(&by_mutex);
    leave(&by_mutex);
    gpusim_mutex_unlock(&mutex);
    gpusim_spin_lock(&spin);
    enter(&by_spin);
    leave(&by_spin);
    gpusim_spin_unlock(&spin);
    gpusim_lock(&ticket);
    enter(&by_ticket);
    leave(&by_ticket);
    gpusim_unlock(&ticket);
    if (gpusim_mutex_trylock(&mutex)) {
      enter(&by_mutex);
      gpusim_count_u32(&took_mutex, 1);
      leave(&by_mutex);
      gpusim_mutex_unlock(&mutex);
    }
    if (gpusim_spin_trylock(&spin)) {
      enter(&by_spin);
      gpusim_count_u32(&took_spin, 1);
      leave(&by_spin);
      gpusim_spin_unlock(&spin);
    }
    if (gpusim_trylock(&ticket)) {
      enter(&by_ticket);
      gpusim_count_u32(&took_ticket, 1);
      leave(&by_ticket);
      gpusim_unlock(&ticket);
    }
  }
  gpusim_barrier();
  CHECK(by_mutex.entries == n * count + took_mutex, "mutex: an addition was lost");
  CHECK(by_spin.entries == n * count + took_spin, "spin lock: an addition was lost");
  CHECK(by_ticket.entries == n * count + took_ticket, "ticket lock: an addition was lost");
  CHECK(mutex.tail == 0 && mutex.next == 0 && spin.held == 0, "a lock is not free again");
  gpusim_barrier();
  if (gpusim_core_id() == 0) {
    gpusim_mutex_lock(&mutex);
    gpusim_spin_lock(&spin);
    gpusim_lock(&ticket);
    CHECK(!gpusim_mutex_trylock(&mutex), "mutex taken twice");
    CHECK(!gpusim_spin_trylock(&spin), "spin lock taken twice");
    CHECK(!gpusim_trylock(&ticket), "ticket lock taken twice");
    gpusim_mutex_unlock(&mutex);
    gpusim_spin_unlock(&spin);
    gpusim_unlock(&ticket);
    CHECK(gpusim_mutex_trylock(&mutex), "free mutex not taken");
    CHECK(gpusim_spin_trylock(&spin), "free spin lock not taken");
    CHECK(gpusim_trylock(&ticket), "free ticket lock not taken");
  }
  gpusim_barrier();
}

// ---- Readers and writers

static gpusim_rwlock_t rwlock;
static protected_t by_writers;
static uint32_t readers_inside;
static uint64_t pair[2];

static void test_readers_and_writers(uint32_t id, uint32_t count) {
  const uint32_t n = rounds(count);
  uint32_t writes = 0;
  for (uint32_t i = 0; i < n; ++i) {
    // One in eight writes, in no regular order.
    if (test_random(id * 64 + i) % 8 == 0) {
      gpusim_write_lock(&rwlock);
      enter(&by_writers);
      CHECK(gpusim_load_u32(&readers_inside) == 0, "a reader is inside with a writer");
      ++pair[0];
      gpusim_yield();
      ++pair[1];
      leave(&by_writers);
      gpusim_write_unlock(&rwlock);
      ++writes;
    } else {
      gpusim_read_lock(&rwlock);
      gpusim_fetch_add_u32(&readers_inside, 1);
      const uint64_t before = pair[0];
      gpusim_yield();
      CHECK(by_writers.inside == 0, "a writer is inside with a reader");
      CHECK(pair[0] == before, "a writer writes while a reader reads");
      CHECK(pair[0] == pair[1], "a reader sees half of what a writer wrote");
      gpusim_fetch_sub_u32(&readers_inside, 1);
      gpusim_read_unlock(&rwlock);
    }
  }
  const uint64_t all_writes = gpusim_sum_u64(writes);
  CHECK(pair[0] == all_writes && by_writers.entries == all_writes, "a write was lost");
}

// ---- Semaphore

enum { kUnits = 3 };
static gpusim_semaphore_t units = GPUSIM_SEMAPHORE_INIT(kUnits);
static gpusim_semaphore_t handed;  // from 0
static uint32_t unit_holders;
static uint32_t most_holders;

static void test_semaphore(uint32_t id, uint32_t count) {
  const uint32_t n = rounds(count);
  for (uint32_t i = 0; i < n; ++i) {
    gpusim_semaphore_wait(&units);
    const uint32_t holders = gpusim_fetch_add_u32(&unit_holders, 1) + 1;
    CHECK(holders <= kUnits, "more cores hold a unit than there are units");
    gpusim_fetch_max_u32(&most_holders, holders);
    gpusim_yield();
    gpusim_fetch_sub_u32(&unit_holders, 1);
    gpusim_semaphore_post(&units);
  }
  gpusim_barrier();
  CHECK((int32_t)units.units == kUnits && units.owed == 0, "units were lost or made");
  // Half of the cores post before they wait; whoever gets through posts.
  if (id % 2 == 0) gpusim_semaphore_post(&handed);
  gpusim_semaphore_wait(&handed);
  gpusim_semaphore_post(&handed);
  gpusim_barrier();
  if (id == 0) {
    uint32_t left = 0;
    while (gpusim_semaphore_trywait(&handed)) ++left;
    CHECK(left == (count + 1) / 2, "units are left, or missing");
    gpusim_semaphore_init(&handed, 2);
    left = 0;
    while (gpusim_semaphore_trywait(&handed)) ++left;
    CHECK(left == 2, "gpusim_semaphore_init");
  }
  gpusim_barrier();
}

// ---- Condition: a queue of bounded size, half of the cores put, the others take

enum { kQueueSize = 4 };
static gpusim_mutex_t queue_mutex;
static gpusim_cond_t not_full, not_empty, all_there;
static uint32_t queue[kQueueSize], queue_length, queue_head;
static uint64_t sum_taken;
static uint32_t cores_there;

static void put(uint32_t value) {
  gpusim_mutex_lock(&queue_mutex);
  while (queue_length == kQueueSize) gpusim_cond_wait(&not_full, &queue_mutex);
  queue[(queue_head + queue_length++) % kQueueSize] = value;
  gpusim_cond_signal(&not_empty);
  gpusim_mutex_unlock(&queue_mutex);
}

static uint32_t take(void) {
  gpusim_mutex_lock(&queue_mutex);
  while (queue_length == 0) gpusim_cond_wait(&not_empty, &queue_mutex);
  const uint32_t value = queue[queue_head];
  queue_head = (queue_head + 1) % kQueueSize;
  --queue_length;
  gpusim_mutex_unlock(&queue_mutex);
  gpusim_cond_signal(&not_full);
  return value;
}

static void test_condition(uint32_t id, uint32_t count) {
  // One core alone would wait for ever.
  const uint32_t pairs = count / 2;
  const uint32_t n = rounds(count);
  if (id < pairs) {
    for (uint32_t i = 0; i < n; ++i) put(id * n + i);
  } else if (id < 2 * pairs) {
    for (uint32_t i = 0; i < n; ++i) gpusim_fetch_add_u64(&sum_taken, take());
  }
  gpusim_barrier();
  const uint64_t values = (uint64_t)pairs * n;
  CHECK(queue_length == 0, "something is left in the queue");
  CHECK(sum_taken == values * (values - 1) / 2 || values == 0, "a value was lost or taken twice");
  // Broadcast: the last core lets all others go.
  gpusim_mutex_lock(&queue_mutex);
  if (++cores_there == count) {
    gpusim_cond_broadcast(&all_there);
  } else {
    while (cores_there != count) gpusim_cond_wait(&all_there, &queue_mutex);
  }
  gpusim_mutex_unlock(&queue_mutex);
  gpusim_barrier();
}

// ---- Events

static gpusim_event_t start;
static gpusim_auto_event_t turnstile;
static gpusim_event_t pulses;
static uint32_t data_for_all;
static uint32_t let_through;
static uint32_t waiting_for_pulse, pulsed;
static uint32_t raw_flag;

static void test_events(uint32_t id, uint32_t count) {
  for (uint32_t round = 1; round <= 3; ++round) {
    if (id == count - 1) {
      data_for_all = round;
      gpusim_event_set(&start);
    }
    gpusim_event_wait(&start);
    CHECK(data_for_all == round, "an event let a core through too early");
    CHECK(gpusim_event_is_set(&start), "an event is not set");
    gpusim_barrier();
    if (id == 0) gpusim_event_reset(&start);
    gpusim_barrier();
    CHECK(!gpusim_event_is_set(&start), "an event is set after its reset");
    gpusim_barrier();
  }
  // Set and reset at once: those who waited get through all the same.
  if (id != 0) {
    gpusim_fetch_add_u32(&waiting_for_pulse, 1);
    gpusim_event_wait(&pulses);
    gpusim_fetch_add_u32(&pulsed, 1);
  } else {
    gpusim_wait_until_equal(&waiting_for_pulse, count - 1);
    while (gpusim_load_u32(&pulsed) != count - 1) {  // some may have counted and not yet looked
      gpusim_event_set(&pulses);
      gpusim_event_reset(&pulses);
      gpusim_yield();
    }
  }
  gpusim_barrier();
  // One through at a time.
  if (id == 0) gpusim_auto_event_set(&turnstile);
  gpusim_auto_event_wait(&turnstile);
  const uint32_t before = let_through;  // plain: the turnstile is a lock
  gpusim_yield();
  let_through = before + 1;
  if (before + 1 < count) gpusim_auto_event_set(&turnstile);
  gpusim_barrier();
  CHECK(let_through == count, "a turnstile let two through at once");
  CHECK(turnstile.set == 0, "a turnstile is open");
  // The bare events. A core that looks, and then waits, must not miss an event in between.
  for (uint32_t round = 1; round <= 3; ++round) {
    if (id == round % count) {
      gpusim_store_u32(&raw_flag, round);
      gpusim_signal_event();
    }
    while (gpusim_load_u32(&raw_flag) != round) gpusim_wait_for_event();
    gpusim_barrier();
  }
}

// ---- Once

static gpusim_once_t once;
static uint32_t calls;
static uint32_t made;

static void make(void* argument) {
  gpusim_yield();
  ++calls;
  made = *(uint32_t*)argument;
}

static void test_once(void) {
  uint32_t value = 4711;
  gpusim_once(&once, make, &value);
  CHECK(made == 4711, "gpusim_once returned before the function had");
  gpusim_once(&once, make, &value);
  gpusim_barrier();
  CHECK(calls == 1, "gpusim_once called the function more than once");
}

// ---- Atomics

static uint32_t word = 7;
static int32_t lowest32 = 5, highest32 = -5;
static int64_t lowest64 = 5, highest64 = -5;
static uint32_t unsigned_low = UINT32_MAX, unsigned_high;
static uint64_t wide_low = UINT64_MAX, wide_high;
static uint32_t winner, winners, flag;
static uint32_t bits32;
static uint64_t bits64 = UINT64_MAX, toggled;

static void test_atomics(uint32_t id, uint32_t count) {
  const int32_t sign = id % 2 == 0 ? 1 : -1;
  gpusim_fetch_min_i32(&lowest32, sign * (int32_t)(id + 100));
  gpusim_fetch_max_i32(&highest32, sign * (int32_t)(id + 100));
  gpusim_fetch_min_i64(&lowest64, sign * ((int64_t)id + 100) * (INT64_C(1) << 33));
  gpusim_fetch_max_i64(&highest64, sign * ((int64_t)id + 100) * (INT64_C(1) << 33));
  gpusim_fetch_min_u32(&unsigned_low, 0 - (id + 1));
  gpusim_fetch_max_u32(&unsigned_high, 0 - (id + 1));
  gpusim_fetch_min_u64(&wide_low, 0 - ((uint64_t)id + 1));
  gpusim_fetch_max_u64(&wide_high, 0 - ((uint64_t)id + 1));
  if (gpusim_compare_and_swap_u32(&winner, 0, id + 1) == 0) gpusim_fetch_add_u32(&winners, 1);
  if (!gpusim_test_and_set(&flag)) gpusim_fetch_add_u32(&winners, 256);
  gpusim_fetch_or_u32(&bits32, UINT32_C(1) << id % 32);
  gpusim_fetch_and_u64(&bits64, ~(UINT64_C(1) << id % 64));
  gpusim_fetch_xor_u64(&toggled, (uint64_t)id << 20 | 1);
  gpusim_barrier();
  const uint32_t last_even = (count - 1) / 2 * 2;
  const uint32_t last_odd = count < 2 ? 0 : (count - 2) / 2 * 2 + 1;
  CHECK(highest32 == (int32_t)(last_even + 100), "fetch_max_i32");
  CHECK(lowest32 == (count < 2 ? 5 : -(int32_t)(last_odd + 100)), "fetch_min_i32");
  CHECK(highest64 == ((int64_t)last_even + 100) * (INT64_C(1) << 33), "fetch_max_i64");
  CHECK(lowest64 == (count < 2 ? 5 : -((int64_t)last_odd + 100) * (INT64_C(1) << 33)),
        "fetch_min_i64");
  CHECK(unsigned_low == 0 - count && unsigned_high == UINT32_MAX, "fetch_min/max_u32");
  CHECK(wide_low == 0 - (uint64_t)count && wide_high == UINT64_MAX, "fetch_min/max_u64");
  CHECK(winners == 257, "compare_and_swap or test_and_set: not exactly one winner");
  CHECK(bits32 == (count >= 32 ? UINT32_MAX : (UINT32_C(1) << count) - 1), "fetch_or");
  CHECK(bits64 == (count >= 64 ? 0 : UINT64_MAX << count), "fetch_and");
  uint64_t expected = 0;
  for (uint32_t i = 0; i < count; ++i) expected ^= (uint64_t)i << 20 | 1;
  CHECK(toggled == expected, "fetch_xor");
  gpusim_barrier();
  if (id == 0) {
    gpusim_clear(&flag);
    CHECK(!gpusim_test_and_set(&flag), "clear");
    CHECK(gpusim_exchange_u32(&word, 8) == 7 && word == 8, "exchange_u32");
    CHECK(gpusim_fetch_sub_u32(&word, 9) == 8 && word == UINT32_MAX, "fetch_sub_u32");
    CHECK(gpusim_fetch_and_u32(&word, 12) == UINT32_MAX && word == 12, "fetch_and_u32");
    CHECK(gpusim_fetch_xor_u32(&word, 10) == 12 && word == 6, "fetch_xor_u32");
    CHECK(gpusim_exchange_u64(&toggled, 1) == expected && toggled == 1, "exchange_u64");
    CHECK(gpusim_fetch_or_u64(&toggled, 6) == 1 && toggled == 7, "fetch_or_u64");
    CHECK(gpusim_fetch_sub_u64(&toggled, 8) == 7 && toggled == UINT64_MAX, "fetch_sub_u64");
    CHECK(gpusim_compare_and_swap_u64(&toggled, 1, 2) == UINT64_MAX && toggled == UINT64_MAX,
          "compare_and_swap_u64 of another value");
    CHECK(gpusim_compare_and_swap_u64(&toggled, UINT64_MAX, 2) == UINT64_MAX && toggled == 2,
          "compare_and_swap_u64");
    gpusim_store_u64(&toggled, 3);
    CHECK(gpusim_load_u64(&toggled) == 3, "store_u64, load_u64");
  }
  gpusim_barrier();
}

// ---- Waiting for 64 bits

static uint64_t wide_signal;

static void test_wide_wait(uint32_t id, uint32_t count) {
  // The low half stays as it is.
  for (uint64_t value = 1; value <= 3; ++value) {
    if (id == count - 1) {
      gpusim_store_u64(&wide_signal, value << 32);
    } else if (id % 2 == 0) {
      gpusim_wait_while_equal_u64(&wide_signal, (value - 1) << 32);
    } else {
      gpusim_wait_until_equal_u64(&wide_signal, value << 32);
    }
    CHECK(gpusim_load_u64(&wide_signal) == value << 32, "woke at a wrong value");
    gpusim_barrier();
  }
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();
  test_atomics(id, count);
  test_mutual_exclusion(count);
  test_readers_and_writers(id, count);
  test_semaphore(id, count);
  test_condition(id, count);
  test_wide_wait(id, count);
  test_events(id, count);
  test_once();
  return test_finish("locks");
}
