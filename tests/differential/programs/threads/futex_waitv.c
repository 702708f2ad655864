// cores: 2
// oracle: host
// Waiting for several futexes at once (futex_waitv), which qemu-aarch64 does not have.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

struct waiter {
  uint64_t value, address;
  uint32_t flags, reserved;
};
enum { kSize32 = 2, kPrivate = 128 };

static uint32_t words[4];
static struct waiter waiters[4];
static long left_behind, moved;

static void fill(void) {
  for (int i = 0; i < 4; ++i)
    waiters[i] = (struct waiter){0, (uintptr_t)&words[i], kSize32 | kPrivate, 0};
}

static long wait_for(const void* list, unsigned count, unsigned flags, const struct timespec* until,
                     int clock) {
  return syscall(SYS_futex_waitv, list, count, flags, until, clock);
}

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %ld\n", what, result);
}

static void* wake_third(void* unused) {
  (void)unused;
  // Wakes nobody until the other thread waits.
  while (syscall(SYS_futex, &words[2], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) != 1)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  return NULL;
}

static void* move_first(void* unused) {
  (void)unused;
  while (syscall(SYS_futex, &words[0], FUTEX_REQUEUE_PRIVATE, 0, 1, &words[3], 0) != 1)
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  left_behind = syscall(SYS_futex, &words[0], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  moved = syscall(SYS_futex, &words[3], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  return NULL;
}

int main(void) {
  fill();
  const struct timespec past = {1, 0}, invalid = {0, 1000000000};
  say("none", wait_for(waiters, 0, 0, NULL, 0));
  say("too many", wait_for(waiters, 129, 0, NULL, 0));
  say("no list", wait_for(NULL, 1, 0, NULL, 0));
  say("wild list", wait_for((void*)8, 1, 0, NULL, 0));
  say("flags", wait_for(waiters, 1, 1, NULL, 0));
  say("clock", wait_for(waiters, 1, 0, &past, CLOCK_PROCESS_CPUTIME_ID));
  say("time", wait_for(waiters, 1, 0, &invalid, CLOCK_MONOTONIC));
  say("late", wait_for(waiters, 3, 0, &past, CLOCK_MONOTONIC));
  say("late", wait_for(waiters, 1, 0, &past, CLOCK_REALTIME));
  words[1] = 5;
  say("changed", wait_for(waiters, 3, 0, NULL, 0));
  words[1] = 0;
  waiters[1].reserved = 1;
  say("reserved", wait_for(waiters, 3, 0, NULL, 0));
  fill();
  waiters[2].flags = kPrivate;
  say("size", wait_for(waiters, 3, 0, NULL, 0));
  fill();
  waiters[2].address += 2;
  say("alignment", wait_for(waiters, 3, 0, NULL, 0));
  waiters[2].address = 8;
  say("wild", wait_for(waiters, 3, 0, NULL, 0));
  fill();

  pthread_t thread;
  pthread_create(&thread, NULL, wake_third, NULL);
  say("woken by", wait_for(waiters, 3, 0, NULL, 0));
  pthread_join(thread, NULL);
  pthread_create(&thread, NULL, move_first, NULL);
  say("woken by", wait_for(waiters, 2, 0, NULL, 0));
  pthread_join(thread, NULL);
  say("left behind", left_behind);
  say("moved", moved);
  return 0;
}
