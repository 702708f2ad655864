// qsort and bsearch over integers, strings and structures; stability is not relied on.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Record {
  char name[12];
  int key;
  double weight;
};

static int by_int(const void* a, const void* b) {
  return *(const int*)a < *(const int*)b ? -1 : *(const int*)a > *(const int*)b;
}
static int by_text(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}
static int by_weight(const void* a, const void* b) {
  const struct Record *x = a, *y = b;
  return x->weight < y->weight ? 1 : x->weight > y->weight ? -1 : x->key - y->key;
}

int main(void) {
  int numbers[300], wrong = 0;
  unsigned state = 1;
  for (int i = 0; i < 300; i++)
    numbers[i] = (int)((state = state * 1103515245 + 12345) >> 16 & 1023);
  qsort(numbers, 300, sizeof *numbers, by_int);
  for (int i = 1; i < 300; i++) wrong += numbers[i - 1] > numbers[i];
  for (int key = 0; key < 1024; key += 31) {
    int* found = bsearch(&key, numbers, 300, sizeof *numbers, by_int);
    printf("%d%s ", key, found ? "+" : "-");
  }
  puts("");
  char text[] = "the quick brown fox jumps over the lazy dog while seven wizards mix a potion";
  char* words[32];
  size_t count = 0;
  for (char* w = strtok(text, " "); w; w = strtok(NULL, " ")) words[count++] = w;
  qsort(words, count, sizeof *words, by_text);
  for (size_t i = 0; i < count; i++) printf("%s ", words[i]);
  puts("");
  struct Record records[20];
  for (int i = 0; i < 20; i++) {
    snprintf(records[i].name, sizeof records[i].name, "r%d", i * 37 % 20);
    records[i].key = i;
    records[i].weight = (i * 7919 % 13) / 4.0;
  }
  qsort(records, 20, sizeof *records, by_weight);
  for (int i = 0; i < 20; i++)
    printf("%s/%d/%g ", records[i].name, records[i].key, records[i].weight);
  printf("\nwrong %d\n", wrong);
  return wrong;
}
