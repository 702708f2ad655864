// Processes: what a parent and its children see of each other.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static volatile sig_atomic_t children_ended, heard;
static void on_child(int number) { (void)number, ++children_ended; }
static void on_signal(int number) { heard = number; }

static int wait_status(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

static void forks(void) {
  int value = 1;
  const pid_t pid = fork();
  if (pid == 0) {
    value = 2;
    _exit(getppid() == getpgrp() && value == 2 ? 7 : 8);
  }
  const int status = wait_status(pid);
  printf("fork: %d %d %d %d\n", pid > getpid(), value, WIFEXITED(status), WEXITSTATUS(status));
  printf("no child: %d\n", waitpid(-1, 0, 0) == -1 && errno == ECHILD);
}

static void pipes(void) {
  int to[2], from[2];
  if (pipe(to) || pipe(from)) exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    close(to[1]);
    close(from[0]);
    char line[100];
    ssize_t n;
    while ((n = read(to[0], line, sizeof line)) > 0) {
      for (ssize_t i = 0; i < n; ++i) line[i] ^= 0x20;
      if (write(from[1], line, (size_t)n) != n) _exit(1);
    }
    _exit(0);
  }
  close(to[0]);
  close(from[1]);
  char text[100] = {0};
  if (write(to[1], "hello", 5) != 5) exit(1);
  struct pollfd p = {from[0], POLLIN, 0};
  const int ready = poll(&p, 1, 10000);
  const ssize_t n = read(from[0], text, sizeof text);
  close(to[1]);
  const ssize_t end = read(from[0], text + 50, 10);
  printf("pipe: %d %zd %s %zd %d\n", ready, n, text, end, wait_status(pid));
}

static void signals(void) {
  struct sigaction action = {.sa_handler = on_child};
  sigaction(SIGCHLD, &action, 0);
  int ends[2];
  if (pipe(ends)) exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, 0);
    signal(SIGUSR1, on_signal);
    if (write(ends[1], "x", 1) != 1) _exit(1);
    while (!heard) sigsuspend(&none);
    _exit(heard == SIGUSR1 ? 5 : 6);
  }
  char byte;
  while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
  }
  kill(pid, SIGUSR1);
  const int status = wait_status(pid);
  const pid_t endless = fork();
  if (endless == 0)
    for (;;) {
    }
  kill(endless, SIGTERM);
  const int killed = wait_status(endless);
  const pid_t stopped = fork();
  if (stopped == 0)
    for (;;) pause();
  kill(stopped, SIGKILL);
  const int gone = wait_status(stopped);
  printf("signals: %d %d %d %d\n", WEXITSTATUS(status), WIFSIGNALED(killed) ? WTERMSIG(killed) : 0,
         WIFSIGNALED(gone) ? WTERMSIG(gone) : 0, children_ended > 0);
  signal(SIGCHLD, SIG_DFL);
}

static void signal_during_vfork(void) {
  signal(SIGUSR1, on_signal);
  heard = 0;
  const pid_t pid = vfork();
  if (pid == 0) {
    kill(getppid(), SIGUSR1);
    usleep(20000);
    _exit(3);
  }
  const int status = pid > 0 ? wait_status(pid) : 0;
  printf("vfork: %d %d %d\n", pid > 0, heard == SIGUSR1, WEXITSTATUS(status));
}

static void executes(const char* self) {
  int ends[2];
  if (pipe(ends)) exit(1);
  fflush(stdout);
  const pid_t pid = vfork();
  if (pid == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    execl(self, "another name", "child", "a b", (char*)0);
    _exit(99);
  }
  close(ends[1]);
  char text[200] = {0};
  size_t n = 0;
  for (ssize_t got; (got = read(ends[0], text + n, sizeof text - n - 1)) > 0;) n += (size_t)got;
  close(ends[0]);
  printf("exec: %s %d\n", text, WEXITSTATUS(wait_status(pid)));
  char* const words[] = {(char*)self, "child", "spawned", 0};
  pid_t spawned;
  fflush(stdout);
  const int error = posix_spawn(&spawned, self, 0, 0, words, environ);
  printf("\nspawn: %d %d\n", error, WEXITSTATUS(wait_status(spawned)));
  fflush(stdout);
  FILE* const shell = popen("echo from a shell | tr a-z A-Z", "r");
  printf("popen: %s", shell && fgets(text, sizeof text, shell) ? text : "no shell\n");
  if (shell) pclose(shell);
  execl("/no/such/program", "x", (char*)0);
  printf("missing: %d\n", errno == ENOENT || errno == EACCES);
}

// As subprocess of Python 3.13 starts programs: without what is open from 3 on.
static void ranges(const char* self) {
  int ends[2];
  if (pipe(ends)) exit(1);
  const int marked = close_range((unsigned)ends[1], (unsigned)ends[1], 4 /* CLOSE_RANGE_CLOEXEC */);
  printf("range: %d %d %d", marked, fcntl(ends[0], F_GETFD), fcntl(ends[1], F_GETFD));
  printf(" %d", close_range((unsigned)ends[0], ~0u, 0) == 0 && fcntl(ends[0], F_GETFD) < 0 &&
                    fcntl(ends[1], F_GETFD) < 0 && fcntl(1, F_GETFD) == 0);
  printf(" %d", close_range(5, 4, 0) == -1 && errno == EINVAL);
  printf(" %d\n", close_range(3, 4, 8) == -1 && errno == EINVAL);
  if (pipe(ends)) exit(1);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  char number[12];
  snprintf(number, sizeof number, "%d", ends[1]);
  char* const words[] = {(char*)self, "is open", number, 0};
  pid_t spawned;
  const int error = posix_spawn(&spawned, self, &actions, 0, words, environ);
  printf("closed: %d %d\n", error, WEXITSTATUS(wait_status(spawned)));
}

// Memory without a file that a child shares with its parent, moved and in part given back.
static void shared_memory(void) {
  const size_t size = 4 << 16;
  volatile int* words = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  volatile int* own = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  words[0] = own[0] = 1;
  munmap((char*)words + size / 2, size / 2);
  const pid_t pid = fork();
  if (pid == 0) {
    volatile int* moved = mremap((void*)words, size / 2, size / 2, MREMAP_MAYMOVE | MREMAP_FIXED,
                                 (char*)own + size / 2);
    moved[1] = moved[0] + 1;
    own[0] = 5;
    while (moved[2] == 0) usleep(1000);
    moved[3] = moved[2] * 2;
    _exit(0);
  }
  words[2] = 21;
  const int status = wait_status(pid);
  printf("shared memory: %d %d %d %d %d\n", words[0], words[1], words[3], own[0], status);
}

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "is open") == 0)
    return fcntl(atoi(argv[2]), F_GETFD) < 0 ? 13 : 14;
  if (argc > 2 && strcmp(argv[1], "child") == 0) {
    printf("%s/%s/%s", argv[0][0] == '/' ? "self" : argv[0], argv[2],
           getenv("NAME") ? getenv("NAME") : "-");
    return 12;
  }
  setvbuf(stdout, 0, _IOLBF, 0);
  forks();
  pipes();
  signals();
  signal_during_vfork();
  shared_memory();
  executes(argv[argc - 1]);
  ranges(argv[argc - 1]);
  return 0;
}
