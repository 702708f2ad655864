/*
 * How many cores of a group were together at each conditional branch. Cores run in lockstep; where
 * few are together, lanes of the machine are idle.
 *
 *   gpusim run PROGRAM --plugin convergence.so[,MOST]
 */
#include <gpusim_plugin.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct branch {
  uint32_t block;
  uint64_t address; /* of the branch itself */
  char symbol[64];
  gpusim_block_use_t use;
};

static const gpusim_host_t* host;
static struct branch* branches;
static size_t branch_count, most = 20;
static uint32_t group_width;

static void on_start(void* user, const gpusim_run_t* run) {
  (void)user;
  group_width = run->group_width;
}

static void on_translation(void* user, const gpusim_block_t* block) {
  (void)user;
  if (!block->ends_in_branch) return;
  /* Room for 1, 2, 4, 8 ... */
  if ((branch_count & (branch_count - 1)) == 0) {
    branches = realloc(branches, (branch_count == 0 ? 1 : 2 * branch_count) * sizeof *branches);
    if (branches == NULL) abort();
  }
  struct branch* const b = &branches[branch_count++];
  b->block = block->number;
  b->address = block->instructions[block->instruction_count - 1].address;
  snprintf(b->symbol, sizeof b->symbol, "%s", block->symbol);
}

/* By lanes that were not used. */
static int by_loss(const void* a, const void* b) {
  const struct branch *x = a, *y = b;
  const uint64_t lost_x = x->use.lane_slots - x->use.executions,
                 lost_y = y->use.lane_slots - y->use.executions;
  return lost_x == lost_y ? 0 : lost_x < lost_y ? 1 : -1;
}

static void on_end(void* user) {
  (void)user;
  size_t known = 0;
  for (size_t i = 0; i < branch_count; ++i) {
    branches[i].use = host->block_use(host->self, branches[i].block);
    if (branches[i].use.lane_slots != 0) branches[known++] = branches[i];
  }
  if (known == 0) {
    fprintf(stderr, "convergence: this backend does not count lanes\n");
    return;
  }
  qsort(branches, known, sizeof *branches, by_loss);
  fprintf(stderr, "%-14s %8s %14s  %s\n", "branch", "active", "executions", "in");
  for (size_t i = 0; i < known && i < most; ++i)
    fprintf(stderr, "0x%-12" PRIx64 " %5.1f/%-2" PRIu32 " %14" PRIu64 "  %s: %s\n",
            branches[i].address,
            (double)group_width * (double)branches[i].use.executions /
                (double)branches[i].use.lane_slots,
            group_width, branches[i].use.executions, branches[i].symbol,
            host->disassemble(host->self, branches[i].address));
}

int gpusim_plugin_install(const gpusim_host_t* given, int argument_count,
                          const char* const* arguments, char* error, size_t error_size) {
  host = given;
  if (argument_count > 1) {
    snprintf(error, error_size, "expected at most one argument: how many rows to print");
    return 1;
  }
  if (argument_count == 1) most = strtoul(arguments[0], NULL, 10);
  host->on_start(host->self, on_start, NULL);
  host->on_translation(host->self, on_translation, NULL);
  host->on_end(host->self, on_end, NULL);
  return 0;
}
