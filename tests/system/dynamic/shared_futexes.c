// Processes that wait for each other in memory that they share. What is printed is the same in each
// run: the argument chooses the parts.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kChildren = 3, kRounds = 40 };

static struct Shared {
  pthread_mutex_t mutex, robust;
  pthread_cond_t changed;
  pthread_barrier_t barrier;
  pthread_rwlock_t rwlock;
  sem_t full, empty;
  int turn, sum, item;
  uint32_t words[8];
} * shared;

static long futex(uint32_t* word, int operation, uint32_t value, uintptr_t limit, uint32_t* other,
                  uint32_t last) {
  return syscall(SYS_futex, word, operation, value, limit, other, last);
}

static void* share(size_t size) {
  return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void set_up(void) {
  shared = share(sizeof *shared);
  pthread_mutexattr_t m;
  pthread_mutexattr_init(&m);
  pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &m);
  pthread_mutexattr_setrobust(&m, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared->robust, &m);
  pthread_condattr_t c;
  pthread_condattr_init(&c);
  pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared->changed, &c);
  pthread_barrierattr_t b;
  pthread_barrierattr_init(&b);
  pthread_barrierattr_setpshared(&b, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &b, kChildren + 1);
  pthread_rwlockattr_t w;
  pthread_rwlockattr_init(&w);
  pthread_rwlockattr_setpshared(&w, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_init(&shared->rwlock, &w);
  sem_init(&shared->full, 1, 0);
  sem_init(&shared->empty, 1, 1);
}

// A number 1 to kChildren in children, 0 in the parent.
static pid_t children[kChildren + 1];
static int split(int count) {
  fflush(stdout);
  for (int i = 1; i <= count; ++i)
    if ((children[i] = fork()) == 0) return i;
  return 0;
}

// Of all children, in the order of their beginning.
static void join(int count) {
  for (int i = 1; i <= count; ++i) {
    int status = -1;
    waitpid(children[i], &status, 0);
    if (status != 0) printf("child %d: status %x\n", i, status);
  }
}

static void take_turns(void) {
  const int me = split(kChildren);
  for (int round = 0; round < kRounds; ++round) {
    pthread_mutex_lock(&shared->mutex);
    while (shared->turn != me) pthread_cond_wait(&shared->changed, &shared->mutex);
    shared->sum = shared->sum * 3 + me;
    shared->turn = (me + 1) % (kChildren + 1);
    pthread_cond_broadcast(&shared->changed);
    pthread_mutex_unlock(&shared->mutex);
  }
  if (me) _exit(0);
  join(kChildren);
  printf("turns: %d %d\n", shared->turn, shared->sum);
}

static void contend(void) {
  shared->sum = 0;
  const int me = split(kChildren);
  for (int i = 0; i < 200; ++i) {
    pthread_mutex_lock(&shared->mutex);
    const int sum = shared->sum;
    if (i % 16 == 0) sched_yield();
    shared->sum = sum + 1;
    pthread_mutex_unlock(&shared->mutex);
    pthread_rwlock_wrlock(&shared->rwlock);
    ++shared->words[7];
    pthread_rwlock_unlock(&shared->rwlock);
    pthread_rwlock_rdlock(&shared->rwlock);
    pthread_rwlock_unlock(&shared->rwlock);
  }
  if (me) _exit(0);
  join(kChildren);
  printf("mutex: %d, rwlock: %u\n", shared->sum, shared->words[7]);
}

// Single instructions of the guest that change a word, by several processes at once.
static void count(void) {
  uint32_t* ready = &shared->words[5];
  shared->sum = *ready = 0;
  const int me = split(kChildren);
  __atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) <= kChildren) sched_yield();
  for (int i = 0; i < 1000000; ++i) __atomic_fetch_add(&shared->sum, 1, __ATOMIC_RELAXED);
  if (me) _exit(0);
  join(kChildren);
  printf("counted: %d\n", shared->sum);
}

