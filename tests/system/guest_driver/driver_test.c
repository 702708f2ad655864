/* SPDX-License-Identifier: MIT */
/*
 * The driver alone, in the guest, as root:  driver_test [PART]  where the daemon
 * (tests/system/qemu_bridge/ null_daemon) behaves so:
 *
 *   quick   answers at once (the default)
 *   slow    --delay-ms 300; somebody kills it from outside when asked to
 *   never   --never: does not reply; somebody kills it from outside
 *   dies    --die-on-bell
 */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ADDRESS 0x10000000ull
#define PAGE 4096ull

static void test_errors(void) {
  const int fd = open_device();
  struct gpusim_ioc_alloc alloc;
  struct gpusim_ioc_pin pin;
  struct gpusim_ioc_submit submit;
  struct gpusim_ioc_wait wait;
  char* const memory =
      mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(fd >= 0);
  CHECK_ERRNO(device_alloc(fd, 0, ADDRESS, &alloc), EINVAL);
  CHECK_ERRNO(device_alloc(fd, PAGE + 1, ADDRESS, &alloc), EINVAL);
  CHECK_ERRNO(device_alloc(fd, PAGE, ADDRESS + 8, &alloc), EINVAL);
  CHECK_ERRNO(device_alloc(fd, -PAGE, ADDRESS, &alloc), EINVAL);
  CHECK_ERRNO(device_alloc(fd, -PAGE, 0, &alloc), ENOMEM);
  CHECK_ERRNO(device_alloc(fd, 2 * PAGE, -PAGE, &alloc), EINVAL);
  CHECK_ERRNO(device_alloc(fd, 1ull << 40, ADDRESS, &alloc), ENOMEM);
  alloc = (struct gpusim_ioc_alloc){.size_bytes = PAGE, .device_address = ADDRESS, .flags = 2};
  CHECK_ERRNO(ioctl(fd, GPUSIM_IOC_ALLOC, &alloc), EINVAL);
  CHECK_ERRNO(device_pin(fd, memory + 1, PAGE, ADDRESS, 0, &pin), EINVAL);
  CHECK_ERRNO(device_pin(fd, memory, PAGE - 1, ADDRESS, 0, &pin), EINVAL);
  CHECK_ERRNO(device_pin(fd, memory, PAGE, ADDRESS, 2, &pin), EINVAL);
  CHECK_ERRNO(device_pin(fd, NULL, PAGE, ADDRESS, 0, &pin), EFAULT);
  CHECK_ERRNO(device_pin(fd, (void*)-PAGE, PAGE, ADDRESS, 0, &pin), EINVAL);
  CHECK_ERRNO(device_pin(fd, (void*)0xffff000000000000, PAGE, ADDRESS, 0, &pin), EFAULT);
  /* Three pages are there, the fourth is not. */
  munmap(memory + 3 * PAGE, PAGE);
  CHECK_ERRNO(device_pin(fd, memory, 4 * PAGE, ADDRESS, 0, &pin), EFAULT);
  /* Code cannot be written, but read. */
  void* const code = (void*)((uintptr_t)&test_errors & -PAGE);
  CHECK_ERRNO(device_pin(fd, code, PAGE, ADDRESS, 0, &pin), EFAULT);
  CHECK(device_pin(fd, code, PAGE, ADDRESS, GPUSIM_PIN_READ_ONLY, &pin) == 0);
  CHECK(device_free(fd, pin.handle) == 0);
  CHECK_ERRNO(device_free(fd, pin.handle), ENOENT);
  CHECK_ERRNO(device_free(fd, 0), ENOENT);
  CHECK_ERRNO(device_submit(fd, GPUSIM_OP_MAP, &submit), EINVAL);
  CHECK_ERRNO(device_submit(fd, GPUSIM_OP_CONTEXT_CLOSE, &submit), EINVAL);
  CHECK_ERRNO(device_submit(fd, 0x10000 + GPUSIM_OP_HELLO, &submit), EINVAL);
  memset(&submit, 0, sizeof submit);
  submit.op = GPUSIM_OP_HELLO;
  CHECK_ERRNO(ioctl(fd, GPUSIM_IOC_SUBMIT, &submit), EFAULT);
  submit.reserved = 1;
  CHECK_ERRNO(ioctl(fd, GPUSIM_IOC_SUBMIT, &submit), EINVAL);
  CHECK_ERRNO(ioctl(fd, GPUSIM_IOC_SUBMIT, NULL), EFAULT);
  CHECK_ERRNO(device_wait(fd, 77, 0, 0, &wait), ENOENT);
  CHECK_ERRNO(device_wait(fd, 0, 0, 0, &wait), ENOENT);
  CHECK_ERRNO(device_wait(fd, 1, 0, 2, &wait), EINVAL);
  const uint64_t ticket = 99;
  CHECK_ERRNO(ioctl(fd, GPUSIM_IOC_CANCEL, &ticket), ENOENT);
  CHECK_ERRNO(ioctl(fd, _IOWR('G', 0x44, struct gpusim_ioc_wait), &wait), ENOTTY);
  CHECK_ERRNO(ioctl(fd, _IOWR('G', 0x05, char[8000]), &wait), ENOTTY);
  CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0), EINVAL);
  munmap(memory, 3 * PAGE);
  close(fd);
}

