// What the tests of this folder do in the guest:  guest_cases [-o OPTIONS] [-p SECONDS] CASE [ARGUMENT]...
// Each case prints what happened as key=value lines; run_qemu.py judges. Exit status 2: the case could not be
// carried out.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest_driver/include/uapi/linux/gpusim.h"
#include "libgpusim/offload/gpusim.h"

#define FUNCTION(function) ((const void*)(uintptr_t)(function))

// ---- Kernels ----

void nothing(void) {}

void spin(volatile uint64_t* end) {
  while (*end == 0) {
  }
}

void number(uint64_t* out, uint64_t core) { out[core] = core * 3 + 1; }

void stray(uint64_t address) { *(volatile uint64_t*)address = 1; }

void add_one(uint64_t* word) { __atomic_fetch_add(word, 1, __ATOMIC_RELAXED); }

void add_often(uint64_t* word, uint64_t times) {
  for (uint64_t i = 0; i < times; ++i) __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
}

// 16 instructions a turn or so, without memory: what an emulator is good at, too.
void count(uint64_t* out, uint64_t core, uint64_t turns) {
  uint64_t a = core + 1, b = core * 7 + 3;
  for (uint64_t i = 0; i < turns; ++i) {
    a = a * 6364136223846793005u + 1442695040888963407u;
    b ^= a >> 29;
    b += a << 3;
    a ^= b >> 17;
    b = b * 3 + i;
    a += b ^ (a >> 5);
  }
  out[core] = a ^ b;
}

// ---- Helpers ----

static const char* options;
static double patience;  // seconds for a daemon to come
static int attempts;
static gpusim_device* device;
static gpusim_program* program;
static gpusim_queue* queue;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int report(const char* what, int status) {
  printf("%s=%s\n", what, gpusim_status_name(status));
  if (status < 0) printf("%s_text=%s\n", what, gpusim_last_error());
  fflush(stdout);
  return status;
}

static void must(const char* what, int status) {
  if (status >= 0) return;
  printf("%s: %s: %s\n", what, gpusim_status_name(status), gpusim_last_error());
  exit(2);
}

// With stock QEMU somebody has to start the daemon, and QEMU looks for it once a second.
static int open_device(void) {
  double start = now();
  for (;;) {
    int status = gpusim_open(options, &device);
    ++attempts;
    if (status != GPUSIM_NO_DEVICE || now() - start >= patience) return status;
    usleep(100000);
  }
}

static int open_all(void) {
  int status = open_device();
  if (status) return status;
  status = gpusim_program_from_self(device, &program);
  if (!status) status = gpusim_queue_create(device, &queue);
  return status;
}

static void close_all(void) {
  gpusim_queue_release(queue);
  gpusim_program_release(program);
  gpusim_close(device);
  device = NULL;
}

static gpusim_kernel* kernel_of(const void* function) {
  gpusim_kernel* kernel;
  must("kernel", gpusim_kernel_from_function(program, function, &kernel));
  return kernel;
}

static gpusim_buffer* buffer_of(size_t size_bytes) {
  gpusim_buffer* buffer;
  must("buffer", gpusim_buffer_create(device, 0, size_bytes, NULL, &buffer));
  return buffer;
}

static int run_kernel(gpusim_kernel* kernel, uint32_t cores) {
  int status = gpusim_enqueue_kernel(queue, kernel, cores, 0, NULL, NULL);
  return status ? status : gpusim_queue_finish(queue);
}

// A kernel that says whether the device works: NULL, or what is wrong.
static const char* check(void) {
  enum { kCores = 256 };
  gpusim_buffer* buffer;
  gpusim_kernel* kernel;
  if (gpusim_buffer_create(device, 0, kCores * 8, NULL, &buffer)) return gpusim_last_error();
  if (gpusim_kernel_from_function(program, FUNCTION(number), &kernel)) return gpusim_last_error();
  gpusim_kernel_set_buffer(kernel, 0, buffer, 0);
  gpusim_kernel_set_core_id(kernel, 1);
  const char* wrong = run_kernel(kernel, kCores) ? gpusim_last_error() : NULL;
  const uint64_t* out = gpusim_buffer_pointer(buffer);
  for (uint64_t i = 0; i < kCores && !wrong; ++i)
    if (out[i] != i * 3 + 1) wrong = "wrong numbers";
  gpusim_kernel_release(kernel);
  gpusim_buffer_release(buffer);
  return wrong;
}

