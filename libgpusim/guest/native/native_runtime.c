// Runs a guest program natively: reference output (one core), and the work division and the barrier
// under real concurrency (GPUSIM_CORES threads).
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "gpusim_guest.h"

__thread uint32_t gpusim_native_core_id = 0;
uint32_t gpusim_native_core_count = 1;

static int native_argc;
static char** native_argv;

typedef struct {
  pthread_t thread;
  uint32_t id;
  int status;
} core_t;

static _Thread_local core_t* this_core;

void gpusim_exit(int status) {
  this_core->status = status;
  pthread_exit(NULL);
}

void gpusim_exit_all(int status) {
  fflush(NULL);
  _exit(status);
}

int gpusim_argc(void) { return native_argc; }
char** gpusim_argv(void) { return native_argv; }

uint64_t gpusim_auxval(uint64_t type, uint64_t otherwise) {
  if (type == GPUSIM_AT_CORE_ID) return gpusim_core_id();
  if (type == GPUSIM_AT_CORE_COUNT) return gpusim_core_count();
  errno = 0;
  const uint64_t value = getauxval(type);
  return errno == ENOENT ? otherwise : value;
}

int gpusim_write_all(int fd, const void* bytes, size_t size_bytes) {
  const char* p = (const char*)bytes;
  while (size_bytes != 0) {
    const ssize_t n = write(fd, p, size_bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    p += n;
    size_bytes -= (size_t)n;
  }
  return 0;
}

static void* run_core(void* argument) {
  this_core = (core_t*)argument;
  gpusim_native_core_id = this_core->id;
  this_core->status = gpusim_main();
  return NULL;
}

int main(int argc, char** argv) {
  native_argc = argc;
  native_argv = argv;
  const char* wanted = getenv("GPUSIM_CORES");
  if (wanted != NULL) {
    char* end;
    const unsigned long n = strtoul(wanted, &end, 10);
    if (*wanted == 0 || *end != 0 || n < 1 || n > 65536) {
      fprintf(stderr, "%s: GPUSIM_CORES=%s: give a number from 1 to 65536\n", argv[0], wanted);
      return 2;
    }
    gpusim_native_core_count = (uint32_t)n;
  }
  const uint32_t count = gpusim_native_core_count;
  core_t* cores = calloc(count, sizeof *cores);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  if (cores == NULL) return 2;
  for (uint32_t i = 0; i < count; ++i) {
    cores[i].id = i;
    const int error = pthread_create(&cores[i].thread, &attributes, run_core, &cores[i]);
    if (error != 0) {
      // The cores that run already would wait at the first barrier for ever.
      fprintf(stderr, "%s: cannot start thread %u of %u (error %d)\n", argv[0], i, count, error);
      _exit(2);
    }
  }
  int status = 0;
  for (uint32_t i = count; i-- > 0;) {
    pthread_join(cores[i].thread, NULL);
    if (cores[i].status != 0) status = cores[i].status;  // the lowest-numbered failing core's
  }
  free(cores);
  return status;
}
