/* SPDX-License-Identifier: MIT */
/*
 * A hostile process, in the guest:  ioctl_fuzz [SECONDS [SEED [PROCESSES]]]
 *
 * Several processes do random things with /dev/gpusim at once: calls with sensible and senseless
 * fields and pointers, mappings, unmapping under the driver's hands, forks that share files,
 * signals, SIGKILL. At the end nothing may be left in the driver. Exit status 0: so it was; the
 * kernel's log is for the caller to look at. The seed replays each process's decisions, not how
 * they interleave.
 */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#define PAGE 4096ull
#define ARENA_PAGES 512ull
#define MOST_FILES 4
#define MOST_MAPPINGS 16
#define MOST_THINGS 32

static uint64_t state;

static uint64_t random64(void) {
  /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
static uint64_t below(uint64_t limit) { return random64() % limit; }
static bool one_in(uint64_t n) { return below(n) == 0; }

static int files[MOST_FILES];
static struct mapping {
  char* address;
  uint64_t size;
} mappings[MOST_MAPPINGS];
/* What came out of calls: handles, tickets, offsets. */
static uint64_t things[MOST_THINGS];
static char* arena;
static volatile uint64_t* calls; /* shared by all processes: done, succeeded */

/* Numbers on which mistakes sit. */
static uint64_t odd_number(void) {
  static const uint64_t kinds[] = {0,          1,          7,          PAGE - 1,        PAGE,
                                   PAGE + 1,   1u << 31,   1ull << 32, 1ull << 37,      1ull << 47,
                                   1ull << 48, 1ull << 63, ~0ull,      ~0ull - PAGE + 1};
  switch (below(4)) {
    case 0:
      return kinds[below(sizeof kinds / sizeof kinds[0])];
    case 1:
      return things[below(MOST_THINGS)];
    case 2:
      return random64() >> below(64);
    default:
      return (random64() >> below(64)) & ~(PAGE - 1);
  }
}
static uint64_t number_or(uint64_t sensible) { return one_in(12) ? odd_number() : sensible; }
static uint64_t known_thing(void) { return number_or(things[below(MOST_THINGS)]); }
static void remember(uint64_t thing) { things[below(MOST_THINGS)] = thing; }
static int some_file(void) { return one_in(100) ? (int)below(20) : files[below(MOST_FILES)]; }

static char* in_arena(void) { return arena + below(ARENA_PAGES) * PAGE; }
static void* some_pointer(void* sensible) {
  if (!one_in(20)) return sensible;
  return one_in(2) ? in_arena() + below(PAGE) : (void*)(uintptr_t)odd_number();
}

static long count_call(long result) {
  __atomic_fetch_add(&calls[0], 1, __ATOMIC_RELAXED);
  if (result >= 0) __atomic_fetch_add(&calls[1], 1, __ATOMIC_RELAXED);
  return result;
}
static long call(int fd, unsigned long command, void* argument) {
  return count_call(ioctl(fd, command, some_pointer(argument)));
}

static void fill(void* to, size_t size) {
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t word = one_in(3) ? odd_number() : 0;
    memcpy((char*)to + i, &word, 8);
  }
}

static void do_alloc(void) {
  struct gpusim_ioc_alloc alloc = {0};
  alloc.size_bytes = number_or((1 + below(one_in(10) ? 1024 : 40)) * PAGE);
  alloc.device_address = number_or(below(1 << 20) * PAGE);
  alloc.flags = (uint32_t)number_or(below(2));
  if (call(some_file(), GPUSIM_IOC_ALLOC, &alloc) == 0) {
    remember(alloc.handle);
    remember(alloc.mmap_offset);
  }
}

static void do_pin(void) {
  struct gpusim_ioc_pin pin = {0};
  pin.user_address = number_or((uintptr_t)in_arena());
  if (one_in(4)) pin.user_address = (uintptr_t)mappings[below(MOST_MAPPINGS)].address;
  if (one_in(8)) pin.user_address = (uintptr_t)&do_pin & ~(PAGE - 1);
  pin.size_bytes = number_or((1 + below(60)) * PAGE);
  pin.device_address = number_or(one_in(2) ? pin.user_address : below(1 << 20) * PAGE);
  pin.flags = (uint32_t)number_or(below(2));
  if (call(some_file(), GPUSIM_IOC_PIN, &pin) == 0) remember(pin.handle);
}

static void do_free(void) {
  uint32_t handle = (uint32_t)(one_in(3) ? 1 + below(20) : known_thing());
  call(some_file(), GPUSIM_IOC_FREE, &handle);
}