static void report_reopened(void) {
  attempts = 0;
  int status = open_all();
  const char* wrong = status ? gpusim_last_error() : check();
  printf("reopened=%s\nattempts=%d\n", wrong ? wrong : "works", attempts);
}

static void report_check(const char* what) {
  const char* wrong = check();
  printf("%s=%s\n", what, wrong ? wrong : "works");
  fflush(stdout);
}

static volatile sig_atomic_t signalled;

static void on_signal(int number) {
  (void)number;
  signalled = 1;
}

static void wait_for_signal(void) {
  while (!signalled) usleep(5000);
  signalled = 0;
}

static gpusim_counters counters(void) {
  gpusim_counters counters;
  must("counters", gpusim_device_counters(device, &counters));
  return counters;
}

static gpusim_event* start_spinning(gpusim_buffer* word, const gpusim_limits* limits) {
  gpusim_kernel* kernel = kernel_of(FUNCTION(spin));
  gpusim_event* event;
  if (limits) must("limits", gpusim_kernel_set_limits(kernel, limits));
  gpusim_kernel_set_buffer(kernel, 0, word, 0);
  must("enqueue", gpusim_enqueue_kernel(queue, kernel, 64, 0, NULL, &event));
  gpusim_kernel_release(kernel);
  return event;
}

// ---- Cases ----

static int case_works(char** arguments) {
  (void)arguments;
  must("open", open_all());
  report_check("kernel");
  close_all();
  return 0;
}

// What opening gives, whatever it is.
static int case_open(char** arguments) {
  (void)arguments;
  if (report("open", open_all()) == GPUSIM_OK) {
    report_check("kernel");
    close_all();
  }
  return 0;
}

// As a user whom the driver's limits bind: contexts_per_user=1, memory_per_user_mib=8.
static int case_quota(char** arguments) {
  gpusim_device* second;
  gpusim_buffer* buffer;
  (void)arguments;
  if (setgid(1000) || setuid(1000)) return 3;
  must("open", open_device());
  report("second", gpusim_open(options, &second));
  report("buffer", gpusim_buffer_create(device, 0, 16 << 20, NULL, &buffer));
  gpusim_close(device);
  return 0;
}

static int case_properties(char** arguments) {
  (void)arguments;
  gpusim_properties p;
  must("open", open_device());
  must("properties", gpusim_device_properties(device, &p));
  printf("cores=%u\nisa=%s\nbackend=%s\nbackends=%s\ndescription=%s\ntransport=%s\n", p.most_cores,
         p.isa, p.backend, p.backends, p.description, p.transport);
  gpusim_close(device);
  return 0;
}

// Kernel after kernel until one fails or a signal comes.
static int case_loop(char** arguments) {
  (void)arguments;
  must("open", open_all());
  gpusim_kernel* kernel = kernel_of(FUNCTION(nothing));
  unsigned long rounds = 0;
  int status = 0;
  while (!signalled && !status) {
    status = run_kernel(kernel, 64);
    if (rounds++ == 0) printf("running=yes\n"), fflush(stdout);
  }
  report("end", status);
  printf("rounds=%lu\n", rounds);
  close_all();
  return 0;
}

// A kernel that never ends by itself; SIGUSR1 ends it through its memory.
static int case_spin(char** arguments) {
  (void)arguments;
  must("open", open_all());
  gpusim_buffer* word = buffer_of(4096);
  gpusim_event* event = start_spinning(word, NULL);
  usleep(100000);
  printf("running=%d\n", gpusim_event_status(event));
  fflush(stdout);
  int status;
  do {
    status = gpusim_event_finish(event, 0.05);
    if (signalled) *(volatile uint64_t*)gpusim_buffer_pointer(word) = 1, signalled = 0;
  } while (status == GPUSIM_TIMED_OUT);
  report("end", status);
  gpusim_event_release(event);
  gpusim_buffer_release(word);
  close_all();
  report_reopened();
  return 0;
}

// A kernel that was posted past the driver, and many short waits for its end.
static int case_posted_spin(char** arguments) {
  (void)arguments;
  must("open", open_all());
  gpusim_event* event = start_spinning(buffer_of(4096), NULL);
  int status = gpusim_event_finish(event, 0.01);
  printf("posted=%lu\n", (unsigned long)counters().posted_kernels);
  printf("running=%d\n", gpusim_event_status(event));
  fflush(stdout);
  while (status == GPUSIM_TIMED_OUT) status = gpusim_event_finish(event, 0.001);
  report("end", status);
  return 0;
}