static void test_allocated_memory(void) {
  const uint64_t size = 9 * 1024 * 1024 + PAGE;
  const int fd = open_device();
  struct gpusim_ioc_alloc alloc, other;
  CHECK(device_alloc(fd, size, ADDRESS, &alloc) == 0);
  CHECK(device_alloc(fd, 3 * PAGE, ADDRESS + size, &other) == 0);
  CHECK(device_info(fd).allocated_bytes == size + 3 * PAGE);
  uint64_t* const memory =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)alloc.mmap_offset);
  CHECK(memory != MAP_FAILED);
  bool is_zero = true;
  for (uint64_t i = 0; i < size / 8; ++i) is_zero = is_zero && memory[i] == 0;
  CHECK(is_zero);
  for (uint64_t i = 0; i < size / 8; i += 512) memory[i] = i;
  /* A second view, of the middle. */
  uint64_t* const middle = mmap(NULL, 5 * 1024 * 1024, PROT_READ, MAP_SHARED, fd,
                                (off_t)(alloc.mmap_offset + 1024 * 1024 + PAGE));
  CHECK(middle != MAP_FAILED);
  bool is_equal = true;
  for (uint64_t i = 0; i < 5 * 1024 * 1024 / 8; i += 512)
    is_equal = is_equal && middle[i] == i + (1024 * 1024 + PAGE) / 8;
  CHECK(is_equal);
  CHECK_ERRNO(mmap(NULL, size + PAGE, PROT_READ, MAP_SHARED, fd, (off_t)alloc.mmap_offset), EINVAL);
  CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)(alloc.mmap_offset + size)),
              EINVAL);
  CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, (off_t)alloc.mmap_offset),
              EINVAL);
  CHECK_ERRNO(mremap(middle, PAGE, 6 * 1024 * 1024, MREMAP_MAYMOVE), EFAULT);
  /* Another file has nothing there. */
  const int stranger = open_device();
  CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, stranger, (off_t)alloc.mmap_offset), EINVAL);
  CHECK_ERRNO(device_free(stranger, alloc.handle), ENOENT);
  close(stranger);
  /* A child shares it. */
  const pid_t child = fork();
  if (child == 0) {
    memory[1] = 4711;
    _exit(0);
  }
  waitpid(child, NULL, 0);
  CHECK(memory[1] == 4711);
  /* The driver's memory may be pinned, too, as the process's own. */
  struct gpusim_ioc_pin pin;
  CHECK(device_pin(fd, memory, 16 * PAGE, 2 * ADDRESS, 0, &pin) == 0);
  CHECK(device_free(fd, pin.handle) == 0);
  /* What is mapped survives FREE and the file. */
  munmap((char*)memory + PAGE, PAGE);
  CHECK(device_free(fd, alloc.handle) == 0);
  CHECK(device_info(fd).allocated_bytes == 3 * PAGE);
  CHECK(memory[1] == 4711 && memory[1024] == 1024);
  close(fd);
  CHECK(memory[2048] == 2048 && middle[512] == 512 + (1024 * 1024 + PAGE) / 8);
  munmap(memory, size);
  munmap(middle, 5 * 1024 * 1024);
}

