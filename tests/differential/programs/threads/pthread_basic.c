// Threads: create, join, detach, thread-local storage, once, keys, names, and who they are.
// cores: 8
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread int local = 7;
static __thread char buffer[100] = "initial";
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static atomic_int initialised, destroyed, detached, sum;

static void init(void) { ++initialised; }
static void destroy(void* value) { destroyed += *(int*)value, free(value); }

static void* work(void* argument) {
  const int n = (int)(intptr_t)argument;
  pthread_once(&once, init);
  int* mine = malloc(sizeof *mine);
  *mine = n;
  pthread_setspecific(key, mine);
  for (int i = 0; i < 1000; ++i) local += n;
  snprintf(buffer, sizeof buffer, "thread %d", n);
  char name[16] = {0};
  snprintf(name, sizeof name, "worker%d", n);
  pthread_setname_np(pthread_self(), name);
  memset(name, 0, sizeof name);
  pthread_getname_np(pthread_self(), name, sizeof name);
  if (name[6] != '0' + n || syscall(SYS_gettid) == getpid()) return NULL;
  sum += local;
  return strdup(buffer);
}
static void* alone(void* argument) {
  (void)argument;
  ++detached;
  return NULL;
}
static void* quit(void* argument) {
  pthread_exit((char*)argument + 1);
}
static void* deep(void* argument) {
  char big[100000];
  memset(big, 1, sizeof big);
  return (void*)(intptr_t)(big[99999] + (intptr_t)argument);
}

int main(void) {
  pthread_t t[7];
  pthread_key_create(&key, destroy);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 7; ++i)
      if (pthread_create(&t[i], NULL, work, (void*)(intptr_t)i)) return 1;
    for (int i = 0; i < 7; ++i) {
      void* result;
      pthread_join(t[i], &result);
      printf("%s%c", (char*)result, i == 6 ? '\n' : ' ');
      free(result);
    }
  }
  printf("once %d destroyed %d sum %d mine %d\n", initialised, destroyed, sum, local);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (int i = 0; i < 5; ++i)
    if (pthread_create(&t[0], &attributes, alone, NULL)) return 2;
  while (detached < 5) sched_yield();
  puts("detached threads ran");
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 262144);
  pthread_create(&t[0], &small, deep, (void*)41);
  void* result;
  pthread_join(t[0], &result);
  printf("small stack %ld\n", (long)(intptr_t)result);
  pthread_create(&t[0], NULL, quit, (void*)41);
  pthread_join(t[0], &result);
  printf("exit value %ld\n", (long)(intptr_t)result);
  cpu_set_t set;
  printf("affinity %d\n", sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0);
  printf("join myself: %d\n", pthread_join(pthread_self(), NULL) == EDEADLK);
  return 0;
}
