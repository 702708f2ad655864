// What a parent hears of its children: waitid, resource use, groups, stops. Prints the same on any
// Linux: no numbers of processes, no times.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t heard, codes[8], count;
static void on_signal(int number) { heard = number; }
static void on_child(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  if (count < 8) codes[count++] = info->si_code;
}
static void nap(int milliseconds) {
  struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  while (nanosleep(&t, &t) < 0 && errno == EINTR) {
  }
}

// A child that sleeps until a signal ends it; with `handler`, USR1 makes it exit with 7.
static pid_t sleeper(int handler) {
  int ends[2];
  if (pipe(ends)) exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    sigset_t usr1, none;
    sigemptyset(&none);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, 0);
    if (handler) signal(SIGUSR1, on_signal);
    if (write(ends[1], "x", 1) != 1) _exit(1);
    while (heard != SIGUSR1) sigsuspend(&none);
    _exit(7);
  }
  char byte;
  if (read(ends[0], &byte, 1) != 1) exit(1);
  close(ends[0]);
  close(ends[1]);
  return pid;
}

static void show(const char* what, int result, const siginfo_t* info, pid_t pid) {
  printf("%s: %d", what, result);
  if (result < 0)
    printf(" %s\n", strerrorname_np(errno));
  else
    printf(" signo %d code %d status %d %s\n", info->si_signo, info->si_code, info->si_status,
           info->si_pid == pid ? "it"
           : info->si_pid == 0 ? "nobody"
                               : "another");
}
static void wait_for(const char* what, idtype_t type, id_t id, int options, pid_t pid) {
  siginfo_t info;
  memset(&info, 0x55, sizeof info);
  const int result = waitid(type, id, &info, options);
  show(what, result, &info, pid);
}

static void ends(void) {
  wait_for("no child", P_ALL, 0, WEXITED, 0);
  const pid_t pid = sleeper(1);
  wait_for("nothing yet", P_PID, (id_t)pid, WEXITED | WNOHANG, pid);
  wait_for("not one that ended", P_PID, (id_t)pid, WSTOPPED | WNOHANG, pid);
  kill(pid, SIGUSR1);
  wait_for("exits", P_PID, (id_t)pid, WEXITED | WNOWAIT, pid);
  wait_for("no stop of a zombie", P_PID, (id_t)pid, WSTOPPED | WNOHANG, pid);
  wait_for("again", P_ALL, 0, WEXITED, pid);
  wait_for("gone", P_PID, (id_t)pid, WEXITED, pid);
  const pid_t other = sleeper(0);
  kill(other, SIGKILL);
  wait_for("killed", P_PGID, (id_t)getpgrp(), WEXITED, other);
  wait_for("no options", P_ALL, 0, WNOHANG, 0);
  wait_for("bad options", P_ALL, 0, WEXITED | 0x4000, 0);
  wait_for("bad type", (idtype_t)9, 0, WEXITED, 0);
  wait_for("bad number", P_PID, 0, WEXITED, 0);
}

static void stops(void) {
  const pid_t pid = sleeper(1);
  int status = 0;
  kill(pid, SIGSTOP);
  printf("stopped: %d", waitpid(pid, &status, WUNTRACED) == pid);
  printf(" %d %d", WIFSTOPPED(status), WSTOPSIG(status));
  printf(" once: %d\n", waitpid(pid, &status, WUNTRACED | WNOHANG));
  kill(pid, SIGUSR1);
  nap(30);
  printf("waits while stopped: %d\n", waitpid(pid, &status, WNOHANG));
  kill(pid, SIGCONT);
  wait_for("ends", P_PID, (id_t)pid, WEXITED | WSTOPPED, pid);

  const pid_t self = fork();
  if (self == 0) {
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, 0);
    for (int i = 0, got; i < 2; ++i) {
      if (i == 0)
        kill(getpid(), SIGSTOP);
      else
        raise(SIGSTOP);
      sigwait(&usr1, &got);
    }
    _exit(5);
  }
  for (int i = 0; i < 2; ++i) {
    wait_for("stops itself", P_PID, (id_t)self, WSTOPPED | WEXITED, self);
    kill(self, SIGCONT);
    wait_for("goes on", P_PID, (id_t)self, WCONTINUED | WEXITED, self);
    wait_for("once", P_PID, (id_t)self, WCONTINUED | WNOHANG, self);
    kill(self, SIGUSR1);
  }
  wait_for("ends", P_PID, (id_t)self, WEXITED, self);

  const pid_t killed = sleeper(0);
  kill(killed, SIGSTOP);
  wait_for("stays stopped", P_PID, (id_t)killed, WSTOPPED | WNOWAIT, killed);
  wait_for("stays stopped", P_PID, (id_t)killed, WSTOPPED, killed);
  kill(killed, SIGTERM);
  nap(20);
  wait_for("still stopped", P_PID, (id_t)killed, WEXITED | WNOHANG, killed);
  kill(killed, SIGKILL);
  wait_for("killed while stopped", P_PID, (id_t)killed, WEXITED, killed);
}

