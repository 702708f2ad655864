// Event counters, timers and epoll: what each call returns, one thread.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static struct epoll_event* volatile wild = (struct epoll_event*)8;

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %ld\n", what, result);
}

static void counters(void) {
  uint64_t value = 0;
  const int fd = eventfd(3, EFD_NONBLOCK);
  say("read", read(fd, &value, sizeof value));
  printf("value %llu\n", (unsigned long long)value);
  say("empty", read(fd, &value, sizeof value));
  say("short", read(fd, &value, 4));
  value = UINT64_MAX - 1;
  say("most", write(fd, &value, sizeof value));
  value = 1;
  say("full", write(fd, &value, sizeof value));
  value = UINT64_MAX;
  say("invalid", write(fd, &value, sizeof value));
  close(fd);
  const int semaphore = eventfd(2, EFD_SEMAPHORE | EFD_CLOEXEC);
  say("flags", fcntl(semaphore, F_GETFD));
  say("status", fcntl(semaphore, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
  for (int i = 0; i < 2; ++i) {
    say("take", read(semaphore, &value, sizeof value));
    printf("value %llu\n", (unsigned long long)value);
  }
  say("nonblocking", fcntl(semaphore, F_SETFL, O_NONBLOCK));
  say("none left", read(semaphore, &value, sizeof value));
  say("seek", lseek(semaphore, 0, SEEK_SET));
  close(semaphore);
  say("bad flags", eventfd(0, 0x10));
}

static void timers(void) {
  uint64_t times = 0;
  const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec once = {{0, 0}, {0, 3000000}};
  struct itimerspec left;
  say("set", timerfd_settime(fd, 0, &once, NULL));
  say("wait", read(fd, &times, sizeof times));
  printf("%llu times\n", (unsigned long long)times);
  say("get", timerfd_gettime(fd, &left));
  printf("left %ld.%09ld\n", (long)left.it_value.tv_sec, left.it_value.tv_nsec);
  struct itimerspec at = {{0, 1000000}, {0, 0}};
  clock_gettime(CLOCK_MONOTONIC, &at.it_value);
  say("in the past", timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL));
  struct pollfd p = {fd, POLLIN | POLLOUT, 0};
  say("poll", poll(&p, 1, 1000));
  printf("events %#x\n", (unsigned)p.revents);
  say("read", read(fd, &times, sizeof times));
  printf("%s\n", times >= 1 ? "some" : "none");
  const struct itimerspec bad = {{0, 0}, {0, 1000000000}};
  say("bad time", timerfd_settime(fd, 0, &bad, NULL));
  say("not a timer", timerfd_settime(1, 0, &once, NULL));
  say("bad clock", timerfd_create(77, 0));
  close(fd);
}

static void wait_for(int set, int timeout) {
  struct epoll_event events[8];
  const int n = epoll_wait(set, events, 8, timeout);
  say("epoll_wait", n);
  for (int i = 0; i < n; ++i)
    printf("  events %#x data %llx\n", events[i].events, (unsigned long long)events[i].data.u64);
}

static int control(int set, int operation, int fd, uint32_t events, uint64_t data) {
  struct epoll_event event = {.events = events, .data.u64 = data};
  return epoll_ctl(set, operation, fd, &event);
}

static void polling(void) {
  int ends[2];
  if (pipe(ends)) return;
  const int set = epoll_create1(EPOLL_CLOEXEC);
  say("add", control(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 0x1122334455667788));
  say("again", control(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 1));
  wait_for(set, 0);
  wait_for(set, 5);
  say("write", write(ends[1], "abc", 3));
  wait_for(set, -1);
  wait_for(set, -1);
  say("edge", control(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLET, 2));
  wait_for(set, 0);
  wait_for(set, 0);
  say("write", write(ends[1], "d", 1));
  wait_for(set, 0);
  say("once", control(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT, 3));
  wait_for(set, 0);
  wait_for(set, 0);
  const int other = dup(ends[0]);
  say("duplicate", control(set, EPOLL_CTL_ADD, other, EPOLLIN, 4));
  wait_for(set, 0);
  say("delete", epoll_ctl(set, EPOLL_CTL_DEL, other, NULL));
  say("twice", epoll_ctl(set, EPOLL_CTL_DEL, other, NULL));
  wait_for(set, 0);
  say("rearm", control(set, EPOLL_CTL_MOD, ends[0], EPOLLIN, 5));
  close(ends[0]);
  wait_for(set, 0);  // the duplicate keeps the pipe, and its place in the set, alive
  const int outer = epoll_create(1);
  say("nested", control(outer, EPOLL_CTL_ADD, set, EPOLLIN, 6));
  wait_for(outer, 0);
  say("loop", control(set, EPOLL_CTL_ADD, outer, EPOLLIN, 7));
  say("itself", control(set, EPOLL_CTL_ADD, set, EPOLLIN, 7));
  close(ends[1]);
  wait_for(set, 0);
  close(other);
  wait_for(set, 0);
  say("no such", control(set, EPOLL_CTL_ADD, 99, EPOLLIN, 9));
  say("no set", control(1, EPOLL_CTL_ADD, set, EPOLLIN, 9));
  struct epoll_event event;
  say("no room", epoll_wait(set, &event, 0, 0));
  say("bad memory", epoll_wait(set, wild, 1, 0));
}

int main(void) {
  counters();
  timers();
  polling();
  return 0;
}
