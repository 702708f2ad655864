// args: @DATA/lines.txt
// Reading a file: by lines, by characters, by blocks, with seeks; a missing file is an error.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 2) return 3;
  FILE* file = fopen(argv[1], "r");
  if (!file) {
    printf("cannot open %s: %s\n", argv[1], strerror(errno));
    return 1;
  }
  char line[256];
  int lines = 0, words = 0, letters = 0, inside = 0;
  while (fgets(line, sizeof line, file)) printf("%d: %zu\n", ++lines, strlen(line));
  rewind(file);
  for (int c; (c = fgetc(file)) != EOF; letters++) {
    int is_letter = c > ' ';
    words += is_letter && !inside;
    inside = is_letter;
  }
  printf("%d lines %d words %d characters, eof %d\n", lines, words, letters, feof(file) != 0);
  fseek(file, 10, SEEK_SET);
  size_t got = fread(line, 1, 20, file);
  line[got] = 0;
  printf("%zu at 10: [%s] now at %ld\n", got, line, ftell(file));
  fseek(file, -5, SEEK_END);
  got = fread(line, 1, sizeof line, file);
  printf("last %zu\n", got);
  fclose(file);
  errno = 0;
  file = fopen("data/there-is-no-such-file", "r");
  printf("%d %s\n", file == NULL, strerror(errno));
  return 0;
}
