// Runs litmus tests on all cores: many instances at once, many times, in arrangements drawn from a
// seed. Prints each test's outcomes, and where the first outcome that is not allowed was seen.
//
//   litmus FIRST COUNT ITERATIONS TURNS SEED PATIENCE LAYOUTS SIZES JITTERS SPLITS SPANS
//
// LAYOUTS, SIZES, JITTERS, SPLITS and SPANS are masks of what may be drawn.
//
// A batch is one arrangement. It gives roles (threads of the test) to cores: `span` neighbouring
// cores have the same role, so 1 mixes roles within a lane group and 64 gives each a group. An
// instance is one core per role; each runs its thread TURNS times, each time on new locations.
//
// Values are repeated in every byte of an access (1 is 0x0101...), so that an access that tore shows.
#include "litmus.h"

#include "gpusim_guest.h"

enum {
  kMaxCores = 4096,
  kMaxTurns = 64,
  kMaxSlots = kMaxCores / 2 * 32,  // instances times turns
  kLine = 64,
  kPlanes = 6,
  kKeys = 128,
  kTestKeys = 512,
  kTorn = 15,
};
enum { kConsecutive, kLines, kPacked, kShuffled, kStacks, kLayouts };
enum { kNoJitter, kRoleJitter, kCoreJitter, kTurnJitter, kJitters };

typedef struct {
  uint64_t key, count;
} tally_t;

typedef struct {
  uint32_t number, roles, span, instances, turns, layout, log2_size, jitter, split;
} batch_t;

static _Alignas(4096) char memory[kMaxLocations][kMaxSlots * kLine];
static uint64_t results[kMaxThreads][kPlanes][kMaxSlots];
static tally_t of_core[kMaxCores][kKeys];
static tally_t of_test[kTestKeys];
static char* stacks[kMaxCores];
static struct {
  _Alignas(128) uint32_t arrived;
  _Alignas(128) uint32_t phase;
} meeting;
static _Alignas(128) uint32_t bad;

static uint64_t number(int i, uint64_t otherwise) {
  if (i >= gpusim_argc()) return otherwise;
  uint64_t value = 0;
  for (const char* p = gpusim_argv()[i]; *p >= '0' && *p <= '9'; ++p)
    value = 10 * value + (uint64_t)(*p - '0');
  return value;
}

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ (x >> 32);
}
// One of the set bits.
static uint32_t draw(uint64_t random, uint32_t bits) {
  uint32_t n = (uint32_t)(random % (uint32_t)__builtin_popcount(bits));
  while (n-- > 0) bits &= bits - 1;
  return (uint32_t)__builtin_ctz(bits);
}

// ---- where things are ----------------------------------------------------------------------

static uint32_t role_of(const batch_t* b, uint32_t core) { return core / b->span % b->roles; }
static uint32_t instance_of(const batch_t* b, uint32_t core) {
  return core % b->span + b->span * (core / (b->span * b->roles));
}
static uint32_t core_of(const batch_t* b, uint32_t role, uint32_t instance) {
  return instance % b->span + b->span * (role + b->roles * (instance / b->span));
}

// A location's bytes for an instance and a turn.
static inline char* place(const batch_t* b, uint32_t location, uint32_t instance, uint32_t turn) {
  const uint32_t slot = turn * b->instances + instance;
  const uint32_t bytes = 1u << b->log2_size;
  switch (b->layout) {
    case kConsecutive: return memory[location] + slot * bytes;
    case kLines: return memory[location] + slot * kLine;
    case kPacked: return memory[0] + (slot * kMaxLocations + location) * bytes;
    case kShuffled: return memory[location] + slot * 7919u % (b->instances * b->turns) * bytes;
    default:
      return stacks[core_of(b, location % b->roles, instance)] +
             (location * kMaxTurns + turn) * bytes;
  }
}

static void put(char* p, uint32_t log2_size, uint32_t value) {
  const uint64_t all = value * UINT64_C(0x0101010101010101);
  switch (log2_size) {
    case 0: *(volatile uint8_t*)p = (uint8_t)all; break;
    case 1: *(volatile uint16_t*)p = (uint16_t)all; break;
    case 2: *(volatile uint32_t*)p = (uint32_t)all; break;
    case 4: *(volatile uint64_t*)(p + 8) = all; /* fall through */
    default: *(volatile uint64_t*)p = all;
  }
}
static uint64_t get(const char* p, uint32_t log2_size) {
  switch (log2_size) {
    case 0: return *(const volatile uint8_t*)p;
    case 1: return *(const volatile uint16_t*)p;
    case 2: return *(const volatile uint32_t*)p;
    default: return *(const volatile uint64_t*)p;
  }
}

// ---- outcomes ------------------------------------------------------------------------------

