// A hash table with chains that grows; words are counted and removed again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Entry {
  struct Entry* next;
  unsigned hash;
  int count;
  char key[];
};
static struct Entry** buckets;
static unsigned size = 4, used;

static unsigned hash_of(const char* s) {
  unsigned h = 2166136261u;
  while (*s) h = (h ^ (unsigned char)*s++) * 16777619u;
  return h;
}

static void grow(void) {
  struct Entry** bigger = calloc(size * 2, sizeof *bigger);
  for (unsigned i = 0; i < size; i++) {
    for (struct Entry *e = buckets[i], *next; e; e = next) {
      next = e->next;
      e->next = bigger[e->hash & (2 * size - 1)];
      bigger[e->hash & (2 * size - 1)] = e;
    }
  }
  free(buckets);
  buckets = bigger;
  size *= 2;
}

static int* count_of(const char* key) {
  unsigned h = hash_of(key);
  for (struct Entry* e = buckets[h & (size - 1)]; e; e = e->next)
    if (e->hash == h && strcmp(e->key, key) == 0) return &e->count;
  if (used++ > size) grow();
  struct Entry* e = malloc(sizeof *e + strlen(key) + 1);
  e->hash = h;
  e->count = 0;
  strcpy(e->key, key);
  e->next = buckets[h & (size - 1)];
  buckets[h & (size - 1)] = e;
  return &e->count;
}

static int drop(const char* key) {
  unsigned h = hash_of(key);
  for (struct Entry** p = &buckets[h & (size - 1)]; *p; p = &(*p)->next) {
    if (strcmp((*p)->key, key) != 0) continue;
    struct Entry* gone = *p;
    *p = gone->next;
    free(gone);
    used--;
    return 1;
  }
  return 0;
}

int main(void) {
  char key[16];
  unsigned state = 9;
  buckets = calloc(size, sizeof *buckets);
  for (int i = 0; i < 2000; i++) {
    state = state * 69069 + 1;
    snprintf(key, sizeof key, "key%u", (state >> 16) % 300);
    ++*count_of(key);
  }
  int most = 0, total = 0;
  for (unsigned i = 0; i < size; i++)
    for (struct Entry* e = buckets[i]; e; e = e->next) {
      total += e->count;
      if (e->count > most) most = e->count;
    }
  printf("%u keys in %u buckets, most %d, total %d\n", used, size, most, total);
  int dropped = 0;
  for (int i = 0; i < 400; i += 3) {
    snprintf(key, sizeof key, "key%d", i);
    dropped += drop(key);
  }
  printf("dropped %d, left %u\n", dropped, used);
  return total != 2000;
}