static void sensible_launch(struct gpusim_launch* launch) {
  launch->program = (uint32_t)number_or(1 + below(3));
  launch->cores = (uint32_t)number_or(1 + below(100));
  launch->function = odd_number();
  launch->argument_count = (uint32_t)number_or(below(3));
  launch->max_instructions = one_in(2) ? 100000 : 0;
  launch->time_limit_ns = one_in(10) ? 0 : 20000000;
}

static void do_submit(void) {
  static const uint32_t ops[] = {GPUSIM_OP_HELLO,  GPUSIM_OP_LOAD,   GPUSIM_OP_UNLOAD,
                                 GPUSIM_OP_SYMBOL, GPUSIM_OP_LAUNCH, GPUSIM_OP_COUNTERS,
                                 GPUSIM_OP_RESET};
  union gpusim_request request;
  struct gpusim_reply reply;
  struct gpusim_ioc_submit submit = {0};
  memset(&request, 0, sizeof request);
  submit.op = (uint32_t)number_or(ops[below(one_in(8) ? 7 : 6)]);
  if (one_in(4))
    fill(&request, sizeof request);
  else if (submit.op == GPUSIM_OP_LAUNCH)
    sensible_launch(&request.launch);
  else if (submit.op == GPUSIM_OP_LOAD) {
    request.words.word[0] = (uintptr_t)in_arena();
    request.words.word[1] = below(20 * PAGE);
  }
  submit.request = (uintptr_t)some_pointer(&request);
  submit.reply = (uintptr_t)(one_in(4) ? NULL : some_pointer(&reply));
  submit.reserved = one_in(50);
  if (call(some_file(), GPUSIM_IOC_SUBMIT, &submit) == 0 && submit.ticket) remember(submit.ticket);
}

static void do_wait(void) {
  struct gpusim_reply reply;
  struct gpusim_ioc_wait wait = {0};
  wait.ticket = one_in(3) ? 1 + below(60) : known_thing();
  wait.timeout_ns = one_in(5) ? odd_number() : below(5000000);
  wait.reply = (uintptr_t)(one_in(4) ? NULL : some_pointer(&reply));
  wait.flags = (uint32_t)number_or(one_in(10) ? GPUSIM_WAIT_FROZEN : 0);
  call(some_file(), GPUSIM_IOC_WAIT, &wait);
}

static void do_cancel(void) {
  uint64_t ticket = one_in(3) ? 1 + below(60) : known_thing();
  call(some_file(), GPUSIM_IOC_CANCEL, &ticket);
}

static void do_random_ioctl(void) {
  uint64_t words[64];
  fill(words, sizeof words);
  const unsigned long command =
      one_in(3) ? random64()
                : _IOC(below(4), 'G', below(10), one_in(4) ? below(1 << 14) : below(100));
  call(some_file(), command, words);
}

static void do_map(void) {
  struct mapping* const slot = &mappings[below(MOST_MAPPINGS)];
  if (slot->address) munmap(slot->address, slot->size);
  slot->address = NULL;
  slot->size = number_or((1 + below(30)) * PAGE);
  if (slot->size > 1u << 30) return;
  const int flags = one_in(10) ? MAP_PRIVATE : MAP_SHARED;
  /* Not MAP_FIXED: the program itself should live. */
  void* const address =
      mmap(NULL, slot->size, (int)below(4), flags | (one_in(10) ? MAP_POPULATE : 0), some_file(),
           (off_t)(known_thing() & ~(PAGE - 1)));
  count_call(address == MAP_FAILED ? -1 : 0);
  if (address != MAP_FAILED) slot->address = address;
}

static void do_change_mapping(void) {
  struct mapping* const slot = &mappings[below(MOST_MAPPINGS)];
  if (!slot->address) return;
  char* const inside = slot->address + (below(slot->size) & ~(PAGE - 1));
  switch (below(5)) {
    case 0:
      munmap(inside, PAGE);
      break;
    case 1:
      mprotect(inside, PAGE, (int)below(4));
      break;
    case 2:
      madvise(inside, PAGE, (int)below(26));
      break;
    case 3:
      madvise(slot->address, slot->size, MADV_DONTFORK);
      break;
    default: {
      void* const moved = mremap(slot->address, slot->size, (1 + below(40)) * PAGE, MREMAP_MAYMOVE);
      if (moved != MAP_FAILED) munmap(moved, 40 * PAGE), slot->address = NULL;
    }
  }
}

/* The process's own memory, pinned or not. */
static void do_change_arena(void) {
  char* const page = in_arena();
  switch (below(6)) {
    case 0:
      mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      break;
    case 1:
      mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      break;
    case 2:
      madvise(page, PAGE, one_in(2) ? MADV_DONTNEED : MADV_FREE);
      break;
    case 3:
      munmap(page, PAGE);
      break;
    case 4:
      mprotect(page, PAGE, (int)below(4));
      break;
    default:
      mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      page[below(PAGE)] = 1;
  }
}