// Waits for a kernel's end in one call, to be killed or interrupted.
static int case_block(char** arguments) {
  (void)arguments;
  must("open", open_all());
  gpusim_buffer* word = buffer_of(4096);
  gpusim_event* event = start_spinning(word, NULL);
  printf("running=yes\n");
  fflush(stdout);
  report("end", gpusim_event_finish(event, -1));
  return 0;
}

static int case_limit(char** arguments) {
  must("open", open_all());
  gpusim_limits limits = {0};
  if (arguments[0]) limits.seconds = atof(arguments[0]);
  else limits.max_instructions = 100000;
  gpusim_buffer* word = buffer_of(4096);
  double start = now();
  gpusim_event* event = start_spinning(word, &limits);
  // Clocks stand still only for waits without a limit.
  report("end", gpusim_event_finish(event, -1));
  printf("seconds=%.3f\n", now() - start);
  gpusim_event_release(event);
  gpusim_queue_finish(queue);
  report_check("next");
  close_all();
  return 0;
}

static int case_cancel(char** arguments) {
  (void)arguments;
  must("open", open_all());
  gpusim_buffer* word = buffer_of(4096);
  for (int round = 0; round < 3; ++round) {
    gpusim_event* event = start_spinning(word, NULL);
    usleep((unsigned)round * 50000);
    report("cancel", gpusim_event_cancel(event));
    report("end", gpusim_event_finish(event, 30));
    gpusim_event_release(event);
  }
  gpusim_queue_finish(queue);
  report_check("next");
  close_all();
  return 0;
}

static int case_fault(char** arguments) {
  must("open", open_all());
  uint64_t address = arguments[0] ? strtoull(arguments[0], NULL, 0) : 16;
  gpusim_kernel* kernel = kernel_of(FUNCTION(stray));
  gpusim_kernel_set_u64(kernel, 0, address);
  gpusim_event* event;
  must("enqueue", gpusim_enqueue_kernel(queue, kernel, 64, 0, NULL, &event));
  report("end", gpusim_event_finish(event, 30));
  gpusim_statistics s;
  must("statistics", gpusim_event_statistics(event, &s));
  printf("faults=%u\nexit_status=%d\npc_in_kernel=%s\n", s.faults, s.exit_status,
         s.fault_pc - (uint64_t)(uintptr_t)stray < 64 ? "yes" : "no");
  gpusim_event_release(event);
  gpusim_kernel_release(kernel);
  gpusim_queue_finish(queue);
  report_check("next");
  close_all();
  return 0;
}

// Buffers until there is no more memory.
static int case_memory(char** arguments) {
  size_t size = (size_t)(arguments[0] ? atol(arguments[0]) : 16) << 20;
  must("open", open_all());
  enum { kMost = 4096 };
  static gpusim_buffer* buffers[kMost];
  int count = 0, status = 0;
  while (count < kMost) {
    status = gpusim_buffer_create(device, 0, size, NULL, &buffers[count]);
    if (status) break;
    ++count;
  }
  report("end", status);
  printf("buffers=%d\n", count);
  while (count > 0) gpusim_buffer_release(buffers[--count]);
  gpusim_buffer* large;
  report("huge", gpusim_buffer_create(device, 0, (size_t)1 << 46, NULL, &large));
  report_check("next");
  close_all();
  return 0;
}

static int case_cycles(char** arguments) {
  int cycles = arguments[0] ? atoi(arguments[0]) : 100;
  double start = now();
  for (int i = 0; i < cycles; ++i) {
    must("open", gpusim_open(options, &device));
    if (i % 10 == 0) {
      must("program", gpusim_program_from_self(device, &program));
      must("queue", gpusim_queue_create(device, &queue));
      const char* wrong = check();
      if (wrong) {
        printf("cycle %d: %s\n", i, wrong);
        return 2;
      }
      gpusim_queue_release(queue);
      gpusim_program_release(program);
    }
    gpusim_close(device);
  }
  printf("cycles=%d\nus_per_cycle=%.0f\n", cycles, (now() - start) * 1e6 / cycles);
  return 0;
}