static void test_pinned_memory(void) {
  const uint64_t size = 16 * 1024 * 1024;
  const int fd = open_device();
  struct gpusim_ioc_pin pin, again;
  char* const memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 1, size);
  const uint64_t begin = now_ns();
  CHECK(device_pin(fd, memory, size, ADDRESS, 0, &pin) == 0);
  printf("16 MiB pinned in %.0f us: %u pieces\n", (double)(now_ns() - begin) / 1e3, pin.extents);
  CHECK(device_info(fd).pinned_bytes == size);
  CHECK(read_in_use().pinned == (long)(size / PAGE) &&
        read_in_use().foll_pin == (long)(size / PAGE));
  CHECK(device_pin(fd, memory, PAGE, 3 * ADDRESS, GPUSIM_PIN_READ_ONLY, &again) == 0);
  CHECK(again.handle != pin.handle);
  CHECK(read_number("/proc/self/status", "VmLck") == (long)(size + PAGE) / 1024);
  CHECK(device_free(fd, pin.handle) == 0);
  CHECK(read_number("/proc/self/status", "VmLck") == (long)PAGE / 1024);
  munmap(memory, size);
  close(fd);
  CHECK(all_is_given_back(5));
  CHECK(read_number("/proc/self/status", "VmLck") == 0);
}

static void test_many_pieces(void) {
  /* Every other page, so that physical neighbours are rare: more pieces than a table has. */
  const uint64_t pages = 4096;
  const int fd = open_device();
  char* const memory =
      mmap(NULL, 2 * pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* const packed = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, 2 * pages * PAGE, MADV_NOHUGEPAGE);
  for (uint64_t i = 0; i < 2 * pages; ++i) memory[i * PAGE] = 1;
  bool is_moved = true;
  for (uint64_t i = 0; i < pages; ++i)
    is_moved = is_moved && mremap(memory + 2 * i * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                                  packed + i * PAGE) == packed + i * PAGE;
  CHECK(is_moved);
  struct gpusim_ioc_pin pin;
  CHECK(device_pin(fd, packed, pages * PAGE, ADDRESS, 0, &pin) == 0);
  printf("%lu scattered pages: %u pieces\n", (unsigned long)pages, pin.extents);
  CHECK(pin.extents > 1000);
  CHECK(device_free(fd, pin.handle) == 0);
  close(fd);
  munmap(memory, 2 * pages * PAGE);
  munmap(packed, pages * PAGE);
}

