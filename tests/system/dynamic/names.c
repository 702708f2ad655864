// Uses library.c, linked with it or as a shared object of it: names [fault|race]
#include <pthread.h>
#include <stdio.h>
#include <string.h>

int library_work(const int* values, int count);
void library_sort(int* values, int count);
void library_store(int* to);
void library_race(void);

__attribute__((noinline)) static void fill(int* values, int count) {
  for (int i = 0; i < count; ++i) values[i] = i * 7919 % 1000;
}

static void* races(void* unused) {
  library_race();
  return unused;
}

int main(int argc, char** argv) {
  static int values[500];
  fill(values, 500);
  library_sort(values, 500);
  printf("%d %d\n", library_work(values, 500), values[0]);
  if (argc > 1 && strcmp(argv[1], "fault") == 0) library_store((int*)8);
  if (argc > 1 && strcmp(argv[1], "race") == 0) {
    pthread_t other;
    pthread_create(&other, NULL, races, NULL);
    races(NULL);
    pthread_join(other, NULL);
  }
  return 0;
}