static void hand_over_items(void) {
  if (split(1)) {
    for (int i = 1; i <= kRounds; ++i) {
      sem_wait(&shared->empty);
      shared->item = i * i;
      sem_post(&shared->full);
    }
    _exit(0);
  }
  int sum = 0;
  for (int i = 0; i < kRounds; ++i) {
    sem_wait(&shared->full);
    sum += shared->item;
    sem_post(&shared->empty);
  }
  join(1);
  printf("semaphores: %d\n", sum);
}

static void meet(void) {
  int serial = 0;
  shared->sum = 0;
  const int me = split(kChildren);
  for (int i = 0; i < 10; ++i) {
    __atomic_fetch_add(&shared->sum, 1, __ATOMIC_SEQ_CST);
    serial += pthread_barrier_wait(&shared->barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    if (shared->sum != (i + 1) * (kChildren + 1)) printf("too early\n"), fflush(stdout);
    pthread_barrier_wait(&shared->barrier);
  }
  __atomic_fetch_add(&shared->words[6], serial, __ATOMIC_SEQ_CST);
  if (me) _exit(0);
  join(kChildren);
  printf("barrier: %d %u\n", shared->sum, shared->words[6]);
}

static void open_by_name(void) {
  char name[64];
  snprintf(name, sizeof name, "/gpusim-test-%d-%ld", getpid(), (long)time(NULL));
  sem_t* there = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
  sem_t* back = there == SEM_FAILED ? there : sem_open(name, 0);
  printf("sem_open: %s\n", there != SEM_FAILED && there == back ? "same" : strerror(errno));
  if (there == SEM_FAILED) return;
  if (split(1)) {
    sem_wait(there);
    _exit(7);
  }
  struct timespec a_little = {0, 20000000};
  nanosleep(&a_little, NULL);
  sem_post(there);
  int status = 0;
  waitpid(children[1], &status, 0);
  printf("posted: %d, unlinked: %d\n", WEXITSTATUS(status), sem_unlink(name));
}

static struct timespec in_ms(int ms) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec += ms * 1000000L;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}

static void on_signal(int number) { (void)number; }

static void give_up(void) {
  struct timespec soon = in_ms(10);
  const int waited = sem_timedwait(&shared->full, &soon);
  printf("sem_timedwait: %d %s\n", waited, strerror(errno));
  pthread_mutex_lock(&shared->mutex);
  soon = in_ms(10);
  printf("cond: %s\n", strerror(pthread_cond_timedwait(&shared->changed, &shared->mutex, &soon)));
  if (split(1)) {
    soon = in_ms(10);
    _exit(pthread_mutex_timedlock(&shared->mutex, &soon));
  }
  int status = 0;
  waitpid(children[1], &status, 0);
  printf("mutex: %s\n", strerror(WEXITSTATUS(status)));
  pthread_mutex_unlock(&shared->mutex);

  if (split(1)) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    shared->words[0] = 1;
    _exit(sem_wait(&shared->full) == -1 && errno == EINTR ? 5 : 6);
  }
  while (!__atomic_load_n(&shared->words[0], __ATOMIC_SEQ_CST)) usleep(1000);
  while (waitpid(children[1], &status, WNOHANG) == 0) {
    kill(children[1], SIGUSR1);
    usleep(2000);
  }
  printf("interrupted: %d\n", WEXITSTATUS(status));
}

// Calls until the results sum up to `total`: waiters may come late.
static void repeat(const char* what, long total, uint32_t* word, int operation, uint32_t value,
                   uintptr_t second, uint32_t* other, uint32_t last) {
  long sum = 0;
  while (sum < total) {
    const long got = futex(word, operation, value, second, other, last);
    if (got < 0) {
      printf("%s: %s\n", what, strerror(errno));
      return;
    }
    sum += got;
    if (got == 0) usleep(1000);
  }
  printf("%s: %ld\n", what, sum);
}