// Transfers until one fails or a signal comes: device memory, and the process's own.
static int case_transfer(char** arguments) {
  (void)arguments;
  enum { kSize = 4 << 20 };
  must("open", open_all());
  char* host = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(host, 7, kSize);
  unsigned long rounds = 0;
  int status = 0;
  while (!signalled && !status) {
    gpusim_buffer *a, *b;
    status = gpusim_buffer_create(device, GPUSIM_BUFFER_USE_HOST_PTR, kSize, host, &a);
    if (status) break;
    status = gpusim_buffer_create(device, 0, kSize, NULL, &b);
    if (!status) {
      gpusim_enqueue_copy(queue, a, 0, b, 0, kSize, 0, NULL, NULL);
      gpusim_enqueue_read(queue, b, 0, kSize, host, 0, NULL, NULL);
      status = gpusim_queue_finish(queue);
      gpusim_buffer_release(b);
    }
    gpusim_buffer_release(a);
    if (rounds++ == 0) printf("running=yes\n"), fflush(stdout);
  }
  report("end", status);
  printf("rounds=%lu\n", rounds);
  close_all();
  return 0;
}

// Opens, waits for SIGUSR1 (somebody kills the daemon meanwhile), goes on, opens anew.
static int case_lost(char** arguments) {
  (void)arguments;
  must("open", open_all());
  report_check("before");
  gpusim_kernel* kernel = kernel_of(FUNCTION(nothing));
  printf("running=yes\n");
  fflush(stdout);
  wait_for_signal();
  report("kernel", run_kernel(kernel, 64));
  gpusim_buffer* buffer;
  report("buffer", gpusim_buffer_create(device, 0, 4096, NULL, &buffer));
  gpusim_kernel_release(kernel);
  close_all();
  report_reopened();
  return 0;
}

// `processes` at once, each `rounds` kernels of its own numbers.
static int case_many(char** arguments) {
  int rounds = arguments[0] ? atoi(arguments[0]) : 5;
  must("open", open_all());
  enum { kCores = 512 };
  gpusim_buffer* buffer = buffer_of(kCores * 8);
  gpusim_kernel* kernel = kernel_of(FUNCTION(number));
  uint64_t* out = gpusim_buffer_pointer(buffer);
  for (int round = 0; round < rounds; ++round) {
    uint64_t first = (uint64_t)getpid() * 1000 + (uint64_t)round;
    memset(out, 0, kCores * 8);
    gpusim_kernel_set_u64(kernel, 0, gpusim_buffer_device_address(buffer) - first * 8);
    gpusim_kernel_set_affine(kernel, 1, first, 1);
    must("kernel", run_kernel(kernel, kCores));
    for (uint64_t i = 0; i < kCores; ++i)
      if (out[i] != (first + i) * 3 + 1) {
        printf("round %d, core %d: %lu\n", round, (int)i, (unsigned long)out[i]);
        return 2;
      }
  }
  printf("kernels=%d\n", rounds);
  close_all();
  return 0;
}

// What a round trip costs: the trap, through the ioctl, and an empty kernel through the library.
static int case_round_trip(char** arguments) {
  int rounds = arguments[0] ? atoi(arguments[0]) : 2000;
  int file = open("/dev/gpusim", O_RDWR);
  if (file < 0) {
    printf("/dev/gpusim: %s\n", strerror(errno));
    return 2;
  }
  must("open", open_all());
  gpusim_kernel* kernel = kernel_of(FUNCTION(nothing));
  for (int i = 0; i < 100; ++i) must("kernel", run_kernel(kernel, 1));
  double ping = 1e9, empty = 1e9, sum_ping = 0, sum_empty = 0;
  for (int part = 0; part < 10; ++part) {  // alternating: both see the same machine
    double start = now();
    for (int i = 0; i < rounds / 10; ++i)
      if (ioctl(file, GPUSIM_IOC_PING) < 0) {
        printf("ping: %s\n", strerror(errno));
        return 2;
      }
    double middle = now();
    for (int i = 0; i < rounds / 10; ++i) must("kernel", run_kernel(kernel, 1));
    double end = now();
    sum_ping += middle - start, sum_empty += end - middle;
    if (middle - start < ping) ping = middle - start;
    if (end - middle < empty) empty = end - middle;
  }
  printf("ping_us=%.2f\nkernel_us=%.2f\n", sum_ping / rounds * 1e6, sum_empty / rounds * 1e6);
  printf("best_ping_us=%.2f\nbest_kernel_us=%.2f\nratio=%.2f\n", ping * 10 / rounds * 1e6,
         empty * 10 / rounds * 1e6, empty / ping);
  close(file);
  close_all();
  return 0;
}

