// What C++ initialises once: HELD OUTSIDE, in rounds of spend(). Four threads need it; three of
// them come, in the run, when it is done.
#include <pthread.h>
#include <unistd.h>
#include <cstdlib>

static long held, outside;
static pthread_barrier_t meeting;
static volatile bool is_done;

static __attribute__((noinline)) void spend(long n) {
  for (; n > 0; --n) __asm__ volatile(SPEND : : : SCRATCH);
}

struct Value {
  Value() { spend(held); }
  volatile int number = 1;
};
static __attribute__((noinline)) int value() {
  static Value once;
  return once.number;
}

// Nobody ends before all are there: who starts later would take the core of the one that ended.
static void* need(void* number) {
  pthread_barrier_wait(&meeting);
  while (number && !is_done) usleep(1000);
  if (number) usleep(20000);
  const int one = value();
  is_done = true;
  spend(number ? one * outside : 0);
  return nullptr;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  held = std::atol(argv[1]);
  outside = std::atol(argv[2]);
  pthread_t thread[4];
  pthread_barrier_init(&meeting, nullptr, 4);
  for (long i = 0; i < 4; ++i)
    pthread_create(&thread[i], nullptr, need, reinterpret_cast<void*>(i));
  for (pthread_t t : thread) pthread_join(t, nullptr);
}