static void test_limits(void) {
  const pid_t child = fork();
  if (child == 0) {
    failures = 0;
    const int fd = open_device();
    const struct rlimit limit = {64 * 1024, 64 * 1024};
    struct gpusim_ioc_pin pin, second;
    char* const memory =
        mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    CHECK(setgid(1000) == 0 && setuid(1000) == 0);
    CHECK_ERRNO(open_device(), EACCES);
    CHECK_ERRNO(device_pin(fd, memory, 32 * PAGE, ADDRESS, 0, &pin), ENOMEM);
    CHECK(device_pin(fd, memory, 10 * PAGE, ADDRESS, 0, &pin) == 0);
    CHECK_ERRNO(device_pin(fd, memory, 10 * PAGE, 2 * ADDRESS, 0, &second), ENOMEM);
    CHECK(device_free(fd, pin.handle) == 0);
    CHECK(device_pin(fd, memory, 16 * PAGE, ADDRESS, 0, &pin) == 0);
    _exit(failures);
  }
  int status;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

static void set_parameter(const char* name, const char* value) {
  char path[128];
  snprintf(path, sizeof path, "/sys/module/gpusim/parameters/%s", name);
  const int file = open(path, O_WRONLY);
  CHECK(file >= 0 && write(file, value, strlen(value)) == (ssize_t)strlen(value));
  close(file);
}

/* Runs `part` as a user of this number who has no privileges. Its failures count. */
static pid_t start_user(uid_t uid, void (*part)(int), int argument) {
  const pid_t child = fork();
  if (child == 0) {
    failures = 0;
    CHECK(setgid(uid) == 0 && setuid(uid) == 0);
    part(argument);
    _exit(failures != 0);
  }
  return child;
}

static void await_user(pid_t child) {
  int status;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

/* Takes all that it can get; then says so through the pipe and waits for its end. */
static void greedy_user(int out) {
  struct gpusim_ioc_alloc alloc;
  struct gpusim_ioc_pin pin;
  int fds[8], count = 0;
  while (count < 8 && (fds[count] = open_device()) >= 0) ++count;
  CHECK(count == 4 && errno == EDQUOT);
  uint64_t got = 0;
  uint32_t last = 0;
  while (got < 64 &&
         device_alloc(fds[got % 4], PAGE << 8, ADDRESS + got * (PAGE << 8), &alloc) == 0) {
    last = alloc.handle;
    ++got;
  }
  CHECK(got == 16 && errno == EDQUOT); /* MiB */
  char* const memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK_ERRNO(device_pin(fds[0], memory, PAGE, 4 * ADDRESS, 0, &pin), EDQUOT);
  /* What it gives back it can have again, as whatever it likes. */
  CHECK(device_free(fds[3], last) == 0);
  CHECK(device_pin(fds[0], memory, PAGE, 4 * ADDRESS, 0, &pin) == 0);
  CHECK_ERRNO(device_alloc(fds[1], PAGE << 8, 4 * ADDRESS, &alloc), EDQUOT);
  CHECK(device_alloc(fds[1], (PAGE << 8) - PAGE, 4 * ADDRESS, &alloc) == 0);
  close(fds[2]);
  CHECK((fds[2] = open_device()) >= 0);
  CHECK_ERRNO(open_device(), EDQUOT);
  const char failed = failures != 0;
  CHECK(write(out, &failed, 1) == 1);
  pause();
}

static void modest_user(int unused) {
  (void)unused;
  struct gpusim_ioc_alloc alloc;
  struct gpusim_ioc_submit submit;
  int fds[4];
  for (int i = 0; i < 4; ++i) CHECK((fds[i] = open_device()) >= 0);
  CHECK(device_alloc(fds[0], 15 << 20, ADDRESS, &alloc) == 0);
  CHECK(device_submit(fds[1], GPUSIM_OP_HELLO, &submit) == 0);
}

/* One user takes all there is; others still get theirs, and root more than that. */
static void test_quotas(void) {
  int pipes[2];
  char failed = 1;
  CHECK(pipe(pipes) == 0 && chmod("/dev/gpusim", 0666) == 0);
  set_parameter("contexts_per_user", "4");
  set_parameter("memory_per_user_mib", "16");
  const pid_t greedy = start_user(1000, greedy_user, pipes[1]);
  CHECK(read(pipes[0], &failed, 1) == 1 && !failed);
  await_user(start_user(1001, modest_user, 0));
  int fds[8];
  struct gpusim_ioc_alloc alloc;
  for (int i = 0; i < 8; ++i) CHECK((fds[i] = open_device()) >= 0);
  CHECK(device_alloc(fds[0], 48 << 20, ADDRESS, &alloc) == 0);
  for (int i = 0; i < 8; ++i) close(fds[i]);
  kill(greedy, SIGKILL);
  waitpid(greedy, NULL, 0);
  CHECK(all_is_given_back(5));
  await_user(start_user(1000, modest_user, 0)); /* nothing is held against it */
  set_parameter("contexts_per_user", "16");
  set_parameter("memory_per_user_mib", "0");
  CHECK(chmod("/dev/gpusim", 0660) == 0);
  close(pipes[0]);
  close(pipes[1]);
}

/* Without parameters one user leaves half of the memory and most of the contexts to others. */
static void user_of_defaults(int unused) {
  (void)unused;
  struct gpusim_ioc_alloc alloc;
  int count = 0;
  int fd = -1;
  while (count < 100) {
    const int next = open_device();
    if (next < 0) break;
    fd = next;
    ++count;
  }
  CHECK(count == 16 && errno == EDQUOT);
  uint64_t got = 0;
  while (device_alloc(fd, 4 << 20, ADDRESS + got, &alloc) == 0) got += 4 << 20;
  CHECK(errno == EDQUOT && got > 64u << 20);
}

static void test_default_quotas(void) {
  CHECK(chmod("/dev/gpusim", 0666) == 0);
  await_user(start_user(1000, user_of_defaults, 0));
  CHECK(chmod("/dev/gpusim", 0660) == 0);
  CHECK(all_is_given_back(5));
}

static void test_out_of_memory(void) {
  const int fd = open_device();
  struct gpusim_ioc_alloc alloc;
  uint64_t got = 0;
  while (device_alloc(fd, 16 << 20, ADDRESS + got, &alloc) == 0) got += 16 << 20;
  CHECK(errno == ENOMEM);
  CHECK(got > 100u << 20);
  printf("memory ends after %lu MiB\n", (unsigned long)(got >> 20));
  close(fd);
  CHECK(all_is_given_back(5));
}

static void test_open_close(int cycles) {
  uint64_t closing_ns = 0;
  /* The allocators' caches fill first. */
  for (int i = 0; i < 50; ++i) close(open_device());
  const struct in_use before = read_in_use();
  char* const memory =
      mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const uint64_t begin = now_ns();
  for (int i = 0; i < cycles; ++i) {
    struct gpusim_ioc_alloc alloc;
    struct gpusim_ioc_pin pin;
    struct gpusim_ioc_submit submit;
    const int fd = open_device();
    CHECK(fd >= 0);
    CHECK(device_alloc(fd, 64 * PAGE, ADDRESS, &alloc) == 0);
    CHECK(device_pin(fd, memory, 64 * PAGE, 2 * ADDRESS, 0, &pin) == 0);
    CHECK(device_submit(fd, GPUSIM_OP_HELLO, &submit) == 0);
    char* const mapped =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)alloc.mmap_offset);
    CHECK(mapped != MAP_FAILED);
    mapped[0] = 1;
    munmap(mapped, PAGE);
    const uint64_t closing = now_ns();
    close(fd);
    closing_ns += now_ns() - closing;
    if (failures > 10) return;
  }
  printf("%d open/close cycles, %.0f us each, %.0f us of it closing\n", cycles,
         (double)(now_ns() - begin) / 1e3 / cycles, (double)closing_ns / 1e3 / cycles);
  munmap(memory, 64 * PAGE);
  CHECK(all_is_given_back(5));
  const struct in_use after = read_in_use();
  print_in_use("before", before);
  print_in_use("after", after);
  CHECK(after.free_kib > before.free_kib - 4096);
}