static uint64_t nibble(uint64_t value, uint32_t log2_size, int is_small) {
  const uint64_t first = value & 0xff;
  if (is_small || log2_size == 0) return value < kTorn ? value : kTorn;
  const uint32_t unused = log2_size >= 3 ? 0 : 64 - (8u << log2_size);
  return first < kTorn && value == (first * UINT64_C(0x0101010101010101)) >> unused ? first : kTorn;
}

static uint64_t outcome(const test_t* t, const batch_t* b, uint32_t slot) {
  uint64_t key = 0;
  for (uint32_t i = 0; i < t->observed_count; ++i) {
    const observed_t* o = &t->observed[i];
    const uint64_t value =
        o->thread >= 0 ? results[o->thread][o->plane][slot]
                       : get(place(b, o->plane, slot % b->instances, slot / b->instances) + o->offset,
                             b->log2_size);
    key |= nibble(value, o->log2_size == kSameSize ? b->log2_size : o->log2_size, o->small) << (4 * i);
  }
  return key;
}

static int is_allowed(const test_t* t, uint64_t key) {
  for (uint32_t i = 0; i < t->allowed_count; ++i)
    if (t->allowed[i] == key) return 1;
  return 0;
}

static void report_bad(const test_t* t, const batch_t* b, uint64_t key, uint32_t slot) {
  if (gpusim_fetch_add_u32(&bad, 1) != 0) return;
  gpusim_line_t line;
  gpusim_line_start(&line);
  gpusim_line_str(&line, "bad ");
  gpusim_line_str(&line, t->name);
  gpusim_line_str(&line, " ");
  gpusim_line_hex(&line, key, 16);
  const struct { const char* name; uint32_t value; } fields[] = {
      {" batch ", b->number}, {" span ", b->span}, {" layout ", b->layout},
      {" log2-size ", b->log2_size}, {" jitter ", b->jitter}, {" split ", b->split},
      {" instance ", slot % b->instances}, {" turn ", slot / b->instances}};
  for (uint32_t i = 0; i < sizeof fields / sizeof *fields; ++i) {
    gpusim_line_str(&line, fields[i].name);
    gpusim_line_u64(&line, fields[i].value);
  }
  gpusim_line_write(&line, GPUSIM_STDOUT);
}

static void count(tally_t* tallies, const test_t* t, const batch_t* b, uint64_t key, uint32_t slot) {
  uint32_t at = (uint32_t)mix(key) % kKeys;
  for (uint32_t tries = 0; tries < kKeys; ++tries, at = (at + 1) % kKeys) {
    if (tallies[at].count == 0) {
      tallies[at].key = key;
      if (!is_allowed(t, key)) report_bad(t, b, key, slot);
    }
    if (tallies[at].key == key) {
      ++tallies[at].count;
      return;
    }
  }
  // More different outcomes than any test has: they count as one that is never allowed.
  report_bad(t, b, ~UINT64_C(0), slot);
}

static void add_to_test(uint64_t key, uint64_t n) {
  for (uint32_t at = (uint32_t)mix(key) % kTestKeys;; at = (at + 1) % kTestKeys) {
    uint64_t free = ~UINT64_C(0);
    if (__atomic_load_n(&of_test[at].key, __ATOMIC_RELAXED) != key &&
        !__atomic_compare_exchange_n(&of_test[at].key, &free, key, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST) &&
        free != key)
      continue;
    gpusim_fetch_add_u64(&of_test[at].count, n);
    return;
  }
}

// ---- a batch -------------------------------------------------------------------------------

static void delay(uint64_t turns) {
  while (turns-- > 0) __asm__ volatile("");
}

// A barrier that polls for a while before it gives way: groups that the host runs at the same time
// then stay together, and start a batch at the same moment.
static void meet(uint64_t patience) {
  const uint32_t phase = __atomic_load_n(&meeting.phase, __ATOMIC_ACQUIRE);
  if (__atomic_fetch_add(&meeting.arrived, 1, __ATOMIC_ACQ_REL) + 1 == gpusim_core_count()) {
    meeting.arrived = 0;
    __atomic_store_n(&meeting.phase, phase + 1, __ATOMIC_RELEASE);
    gpusim_wake_all();
    return;
  }
  while (patience-- > 0)
    if (__atomic_load_n(&meeting.phase, __ATOMIC_ACQUIRE) != phase) return;
  gpusim_wait_while_equal(&meeting.phase, phase);
}

static void run_role(const test_t* t, const batch_t* b, uint64_t random) {
  const uint32_t core = gpusim_core_id(), role = role_of(b, core), instance = instance_of(b, core);
  const thread_t* thread = &t->thread[role];
  body_fn* body = thread->body[b->log2_size][b->split];
  if (b->jitter == kRoleJitter) delay(mix(random + role) % 64);
  random = mix(random + core);
  if (b->jitter == kCoreJitter) delay(random % 64);
  for (uint32_t turn = 0; turn < b->turns; ++turn) {
    random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if (b->jitter == kTurnJitter) delay(random >> 60);
    char* at[kMaxLocations];
    for (uint32_t i = 0; i < kMaxLocations; ++i)
      at[i] = place(b, thread->location[i], instance, turn);
    body(at[0], at[1], at[2], at[3], random >> 16,
         &results[role][0][turn * b->instances + instance], sizeof results[0][0]);
  }
}

