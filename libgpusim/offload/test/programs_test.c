// SPDX-License-Identifier: MIT
// Programs, what kernels can do and how they fail.
#include "offload_test.h"

int main(int argc, char** argv);

static gpusim_event* start(struct fixture* f, gpusim_kernel* kernel, uint32_t cores) {
  gpusim_event* event;
  OK(gpusim_enqueue_kernel(f->queue, kernel, cores, 0, NULL, &event));
  return event;
}

// The statistics of a kernel that fails.
static gpusim_statistics failure_of(struct fixture* f, gpusim_kernel* kernel, uint32_t cores) {
  gpusim_event* const event = start(f, kernel, cores);
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_event_finish(event, 60));
  gpusim_statistics s;
  OK(gpusim_event_statistics(event, &s));
  OK(gpusim_event_release(event));
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_queue_finish(f->queue));
  return s;
}

static void faults(struct fixture* f) {
  gpusim_kernel* const k = KERNEL(f->program, store);
  OK(gpusim_kernel_set_core_id(k, 0));
  OK(gpusim_kernel_set_u64(k, 1, 70));
  OK(gpusim_kernel_set_u64(k, 2, 0));
  gpusim_statistics s = failure_of(f, k, 100);
#ifdef GPUSIM_NATIVE
  CHECK(strstr(gpusim_last_error(), "in store() at kernels.c:") != NULL);
#endif
  CHECK(s.exit_status == 139 && s.faults == 1 && s.fault_core == 70 && s.fault_pc != 0);
  CHECK(s.cores == 100);
  // Addresses that nobody gave to the device: the caller's stack, text of the program, far ones.
  gpusim_properties p;
  OK(gpusim_device_properties(f->device, &p));
  uint32_t local = 0;
  uint64_t code = (uint64_t)(uintptr_t)&main;
#ifdef GPUSIM_NATIVE
  OK(gpusim_program_symbol(f->program, "leave", &code, NULL));
#endif
  const uint64_t addresses[] = {(uint64_t)(uintptr_t)&local, code & ~UINT64_C(3),
                                p.address_space_bytes - 4, p.address_space_bytes,
                                UINT64_C(0xffffffffffff0000)};
  for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; ++i) {
    OK(gpusim_kernel_set_u64(k, 2, addresses[i]));
    s = failure_of(f, k, 71);
    CHECK(s.exit_status == 139 && s.faults == 1 && s.fault_core == 70);
  }
  CHECK(local == 0);
  OK(gpusim_kernel_set_u64(k, 1, 1000));
  OK(run_kernel(f->queue, k, 100));
  OK(gpusim_kernel_release(k));

  gpusim_kernel* const undefined = KERNEL(f->program, undefined_instruction);
  s = failure_of(f, undefined, 3);
  CHECK(s.exit_status == 132 && s.faults >= 1 && s.fault_core == 0);
  OK(gpusim_kernel_release(undefined));
}

static void limits(struct fixture* f) {
  gpusim_kernel* const k = KERNEL(f->program, forever);
  gpusim_limits l = {.stack_size_bytes = 0, .max_instructions = 0, .seconds = 0.1};
  OK(gpusim_kernel_set_limits(k, &l));
  gpusim_event* event = start(f, k, 10);
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_event_finish(event, 60));
  CHECK(strstr(gpusim_last_error(), "limit") != NULL);
  OK(gpusim_event_release(event));
  l = (gpusim_limits){.stack_size_bytes = 0, .max_instructions = 100000, .seconds = 0};
  OK(gpusim_kernel_set_limits(k, &l));
  event = start(f, k, 10);
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_event_finish(event, 60));
  OK(gpusim_event_release(event));
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_queue_finish(f->queue));
  OK(gpusim_kernel_release(k));

  // 2,000 calls of 600 bytes each: more than the stack, or not.
  gpusim_buffer* const out = new_buffer(f->device, 8);
  gpusim_kernel* const deep = KERNEL(f->program, recurse);
  OK(gpusim_kernel_set_core_id(deep, 0));
  OK(gpusim_kernel_set_buffer(deep, 1, out, 0));
  OK(gpusim_kernel_set_u64(deep, 2, 2000));
  l = (gpusim_limits){.stack_size_bytes = 65536, .max_instructions = 0, .seconds = 0};
  OK(gpusim_kernel_set_limits(deep, &l));
  CHECK(failure_of(f, deep, 1).exit_status == 139);
  l.stack_size_bytes = 4 << 20;
  OK(gpusim_kernel_set_limits(deep, &l));
  OK(run_kernel(f->queue, deep, 1));
  CHECK(*(uint64_t*)gpusim_buffer_pointer(out) == 2000 * 2001 / 2);
  OK(gpusim_kernel_release(deep));
  OK(gpusim_buffer_release(out));
}

