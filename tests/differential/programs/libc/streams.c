// Streams in memory, formatted input and output through them, ungetc, buffering modes.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char* text = NULL;
  size_t size = 0;
  FILE* out = open_memstream(&text, &size);
  for (int i = 0; i < 200; i++) fprintf(out, "%d,%x;", i * i, i);
  fflush(out);
  printf("%zu bytes, ends in %s\n", size, text + size - 12);
  fclose(out);
  FILE* in = fmemopen(text, size, "r");
  int a, n = 0;
  unsigned b;
  long sum = 0;
  while (fscanf(in, "%d,%x;", &a, &b) == 2) sum += a - (int)(b * b), n++;
  printf("%d pairs, difference %ld\n", n, sum);
  rewind(in);
  int c = fgetc(in);
  ungetc('#', in);
  printf("%c%c%c\n", c, fgetc(in), fgetc(in));
  fclose(in);
  free(text);
  char* made = NULL;
  int length = asprintf(&made, "%s has %d parts", "this", 3);
  printf("%d %s\n", length, made);
  char* line = NULL;
  size_t room = 0;
  char source[] = "first\nsecond line\n\nlast without end";
  in = fmemopen(source, strlen(source), "r");
  for (ssize_t got; (got = getline(&line, &room, in)) >= 0;) printf("%zd ", got);
  puts("");
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("one ");
  printf("line\n");
  setvbuf(stdout, NULL, _IONBF, 0);
  fputs("unbuffered", stdout);
  putchar('\n');
  fprintf(stderr, "to standard error\n");
  return 0;
}
