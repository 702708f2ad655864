// Signals that are read from a file (signalfd), one thread.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <unistd.h>

static void say(const char* what, long result) {
  if (result < 0)
    printf("%s: %s\n", what, strerror(errno));
  else
    printf("%s: %ld\n", what, result);
}

// QEMU shows the host's numbers of real-time signals.
static void tell(const struct signalfd_siginfo* info) {
  printf("signal %u code %d %s value %d\n", info->ssi_signo < 32 ? info->ssi_signo : 0,
         info->ssi_code, info->ssi_pid == (uint32_t)getpid() ? "from here" : "from elsewhere", info->ssi_int);
}

static int ready(int fd) {
  struct pollfd poll_fd = {fd, POLLIN, 0};
  return poll(&poll_fd, 1, 0) * 100 + poll_fd.revents;
}

int main(void) {
  struct signalfd_siginfo infos[4];
  sigset_t all, some;
  sigemptyset(&all);
  sigaddset(&all, SIGUSR1);
  sigaddset(&all, SIGUSR2);
  sigaddset(&all, SIGRTMIN + 1);
  sigprocmask(SIG_BLOCK, &all, NULL);
  const int fd = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
  say("flags", fcntl(fd, F_GETFD));
  say("status", fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
  say("nothing", read(fd, infos, sizeof infos));
  say("not ready", ready(fd));

  kill(getpid(), SIGUSR2);
  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGUSR1);
  sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 7});
  sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 8});
  say("ready", ready(fd));
  say("short", read(fd, infos, sizeof infos[0] - 1));
  long n = read(fd, infos, sizeof infos[0] * 2 + 5);
  say("two", n);
  for (long i = 0; i < n / (long)sizeof infos[0]; ++i) tell(&infos[i]);
  sigpending(&some);
  printf("pending %d %d\n", sigismember(&some, SIGUSR1), sigismember(&some, SIGRTMIN + 1));
  struct iovec parts[2] = {{&infos[0], sizeof infos[0]}, {&infos[1], sizeof infos[1]}};
  n = readv(fd, parts, 2);
  say("parts", n);
  for (long i = 0; i < n / (long)sizeof infos[0]; ++i) tell(&infos[i]);
  say("empty", read(fd, infos, sizeof infos));
  say("not ready", ready(fd));

  // A set that the file does not have stays pending for the process.
  sigemptyset(&some);
  sigaddset(&some, SIGUSR1);
  say("change", signalfd(fd, &some, 0) == fd);
  raise(SIGUSR2);
  say("other signal", ready(fd));
  say("other signal", read(fd, infos, sizeof infos));
  say("wait", sigwaitinfo(&all, NULL));

  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = 3};
  say("add", epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
  event.data.u32 = 0;
  say("none", epoll_wait(set, &event, 1, 0));
  raise(SIGUSR1);
  say("one", epoll_wait(set, &event, 1, -1));
  printf("data %u\n", event.data.u32);
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(fd, &reads);
  say("select", select(fd + 1, &reads, NULL, NULL, NULL));
  const int again = dup(fd);
  say("dup", read(again, infos, sizeof infos[0]));
  tell(&infos[0]);
  say("none", epoll_wait(set, &event, 1, 0));

  say("write", write(fd, infos, sizeof infos[0]));
  say("position", pread(fd, infos, sizeof infos[0], 0));
  say("no such file", signalfd(99, &all, 0));
  say("no signal file", signalfd(set, &all, 0));
  say("bad flags", signalfd(-1, &all, 1));
  return 0;
}
