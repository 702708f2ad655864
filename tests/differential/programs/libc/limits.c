// Resource limits: what is set is told, and holds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static void on_signal(int number) { came = number; }

static void show(const char* what, int result) {
  printf("%s: %d, errno %d\n", what, result, result < 0 ? errno : 0);
}

int main(void) {
  struct rlimit limit = {20, 30}, got;
  show("files", setrlimit(RLIMIT_NOFILE, &limit));
  show("tell", getrlimit(RLIMIT_NOFILE, &got));
  printf("%ld %ld\n", (long)got.rlim_cur, (long)got.rlim_max);
  show("beyond", dup2(1, 20));
  show("below", dup2(1, 19));
  show("full", fcntl(1, F_DUPFD, 19));
  show("beyond", fcntl(1, F_DUPFD, 20));
  show("close", close(19));
  limit.rlim_cur = 31;
  show("wrong", setrlimit(RLIMIT_NOFILE, &limit));
  show("none", setrlimit((__rlimit_resource_t)16, &limit));
  limit.rlim_cur = 25;
  show("again", prlimit(0, RLIMIT_NOFILE, &limit, &got));
  printf("%ld %ld\n", (long)got.rlim_cur, (long)got.rlim_max);
  show("none", prlimit(0, (__rlimit_resource_t)16, NULL, &got));
  limit = (struct rlimit){0, RLIM_INFINITY};
  getrlimit(RLIMIT_CORE, &got);
  limit.rlim_max = got.rlim_max;
  show("core", setrlimit(RLIMIT_CORE, &limit));

  // 30 ms of processor time are no second.
  signal(SIGXCPU, on_signal);
  getrlimit(RLIMIT_CPU, &got);
  limit = (struct rlimit){1000, got.rlim_max};
  show("time", setrlimit(RLIMIT_CPU, &limit));
  getrlimit(RLIMIT_CPU, &got);
  printf("%ld, came %d\n", (long)got.rlim_cur, (int)came);

  signal(SIGXFSZ, on_signal);
  getrlimit(RLIMIT_FSIZE, &got);
  limit = (struct rlimit){1 << 20, got.rlim_max};
  show("size", setrlimit(RLIMIT_FSIZE, &limit));
  getrlimit(RLIMIT_FSIZE, &got);
  printf("%ld\n", (long)got.rlim_cur);
  return 0;
}
