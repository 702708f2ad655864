// Signals among threads, cancellation, pipes between threads, and exit from a thread.
// cores: 8
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int got, ready, awake, cleaned, stop;
static pthread_t who;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static __thread sigjmp_buf back;

static void handler(int signal) {
  who = pthread_self();
  got = signal;
}
static void fault(int signal) { siglongjmp(back, signal); }
static void clean(void* argument) { cleaned += (int)(intptr_t)argument; }

static void* spin(void* argument) {
  ready = 1;
  unsigned long n = 0;
  while (!got) ++n;
  return argument;
}
static void* sleep_long(void* argument) {
  ready = 1;
  const struct timespec t = {.tv_sec = 1000};
  struct timespec left = {0, 0};
  const int result = nanosleep(&t, &left);
  awake = 1;
  return (void*)(intptr_t)(result == -1 && errno == EINTR && left.tv_sec > 900 ? 1 : 0 * (intptr_t)argument);
}
static void* wait_cancelled(void* argument) {
  pthread_cleanup_push(clean, argument);
  pthread_mutex_lock(&mutex);
  ready = 1;
  pthread_cleanup_push((void (*)(void*))pthread_mutex_unlock, &mutex);
  for (;;) pthread_cond_wait(&condition, &mutex);
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return NULL;
}
static void* crash(void* argument) {
  const int signal = sigsetjmp(back, 1);
  if (signal == 0) *(volatile int*)(16 * (1 + (intptr_t)argument)) = 1;
  return (void*)(intptr_t)signal;
}
static int fds[2], other[2];
static void* echo(void* argument) {
  char c;
  while (read(fds[0], &c, 1) == 1) {
    c ^= 0x20;
    if (write(other[1], &c, 1) != 1) break;
  }
  close(other[1]);
  return argument;
}
static void* wait_signal(void* argument) {
  int number = 0;
  sigwait(argument, &number);
  return (void*)(intptr_t)number;
}
static void* end_all(void* argument) {
  printf("exit from a thread\n");
  exit((int)(intptr_t)argument);
}
static void await_ready(void) {
  while (!ready) sched_yield();
  ready = 0;
}

int main(void) {
  pthread_t t[7];
  void* result;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, NULL);

  pthread_create(&t[0], NULL, spin, NULL);
  await_ready();
  pthread_kill(t[0], SIGUSR1);
  pthread_join(t[0], NULL);
  printf("a busy thread got %d itself %d\n", got, pthread_equal(who, t[0]) != 0);
  got = 0;
  pthread_create(&t[0], NULL, sleep_long, NULL);
  await_ready();
  while (!awake) {  // a signal may come before it sleeps
    for (int i = 0; i < 100; ++i) sched_yield();
    pthread_kill(t[0], SIGUSR1);
  }
  pthread_join(t[0], &result);
  printf("a sleeping thread got %d, interrupted %ld\n", got, (long)(intptr_t)result);

  pthread_create(&t[0], NULL, wait_cancelled, (void*)5);
  await_ready();
  pthread_cancel(t[0]);
  pthread_join(t[0], &result);
  printf("cancelled %d cleaned %d\n", result == PTHREAD_CANCELED, cleaned);

  signal(SIGSEGV, fault);
  for (int i = 0; i < 7; ++i) pthread_create(&t[i], NULL, crash, (void*)(intptr_t)i);
  for (int i = 0; i < 7; ++i) {
    pthread_join(t[i], &result);
    printf("crash %ld ", (long)(intptr_t)result);
  }
  puts("");

  if (pipe(fds) || pipe(other)) return 1;
  pthread_create(&t[0], NULL, echo, NULL);
  for (const char* c = "hello pipes"; *c; ++c) {
    char answer;
    if (write(fds[1], c, 1) != 1 || read(other[0], &answer, 1) != 1) return 2;
    putchar(answer);
  }
  close(fds[1]);
  char end;
  printf(" end %zd\n", read(other[0], &end, 1));
  pthread_join(t[0], NULL);

  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_create(&t[0], NULL, wait_signal, &set);
  kill(getpid(), SIGUSR2);
  pthread_join(t[0], &result);
  printf("sigwait %ld\n", (long)(intptr_t)result);
  fflush(stdout);
  pthread_create(&t[0], NULL, end_all, (void*)3);
  for (;;) pause();
}