static void statuses(struct fixture* f) {
  gpusim_kernel* const k = KERNEL(f->program, leave);
  OK(gpusim_kernel_set_core_id(k, 0));
  OK(gpusim_kernel_set_u64(k, 1, 3));
  OK(gpusim_kernel_set_i64(k, 2, 42));
  const gpusim_statistics s = failure_of(f, k, 8);
  CHECK(s.exit_status == 42 && s.faults == 0);
  OK(gpusim_kernel_set_i64(k, 2, 0));
  OK(run_kernel(f->queue, k, 8));
  OK(gpusim_kernel_release(k));
}

static void output(struct fixture* f) {
  OK(gpusim_device_set_output(f->device, NULL, NULL));
  gpusim_kernel* const k = KERNEL(f->program, say);
  OK(gpusim_kernel_set_core_id(k, 0));
  OK(gpusim_kernel_set_u64(k, 1, 2));
  OK(gpusim_kernel_set_u64(k, 2, 3));
  gpusim_event* event = start(f, k, 5);
  OK(gpusim_event_finish(event, 60));
  const char* text;
  size_t size;
  OK(gpusim_event_output(event, &text, &size));
  CHECK(size == 18 && memcmp(text, "hello\nhello\nhello\n", 18) == 0);
  OK(gpusim_event_release(event));
  // More than is kept.
  OK(gpusim_kernel_set_u64(k, 2, 200000));
  event = start(f, k, 3);
  OK(gpusim_event_finish(event, 60));
  OK(gpusim_event_output(event, &text, &size));
  CHECK(size <= 1 << 20 && size > (1 << 20) - 256 && memcmp(text + 6 * 1000, "hello\n", 6) == 0);
  CHECK(strstr(text, " more lines (") != NULL && text[size - 1] == '\n');
  gpusim_statistics s;
  OK(gpusim_event_statistics(event, &s));
  CHECK(s.output_bytes == 6 * 200000);
  OK(gpusim_event_release(event));
  OK(gpusim_kernel_set_u64(k, 2, 0));
  event = start(f, k, 1);
  OK(gpusim_event_finish(event, 60));
  OK(gpusim_event_output(event, &text, &size));
  CHECK(size == 0 && text != NULL);
  OK(gpusim_event_release(event));
  OK(gpusim_kernel_release(k));
}

static void barriers(struct fixture* f) {
  gpusim_buffer* const b = new_buffer(f->device, 2 * kMostTestCores * 8);
  gpusim_kernel* const k = KERNEL(f->program, neighbours);
  OK(gpusim_kernel_set_core_id(k, 0));
  OK(gpusim_kernel_set_core_count(k, 1));
  OK(gpusim_kernel_set_buffer(k, 2, b, 0));
  OK(gpusim_kernel_set_buffer(k, 3, b, kMostTestCores * 8));
  static const uint32_t counts[] = {1, 2, 63, 64, 200, kMostTestCores};
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {
    const uint64_t n = counts[c];
    OK(run_kernel(f->queue, k, counts[c]));
    const uint64_t* const sums = (const uint64_t*)gpusim_buffer_pointer(b) + kMostTestCores;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t after = (i + 1) % n;
      const uint64_t before = (i + n - 1) % n;
      CHECK(sums[i] == after * after + before * before);
    }
  }
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(b));
}

static void globals(struct fixture* f) {
  gpusim_buffer* const out = new_buffer(f->device, 4 * 8);
  gpusim_kernel* const count = KERNEL(f->program, count_up);
  gpusim_kernel* const reading = KERNEL(f->program, read_globals);
  OK(gpusim_kernel_set_core_id(reading, 0));
  OK(gpusim_kernel_set_buffer(reading, 1, out, 0));
  test_counter = 1000;
  uint64_t base = 0;
#ifndef GPUSIM_NATIVE
  base = 1000;  // a guest program's variables are its kernels', too
#endif
  OK(run_kernel(f->queue, count, 64));
  OK(run_kernel(f->queue, count, 36));
  OK(run_kernel(f->queue, reading, 4));
  const uint64_t* const got = gpusim_buffer_pointer(out);
  for (uint64_t i = 0; i < 4; ++i) CHECK(got[i] == base + 100 + 10 * (i + 1));
#ifndef GPUSIM_NATIVE
  CHECK(*(volatile uint64_t*)&test_counter == 1100);
#endif
  uint64_t address = 0;
  uint64_t size = 0;
  OK(gpusim_program_symbol(f->program, "test_table", &address, &size));
  CHECK(address != 0 && size == 16);
#ifndef GPUSIM_NATIVE
  CHECK(address == (uint64_t)(uintptr_t)test_table);
#endif
  OK(gpusim_program_symbol(f->program, "test_table", NULL, NULL));
  EXPECT(GPUSIM_NOT_FOUND, gpusim_program_symbol(f->program, "no_such_name", &address, &size));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_program_symbol(f->program, NULL, NULL, NULL));
  char long_name[1000];
  memset(long_name, 'x', sizeof long_name);
  long_name[sizeof long_name - 1] = 0;
  EXPECT(GPUSIM_NOT_FOUND, gpusim_program_symbol(f->program, long_name, NULL, NULL));
  OK(gpusim_kernel_release(count));
  OK(gpusim_kernel_release(reading));
  OK(gpusim_buffer_release(out));
}

