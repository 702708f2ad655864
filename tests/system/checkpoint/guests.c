// Programs that have something in each place that a checkpoint must keep; the first argument chooses.
// Each prints as it goes, so that lost or repeated work shows.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ x >> 31;
}
static uint64_t work(uint64_t x, int rounds) {
  while (rounds-- > 0) x = mix(x + (uint64_t)rounds);
  return x;
}
#define CHECK(condition) \
  if (!(condition)) printf("line %d: %s, errno %d\n", __LINE__, #condition, errno), exit(9)

// --- files: reading, appending, writing in the middle, duplicates, a renamed one, a folder, a lock
static int files(const char* in) {
  int from = open(in, O_RDONLY), log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
  int table = open("table", O_RDWR | O_CREAT | O_TRUNC, 0600);
  int renamed = open("before", O_WRONLY | O_CREAT, 0644), again = dup(table);
  CHECK(from >= 0 && log >= 0 && table >= 0 && renamed >= 0 && again >= 0);
  CHECK(rename("before", "after") == 0);
  CHECK(fcntl(log, F_SETFD, FD_CLOEXEC) == 0);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 8, .l_len = 16};
  int other = open("table", O_RDWR);
  CHECK(fcntl(table, F_SETLK, &lock) == 0);
  int folder = open(".", O_RDONLY | O_DIRECTORY);
  CHECK(folder >= 0);
  uint64_t sum = 1;
  char piece[7];
  for (int turn = 0; turn < 60; ++turn) {
    ssize_t n = read(from, piece, sizeof piece);
    for (ssize_t i = 0; i < n; ++i) sum = mix(sum + (uint8_t)piece[i]);
    sum = work(sum, 400);
    char line[64];
    int size = snprintf(line, sizeof line, "%d %016lx\n", turn, (unsigned long)sum);
    CHECK(write(log, line, (size_t)size) == size);
    CHECK(write(renamed, line, 1) == 1);
    CHECK(pwrite(table, &sum, 8, (off_t)(sum % 50 * 8)) == 8);
    CHECK(lseek(again, 3, SEEK_CUR) == lseek(table, 0, SEEK_CUR));
    CHECK(fcntl(log, F_GETFD) == FD_CLOEXEC);
    lock = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET};
    CHECK(fcntl(other, F_OFD_GETLK, &lock) == 0);
    CHECK(lock.l_type == F_WRLCK && lock.l_pid == getpid());
    CHECK(lock.l_start == 8 && lock.l_len == 16);
    if (turn % 10 == 0) printf("%s", line), fflush(stdout);
  }
  struct stat s;
  CHECK(fstat(table, &s) == 0 && fchdir(folder) == 0);
  printf("table %ld, position %ld\n", (long)s.st_size, (long)lseek(table, 0, SEEK_CUR));
  return (int)(sum % 100);
}

// --- pipes: bytes on their way, ends that are closed, threads that wait for either
static int pipes_fds[2];
static void* feed(void* argument) {
  uint64_t x = 5;
  for (int i = 0; i < 300; ++i) {
    x = work(x, 30);
    CHECK(write(pipes_fds[1], &x, 8) == 8);
  }
  close(pipes_fds[1]);
  return argument;
}
static int pipes(void) {
  int kept[2], closed[2];
  CHECK(pipe(kept) == 0 && pipe2(closed, O_NONBLOCK) == 0 && pipe(pipes_fds) == 0);
  for (int i = 0; i < 3000; ++i) CHECK(write(kept[1], &i, sizeof i) == sizeof i);
  CHECK(write(closed[1], "last words", 10) == 10);
  close(closed[1]);
  pthread_t t;
  const int alone = pthread_create(&t, NULL, feed, NULL) != 0;
  if (alone) feed(NULL);  // a private core; the pipe takes it all
  uint64_t sum = 0, x;
  ssize_t n;
  while ((n = read(pipes_fds[0], &x, 8)) == 8) {
    sum = work(sum + x, 60);
    int k;
    CHECK(read(kept[0], &k, sizeof k) == sizeof k);
    sum += (uint64_t)k;
  }
  char text[20] = "";
  CHECK(n == 0 && read(closed[0], text, sizeof text) == 10);
  CHECK(read(closed[0], text, 1) == 0);
  if (!alone) pthread_join(t, NULL);
  struct pollfd poll_kept = {.fd = kept[0], .events = POLLIN};
  CHECK(poll(&poll_kept, 1, 0) == 1);
  printf("%s %016lx\n", text, (unsigned long)sum);
  return 0;
}

