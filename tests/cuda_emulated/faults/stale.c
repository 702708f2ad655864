// A thread calls getpid with something else in x0 while it is sent signals; prints how often the
// result was not the process's number.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kCalls = 300 };

static volatile int is_done;
static volatile int signals;

static void count(int number) {
  (void)number;
  ++signals;
}

static void* call(void* unused) {
  (void)unused;
  const long pid = getpid();
  long wrong = 0;
  for (int i = 0; i < kCalls; ++i) {
    register long x0 __asm__("x0") = 12345;
    register long x8 __asm__("x8") = SYS_getpid;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8) : "memory");
    wrong += x0 != pid;
  }
  is_done = 1;
  return (void*)wrong;
}

int main(void) {
  signal(SIGUSR1, count);
  pthread_t thread;
  void* wrong;
  if (pthread_create(&thread, NULL, call, NULL) != 0) return 2;
  while (!is_done) pthread_kill(thread, SIGUSR1);
  pthread_join(thread, &wrong);
  printf("%ld wrong of %d, signals: %s\n", (long)wrong, kCalls, signals > 0 ? "some" : "none");
  return wrong != NULL;
}