static void test_rmmod(void) {
  const int fd = open_device();
  CHECK_ERRNO(syscall(SYS_delete_module, "gpusim", O_NONBLOCK), EAGAIN);
  close(fd);
}

static int compare(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return x < y ? -1 : x > y;
}

static void measure(void) {
  enum { kTimes = 2000 };
  static uint64_t ns[kTimes];
  const int fd = open_device();
  struct gpusim_ioc_submit submit;
  unsigned late = 0;
  CHECK(device_submit(fd, GPUSIM_OP_HELLO, &submit) == 0);
  for (int what = 0; what < 3; ++what) {
    uint64_t total = 0;
    for (int i = 0; i < kTimes; ++i) {
      struct gpusim_ioc_info info;
      const uint64_t begin = now_ns();
      if (what == 0) {
        CHECK(ioctl(fd, GPUSIM_IOC_INFO, &info) == 0);
      } else if (what == 1) {
        CHECK(ioctl(fd, GPUSIM_IOC_PING) == 0);
      } else {
        CHECK(device_submit(fd, GPUSIM_OP_HELLO, &submit) == 0);
        if (!submit.done) {
          struct gpusim_ioc_wait wait;
          CHECK(device_wait(fd, submit.ticket, ~0ull, 0, &wait) == 0);
          ++late;
        }
      }
      total += ns[i] = now_ns() - begin;
    }
    qsort(ns, kTimes, sizeof ns[0], compare);
    static const char* const names[] = {"ioctl alone (INFO)", "ioctl and trap (PING)",
                                        "ioctl, trap and daemon (SUBMIT)"};
    printf("%s: mean %.1f us, median %.1f us, least %.1f us\n", names[what],
           (double)total / kTimes / 1e3, (double)ns[kTimes / 2] / 1e3, (double)ns[0] / 1e3);
  }
  printf("not done within SUBMIT: %u of %d\n", late, kTimes);
  close(fd);
}