static void print_counters(void) {
  const gpusim_counters now = counters();
  printf("kernels=%lu\nposted=%lu\n", (unsigned long)now.kernels,
         (unsigned long)now.posted_kernels);
}

// Short kernels one after the other, and how many of them went past the driver. Without a number,
// until one did: on a busy machine the daemon may sleep whenever this process gets to run.
static int case_posted(char** arguments) {
  const int launches = arguments[0] ? atoi(arguments[0]) : 0;
  must("open", open_all());
  gpusim_kernel* kernel = kernel_of(FUNCTION(nothing));
  for (int i = 0; i < launches || (launches == 0 && counters().posted_kernels == 0); ++i)
    must("kernel", run_kernel(kernel, 1));
  print_counters();
  close_all();
  return 0;
}

// Each launch happens once, whether the daemon is awake, asleep or about to fall asleep. Goes on
// until it was awake for one launch and asleep for another.
static int case_counted(char** arguments) {
  int launches = arguments[0] ? atoi(arguments[0]) : 3000;
  must("open", open_all());
  gpusim_buffer* word = buffer_of(4096);
  gpusim_kernel* kernel = kernel_of(FUNCTION(add_one));
  gpusim_kernel_set_buffer(kernel, 0, word, 0);
  unsigned seed = 1, longest_us = 511;
  for (int i = 0; i < launches; ++i) {
    must("kernel", run_kernel(kernel, 1));
    seed = seed * 1103515245 + 12345;
    const double until = now() + 1e-6 * (seed >> 16 & longest_us);
    while (now() < until) {
    }
    if (i + 1 < launches) continue;
    const gpusim_counters so_far = counters();
    if (so_far.posted_kernels != 0 && so_far.posted_kernels != so_far.kernels) break;
    launches += 100;
    if (so_far.posted_kernels != 0 && longest_us < 0xffff) longest_us = longest_us << 1 | 1;
  }
  printf("launches=%d\n", launches);
  printf("counted=%lu\n", (unsigned long)*(volatile uint64_t*)gpusim_buffer_pointer(word));
  print_counters();
  close_all();
  return 0;
}

// The process and cores add to one word at the same time.
static int case_atomics(char** arguments) {
  (void)arguments;
  const uint64_t times = 30000000, cores = 1;
  must("open", open_all());
  gpusim_buffer* word = buffer_of(4096);
  uint64_t* const shared = gpusim_buffer_pointer(word);
  gpusim_kernel* kernel = kernel_of(FUNCTION(add_often));
  gpusim_event* event;
  gpusim_kernel_set_buffer(kernel, 0, word, 0);
  gpusim_kernel_set_u64(kernel, 1, times);
  must("enqueue", gpusim_enqueue_kernel(queue, kernel, (uint32_t)cores, 0, NULL, &event));
  uint64_t own = 0;
  while (gpusim_event_status(event) == GPUSIM_RUNNING)
    for (int i = 0; i < 1000; ++i, ++own) __atomic_fetch_add(shared, 1, __ATOMIC_RELAXED);
  must("kernel", gpusim_event_finish(event, -1));
  const uint64_t sum = __atomic_load_n(shared, __ATOMIC_RELAXED);
  printf("own=%lu\nlost=%ld\n", (unsigned long)own, (long)(own + cores * times - sum));
  gpusim_event_release(event);
  close_all();
  return 0;
}

// A child of fork() launches while its parent's kernel runs.
static int case_forked(char** arguments) {
  (void)arguments;
  must("open", open_all());
  gpusim_buffer* word = buffer_of(4096);
  uint64_t* const shared = gpusim_buffer_pointer(word);
  gpusim_kernel* kernel = kernel_of(FUNCTION(add_one));
  gpusim_kernel_set_buffer(kernel, 0, word, 8);
  must("first", run_kernel(kernel, 1));
  for (int i = 0; i < 100; ++i) {
    *(volatile uint64_t*)shared = 0;
    const pid_t child = fork();
    if (child == 0) _exit(run_kernel(kernel, 1) != GPUSIM_OK);
    must("parent's", run_kernel(kernel, 1));
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) printf("child=%d\n", status);
  }
  printf("counted=%lu\n", (unsigned long)((volatile uint64_t*)shared)[1]);
  close_all();
  return 0;
}