// --- threads: mutexes, conditions, barriers, joins; a tid and a name of one's own
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int turn, thread_count = 5;
static __thread uint64_t own;
static uint64_t shared_sum;
static void* take_turns(void* argument) {
  const int me = (int)(intptr_t)argument;
  own = (uint64_t)me;
  for (int round = 0; round < 8; ++round) {
    own = work(own, 200 * (me + 1));
    pthread_mutex_lock(&mutex);
    while (turn != me) pthread_cond_wait(&turn_changed, &mutex);
    shared_sum = mix(shared_sum + own);
    turn = (turn + 1) % thread_count;
    if (me == 0 && round % 2 == 0) printf("round %d %016lx\n", round, (unsigned long)shared_sum), fflush(stdout);
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&barrier);
  }
  return (void*)(uintptr_t)own;
}
static int threads(void) {
  pthread_t t[8];
  pthread_barrier_init(&barrier, NULL, (unsigned)thread_count);
  for (int i = 0; i < thread_count; ++i) CHECK(pthread_create(&t[i], NULL, take_turns, (void*)(intptr_t)i) == 0);
  uint64_t sum = 0;
  for (int i = 0; i < thread_count; ++i) {
    void* result;
    pthread_join(t[i], &result);
    sum = mix(sum + (uint64_t)(uintptr_t)result);
  }
  printf("threads %016lx %016lx\n", (unsigned long)sum, (unsigned long)shared_sum);
  return 3;
}

// --- signals: handlers for faults on a stack of their own, blocked and queued ones, masks
static volatile uint64_t handled, faults;
static char* guarded;
static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)context;
  CHECK(signal == SIGSEGV && (char*)info->si_addr == guarded);
  ++faults;
  CHECK(mprotect(guarded, 4096, PROT_READ | PROT_WRITE) == 0);
}
static void on_queued(int signal, siginfo_t* info, void* context) {
  (void)context;
  handled = mix(handled + (uint64_t)signal * 1000 + (uint64_t)info->si_value.sival_int);
}
static int signals(void) {
  static char stack[16384];
  const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  CHECK(sigaltstack(&alternate, NULL) == 0);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  action.sa_sigaction = on_queued;
  CHECK(sigaction(SIGRTMIN + 1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
  guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(guarded != MAP_FAILED);
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN + 1);
  uint64_t x = 3;
  for (int round = 0; round < 20; ++round) {
    CHECK(sigprocmask(SIG_BLOCK, &set, &old) == 0);
    for (int i = 0; i < 3; ++i) CHECK(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = round * 3 + i}) == 0);
    x = work(x, 300);
    raise(SIGUSR2);
    x = work(x, 300);
    const uint64_t before = handled;
    CHECK(sigprocmask(SIG_SETMASK, &old, NULL) == 0);
    CHECK(handled != before);
    *guarded = (char)round;  // the handler opens the page
    x += (uint64_t)*guarded;
    CHECK(mprotect(guarded, 4096, PROT_NONE) == 0);
    if (round % 5 == 0) printf("round %d: %016lx %lu\n", round, (unsigned long)handled, (unsigned long)faults), fflush(stdout);
  }
  printf("signals %016lx %016lx %lu\n", (unsigned long)x, (unsigned long)handled, (unsigned long)faults);
  return 0;
}

// --- memory: heap, mappings with holes, rights, random bytes that repeat
static int memory(void) {
  uint64_t sum = 1;
  char* maps[16];
  for (int i = 0; i < 16; ++i) {
    maps[i] = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(maps[i] != MAP_FAILED);
  }
  void* blocks[64] = {0};
  for (int turn = 0; turn < 120; ++turn) {
    sum = work(sum, 100);
    const int i = (int)(sum % 16), b = (int)(sum >> 8) & 63;
    if (sum & 0x10000) {
      CHECK(munmap(maps[i] + 16384, 16384) == 0);
      char* p = mmap(maps[i] + 16384, 16384, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      CHECK(p == maps[i] + 16384 && p[100] == 0);
    }
    maps[i][sum >> 20 & 0xffff] ^= (char)sum;
    CHECK(mprotect(maps[i] + 4096, 4096, PROT_READ) == 0);
    CHECK(mprotect(maps[i] + 4096, 4096, PROT_READ | PROT_WRITE) == 0);
    free(blocks[b]);
    blocks[b] = malloc(sum >> 40 & 0x3fff);
    if (blocks[b]) memset(blocks[b], (int)sum, (sum >> 40 & 0x3fff) / 2);
    uint64_t random;
    CHECK(getrandom(&random, sizeof random, 0) == sizeof random);
    sum += random;
    if (turn % 30 == 0) printf("%d %016lx\n", turn, (unsigned long)sum), fflush(stdout);
  }
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 65536; k += 37) sum = mix(sum + (uint8_t)maps[i][k]);
  char cwd[100];
  CHECK(getcwd(cwd, sizeof cwd));
  printf("memory %016lx\n", (unsigned long)sum);
  return 0;
}

// --- sleep: time-outs that are running
static sem_t never;
static void* doze(void* argument) {
  const struct timespec t = {.tv_nsec = 30000000};
  for (int i = 0; i < 3; ++i) nanosleep(&t, NULL);
  return argument;
}
static int sleeping(void) {
  pthread_t t;
  sem_init(&never, 0, 0);
  CHECK(pthread_create(&t, NULL, doze, NULL) == 0);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  const uint64_t x = work(1, 30000);
  CHECK(sem_timedwait(&never, &until) < 0 && errno == ETIMEDOUT);
  pthread_join(t, NULL);
  printf("slept %016lx\n", (unsigned long)x);
  return 0;
}