// SIGTSTP by its handler, its default action in a group of its own, and in an orphaned group.
static void keyboard(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    signal(SIGTSTP, on_signal);
    kill(0, SIGTSTP);
    if (heard != SIGTSTP) _exit(1);
    signal(SIGTSTP, SIG_DFL);
    signal(SIGCONT, on_signal);
    kill(0, SIGTSTP);
    _exit(heard == SIGCONT ? 6 : 2);
  }
  wait_for("stops by SIGTSTP", P_PID, (id_t)pid, WSTOPPED | WEXITED, pid);
  kill(-pid, SIGCONT);
  wait_for("its handler", P_PGID, (id_t)pid, WEXITED, pid);
  const pid_t leader = fork();
  if (leader == 0) {
    setsid();
    signal(SIGTTIN, SIG_DFL);
    kill(getpid(), SIGTTIN);
    _exit(getsid(0) == getpid() && getpgrp() == getpid() ? 3 : 4);
  }
  wait_for("an orphan does not stop", P_PID, (id_t)leader, WSTOPPED | WEXITED, leader);
}

static void groups(void) {
  pid_t pids[3];
  for (int i = 0; i < 3; ++i) {
    pids[i] = sleeper(1);
    if (setpgid(pids[i], i == 2 ? 0 : pids[0])) perror("setpgid");
  }
  printf("groups: %d %d %d\n", getpgid(pids[1]) == pids[0], getpgid(pids[2]) == pids[2],
         getpgid(0) == getpgrp());
  printf("errors: %d", setpgid(pids[1], getpid() + 100000) == -1 && errno == EPERM);
  printf(" %d", setpgid(1, 0) == -1 && errno == ESRCH);
  printf(" %d", setpgid(0, -1) == -1 && errno == EINVAL);
  printf(" %d\n", kill(-(getpid() + 100000), 0) == -1 && errno == ESRCH);
  kill(-pids[0], SIGUSR1);
  int status[2] = {0, 0}, known = 0;
  for (int i = 0; i < 2; ++i) {
    const pid_t pid = waitpid(-pids[0], &status[i], 0);
    known += pid == pids[0] || pid == pids[1];
  }
  printf("group ends: %d %d %d", known, WEXITSTATUS(status[0]), WEXITSTATUS(status[1]));
  printf(" %d\n", waitpid(-pids[0], status, 0) == -1 && errno == ECHILD);
  printf("the other: %d", waitpid(pids[2], status, WNOHANG));
  kill(pids[2], SIGUSR1);
  printf(" %d", waitpid(pids[2], status, 0) == pids[2]);
  printf(" %d\n", WEXITSTATUS(status[0]));
}

// A group whose last tie to its session ends, and that is stopped, is hung up.
static void orphans(void) {
  int ends[2];
  if (pipe(ends)) exit(1);
  const pid_t middle = fork();
  if (middle == 0) {
    const pid_t pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      signal(SIGHUP, on_signal);
      signal(SIGCONT, SIG_DFL);
      raise(SIGSTOP);
      const char got = heard == SIGHUP ? 'h' : 'n';
      _exit(write(ends[1], &got, 1) != 1);
    }
    int status;
    _exit(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) ? 0 : 1);
  }
  close(ends[1]);
  char got = '-';
  if (read(ends[0], &got, 1) < 0) perror("read");
  int status;
  waitpid(middle, &status, 0);
  printf("orphan: %c %d\n", got, WEXITSTATUS(status));
  close(ends[0]);
}

