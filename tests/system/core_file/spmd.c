// Without a C library: one of the cores that share memory, or of those that have their own, dies.
typedef unsigned long word;
volatile word shared_words[16];
word last_value = 77;

__attribute__((noinline)) word step(word core, word* at) {
  shared_words[core & 15] = core + 1000;
  return *at + core;
}
void dies(word core) {
  word sum = 0;
  for (word i = 0; i < 200; ++i) sum += i;
  last_value += sum;
  shared_words[15 - (core & 15)] += step(core, core == 5 ? (word*)16 : &last_value);
  for (volatile word i = 0; i < 100000; ++i) {
  }
}
