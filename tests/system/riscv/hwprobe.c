// Asks riscv_hwprobe for everything; the argument is the number of cores. Numbers are those of
// Linux's asm/hwprobe.h. Exit status 0 if all answers are right.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair {
  int64_t key;
  uint64_t value;
};
enum { kBase = 3, kExtensions = 4, kMisaligned = 9, kMisalignedVector = 10, kWhichCpus = 1 };
static int failures;

static void check(int right, const char* what) {
  if (!right) fprintf(stderr, "FAILED: %s\n", what);
  failures += !right;
}

// The result, or -errno.
static long hwprobe(struct pair* pairs, size_t count, size_t set_size, void* set, unsigned flags) {
  const long result = syscall(258, pairs, count, set_size, set, flags);
  return result < 0 ? -errno : result;
}

static uint64_t ask(int64_t key) {
  struct pair pair = {key, 99};
  check(hwprobe(&pair, 1, 0, NULL, 0) == 0 && pair.key == key, "a key that Linux knows");
  return pair.value;
}

// /proc/cpuinfo names the same extensions.
static void test_extensions(void) {
  static const struct {
    const char* name;
    int bit;
  } all[] = {{"_zba", 3},   {"_zbb", 4},     {"_zbs", 5},     {"_zicboz", 6}, {"_zbc", 7},
             {"_zbkb", 8},  {"_zfh", 27},    {"_zfa", 32},    {"_ztso", 33},  {"_zacas", 34},
             {"_zicond", 35}, {"_zawrs", 48}, {"_zcb", 44},
             {"_zvfh", 30},   {"_zvbb", 17}};
  char line[256] = "", isa[256] = "";
  FILE* const file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, "isa", 3) == 0) snprintf(isa, sizeof isa, "%s", strchr(line, ':') + 2);
  isa[strcspn(isa, "\n")] = '_';
  const uint64_t bits = ask(kExtensions);
  check(strncmp(isa, "rv64imafdcv_", 12) == 0 && (bits & 7) == 7, "F, D, C and V");
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    char name[16];
    snprintf(name, sizeof name, "%s_", all[i].name);
    if ((strstr(isa, name) != NULL) != (bits >> all[i].bit & 1)) {
      fprintf(stderr, "%s: bit %d of %lx, %s\n", all[i].name, all[i].bit, bits, isa);
      ++failures;
    }
  }
}

static void test_sets(unsigned cores) {
  unsigned char set[16] = {0};
  struct pair pair = {kBase, 0};
  check(hwprobe(&pair, 1, sizeof set, set, 0) == -EINVAL, "no processor asked for");
  set[(cores - 1) / 8] = (unsigned char)(1u << ((cores - 1) % 8));
  check(hwprobe(&pair, 1, sizeof set, set, 0) == 0 && pair.value == 1, "the last processor");
  memset(set, 0, sizeof set);
  set[cores / 8] = (unsigned char)(1u << (cores % 8));
  check(hwprobe(&pair, 1, sizeof set, set, 0) == -EINVAL, "a processor that is not there");

  // Which processors have D and Zba? Those that are asked about.
  memset(set, 0xff, sizeof set);
  struct pair wanted[] = {{kExtensions, 1 | 1 << 3}, {kMisaligned, 3}};
  check(hwprobe(wanted, 2, 8, set, kWhichCpus) == 0, "which processors");
  check(set[0] == (cores >= 8 ? 0xff : (1u << cores) - 1), "the first processors have them");
  check(set[8] == 0xff, "beyond the set nothing is written");
  memset(set, 0, sizeof set);
  check(hwprobe(wanted, 2, 8, set, kWhichCpus) == 0 && set[0] != 0, "an empty set asks for all");
  wanted[0].value = 1 << 6;  // Zicboz
  check(hwprobe(wanted, 2, 8, set, kWhichCpus) == 0 && set[0] == 0, "none has Zicboz");
  check(hwprobe(wanted, 2, 0, NULL, kWhichCpus) == -EINVAL, "which processors needs a set");
}

int main(int count, char** arguments) {
  const unsigned cores = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
  check(ask(kBase) == 1, "the base is IMA");
  check(ask(kMisaligned) == 3, "misaligned accesses are fast");
  check(ask(kMisalignedVector) == 3, "misaligned vector accesses are fast");
  test_extensions();
  test_sets(cores);

  struct pair pairs[] = {{kBase, 7}, {1000, 7}, {-5, 7}, {kMisaligned, 7}};
  check(hwprobe(pairs, 4, 0, NULL, 0) == 0, "unknown keys are no error");
  check(pairs[0].value == 1 && pairs[3].value == 3, "values beside unknown keys");
  check(pairs[1].key == -1 && pairs[1].value == 0 && pairs[2].key == -1, "unknown keys are told");
  check(hwprobe(pairs, 1, 0, NULL, 2) == -EINVAL, "an unknown flag");
  check(hwprobe((struct pair*)8, 1, 0, NULL, 0) == -EFAULT, "no memory");
  check(hwprobe(NULL, 0, 0, NULL, 0) == 0, "nothing asked");
  return failures != 0;
}
