// SPDX-License-Identifier: MIT
// offload_test [NAME-PART] [--open OPTIONS] [--kernels FILE] [--list]
#include <setjmp.h>
#include <time.h>
#include <unistd.h>

#include "offload_test.h"

const char* open_options;
const char* kernels_file;
const char* program_file;

static jmp_buf end_of_test;
static char reason[1024];
enum { kPassed, kFailed, kSkipped };

void fail_test(const char* file, int line, const char* what) {
  const char* const slash = strrchr(file, '/');
  snprintf(reason, sizeof reason, "%s:%d: %s (last error: %s)", slash != NULL ? slash + 1 : file,
           line, what, gpusim_last_error());
  longjmp(end_of_test, kFailed);
}

void skip_test(const char* why) {
  snprintf(reason, sizeof reason, "%s", why);
  longjmp(end_of_test, kSkipped);
}

void expect(const char* file, int line, const char* call, int wanted, int got) {
  char text[700];
  if (got != wanted) {
    snprintf(text, sizeof text, "%s gave %s, not %s", call, gpusim_status_name(got),
             gpusim_status_name(wanted));
    fail_test(file, line, text);
  }
  if (wanted < 0 && gpusim_last_error()[0] == 0) {
    snprintf(text, sizeof text, "%s failed without a text", call);
    fail_test(file, line, text);
  }
}

gpusim_device* open_device(void) {
  gpusim_device* device;
  OK(gpusim_open(open_options, &device));
  return device;
}

gpusim_program* load_kernels(gpusim_device* device) {
  gpusim_program* program;
#ifdef GPUSIM_NATIVE
  OK(gpusim_program_from_file(device, kernels_file, &program));
#else
  OK(gpusim_program_from_self(device, &program));
#endif
  return program;
}

gpusim_kernel* kernel_of(gpusim_program* program, const char* name, const void* function) {
  gpusim_kernel* kernel;
#ifdef GPUSIM_NATIVE
  (void)function;
  OK(gpusim_kernel_from_name(program, name, &kernel));
#else
  (void)name;
  OK(gpusim_kernel_from_function(program, function, &kernel));
#endif
  return kernel;
}

gpusim_buffer* new_buffer(gpusim_device* device, size_t size_bytes) {
  gpusim_buffer* buffer;
  OK(gpusim_buffer_create(device, 0, size_bytes, NULL, &buffer));
  return buffer;
}

int run_kernel(gpusim_queue* queue, gpusim_kernel* kernel, uint32_t cores) {
  gpusim_event* event;
  OK(gpusim_enqueue_kernel(queue, kernel, cores, 0, NULL, &event));
  const int status = gpusim_event_finish(event, 60);
  gpusim_event_release(event);
  gpusim_queue_finish(queue);  // forgets a failure
  return status;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run_test(const struct test* test) {
  struct fixture f = {NULL, NULL, NULL};
  const double begin = now();
  // A test that ends early leaves its objects behind; the next one has others.
  const int outcome = setjmp(end_of_test);
  if (outcome == kPassed) {
    f.device = open_device();
    f.program = load_kernels(f.device);
    OK(gpusim_queue_create(f.device, &f.queue));
    test->run(&f);
    OK(gpusim_queue_release(f.queue));
    OK(gpusim_program_release(f.program));
    OK(gpusim_close(f.device));
    printf("ok %s (%.2f s)\n", test->name, now() - begin);
  } else if (outcome == kFailed) {
    printf("FAILED %s: %s\n", test->name, reason);
  } else {
    printf("skipped %s: %s\n", test->name, reason);
  }
  fflush(stdout);
  return outcome;
}

int main(int argc, char** argv) {
  const char* part = "";
  bool only_list = false;
  static char file[4096];
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--child") == 0) {
      // The test of gpusim_enqueue_program runs this program on the device.
      printf("child of %s: %s\n", argv[0], i + 1 < argc ? argv[i + 1] : "nothing");
      return 7;
    }
    if (strcmp(argv[i], "--open") == 0 && i + 1 < argc) {
      open_options = argv[++i];
    } else if (strcmp(argv[i], "--kernels") == 0 && i + 1 < argc) {
      kernels_file = argv[++i];
    } else if (strcmp(argv[i], "--list") == 0) {
      only_list = true;
    } else if (argv[i][0] != '-') {
      part = argv[i];
    } else {
      fprintf(stderr, "usage: %s [NAME-PART] [--open OPTIONS] [--kernels FILE] [--list]\n",
              argv[0]);
      return 2;
    }
  }
  // NAME.native has its kernels in NAME.elf.
  snprintf(file, sizeof file, "%s", argv[0]);
  char* const dot = strrchr(file, '.');
  if (dot != NULL) snprintf(dot, sizeof file - (size_t)(dot - file), ".elf");
  program_file = file;
  if (kernels_file == NULL) kernels_file = file;
  const struct test* const lists[] = {tests_of_calls, tests_of_queues, tests_of_programs,
                                      tests_of_launches};
  unsigned counts[3] = {0, 0, 0};
  for (unsigned l = 0; l < sizeof lists / sizeof lists[0]; ++l) {
    for (const struct test* test = lists[l]; test->name != NULL; ++test) {
      if (strstr(test->name, part) == NULL) continue;
      if (only_list) {
        printf("%s\n", test->name);
      } else {
        ++counts[run_test(test)];
      }
    }
  }
  if (only_list) return 0;
  printf("%u passed, %u failed, %u skipped\n", counts[0], counts[1], counts[2]);
  return counts[kFailed] != 0 || counts[kPassed] + counts[kSkipped] == 0 ? 1 : 0;
}
