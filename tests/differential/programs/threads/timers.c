// cores: 4
// Timers on all clocks, and sleeping on them.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t rung[65];
static volatile siginfo_t last;
static void on_signal(int number, siginfo_t* info, void* unused) {
  (void)unused;
  memcpy((void*)&last, info, sizeof last);
  rung[number]++;
}

static void handle(int number) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
  sigaction(number, &action, NULL);
}
static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static void work_until(int number, int times) {
  volatile double x = 1;
  const double begin = seconds(CLOCK_MONOTONIC);
  while (rung[number] < times && seconds(CLOCK_MONOTONIC) - begin < 60)
    for (int i = 0; i < 1000; i++) x = x * 1.0000001;
}

static void interval_timers(void) {
  static const struct {
    int which, number;
  } kTimers[] = {{ITIMER_REAL, SIGALRM}, {ITIMER_VIRTUAL, SIGVTALRM}, {ITIMER_PROF, SIGPROF}};
  for (int i = 0; i < 3; i++) {
    const struct itimerval every = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};
    struct itimerval now;
    handle(kTimers[i].number);
    const int set = setitimer(kTimers[i].which, &every, NULL);
    work_until(kTimers[i].number, 3);
    const int got = getitimer(kTimers[i].which, &now);
    printf("timer %d: %d %d, rang %d, interval %ld, armed %d\n", i, set, got,
           rung[kTimers[i].number] >= 3, (long)now.it_interval.tv_usec,
           now.it_value.tv_usec > 0 && now.it_value.tv_usec <= 10000);
    printf("off: %d", setitimer(kTimers[i].which, &never, &now));
    getitimer(kTimers[i].which, &now);
    printf(", left %ld\n", (long)(now.it_value.tv_sec + now.it_value.tv_usec));
  }
  struct itimerval wrong = {{0, 0}, {0, 1000000}};
  printf("which 3: %d, microseconds: %d\n", setitimer((__itimer_which_t)3, &wrong, NULL),
         setitimer(ITIMER_REAL, &wrong, NULL));
  // Sleeping takes no processor time.
  const struct itimerval once = {{0, 0}, {0, 40000}}, never = {{0, 0}, {0, 0}};
  rung[SIGVTALRM] = 0;
  setitimer(ITIMER_VIRTUAL, &once, NULL);
  usleep(100000);
  printf("asleep: %d\n", rung[SIGVTALRM]);
  setitimer(ITIMER_VIRTUAL, &never, NULL);
}

static void made_timers(void) {
  static const clockid_t kClocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
                                      CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
  handle(SIGRTMIN + 1);
  for (int i = 0; i < 5; i++) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    event.sigev_value.sival_int = 40 + i;
    rung[SIGRTMIN + 1] = 0;
    printf("clock %d: create %d", (int)kClocks[i], timer_create(kClocks[i], &event, &timer));
    const struct itimerspec once = {{0, 0}, {0, 5000000}};
    struct itimerspec now;
    printf(", set %d", timer_settime(timer, 0, &once, NULL));
    work_until(SIGRTMIN + 1, 1);
    printf(", get %d", timer_gettime(timer, &now));
    printf(", left %ld, code %d, value %d, overruns %d", (long)now.it_value.tv_nsec, last.si_code,
           last.si_value.sival_int, timer_getoverrun(timer));
    printf(", delete %d\n", timer_delete(timer));
  }
  timer_t timer;
  errno = 0;
  const int coarse = timer_create(CLOCK_MONOTONIC_COARSE, NULL, &timer);
  printf("coarse: %d, errno %d\n", coarse, errno);
  errno = 0;
  const int none = timer_create(77, NULL, &timer);
  printf("no clock: %d, errno %d\n", none, errno);
}

// While its signal is blocked a timer counts how often it would have rung.
static void overruns(void) {
  sigset_t set;
  timer_t timer;
  siginfo_t info;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2};
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN + 2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  const struct itimerspec every = {{0, 2000000}, {0, 2000000}};
  timer_settime(timer, 0, &every, NULL);
  usleep(100000);
  const int got = sigwaitinfo(&set, &info);
  printf("waited for %d, code %d, more than once %d, the same %d\n", got - SIGRTMIN, info.si_code,
         info.si_overrun > 5, info.si_overrun == timer_getoverrun(timer));
  timer_delete(timer);
}

static volatile int told;
static void tell(union sigval value) { told = value.sival_int; }

static void notification(void) {
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD};
  event.sigev_notify_function = tell;
  event.sigev_value.sival_int = 123;
  printf("thread: create %d", timer_create(CLOCK_MONOTONIC, &event, &timer));
  const struct itimerspec once = {{0, 0}, {0, 1000000}};
  timer_settime(timer, 0, &once, NULL);
  while (told == 0) usleep(1000);
  printf(", told %d\n", told);
  timer_delete(timer);

  struct sigevent silent = {.sigev_notify = SIGEV_NONE};
  struct itimerspec now, far = {{0, 0}, {1000, 0}};
  timer_create(CLOCK_MONOTONIC, &silent, &timer);
  timer_settime(timer, 0, &far, NULL);
  timer_gettime(timer, &now);
  printf("silent: %d\n", now.it_value.tv_sec >= 990);
  clock_gettime(CLOCK_MONOTONIC, &far.it_value);
  far.it_value.tv_sec += 500;
  printf("absolute: %d", timer_settime(timer, TIMER_ABSTIME, &far, &now));
  printf(", before %d", now.it_value.tv_sec >= 980);
  timer_gettime(timer, &now);
  printf(", now %d\n", now.it_value.tv_sec >= 490 && now.it_value.tv_sec <= 500);
  timer_delete(timer);
}

static volatile int busy = 1;
static void* work(void* unused) {
  volatile double x = 1;
  while (busy) x = x * 1.0000001;
  return unused;
}

static void sleeping(void) {
  static const clockid_t kClocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI};
  for (int i = 0; i < 4; i++) {
    struct timespec t = {0, 3000000};
    const double begin = seconds(CLOCK_MONOTONIC);
    const int relative = clock_nanosleep(kClocks[i], 0, &t, NULL);
    clock_gettime(kClocks[i], &t);
    t.tv_sec--;
    const int past = clock_nanosleep(kClocks[i], TIMER_ABSTIME, &t, NULL);
    printf("clock %d: %d %d %d\n", (int)kClocks[i], relative, past,
           seconds(CLOCK_MONOTONIC) - begin >= 0.003);
  }
  struct timespec t = {0, 20000000};
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  const double begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
  const int slept = clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &t, NULL);
  printf("processor time: %d %d\n", slept, seconds(CLOCK_PROCESS_CPUTIME_ID) - begin >= 0.02);
  busy = 0;
  pthread_join(thread, NULL);
  printf("raw %d", syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC_RAW, 0, &t, NULL) < 0 ? errno : 0);
  printf(", none %d\n", clock_nanosleep(55, 0, &t, NULL));
}

static void clocks(void) {
  clockid_t clock;
  struct timespec t;
  printf("of the process: %d", clock_getcpuclockid(0, &clock));
  printf(" %d", clock_gettime(clock, &t));
  printf(", of the thread: %d", pthread_getcpuclockid(pthread_self(), &clock));
  printf(" %d\n", clock_gettime(clock, &t));
}

int main(void) {
  interval_timers();
  made_timers();
  overruns();
  notification();
  sleeping();
  clocks();
  return 0;
}