static void operate(void) {
  uint32_t* w = shared->words;
  memset(w, 0, sizeof shared->words);
  int me = split(3);
  if (me) _exit(futex(&w[0], FUTEX_WAIT, 0, 0, NULL, 0) != 0);
  repeat("requeue", 3, &w[0], FUTEX_CMP_REQUEUE, 0, 3, &w[1], 0);
  repeat("wake of one", 1, &w[1], FUTEX_WAKE, 1, 0, NULL, 0);
  repeat("wake of all", 2, &w[1], FUTEX_WAKE, INT32_MAX, 0, NULL, 0);
  printf("nobody: %ld %ld\n", futex(&w[0], FUTEX_WAKE, 9, 0, NULL, 0),
         futex(&w[1], FUTEX_WAKE, 9, 0, NULL, 0));
  join(3);

  me = split(2);
  if (me) _exit(futex(&w[0], FUTEX_WAIT_BITSET, 0, 0, NULL, me) != 0);
  repeat("bit 2", 1, &w[0], FUTEX_WAKE_BITSET, 9, 0, NULL, 2);
  waitpid(children[2], NULL, 0);
  repeat("bit 1", 1, &w[0], FUTEX_WAKE_BITSET, 9, 0, NULL, 1);
  waitpid(children[1], NULL, 0);

  // w[3] += 1 in each; its waiters, too, are woken while it was less than 1000.
  me = split(2);
  if (me) _exit(futex(&w[3 - me], FUTEX_WAIT, 0, 0, NULL, 0) != 0);
  const uint32_t code = FUTEX_OP(FUTEX_OP_OR, 4, FUTEX_OP_CMP_LT, 1000);
  w[2] = 0;
  long woken = 0;
  while (woken < 2) {
    woken += futex(&w[1], FUTEX_WAKE_OP, 1, 1, &w[2], code);
    // Who comes late finds another value.
    int status;
    if (waitpid(children[1], &status, WNOHANG) > 0 && WEXITSTATUS(status) != 0) ++woken;
    usleep(1000);
  }
  printf("wake and change: %u\n", w[2]);
  waitpid(children[2], NULL, 0);
  waitpid(children[1], NULL, 0);

  const long waited = futex(&w[0], FUTEX_WAIT, 77, 0, NULL, 0);
  printf("not equal: %ld %s\n", waited, strerror(errno));
  // A private wait is not found by others.
  if (split(1)) {
    struct timespec limit = {0, 100000000};
    futex(&w[5], FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, (uintptr_t)&limit, NULL, 0);
    _exit(errno != ETIMEDOUT);
  }
  usleep(20000);
  printf("private: %ld\n", futex(&w[5], FUTEX_WAKE, 1, 0, NULL, 0));
  join(1);
}

// Two places where one file is mapped.
static void map_twice(void) {
  char path[] = "shared-XXXXXX";
  const int fd = mkstemp(path);
  unlink(path);
  if (ftruncate(fd, 8192) != 0) return;
  uint32_t* a = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  uint32_t* b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
  if (split(1)) _exit(futex(b + 1, FUTEX_WAIT, 0, 0, NULL, 0) != 0);
  repeat("another address", 1, a + 1025, FUTEX_WAKE, 1, 0, NULL, 0);
  join(1);
  close(fd);
}

// Who has a part of a file locked.
static int holder(int fd, int first, int size, const struct flock* expected) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = size};
  if (fcntl(fd, F_GETLK, &lock) != 0) return -2;
  if (expected && lock.l_type != F_UNLCK &&
      (lock.l_type != expected->l_type || lock.l_start != expected->l_start ||
       lock.l_len != expected->l_len))
    return -3;
  return lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

