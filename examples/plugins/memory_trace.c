/*
 * Every access to memory, a line each: core, kind, address, bytes.
 *
 *   gpusim run PROGRAM --plugin memory_trace.so,FILE
 *
 * Lines of one core are in the order of its program.
 */
#include <gpusim_plugin.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

static FILE* out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_accesses(void* user, uint32_t group, uint32_t core, const gpusim_access_t* accesses,
                        size_t count) {
  static const char kinds[] = {'r', 'w', 'a'};
  (void)user;
  (void)group;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count; ++i)
    fprintf(out, "%" PRIu32 " %c 0x%" PRIx64 " %u\n", core, kinds[accesses[i].kind],
            accesses[i].address, accesses[i].bytes);
  pthread_mutex_unlock(&lock);
}

static void on_end(void* user) {
  (void)user;
  const int failed = ferror(out);
  if (fclose(out) != 0 || failed) fprintf(stderr, "memory_trace: the file is not complete\n");
}

int gpusim_plugin_install(const gpusim_host_t* host, int argument_count,
                          const char* const* arguments, char* error, size_t error_size) {
  if (argument_count != 1) {
    snprintf(error, error_size, "expected one argument: the file to write");
    return 1;
  }
  out = fopen(arguments[0], "w");
  if (out == NULL) {
    snprintf(error, error_size, "cannot write %s", arguments[0]);
    return 1;
  }
  host->on_accesses(host->self, on_accesses, NULL);
  host->on_end(host->self, on_end, NULL);
  return 0;
}