static batch_t draw_batch(const test_t* t, uint32_t n, uint64_t random, uint32_t turns,
                          const uint32_t* masks) {
  const uint32_t cores = gpusim_core_count();
  batch_t b = {.number = n, .roles = t->threads, .turns = turns};
  b.layout = draw(mix(random + 1), masks[0]);
  b.log2_size = draw(mix(random + 2), t->sizes & masks[1] ? t->sizes & masks[1] : t->sizes);
  // Pairs on stacks may lose smaller stores of other host threads (docs/memory-model.md).
  if (b.log2_size == 4 && b.layout == kStacks) b.layout = kLines;
  b.jitter = draw(mix(random + 3), masks[2]);
  b.split = draw(mix(random + 4), masks[3]);
  const uint32_t spans = (2u << (31 - __builtin_clz(cores / b.roles))) - 1;  // for which there are cores
  b.span = 1u << draw(mix(random + 5), spans & masks[4] ? spans & masks[4] : spans);
  b.instances = cores / (b.roles * b.span) * b.span;
  while (b.instances * b.turns > kMaxSlots) b.turns /= 2;
  return b;
}

static void set_initial(const test_t* t, const batch_t* b) {
  const uint32_t cores = gpusim_core_count(), slots = b->instances * b->turns;
  for (uint32_t slot = gpusim_core_id(); slot < slots; slot += cores)
    for (uint32_t i = 0; i < t->locations; ++i)
      put(place(b, i, slot % b->instances, slot / b->instances), b->log2_size, t->initial[i]);
}

static void print_test(const test_t* t, uint32_t n) {
  gpusim_line_t line;
  for (uint32_t i = 0; i < kTestKeys; ++i) {
    if (of_test[i].count == 0) continue;
    gpusim_line_start(&line);
    gpusim_line_str(&line, "seen ");
    gpusim_line_u64(&line, n);
    gpusim_line_str(&line, " ");
    gpusim_line_str(&line, t->name);
    gpusim_line_str(&line, " ");
    gpusim_line_hex(&line, of_test[i].key, 16);
    gpusim_line_str(&line, " ");
    gpusim_line_u64(&line, of_test[i].count);
    gpusim_line_write(&line, GPUSIM_STDOUT);
  }
}
static void clear_test(void) {
  for (uint32_t i = 0; i < kTestKeys; ++i) of_test[i] = (tally_t){~UINT64_C(0), 0};
  bad = 0;
}

int gpusim_main(void) {
  _Alignas(64) char mine[kMaxLocations * kMaxTurns * 16];
  const uint32_t core = gpusim_core_id(), cores = gpusim_core_count();
  const uint32_t first = (uint32_t)number(1, 0), tests = (uint32_t)number(2, litmus_test_count);
  const uint64_t iterations = number(3, 1000);
  const uint32_t turns = (uint32_t)number(4, 16);
  const uint64_t seed = number(5, 1), patience = number(6, 1000);
  const uint32_t masks[] = {(uint32_t)number(7, (1 << kLayouts) - 1), (uint32_t)number(8, 31),
                            (uint32_t)number(9, (1 << kJitters) - 1), (uint32_t)number(10, 3),
                            (uint32_t)number(11, ~UINT64_C(0))};
  if (cores > kMaxCores || turns > kMaxTurns) {
    if (core == 0) gpusim_puts("litmus: at most 4096 cores and 64 turns\n");
    return 2;
  }
  stacks[core] = mine;
  if (core == 0) clear_test();
  meet(patience);
  for (uint32_t n = first; n < first + tests && n < litmus_test_count; ++n) {
    const test_t* t = &litmus_tests[n];
    if (t->threads > cores) continue;
    tally_t* tallies = of_core[core];
    for (uint32_t i = 0; i < kKeys; ++i) tallies[i].count = 0;
    uint64_t done = 0;
    for (uint32_t batch = 0; done < iterations; ++batch) {
      const uint64_t random = mix(mix(seed + n) + batch);
      const batch_t b = draw_batch(t, batch, random, turns, masks);
      set_initial(t, &b);
      meet(patience);
      if (instance_of(&b, core) < b.instances) run_role(t, &b, random);
      meet(patience);
      const uint32_t slots = b.instances * b.turns;
      for (uint32_t slot = core; slot < slots; slot += cores)
        count(tallies, t, &b, outcome(t, &b, slot), slot);
      done += slots;
      meet(patience);
    }
    for (uint32_t i = 0; i < kKeys; ++i)
      if (tallies[i].count) add_to_test(tallies[i].key, tallies[i].count);
    meet(patience);
    if (core == 0) {
      print_test(t, n);
      clear_test();
    }
    meet(patience);
  }
  return 0;
}
