// Threads and processes with a C library, for a debugger.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int sums[8];
static volatile int handled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void add(int number, int value) { sums[number] += value; }

static void* run(void* argument) {
  const int number = (int)(long)argument;
  for (int i = 0; i < 10; ++i) add(number, i);
  pthread_mutex_lock(&lock);  // held by main
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void on_fault(int signal) {
  (void)signal;
  handled = 1;
  _Exit(7);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "sum";
  if (strcmp(what, "abort") == 0) abort();
  if (strcmp(what, "handler") == 0) {
    signal(SIGSEGV, on_fault);
    *(volatile int*)16 = 1;
  }
  if (strcmp(what, "read") == 0) {
    char line[16];
    return fgets(line, sizeof line, stdin) ? line[0] : 1;
  }
  pthread_t threads[3];
  pthread_mutex_lock(&lock);
  for (long i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, run, (void*)i);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  printf("sum %d\n", sums[0] + sums[1] + sums[2]);
  return 0;
}