// --- locks that the kernel hands over, one of them left by a thread that ended; limits
static pthread_mutex_t handed;
static void* hold_and_wait(void* argument) {
  uint64_t* sum = argument;
  for (int round = 0; round < 20; ++round) {
    const int result = pthread_mutex_lock(&handed);
    if (result == EOWNERDEAD) CHECK(pthread_mutex_consistent(&handed) == 0);
    *sum += work((uint64_t)round, 400);
    CHECK(pthread_mutex_unlock(&handed) == 0);
  }
  const int last = pthread_mutex_lock(&handed);  // and ends with it
  CHECK(last == 0 || last == EOWNERDEAD);
  if (last == EOWNERDEAD) CHECK(pthread_mutex_consistent(&handed) == 0);
  return NULL;
}
static int locks(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  CHECK(pthread_mutex_init(&handed, &attributes) == 0);
  struct rlimit limit = {50, 60};
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  pthread_t t[4];
  uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&t[i], NULL, hold_and_wait, &sum) == 0);
  for (int i = 0; i < 4; ++i) pthread_join(t[i], NULL);
  CHECK(pthread_mutex_lock(&handed) == EOWNERDEAD);
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 50 && limit.rlim_max == 60);
  CHECK(dup2(0, 50) < 0 && dup2(0, 49) == 49);
  printf("locks %016lx\n", (unsigned long)sum);
  return 0;
}

// --- timers: of time and of processor time, with a signal that waits
static int timers(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGVTALRM);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  event.sigev_value.sival_int = 17;
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  const struct itimerspec at = {{0, 0}, {0, 50000000}};
  const struct itimerval used = {{0, 0}, {0, 30000}};
  CHECK(timer_settime(timer, 0, &at, NULL) == 0 && setitimer(ITIMER_VIRTUAL, &used, NULL) == 0);
  uint64_t x = work(1, 60000);
  printf("working\n");
  fflush(stdout);
  struct timespec before, after;
  CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before) == 0);
  sigset_t pending;
  do {
    work(x, 1000);
    sigpending(&pending);
  } while (!sigismember(&pending, SIGVTALRM));
  // Which of the two timers is first is the machine's matter.
  siginfo_t info;
  sigset_t user;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  CHECK(sigwaitinfo(&user, &info) == SIGUSR1 && info.si_code == SI_TIMER && info.si_value.sival_int == 17);
  CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after) == 0);
  CHECK(after.tv_sec > before.tv_sec || (after.tv_sec == before.tv_sec && after.tv_nsec >= before.tv_nsec));
  CHECK(timer_delete(timer) == 0);
  printf("timers %016lx\n", (unsigned long)x);
  return 0;
}

// --- what cannot be kept
static int deleted(void) {
  int fd = open("gone", O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && unlink("gone") == 0);
  printf("%016lx\n", (unsigned long)work(7, 100000));
  CHECK(write(fd, "x", 1) == 1);
  return 0;
}

// --- a named pipe, whose other end may be in another program
static int named_pipe(void) {
  CHECK(mkfifo("pipe", 0600) == 0);
  int fd = open("pipe", O_RDWR);
  CHECK(fd >= 0);
  printf("%016lx\n", (unsigned long)work(7, 100000));
  CHECK(write(fd, "x", 1) == 1);
  return unlink("pipe");
}

// --- input: a line at a time from standard input
static int input(void) {
  char c;
  uint64_t sum = 0;
  while (read(0, &c, 1) == 1) {
    sum = work(sum + (uint8_t)c, 50);
    if (c == '\n') printf("%016lx\n", (unsigned long)sum), fflush(stdout);
  }
  return 0;
}

// --- long: for killing
static int longer(int turns) {
  uint64_t x = 1;
  for (int i = 0; i < turns; ++i) {
    x = work(x, 30000);
    printf("%d %016lx\n", i, (unsigned long)x);
    fflush(stdout);
  }
  return 7;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "files")) return files(argv[2]);
  if (!strcmp(what, "pipes")) return pipes();
  if (!strcmp(what, "threads")) return threads();
  if (!strcmp(what, "signals")) return signals();
  if (!strcmp(what, "memory")) return memory();
  if (!strcmp(what, "sleep")) return sleeping();
  if (!strcmp(what, "locks")) return locks();
  if (!strcmp(what, "timers")) return timers();
  if (!strcmp(what, "deleted")) return deleted();
  if (!strcmp(what, "named_pipe")) return named_pipe();
  if (!strcmp(what, "input")) return input();
  if (!strcmp(what, "long")) return longer(argc > 2 ? atoi(argv[2]) : 40);
  return 99;
}