static void on_signal(int number) { (void)number; }

static void* wait_in_thread(void* argument) {
  const uint64_t* const in = argument;
  struct gpusim_ioc_wait wait;
  return (void*)(intptr_t)device_wait((int)in[0], in[1], ~0ull, 0, &wait);
}

/* A user of 300 ms per command; the fifth is one too many. */
static void hasty_user(int unused) {
  (void)unused;
  struct gpusim_ioc_submit submit;
  struct gpusim_ioc_wait wait;
  uint64_t tickets[5];
  const int fds[2] = {open_device(), open_device()};
  for (int i = 0; i < 4; ++i) {
    CHECK(device_submit(fds[i % 2], GPUSIM_OP_HELLO, &submit) == 0 && submit.ticket);
    tickets[i] = submit.ticket;
  }
  CHECK_ERRNO(device_submit(fds[0], GPUSIM_OP_HELLO, &submit), EDQUOT);
  CHECK(device_wait(fds[0], tickets[0], ~0ull, 0, &wait) == 0);
  CHECK(device_submit(fds[1], GPUSIM_OP_HELLO, &submit) == 0);
  CHECK_ERRNO(device_submit(fds[1], GPUSIM_OP_HELLO, &submit), EDQUOT);
  /* A file that is closed takes its commands along. */
  close(fds[1]);
  for (int i = 0; i < 1000 && read_in_use().files > 1; ++i) usleep(10000);
  for (int i = 0; i < 3; ++i) CHECK(device_submit(fds[0], GPUSIM_OP_HELLO, &submit) == 0);
  CHECK_ERRNO(device_submit(fds[0], GPUSIM_OP_HELLO, &submit), EDQUOT);
}

static void test_quota_of_commands(void) {
  CHECK(chmod("/dev/gpusim", 0666) == 0);
  set_parameter("commands_per_user", "4");
  await_user(start_user(1000, hasty_user, 0));
  set_parameter("commands_per_user", "1024");
  CHECK(chmod("/dev/gpusim", 0660) == 0);
  CHECK(all_is_given_back(5));
}