static void do_reopen(void) {
  int* const file = &files[below(MOST_FILES)];
  if (*file >= 3) close(*file);
  *file = one_in(8) ? open("/dev/gpusim", (int)below(3) | O_CLOEXEC) : open_device();
}

static void do_something(void) {
  switch (below(24)) {
    case 0 ... 2:
      do_alloc();
      break;
    case 3 ... 5:
      do_pin();
      break;
    case 6 ... 8:
      do_free();
      break;
    case 9 ... 12:
      do_submit();
      break;
    case 13 ... 15:
      do_wait();
      break;
    case 16:
      do_cancel();
      break;
    case 17:
      do_random_ioctl();
      break;
    case 18 ... 19:
      do_map();
      break;
    case 20:
      do_change_mapping();
      break;
    case 21:
      do_change_arena();
      break;
    case 22:
      if (one_in(3)) do_reopen();
      break;
    default:
      if (one_in(20))
        call(some_file(), GPUSIM_IOC_PING, NULL);
      else if (one_in(20))
        (void)!read(some_file(), in_arena(), below(PAGE));
      else if (one_in(4)) {
        struct pollfd polled = {some_file(), POLLIN | POLLOUT, 0};
        poll(&polled, 1, (int)below(5));
      } else {
        struct gpusim_ioc_info info;
        call(some_file(), GPUSIM_IOC_INFO, &info);
      }
  }
}

static void* do_things_in_thread(void* count) {
  for (uintptr_t i = 0; i < (uintptr_t)count; ++i) do_something();
  return NULL;
}

static void on_signal(int number) { (void)number; }

/* A parent that was killed before the child asked for the signal sends none. */
static void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
}

/* Does things until it is killed; sometimes with a second thread, or with a child that has its
 * files. */
static void work(uint64_t seed) {
  int depth = 0;
  state = seed;
  for (;;) {
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, one_in(4) ? &never : &often, NULL);
    for (uint64_t i = below(300); i; --i) do_something();
    setitimer(ITIMER_REAL, &often, NULL); /* nothing below may wait for ever */
    if (one_in(4)) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, do_things_in_thread, (void*)(uintptr_t)below(200)) == 0) {
        for (uint64_t i = below(100); i; --i) do_something();
        pthread_join(thread, NULL);
      }
    }
    if (depth < 2 && one_in(3)) {
      const uint64_t child_seed = random64();
      const pid_t parent = getpid(), child = fork();
      if (child == 0) {
        die_with(parent);
        state = child_seed;
        ++depth;
      }
      if (child > 0) {
        for (uint64_t i = below(100); i; --i) do_something();
        usleep((useconds_t)below(30000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
      }
    }
  }
}

static void begin(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGALRM, &action, NULL);
  signal(SIGSEGV, SIG_DFL);
  arena =
      mmap(NULL, ARENA_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(arena, 0x5a, ARENA_PAGES / 2 * PAGE);
  for (int i = 0; i < MOST_FILES; ++i) files[i] = open_device();
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 10;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : now_ns();
  const unsigned processes = argc > 3 ? (unsigned)atoi(argv[3]) : 3;
  const uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
  pid_t workers[64] = {0};
  if (processes > 64 || processes == 0) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ioctl_fuzz: seed %llu, %u processes, %g s\n", (unsigned long long)seed, processes,
         seconds);
  calls = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const struct in_use before = read_in_use();
  unsigned lives = 0;
  while (now_ns() < end) {
    for (unsigned i = 0; i < processes; ++i) {
      /* Some end by themselves, of a signal for what they did to their own memory. */
      if (workers[i] && waitpid(workers[i], NULL, WNOHANG) == 0 && random64() % 50) continue;
      if (workers[i]) {
        kill(workers[i], SIGKILL);
        waitpid(workers[i], NULL, 0);
      }
      const pid_t parent = getpid();
      workers[i] = fork();
      if (workers[i] == 0) {
        die_with(parent);
        begin();
        work(seed + lives);
      }
      ++lives;
    }
    usleep(20000);
  }
  for (unsigned i = 0; i < processes; ++i) {
    kill(workers[i], SIGKILL);
    waitpid(workers[i], NULL, 0);
  }
  CHECK(all_is_given_back(10));
  printf("ioctl_fuzz: %llu calls, %llu of them successful, %u processes\n",
         (unsigned long long)calls[0], (unsigned long long)calls[1], lives);
  print_in_use("before", before);
  print_in_use("after", read_in_use());
  return failures != 0;
}
