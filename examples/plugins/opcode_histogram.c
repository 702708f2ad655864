/*
 * How often each kind of instruction was executed, most frequent first.
 *
 *   gpusim run PROGRAM --plugin opcode_histogram.so[,MOST]
 *
 * It looks at blocks when they are translated and asks at the end how often each was executed, so the
 * program runs as fast as without it.
 */
#include <gpusim_plugin.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct opcode {
  char name[16];
  uint64_t count;
};

static const gpusim_host_t* host;
static uint64_t* addresses; /* of all blocks' instructions */
static size_t* block_ends;   /* per block: how many of them there are up to its end */
static size_t address_count, block_count;
static struct opcode* opcodes;
static size_t opcode_count, most = 20;

static void* grow(void* array, size_t count, size_t size) {
  /* Room for 1, 2, 4, 8 ... */
  if ((count & (count - 1)) != 0) return array;
  array = realloc(array, (count == 0 ? 1 : 2 * count) * size);
  if (array == NULL) abort();
  return array;
}

static void on_translation(void* user, const gpusim_block_t* block) {
  (void)user;
  for (uint32_t i = 0; i < block->instruction_count; ++i) {
    addresses = grow(addresses, address_count, sizeof *addresses);
    addresses[address_count++] = block->instructions[i].address;
  }
  block_ends = grow(block_ends, block_count, sizeof *block_ends);
  block_ends[block_count++] = address_count;
}

static void add(const char* text, uint64_t count) {
  char name[sizeof opcodes->name] = "";
  size_t length = strcspn(text, " \t");
  if (length >= sizeof name) length = sizeof name - 1;
  memcpy(name, text, length);
  for (size_t i = 0; i < opcode_count; ++i) {
    if (strcmp(opcodes[i].name, name) != 0) continue;
    opcodes[i].count += count;
    return;
  }
  opcodes = grow(opcodes, opcode_count, sizeof *opcodes);
  memcpy(opcodes[opcode_count].name, name, sizeof name);
  opcodes[opcode_count++].count = count;
}

static int by_count(const void* a, const void* b) {
  const struct opcode *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return strcmp(x->name, y->name);
}

static void on_end(void* user) {
  (void)user;
  uint64_t all = 0;
  for (size_t b = 0; b < block_count; ++b) {
    const uint64_t times = host->block_use(host->self, (uint32_t)b).executions;
    if (times == 0) continue;
    for (size_t i = b == 0 ? 0 : block_ends[b - 1]; i < block_ends[b]; ++i) {
      add(host->disassemble(host->self, addresses[i]), times);
      all += times;
    }
  }
  qsort(opcodes, opcode_count, sizeof *opcodes, by_count);
  for (size_t i = 0; i < opcode_count && i < most; ++i)
    fprintf(stderr, "%-12s %14" PRIu64 " %6.2f %%\n", opcodes[i].name, opcodes[i].count,
            100.0 * (double)opcodes[i].count / (double)all);
}

int gpusim_plugin_install(const gpusim_host_t* given, int argument_count,
                          const char* const* arguments, char* error, size_t error_size) {
  host = given;
  if (argument_count > 1) {
    snprintf(error, error_size, "expected at most one argument: how many rows to print");
    return 1;
  }
  if (argument_count == 1) most = strtoul(arguments[0], NULL, 10);
  host->on_translation(host->self, on_translation, NULL);
  host->on_end(host->self, on_end, NULL);
  return 0;
}