static const char* own_file(void) {
#ifdef GPUSIM_NATIVE
  return program_file;
#else
  return "/proc/self/exe";
#endif
}

// The same file twice: same addresses, data of their own. On a device without the calling program,
// whose memory lies at those addresses, too, and stays there.
static void two_programs(struct fixture* unused) {
  (void)unused;
  struct fixture own = {open_device(), NULL, NULL};
  struct fixture* const f = &own;
  OK(gpusim_queue_create(f->device, &f->queue));
  gpusim_program* p[2];
  gpusim_kernel* count[2];
  gpusim_kernel* reading[2];
  gpusim_buffer* const out = new_buffer(f->device, 8);
  for (int i = 0; i < 2; ++i) {
    OK(gpusim_program_from_file(f->device, own_file(), &p[i]));
    OK(gpusim_kernel_from_name(p[i], "count_up", &count[i]));
    OK(gpusim_kernel_from_name(p[i], "read_globals", &reading[i]));
    OK(gpusim_kernel_set_core_id(reading[i], 0));
    OK(gpusim_kernel_set_buffer(reading[i], 1, out, 0));
  }
  for (int round = 1; round < 4; ++round) {
    OK(run_kernel(f->queue, count[0], 5));
    OK(run_kernel(f->queue, count[1], 7));
    OK(run_kernel(f->queue, reading[0], 1));
    CHECK(*(uint64_t*)gpusim_buffer_pointer(out) == (uint64_t)(5 * round + 10));
    OK(run_kernel(f->queue, reading[1], 1));
    CHECK(*(uint64_t*)gpusim_buffer_pointer(out) == (uint64_t)(7 * round + 10));
  }
  gpusim_counters c;
  OK(gpusim_device_counters(f->device, &c));
  CHECK(c.cached_programs >= 1 && c.copied_bytes == 0);
  for (int i = 0; i < 2; ++i) {
    OK(gpusim_kernel_release(count[i]));
    OK(gpusim_kernel_release(reading[i]));
    OK(gpusim_program_release(p[i]));
  }
  OK(gpusim_buffer_release(out));
  OK(gpusim_queue_release(f->queue));
  OK(gpusim_close(f->device));
}

// Both run at once, and see nothing of each other.
static void two_devices(struct fixture* f) {
  struct fixture g;
  g.device = open_device();
  g.program = load_kernels(g.device);
  OK(gpusim_queue_create(g.device, &g.queue));
  struct fixture* const both[2] = {f, &g};
  gpusim_buffer* flags[2];
  gpusim_event* events[2];
  for (int i = 0; i < 2; ++i) {
    flags[i] = new_buffer(both[i]->device, 8);
    gpusim_kernel* const k = KERNEL(both[i]->program, await);
    OK(gpusim_kernel_set_buffer(k, 0, flags[i], 0));
    OK(gpusim_kernel_set_buffer(k, 1, flags[i], 4));
    events[i] = start(both[i], k, 1);
    OK(gpusim_kernel_release(k));
  }
  // The one that was launched second ends first.
  for (int i = 1; i >= 0; --i) {
    CHECK(gpusim_event_status(events[i]) == GPUSIM_RUNNING);
    volatile uint32_t* const flag = gpusim_buffer_pointer(flags[i]);
    flag[0] = 9;
    OK(gpusim_event_finish(events[i], 60));
    CHECK(flag[1] == 9);
    OK(gpusim_event_release(events[i]));
  }
  // A buffer of the one is no memory of the other.
  gpusim_kernel* const k = KERNEL(g.program, store);
  OK(gpusim_kernel_set_core_id(k, 0));
  OK(gpusim_kernel_set_u64(k, 1, 0));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_set_buffer(k, 2, flags[0], 0));
  OK(gpusim_kernel_set_u64(k, 2, gpusim_buffer_device_address(flags[0])));
  EXPECT(GPUSIM_KERNEL_FAILED, run_kernel(g.queue, k, 1));
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(flags[0]));
  OK(gpusim_buffer_release(flags[1]));
  OK(gpusim_queue_release(g.queue));
  OK(gpusim_program_release(g.program));
  OK(gpusim_close(g.device));
}