/* The daemon takes 300 ms for everything. */
static void test_slow(void) {
  struct sigaction action = {.sa_handler = on_signal};
  struct gpusim_ioc_submit submit;
  struct gpusim_ioc_wait wait;
  int fd = open_device();
  sigaction(SIGALRM, &action, NULL);

  CHECK(device_submit(fd, GPUSIM_OP_HELLO, &submit) == 0 && !submit.done && submit.ticket);
  CHECK_ERRNO(device_wait(fd, submit.ticket, 0, 0, &wait), ETIMEDOUT);
  uint64_t begin = now_ns();
  CHECK_ERRNO(device_wait(fd, submit.ticket, 20000000, 0, &wait), ETIMEDOUT);
  CHECK(now_ns() - begin >= 20000000);
  ualarm(30000, 0);
  CHECK_ERRNO(device_wait(fd, submit.ticket, ~0ull, 0, &wait), EINTR);
  CHECK(device_wait(fd, submit.ticket, ~0ull, 0, &wait) == 0 && wait.status == 0);
  CHECK_ERRNO(device_wait(fd, submit.ticket, 0, 0, &wait), ENOENT);

  /* Frozen: the guest's clock does not see it. */
  if (device_info(fd).transport == GPUSIM_TRANSPORT_SEMIHOSTING) {
    CHECK(device_submit(fd, GPUSIM_OP_HELLO, &submit) == 0);
    begin = now_ns();
    CHECK(device_wait(fd, submit.ticket, ~0ull, GPUSIM_WAIT_FROZEN, &wait) == 0);
    printf("300 ms of waiting, frozen: %.3f ms of the guest's time\n",
           (double)(now_ns() - begin) / 1e6);
    CHECK(device_submit(fd, GPUSIM_OP_HELLO, &submit) == 0);
    CHECK_ERRNO(device_wait(fd, submit.ticket, 20000000, GPUSIM_WAIT_FROZEN, &wait), ETIMEDOUT);
    CHECK(device_wait(fd, submit.ticket, ~0ull, GPUSIM_WAIT_FROZEN, &wait) == 0);
  } else {
    CHECK_ERRNO(device_wait(fd, 1, 0, GPUSIM_WAIT_FROZEN, &wait), EOPNOTSUPP);
  }

  /* poll(2) says when. */
  CHECK(device_submit(fd, GPUSIM_OP_HELLO, &submit) == 0 && submit.ticket);
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  CHECK(poll(&polled, 1, 10) == 0);
  CHECK(poll(&polled, 1, 20000) == 1 && polled.revents == POLLIN);
  CHECK(device_wait(fd, submit.ticket, 0, 0, &wait) == 0);
  CHECK(poll(&polled, 1, 10) == 0);

  /* Two threads wait for the same. */
  CHECK(device_submit(fd, GPUSIM_OP_HELLO, &submit) == 0);
  uint64_t in[2] = {(uint64_t)fd, submit.ticket};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, wait_in_thread, in);
  for (int i = 0; i < 2; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    CHECK(result == NULL);
  }
  close(fd);

  /* Killed in the middle of everything, with memory that the daemon may still write. */
  int outlived = 0;
  for (int when_ms = 1; when_ms < 2000; when_ms = when_ms * 2 + 37) {
    const pid_t child = fork();
    if (child == 0) {
      struct gpusim_ioc_pin pin;
      struct gpusim_ioc_alloc alloc;
      char* const memory =
          mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      fd = open_device();
      device_pin(fd, memory, 64 * PAGE, ADDRESS, 0, &pin);
      device_alloc(fd, 64 * PAGE, 2 * ADDRESS, &alloc);
      mmap(NULL, 64 * PAGE, PROT_READ, MAP_SHARED, fd, (off_t)alloc.mmap_offset);
      for (;;) {
        device_submit(fd, GPUSIM_OP_HELLO, &submit);
        device_wait(fd, submit.ticket, ~0ull, 0, &wait);
      }
    }
    usleep((useconds_t)when_ms * 1000);
    kill(child, SIGKILL);
    begin = now_ns();
    waitpid(child, NULL, 0);
    const double ended_ms = (double)(now_ns() - begin) / 1e6;
    if (read_in_use().files == 1) {
      ++outlived;
      CHECK_ERRNO(syscall(SYS_delete_module, "gpusim", O_NONBLOCK), EAGAIN);
    }
    CHECK(all_is_given_back(5));
    printf("killed after %d ms: gone in %.1f ms, all given back in %.1f ms\n", when_ms, ended_ms,
           (double)(now_ns() - begin) / 1e6);
  }
  /* The end of a process does not wait for the daemon; what it had does. */
  CHECK(outlived > 0);
}