static void ask_for_locks(void) {
  char path[] = "locked-XXXXXX";
  const int fd = mkstemp(path);
  struct flock mine = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10};
  struct flock its = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 30, .l_len = 5};
  sem_t *locked = &shared->full, *asked = &shared->empty;
  sem_init(locked, 1, 0);
  sem_init(asked, 1, 0);
  fcntl(fd, F_SETLK, &mine);
  if (split(1)) {
    const int own = open(path, O_RDWR);
    printf("locks: %d %d", holder(own, 15, 100, &mine) == getppid(), holder(own, 0, 10, NULL));
    fflush(stdout);
    fcntl(own, F_SETLK, &its);
    sem_post(locked);
    sem_wait(asked);
    close(own);
    sem_post(locked);
    sem_wait(asked);
    _exit(0);
  }
  sem_wait(locked);
  printf(" %d", holder(fd, 0, 0, &its) == children[1]);
  sem_post(asked);
  sem_wait(locked);
  printf(" %d\n", holder(fd, 0, 0, NULL));
  sem_post(asked);
  join(1);
  close(fd);
  unlink(path);
}

struct Wait {
  uint64_t value, address;
  uint32_t flags, reserved;
};

// One that was killed while it waited takes no wake-up.
static void kill_a_waiter(void) {
  uint32_t* word = &shared->words[4];
  *word = 0;
  const int me = split(2);
  if (me == 1) _exit(futex(word, FUTEX_WAIT, 0, 0, NULL, 0) != 0);
  if (me == 2) {
    usleep(50000);
    _exit(futex(word, FUTEX_WAIT, 0, 0, NULL, 0) != 0);
  }
  usleep(20000);
  kill(children[1], SIGKILL);
  int status;
  waitpid(children[1], &status, 0);
  printf("killed: %d\n", WTERMSIG(status));
  repeat("the other", 1, word, FUTEX_WAKE, 1, 0, NULL, 0);
  waitpid(children[2], &status, 0);
  printf("ended: %d\n", WEXITSTATUS(status));
}

// A waiter of several, the second of which is woken.
static void wait_for_several(void) {
  uint32_t* w = shared->words;
  w[0] = w[1] = 0;
  if (split(1)) {
    const struct Wait waits[] = {{0, (uintptr_t)&w[0], 2, 0}, {0, (uintptr_t)&w[1], 2, 0}};
    _exit(syscall(449 /* futex_waitv */, waits, 2, 0, NULL, 0));
  }
  repeat("one of two", 1, &w[1], FUTEX_WAKE, 1, 0, NULL, 0);
  int status;
  waitpid(children[1], &status, 0);
  printf("which: %d, the other: %ld\n", WEXITSTATUS(status),
         futex(&w[0], FUTEX_WAKE, 1, 0, NULL, 0));
}

// How the owner of a lock ends, and what the next one hears.
static void* lock_and_end(void* unused) {
  (void)unused;
  pthread_mutex_lock(&shared->robust);
  sem_post(&shared->full);
  usleep(20000);
  return NULL;
}

static void lose_owners(char* self) {
  static const char* const kHow[] = {"exit", "signal", "kill", "exec", "killed while running"};
  for (int how = 0; how < 5; ++how) {
    sem_t* locked = &shared->full;
    sem_init(locked, 1, 0);
    if (split(1)) {
      pthread_mutex_lock(&shared->robust);
      sem_post(locked);
      if (how == 4)
        for (;;) shared->words[5] = shared->words[5] + 1;
      usleep(20000);  // so that the parent waits in the kernel
      if (how == 1) raise(SIGTERM);
      if (how == 2) pause();
      if (how == 3) execl(self, self, "nothing", NULL);
      _exit(0);
    }
    sem_wait(locked);
    if (how == 2 || how == 4) usleep(10000), kill(children[1], SIGKILL);
    const int heard = pthread_mutex_lock(&shared->robust);
    int status = -1;
    waitpid(children[1], &status, 0);
    printf("%s: %s, status %x, %d\n", kHow[how], strerror(heard), status,
           pthread_mutex_consistent(&shared->robust));
    pthread_mutex_unlock(&shared->robust);
  }
  pthread_t thread;
  pthread_create(&thread, NULL, lock_and_end, NULL);
  sem_wait(&shared->full);
  if (split(1)) _exit(pthread_mutex_lock(&shared->robust));
  pthread_join(thread, NULL);
  int status;
  waitpid(children[1], &status, 0);
  printf("thread: %s\n", strerror(WEXITSTATUS(status)));
}