static void signals_of_children(int flags) {
  struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | flags};
  sigaction(SIGCHLD, &action, 0);
  count = 0;
  const pid_t pid = sleeper(1);
  const int orders[] = {SIGSTOP, SIGCONT, SIGUSR1}, events[] = {WSTOPPED, WCONTINUED, WEXITED};
  for (int i = 0; i < 3; ++i) {
    siginfo_t info;
    kill(pid, orders[i]);
    while (waitid(P_PID, (id_t)pid, &info, events[i]) < 0 && errno == EINTR) {
    }
    for (int j = 0; j < 200 && count <= i && !flags; ++j) nap(1);
  }
  for (int j = 0; j < 200 && count == 0; ++j) nap(1);
  printf("SIGCHLD:");
  for (int i = 0; i < count; ++i) printf(" %d", (int)codes[i]);
  printf("\n");
  signal(SIGCHLD, SIG_DFL);
}

static void forgotten(void) {
  signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < 3; ++i)
    if (fork() == 0) _exit(i);
  int status;
  printf("ignored: %d", wait(&status) == -1 && errno == ECHILD);
  signal(SIGCHLD, SIG_DFL);
  const pid_t pid = fork();
  if (pid == 0) _exit(9);
  printf(" %d", wait(&status) == pid);
  printf(" %d\n", WEXITSTATUS(status));
}

// A record lock is its process's: a child meets it at a file that it inherited.
static void locks(void) {
  char name[] = "lock-XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
  printf("locks: %d", fcntl(fd, F_SETLK, &lock));
  for (int i = 0; i < 2; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      const int is_held = fcntl(fd, F_SETLK, &lock) == -1 && (errno == EAGAIN || errno == EACCES);
      struct flock other = lock;
      const int is_seen = fcntl(fd, F_GETLK, &other) == 0 && other.l_type == F_WRLCK;
      lock.l_start = 20;
      _exit(is_held + 2 * is_seen + 4 * (fcntl(fd, F_SETLK, &lock) == 0));
    }
    int status;
    waitpid(pid, &status, 0);
    printf(" %d", WEXITSTATUS(status));
  }
  printf("\n");
  close(fd);
}

static long microseconds(const struct rusage* used) {
  return (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000L + used->ru_utime.tv_usec +
         used->ru_stime.tv_usec;
}
static void compute(long of_time) {
  struct rusage used;
  do {
    for (volatile int i = 0; i < 1000; ++i) {
    }
    getrusage(RUSAGE_SELF, &used);
  } while (microseconds(&used) < of_time);
}

static void resources(void) {
  struct rusage before, used, all;
  getrusage(RUSAGE_CHILDREN, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    const pid_t inner = fork();
    if (inner == 0) {
      compute(40000);
      _exit(0);
    }
    waitpid(inner, 0, 0);
    compute(30000);
    _exit(0);
  }
  siginfo_t info;
  waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
  getrusage(RUSAGE_CHILDREN, &all);
  printf("resources: %d", microseconds(&all) == microseconds(&before));
  int status;
  memset(&used, 0, sizeof used);
  wait4(pid, &status, 0, &used);
  getrusage(RUSAGE_CHILDREN, &all);
  printf(" %d", microseconds(&used) >= 70000 && microseconds(&used) < 5000000);
  printf(" %d", microseconds(&all) - microseconds(&before) >= 70000);
  printf(" %d", used.ru_maxrss > 0 && all.ru_maxrss >= used.ru_maxrss);
  struct tms times_of;
  times(&times_of);
  printf(" %d\n", (times_of.tms_cutime + times_of.tms_cstime) * 1000 / sysconf(_SC_CLK_TCK) >= 60);
}

int main(void) {
  setvbuf(stdout, 0, _IOLBF, 0);
  ends();
  stops();
  keyboard();
  groups();
  orphans();
  signals_of_children(0);
  signals_of_children(SA_NOCLDSTOP);
  forgotten();
  locks();
  resources();
  return 0;
}
