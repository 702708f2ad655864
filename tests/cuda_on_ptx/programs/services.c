// What programs ask of Linux: files, memory, text, the environment, a signal.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t seen;
static void note(int signal) { seen = signal; }

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  FILE* file = fopen(argv[1], "w+");
  if (!file) return 3;
  for (int i = 0; i < 40; ++i) fprintf(file, "%d %.9g\n", i, sqrt(i) * sin(i));
  rewind(file);
  double values[40];
  for (int i = 0; i < 40; ++i) {
    int k;
    if (fscanf(file, "%d %lf", &k, &values[i]) != 2 || k != i) return 4;
  }
  fclose(file);
  qsort(values, 40, sizeof *values, compare);
  const int descriptor = open(argv[1], O_RDONLY);
  char* text = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (text == MAP_FAILED) return 5;
  printf("%.6f %.6f, %zu bytes, begins '%.12s'\n", values[0], values[39], strlen(text), text);
  munmap(text, 4096);
  if (open("nowhere.txt", O_RDONLY) != -1 || errno != ENOENT) return 6;
  signal(SIGUSR1, note);
  raise(SIGUSR1);
  printf("signal %d\n", (int)seen);
  return seen == SIGUSR1 ? 17 : 7;
}