// A thread's word that is cleared when the thread ends, which wakes another process.
static void* end_with_word(void* word) {
  syscall(SYS_set_tid_address, word);
  usleep(20000);
  syscall(SYS_exit, 0);
  return NULL;
}

static void clear_word(void) {
  uint32_t* word = &shared->words[0];
  *word = 1;
  if (split(1)) {
    pthread_t thread;
    pthread_create(&thread, NULL, end_with_word, word);
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) != 0) usleep(1000);
    usleep(20000);
    _exit(0);
  }
  while (__atomic_load_n(word, __ATOMIC_SEQ_CST) != 0) futex(word, FUTEX_WAIT, 1, 0, NULL, 0);
  printf("cleared: %u\n", *word);
  join(1);
}

static void* post(void* semaphore) {
  usleep(20000);
  sem_post(semaphore);
  return NULL;
}

// A thread waits from before the first fork on.
static void* wait_early(void* unused) {
  (void)unused;
  sem_wait(&shared->full);
  return NULL;
}

static void wait_in_threads(void) {
  sem_init(&shared->full, 1, 0);
  pthread_t waiter, poster;
  pthread_create(&waiter, NULL, wait_early, NULL);
  usleep(20000);
  if (split(1)) {
    sem_post(&shared->full);
    _exit(0);
  }
  pthread_join(waiter, NULL);
  join(1);
  sem_init(&shared->full, 1, 0);
  pthread_create(&poster, NULL, post, &shared->full);
  sem_wait(&shared->full);
  pthread_join(poster, NULL);
  printf("threads\n");
}

// Two processes that have a lock each and want the other's, and a parent that waits for them.
static void deadlock(int is_parent_in_it) {
  pthread_mutex_t* locks[] = {&shared->mutex, &shared->robust};
  pthread_mutexattr_t m;
  pthread_mutexattr_init(&m);
  pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(locks[1], &m);
  sem_t* ready = &shared->full;
  sem_init(ready, 1, 0);
  const int me = split(is_parent_in_it ? 1 : 2);
  if (me == 0 && !is_parent_in_it) {
    int status, count = 0;
    while (wait(&status) > 0) count += WIFEXITED(status) && WEXITSTATUS(status) != 0;
    printf("failed: %d\n", count);
    return;
  }
  pthread_mutex_lock(locks[me % 2]);
  sem_post(ready);
  int value = 0;
  while (value < 2) sem_getvalue(ready, &value);
  pthread_mutex_lock(locks[(me + 1) % 2]);
  _exit(0);
}

// The parent has a lock with priority inheritance when the child asks for it.
static void inherit(void) {
  shared->words[0] = getpid();
  const pid_t child = fork();
  if (child == 0) {
    const long got = futex(&shared->words[0], FUTEX_LOCK_PI, 0, 0, NULL, 0);
    printf("locked: %d %d\n", got == 0, errno == ESRCH);
    exit(0);
  }
  waitpid(child, NULL, 0);
}

int main(int argc, char** argv) {
  if (argc < 2 || !strcmp(argv[1], "nothing")) return 0;
  if (strcmp(argv[1], "deadlock")) alarm(60);
  set_up();
  if (!strcmp(argv[1], "deadlock")) {
    deadlock(argc > 2);
    return 0;
  }
  if (!strcmp(argv[1], "inherit")) {
    inherit();
    return 0;
  }
  if (!strcmp(argv[1], "count")) {
    count();
    return 0;
  }
  if (!strcmp(argv[1], "robust")) {
    lose_owners(argv[0]);
    clear_word();
    wait_for_several();
    return 0;
  }
  wait_in_threads();
  take_turns();
  contend();
  sem_init(&shared->full, 1, 0);
  hand_over_items();
  meet();
  sem_init(&shared->full, 1, 0);
  give_up();
  operate();
  map_twice();
  kill_a_waiter();
  ask_for_locks();
  if (argc > 2) open_by_name();
  return 0;
}