// A region of so many million instructions over so many cores, on the device and on the guest's own CPU.
static int case_region(char** arguments) {
  uint64_t millions = arguments[0] ? strtoull(arguments[0], NULL, 0) : 100;
  uint32_t cores = arguments[0] && arguments[1] ? (uint32_t)atoi(arguments[1]) : 2048;
  int rounds = 3;
  must("open", open_all());
  gpusim_buffer* buffer = buffer_of(cores * 8);
  uint64_t* own = calloc(cores, 8);
  gpusim_kernel* kernel = kernel_of(FUNCTION(count));
  // How many instructions a turn is.
  gpusim_statistics s[2];
  for (int i = 0; i < 2; ++i) {
    gpusim_event* event;
    gpusim_kernel_set_buffer(kernel, 0, buffer, 0);
    gpusim_kernel_set_core_id(kernel, 1);
    gpusim_kernel_set_u64(kernel, 2, 1000u + 1000u * (unsigned)i);
    must("enqueue", gpusim_enqueue_kernel(queue, kernel, 1, 0, NULL, &event));
    must("kernel", gpusim_event_finish(event, -1));
    must("statistics", gpusim_event_statistics(event, &s[i]));
    gpusim_event_release(event);
  }
  double per_turn = (double)(s[1].guest_instructions - s[0].guest_instructions) / 1000;
  uint64_t turns = (uint64_t)((double)millions * 1e6 / per_turn / cores);
  double best_device = 1e9, best_own = 1e9;
  uint64_t instructions = 0;
  for (int round = 0; round < rounds; ++round) {
    double start = now();
    gpusim_event* event;
    gpusim_kernel_set_u64(kernel, 2, turns);
    must("enqueue", gpusim_enqueue_kernel(queue, kernel, cores, 0, NULL, &event));
    must("kernel", gpusim_event_finish(event, -1));
    double middle = now();
    must("statistics", gpusim_event_statistics(event, &s[0]));
    gpusim_event_release(event);
    instructions = s[0].guest_instructions;
    double own_start = now();
    for (uint64_t core = 0; core < cores; ++core) count(own, core, turns);
    double own_end = now();
    if (middle - start < best_device) best_device = middle - start;
    if (own_end - own_start < best_own) best_own = own_end - own_start;
    if (memcmp(own, gpusim_buffer_pointer(buffer), cores * 8)) {
      printf("equal=no\n");
      return 1;
    }
  }
  gpusim_counters counters;
  must("counters", gpusim_device_counters(device, &counters));
  printf("instructions=%lu\ncores=%u\ndevice_seconds=%.4f\nown_seconds=%.4f\nratio=%.2f\n",
         (unsigned long)instructions, cores, best_device, best_own, best_own / best_device);
  printf("copied_bytes=%lu\nmapped_bytes=%lu\nequal=yes\n", (unsigned long)counters.copied_bytes,
         (unsigned long)counters.mapped_bytes);
  close_all();
  return 0;
}

static const struct {
  const char* name;
  int (*run)(char** arguments);
} kCases[] = {
    {"works", case_works},       {"open", case_open},         {"properties", case_properties},
    {"loop", case_loop},         {"spin", case_spin},         {"block", case_block},
    {"limit", case_limit},       {"cancel", case_cancel},     {"fault", case_fault},
    {"memory", case_memory},     {"cycles", case_cycles},     {"transfer", case_transfer},
    {"lost", case_lost},         {"many", case_many},         {"round_trip", case_round_trip},
    {"region", case_region},     {"posted", case_posted},
    {"posted_spin", case_posted_spin},
    {"counted", case_counted},   {"atomics", case_atomics},   {"forked", case_forked},
    {"quota", case_quota},
};

int main(int argc, char** argv) {
  int first = 1;
  for (; argc > first + 1 && argv[first][0] == '-'; first += 2) {
    if (argv[first][1] == 'o') options = argv[first + 1];
    if (argv[first][1] == 'p') patience = atof(argv[first + 1]);
  }
  signal(SIGUSR1, on_signal);
  for (size_t i = 0; argc > first && i < sizeof kCases / sizeof *kCases; ++i)
    if (!strcmp(argv[first], kCases[i].name)) return kCases[i].run(argv + first + 1);
  fprintf(stderr, "usage: guest_cases [-o OPTIONS] [-p SECONDS] CASE [ARGUMENT]...\n");
  return 2;
}