/* Somebody outside kills the daemon when it reads "daemon: kill", and another one comes. */
static void test_restart(void) {
  const int old = open_device();
  struct gpusim_ioc_submit submit;
  struct gpusim_ioc_wait wait;
  CHECK(device_submit(old, GPUSIM_OP_HELLO, &submit) == 0);
  CHECK(device_wait(old, submit.ticket, ~0ull, 0, &wait) == 0);
  const uint32_t generation = device_info(old).generation;
  struct pollfd polled = {.fd = old, .events = POLLIN};
  CHECK(device_submit(old, GPUSIM_OP_HELLO, &submit) == 0 && submit.ticket);
  printf("daemon: kill\n");
  CHECK(poll(&polled, 1, 20000) == 1); /* POLLERR, unless the reply was faster */
  usleep(1000000);
  const int fresh = open_device();
  CHECK(device_submit(fresh, GPUSIM_OP_HELLO, &submit) == 0);
  CHECK(device_wait(fresh, submit.ticket, ~0ull, 0, &wait) == 0 && wait.status == 0);
  CHECK(device_info(fresh).generation != generation);
  /* Who only ever waits for a moment hears of it, too, even with a new daemon there. */
  int error = device_submit(old, GPUSIM_OP_HELLO, &submit) ? errno : 0;
  const uint64_t end = now_ns() + 30000000000;
  while (!error && now_ns() < end) {
    if (device_wait(old, submit.ticket, 1000000, 0, &wait) && errno != ETIMEDOUT) error = errno;
  }
  CHECK(error == EIO);
  CHECK_ERRNO(device_submit(old, GPUSIM_OP_HELLO, &submit), EIO);
  close(old);
  close(fresh);
}

/* The daemon never answers; "daemon: kill" on the console asks somebody outside to kill it. */
static void test_never(void) {
  struct gpusim_ioc_submit submit;
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open_device();
    _exit(device_submit(fd, GPUSIM_OP_HELLO, &submit) == -1 && errno == EIO ? 0 : 1);
  }
  const pid_t killed = fork();
  if (killed == 0) {
    struct gpusim_ioc_alloc alloc;
    device_alloc(open_device(), PAGE, ADDRESS, &alloc);
    _exit(1);
  }
  /* Both wait for their contexts, each with a call to open and one to close it. */
  for (int i = 0; i < 2000 && read_in_use().calls < 4; ++i) usleep(10000);
  CHECK(read_in_use().calls == 4);
  kill(killed, SIGKILL);
  int status;
  waitpid(killed, &status, 0);
  CHECK(WIFSIGNALED(status));
  usleep(200000);
  CHECK(waitpid(child, &status, WNOHANG) == 0); /* waits still */
  CHECK(read_in_use().files == 2);
  printf("daemon: kill\n");
  fflush(stdout);
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(all_is_given_back(5));
}

/* The daemon dies at each bell, and another one comes. */
static void test_dies(void) {
  for (int i = 0; i < 20; ++i) {
    struct gpusim_ioc_submit submit;
    struct gpusim_ioc_pin pin;
    char* const memory =
        mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int fd = open_device();
    CHECK_ERRNO(device_pin(fd, memory, 4 * PAGE, ADDRESS, 0, &pin), EIO);
    CHECK_ERRNO(device_submit(fd, GPUSIM_OP_HELLO, &submit), EIO);
    close(fd);
    munmap(memory, 4 * PAGE);
  }
  CHECK(all_is_given_back(5));
}

int main(int argc, char** argv) {
  const char* const part = argc > 1 ? argv[1] : "quick";
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!strcmp(part, "quick")) {
    measure();
    test_errors();
    test_allocated_memory();
    test_pinned_memory();
    test_many_pieces();
    test_limits();
    test_rmmod();
    test_quotas();
    test_default_quotas();
    test_out_of_memory();
    test_open_close(1000);
  } else if (!strcmp(part, "slow")) {
    test_slow();
    test_quota_of_commands();
    test_restart();
  } else if (!strcmp(part, "never")) {
    test_never();
  } else if (!strcmp(part, "dies")) {
    test_dies();
  } else if (!strcmp(part, "measure")) {
    measure();
  } else {
    fprintf(stderr, "driver_test: unknown part %s\n", part);
    return 2;
  }
  CHECK(all_is_given_back(5));
  printf("driver_test %s: %d failures\n", part, failures);
  return failures != 0;
}
