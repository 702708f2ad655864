// Breadth-first search from several sources of one graph, groups of cores working apart.
//
// Each group takes a source, searches level by level, and takes the next source. Within a group,
// cores take vertices of the present level a few at a time (the number of neighbours differs),
// claim the unseen ones with compare-and-swap, and meet at the end of each level in a sum: how many
// vertices the next level has. Which core claims a vertex depends on timing, its level does not.
#include "example.h"
#include "gpusim_sync.h"

#ifndef N
#define N (1 << 14)
#endif
enum { kSources = 8, kGroups = 4, kMaxNeighbours = 16, kReach = 400, kChunk = 2 };

// Vertices in the order in which they were found, and where each was found: its distance from the
// source plus 1, or 0.
typedef struct {
  uint32_t found;
  uint32_t queue[N];
  uint32_t level[N];
  uint32_t has_parent[N];
} search_t;
static search_t search[kSources];

static gpusim_group_t group[kGroups];
static gpusim_loop_t loop[kGroups];
static uint32_t next_source;
static example_result_t result;

// The graph: edges lead forwards, up to kReach vertices further, around a ring.
static uint32_t neighbours(uint32_t vertex) { return example_random(vertex) % kMaxNeighbours; }

static uint32_t neighbour(uint32_t vertex, uint32_t number) {
  const uint32_t random = example_random(vertex * kMaxNeighbours + number + N);
  return (vertex + 1 + random % kReach) % N;
}

static uint32_t level_of(const search_t* s, uint32_t vertex) {
  return __atomic_load_n(&s->level[vertex], __ATOMIC_RELAXED);
}

// Puts a vertex into the queue if no core has seen it before; returns whether it did.
static uint32_t claim(search_t* s, uint32_t vertex, uint32_t level) {
  if (level_of(s, vertex) != 0) return 0;
  if (gpusim_compare_and_swap_u32(&s->level[vertex], 0, level) != 0) return 0;
  s->queue[gpusim_fetch_add_u32(&s->found, 1)] = vertex;
  return 1;
}

// All cores of a group call it.
static void run_search(search_t* s, uint32_t source, gpusim_group_t* cores, gpusim_loop_t* shared) {
  // One of the cores claims the source; the sum tells all.
  uint64_t begin = 0;
  uint64_t end = gpusim_group_sum_u64(cores, claim(s, source, 1));
  for (uint32_t level = 2; begin != end; ++level) {
    uint32_t found = 0;
    gpusim_range_t r = gpusim_range_dynamic(shared, (int64_t)begin, (int64_t)end, kChunk);
    while (gpusim_next(&r)) {
      const uint32_t vertex = s->queue[r.i];
      const uint32_t n = neighbours(vertex);
      for (uint32_t e = 0; e < n; ++e) found += claim(s, neighbour(vertex, e), level);
    }
    begin = end;
    end += gpusim_group_sum_u64(cores, found);
  }
}

static uint32_t source_vertex(uint32_t number) { return example_random(number) % N; }

// Independent check: no edge skips a level, none leads out of what was found, and whatever was
// found but the source has a parent one level before it.
static uint32_t check(void) {
  uint32_t errors = 0;
  for (uint32_t k = 0; k < kSources; ++k) {
    search_t* const s = &search[k];
    for (gpusim_range_t r = gpusim_range_static(0, N, 1); gpusim_next(&r);) {
      const uint32_t vertex = (uint32_t)r.i;
      const uint32_t level = s->level[vertex];
      if (level == 0) continue;
      const uint32_t n = neighbours(vertex);
      for (uint32_t e = 0; e < n; ++e) {
        const uint32_t other = neighbour(vertex, e);
        errors += s->level[other] == 0 || s->level[other] > level + 1;
        if (s->level[other] == level + 1) {
          __atomic_store_n(&s->has_parent[other], 1, __ATOMIC_RELAXED);
        }
      }
    }
  }
  gpusim_barrier();
  for (uint32_t k = 0; k < kSources; ++k) {
    const search_t* const s = &search[k];
    for (gpusim_range_t r = gpusim_range_static(0, N, 1); gpusim_next(&r);) {
      errors += s->level[r.i] > 1 && s->has_parent[r.i] == 0;
      errors += s->level[r.i] == 1 && (uint32_t)r.i != source_vertex(k);
    }
  }
  return errors;
}

int gpusim_main(void) {
  const uint32_t id = gpusim_core_id();
  const uint32_t count = gpusim_core_count();

  // Group g has the cores g, g + groups, ...
  const uint32_t groups = count < kGroups ? count : kGroups;
  const uint32_t mine = id % groups;
  if (id < groups) {
    const uint32_t members = (count - id + groups - 1) / groups;
    const gpusim_loop_t fresh = GPUSIM_LOOP_INIT(members);
    gpusim_group_init(&group[id], members);
    loop[id] = fresh;
  }
  gpusim_barrier();

  const int leads = id < groups;
  for (;;) {
    const uint32_t taken = leads ? gpusim_fetch_add_u32(&next_source, 1) : 0;
    const uint64_t k = gpusim_group_broadcast(&group[mine], leads, taken);
    if (k >= kSources) break;
    run_search(&search[k], source_vertex((uint32_t)k), &group[mine], &loop[mine]);
  }
  gpusim_barrier();

  uint64_t checksum = 0;
  uint32_t vertices = 0;
  for (uint32_t k = 0; k < kSources; ++k) {
    for (gpusim_range_t r = gpusim_range_static(0, N, 1); gpusim_next(&r);) {
      checksum += example_share((uint32_t)r.i + k * N, search[k].level[r.i]);
      vertices += search[k].level[r.i] != 0;
    }
  }
  uint32_t errors = check();
  uint64_t found = 0;
  for (uint32_t k = 0; k < kSources; ++k) found += search[k].found;
  errors += gpusim_sum_u64(vertices) != found;

  example_report(&result, checksum, errors);
  return example_finish(&result, "bfs", N, GPUSIM_STDOUT);
}