static void bad_programs(struct fixture* f) {
  gpusim_program* p = NULL;
  EXPECT(GPUSIM_NOT_FOUND, gpusim_program_from_file(f->device, "/no/such/file", &p));
  EXPECT(GPUSIM_INVALID_PROGRAM, gpusim_program_from_file(f->device, "/", &p));
  EXPECT(GPUSIM_INVALID_PROGRAM, gpusim_program_from_file(f->device, "/dev/null", &p));
  EXPECT(GPUSIM_INVALID_PROGRAM, gpusim_program_from_memory(f->device, "text", 4, &p));
  EXPECT(GPUSIM_INVALID_PROGRAM, gpusim_program_from_memory(f->device, "\177ELF", 5, &p));
  EXPECT(GPUSIM_INVALID_PROGRAM, gpusim_program_from_memory(f->device, "", 0, &p));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_program_from_memory(f->device, NULL, 4, &p));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_program_from_file(NULL, "/", &p));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_program_release(NULL));
  CHECK(p == NULL);
  gpusim_kernel* k;
  EXPECT(GPUSIM_NOT_FOUND, gpusim_kernel_from_name(f->program, "no_such_kernel", &k));
  EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_kernel_from_name(f->program, NULL, &k));
#ifdef GPUSIM_NATIVE
  EXPECT(GPUSIM_NOT_SUPPORTED, gpusim_program_from_self(f->device, &p));
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_kernel_from_function(f->program, (const void*)(uintptr_t)&main, &k));
#else
  // Not in the executable's code.
  EXPECT(GPUSIM_NOT_FOUND, gpusim_kernel_from_function(f->program, &test_counter, &k));
#endif
  CHECK(k == NULL);
}

static void processes(struct fixture* f) {
  gpusim_program* p;
  OK(gpusim_program_from_file(f->device, own_file(), &p));
  const char* const argv[] = {"a name", "--child", "two words", NULL};
  gpusim_event* event;
  OK(gpusim_enqueue_program(f->queue, p, 1, argv, NULL, 0, NULL, &event));
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_event_finish(event, 60));
  gpusim_statistics s;
  OK(gpusim_event_statistics(event, &s));
  CHECK(s.exit_status == 7 && s.faults == 0);
  const char* text;
  size_t size;
  OK(gpusim_event_output(event, &text, &size));
  CHECK(strcmp(text, "child of a name: two words\n") == 0 && size == strlen(text));
  OK(gpusim_event_release(event));
  EXPECT(GPUSIM_KERNEL_FAILED, gpusim_queue_finish(f->queue));
  const char* const none[] = {NULL};
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_enqueue_program(f->queue, p, 1, none, NULL, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_enqueue_program(f->queue, p, 1, NULL, NULL, 0, NULL, NULL));
  EXPECT(GPUSIM_INVALID_ARGUMENT,
         gpusim_enqueue_program(f->queue, p, 0, argv, NULL, 0, NULL, NULL));
  OK(gpusim_program_release(p));
}

static void energy(struct fixture* f) {
  gpusim_buffer* const b = new_buffer(f->device, 2 * kMostTestCores * 8);
  gpusim_kernel* const k = KERNEL(f->program, neighbours);
  OK(gpusim_kernel_set_core_id(k, 0));
  OK(gpusim_kernel_set_core_count(k, 1));
  OK(gpusim_kernel_set_buffer(k, 2, b, 0));
  OK(gpusim_kernel_set_buffer(k, 3, b, kMostTestCores * 8));
  double joules[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    gpusim_event* const event = start(f, k, i == 0 ? 10 : 1000);
    OK(gpusim_event_finish(event, 60));
    OK(gpusim_event_energy(event, "fermi", &joules[i]));
    EXPECT(GPUSIM_NOT_FOUND, gpusim_event_energy(event, "no such target", &joules[i]));
    CHECK(strstr(gpusim_last_error(), "fermi") != NULL && joules[i] == 0);
    OK(gpusim_event_energy(event, "fermi", &joules[i]));
    EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_energy(event, NULL, &joules[i]));
    EXPECT(GPUSIM_INVALID_ARGUMENT, gpusim_event_energy(event, "fermi", NULL));
    OK(gpusim_event_release(event));
  }
  CHECK(joules[0] > 0 && joules[1] > 50 * joules[0]);
  OK(gpusim_kernel_release(k));
  OK(gpusim_buffer_release(b));
}

const struct test tests_of_programs[] = {
    {"faults", faults},
    {"limits", limits},
    {"statuses", statuses},
    {"output", output},
    {"barriers", barriers},
    {"globals", globals},
    {"two_programs", two_programs},
    {"two_devices", two_devices},
    {"bad_programs", bad_programs},
    {"processes", processes},
    {"energy", energy},
    {NULL, NULL},
};
