/* Writes down all that it hears. */
#include <gpusim_plugin.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const gpusim_host_t* host;
static FILE* out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_start(void* user, const gpusim_run_t* run) {
  fprintf(out, "start %s %s %u cores in groups of %u, %u classes from %s\n", (const char*)user, run->isa,
          run->cores, run->group_width, run->class_count, run->class_names[0]);
}
static void on_translation(void* user, const gpusim_block_t* b) {
  (void)user;
  fprintf(out, "block %u 0x%" PRIx64 " %s %u %d", b->number, b->address, b->symbol,
          b->instruction_count, b->ends_in_branch);
  uint64_t address = b->address;
  for (uint32_t i = 0; i < b->instruction_count; ++i) {
    const gpusim_instruction_t* insn = &b->instructions[i];
    const int is_ok = insn->address == address && insn->bytes != NULL && insn->size != 0 &&
                      host->disassemble(host->self, insn->address) != NULL;
    fprintf(out, " ");
    for (unsigned k = 0; is_ok && k < insn->size; ++k) fprintf(out, "%02x", insn->bytes[k]);
    fprintf(out, "/%u/%s", insn->class_index, is_ok ? "ok" : "?");
    address += insn->size;
  }
  if (address != b->end) fprintf(out, " end/?");
  fprintf(out, "\n");
}
static void on_blocks(void* user, uint32_t group, uint32_t core, const uint32_t* blocks, size_t count) {
  (void)user;
  pthread_mutex_lock(&lock);
  fprintf(out, "blocks %u %u", group, core);
  for (size_t i = 0; i < count; ++i) fprintf(out, " %u", blocks[i]);
  fprintf(out, "\n");
  pthread_mutex_unlock(&lock);
}
static void print(const char* what, uint32_t group, uint32_t core, const gpusim_access_t* a, size_t count) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count; ++i)
    fprintf(out, "%s %u %u kind %u 0x%" PRIx64 " %u at %u+%u\n", what, group, core, a[i].kind,
            a[i].address, a[i].bytes, a[i].block, a[i].instruction);
  pthread_mutex_unlock(&lock);
}
static void on_accesses(void* user, uint32_t group, uint32_t core, const gpusim_access_t* a, size_t n) {
  (void)user;
  print("access", group, core, a, n);
}
static void on_synchronisation(void* user, uint32_t group, uint32_t core, const gpusim_access_t* a,
                               size_t n) {
  (void)user;
  print("sync", group, core, a, n);
}
static void on_end(void* user) {
  (void)user;
  for (uint32_t b = 0; b < 8; ++b) {
    const gpusim_block_use_t use = host->block_use(host->self, b);
    fprintf(out, "use %u %" PRIu64 " %" PRIu64 "\n", b, use.executions, use.lane_slots);
  }
  fclose(out);
}

int gpusim_plugin_install(const gpusim_host_t* given, int n, const char* const* arguments, char* error,
                          size_t error_size) {
  host = given;
  if (n != 2) {
    snprintf(error, error_size, "two arguments are needed, not %d", n);
    return 1;
  }
  if (strcmp(arguments[1], "silent") == 0) return 7;
  out = fopen(arguments[0], "w");
  host->on_start(host->self, on_start, "hello");
  host->on_translation(host->self, on_translation, NULL);
  host->on_blocks(host->self, on_blocks, NULL);
  host->on_accesses(host->self, on_accesses, NULL);
  host->on_synchronisation(host->self, on_synchronisation, NULL);
  host->on_end(host->self, on_end, NULL);
  return 0;
}
