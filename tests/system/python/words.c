/* Arguments, environment and standard files of a program with a C library. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  char line[64];
  for (int i = 1; i < argc; ++i) printf("%s;", argv[i]);
  printf("%s\n", getenv("WORD") ? getenv("WORD") : "-");
  while (fgets(line, sizeof line, stdin)) printf("read %s", line);
  fprintf(stderr, "done\n");
  return argc;
}
