// Shared loops: every schedule runs every iteration exactly once, on as many cores as there are.
#include "check.h"

enum { kMaxLength = 5000 };

static uint32_t times_run[kMaxLength];
static gpusim_loop_t loop;
static uint32_t chunks;

static void check_loop(int64_t length, const char* what) {
  gpusim_barrier();
  uint32_t wrong = 0;
  for (uint32_t i = gpusim_core_id(); i < kMaxLength; i += gpusim_core_count()) {
    wrong += times_run[i] != (i < length ? 1 : 0);
    times_run[i] = 0;
  }
  CHECK(wrong == 0, what);
  gpusim_barrier();
}

static void run(int64_t i, int64_t begin) {
  CHECK(i >= begin && i - begin < kMaxLength, "an iteration that is none");
  if (i >= begin && i - begin < kMaxLength) gpusim_count_u32(&times_run[i - begin], 1);
}

static void run_chunks(gpusim_range_t r, int64_t begin, uint64_t at_most) {
  while (gpusim_next_chunk(&r)) {
    CHECK(r.first < r.last, "an empty chunk");
    CHECK(at_most == 0 || (uint64_t)(r.last - r.first) <= at_most, "a chunk too long");
    gpusim_count_u32(&chunks, 1);
    for (int64_t i = r.first; i < r.last; ++i) run(i, begin);
  }
  CHECK(!gpusim_next_chunk(&r), "a loop goes on after its end");
}

static void test_schedules(int64_t begin, int64_t length, uint64_t chunk) {
  const int64_t end = begin + length;
  const uint64_t size = chunk == 0 ? 1 : chunk;
  for (gpusim_range_t r = gpusim_range_static(begin, end, chunk); gpusim_next(&r);) run(r.i, begin);
  check_loop(length, "static");
  run_chunks(gpusim_range_static(begin, end, chunk), begin, size);
  check_loop(length, "static, chunks");
  for (gpusim_range_t r = gpusim_range_blocks(begin, end); gpusim_next(&r);) run(r.i, begin);
  check_loop(length, "blocks");
  run_chunks(gpusim_range_blocks(begin, end), begin, 0);
  check_loop(length, "blocks, chunks");
  for (gpusim_range_t r = gpusim_range_dynamic(&loop, begin, end, chunk); gpusim_next(&r);) {
    run(r.i, begin);
  }
  check_loop(length, "dynamic");
  run_chunks(gpusim_range_dynamic(&loop, begin, end, chunk), begin, size);
  check_loop(length, "dynamic, chunks");
  for (gpusim_range_t r = gpusim_range_guided(&loop, begin, end, chunk); gpusim_next(&r);) {
    run(r.i, begin);
  }
  check_loop(length, "guided");
  if (gpusim_core_id() == 0) chunks = 0;
  gpusim_barrier();
  run_chunks(gpusim_range_guided(&loop, begin, end, chunk), begin, 0);
  gpusim_barrier();
  const uint64_t most = ((uint64_t)length + size - 1) / size;
  CHECK(chunks <= most, "guided: chunks that are too small");
  check_loop(length, "guided, chunks");
}

// ---- Members of a group: the odd cores, if there are any

static gpusim_loop_t odd_loop;

static void test_members(uint32_t id, uint32_t count) {
  const uint32_t members = count / 2;
  if (id == 0) {
    const gpusim_loop_t fresh = GPUSIM_LOOP_INIT(members);
    odd_loop = fresh;
  }
  gpusim_barrier();
  if (members != 0 && id % 2 == 1) {
    for (gpusim_range_t r = gpusim_range_guided(&odd_loop, 0, 1000, 2); gpusim_next(&r);)
      run(r.i, 0);
  }
  check_loop(members != 0 ? 1000 : 0, "guided, some cores");
  if (members != 0 && id % 2 == 1) {
    for (gpusim_range_t r = gpusim_range_dynamic(&odd_loop, 0, 1001, 2); gpusim_next(&r);)
      run(r.i, 0);
  }
  check_loop(members != 0 ? 1001 : 0, "dynamic, some cores");
  if (members != 0 && id % 2 == 1) {
    for (gpusim_range_t r = gpusim_range_blocks_of(id / 2, members, 0, 999); gpusim_next(&r);) {
      run(r.i, 0);
    }
  }
  check_loop(members != 0 ? 999 : 0, "blocks, some cores");
}

// ---- Callbacks

static void body(int64_t i, void* argument) { run(i, *(const int64_t*)argument); }

static void test_callbacks(void) {
  static const enum gpusim_schedule schedules[] = {GPUSIM_STATIC, GPUSIM_BLOCKS, GPUSIM_DYNAMIC,
                                                   GPUSIM_GUIDED, GPUSIM_EACH};
  int64_t begin = -50;  // on each core's stack
  for (uint32_t s = 0; s < 5; ++s) {
    gpusim_parallel_for(begin, 1234, schedules[s], 3, body, &begin);
    uint32_t wrong = 0;  // it has a barrier
    for (uint32_t i = gpusim_core_id(); i < 1284; i += gpusim_core_count())
      wrong += times_run[i] != 1;
    CHECK(wrong == 0, "parallel_for");
    check_loop(1284, "parallel_for");
  }
}

int gpusim_main(void) {
  static const int64_t begins[] = {0, 7, -1000, INT64_C(1) << 40};
  static const int64_t lengths[] = {0, 1, 2, 63, 640, 4999};
  static const uint64_t chunk_sizes[] = {0, 1, 3, 64, 10000};
  const uint32_t count = gpusim_core_count();
  for (uint32_t length = 0; length < 6; ++length) {
    for (uint32_t c = 0; c < 5; ++c) {
      // All combinations take long on many threads.
      test_schedules(begins[(length + c) % 4], lengths[length], chunk_sizes[c]);
    }
  }
  test_schedules(5, -3 + 3, 1);
  for (gpusim_range_t r = gpusim_range_guided(&loop, 5, 2, 1); gpusim_next(&r);) {
    CHECK(0, "an iteration of a loop that ends before it begins");
  }
  gpusim_barrier();
  test_members(gpusim_core_id(), count);
  test_callbacks();
  return test_finish("loops");
}
