// SPDX-License-Identifier: MIT
// Runs a static program on the simulated chip, as a process of its own with its own memory.
//
//   gpusim-offload [--cores N] [--stats] [--seconds S] [--open OPTIONS] PROGRAM [ARGUMENT]...
//
// Prints what the program printed and ends with its status; 2 for own errors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpusim/offload/gpusim.h"

static int usage(void) {
  fprintf(stderr,
          "usage: gpusim-offload [--cores N] [--stats] [--seconds S] [--open OPTIONS] PROGRAM "
          "[ARGUMENT]...\n");
  return 2;
}

static int trouble(const char* what) {
  fprintf(stderr, "gpusim-offload: %s: %s\n", what, gpusim_last_error());
  return 2;
}

static void print_statistics(gpusim_event* event) {
  gpusim_statistics s;
  if (gpusim_event_statistics(event, &s) != GPUSIM_OK) return;
  fprintf(stderr, "cores %u\nguest_instructions %llu\nseconds %.6f\nmips %.0f\n", s.cores,
          (unsigned long long)s.guest_instructions, s.seconds, s.mips);
  for (unsigned i = 0; i < GPUSIM_CLASS_COUNT; ++i) {
    if (s.classes[i] != 0) {
      fprintf(stderr, "%s %llu\n", gpusim_class_name(i), (unsigned long long)s.classes[i]);
    }
  }
}

static int run(gpusim_device* device, const char* const* argv, uint32_t cores,
               const gpusim_limits* limits, int wants_statistics) {
  gpusim_program* program;
  gpusim_queue* queue;
  gpusim_event* event;
  if (gpusim_program_from_file(device, argv[0], &program) != GPUSIM_OK)
    return trouble("loading the program");
  int status = gpusim_queue_create(device, &queue);
  if (status == GPUSIM_OK) {
    status = gpusim_enqueue_program(queue, program, cores, argv, limits, 0, NULL, &event);
    if (status == GPUSIM_OK) {
      status = gpusim_event_finish(event, -1);
      char reason[512];
      snprintf(reason, sizeof reason, "%s", gpusim_last_error());
      const char* text;
      size_t size;
      if (gpusim_event_output(event, &text, &size) == GPUSIM_OK) fwrite(text, 1, size, stdout);
      gpusim_statistics s;
      if (gpusim_event_statistics(event, &s) == GPUSIM_OK && s.output_bytes > size) {
        fprintf(stderr, "gpusim-offload: %llu bytes of output, the first %zu are here\n",
                (unsigned long long)s.output_bytes, size);
      }
      if (wants_statistics) print_statistics(event);
      if (status == GPUSIM_KERNEL_FAILED && gpusim_event_statistics(event, &s) == GPUSIM_OK &&
          s.exit_status != 0) {
        if (s.faults != 0) fprintf(stderr, "gpusim-offload: %s\n", reason);
        status = s.exit_status;
      } else if (status != GPUSIM_OK) {
        fprintf(stderr, "gpusim-offload: %s: %s\n", gpusim_status_name(status), reason);
        status = 2;
      }
      gpusim_event_release(event);
    } else {
      status = trouble("starting the program");
    }
    gpusim_queue_release(queue);
  } else {
    status = trouble("a queue");
  }
  gpusim_program_release(program);
  return status;
}

int main(int argc, char** argv) {
  uint32_t cores = 1;
  int wants_statistics = 0;
  const char* options = NULL;
  gpusim_limits limits = {0, 0, 0};
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    if (strcmp(argv[i], "--") == 0) {
      ++i;
      break;
    }
    const char* const value = i + 1 < argc ? argv[i + 1] : NULL;
    char* end = NULL;
    if (strcmp(argv[i], "--stats") == 0) {
      wants_statistics = 1;
      continue;
    }
    if (value == NULL) return usage();
    if (strcmp(argv[i], "--cores") == 0) {
      const unsigned long n = strtoul(value, &end, 10);
      if (*value < '0' || *value > '9' || *end != 0 || n == 0 || n > UINT32_MAX) return usage();
      cores = (uint32_t)n;
    } else if (strcmp(argv[i], "--seconds") == 0) {
      limits.seconds = strtod(value, &end);
      if (end == value || *end != 0 || !(limits.seconds > 0)) return usage();
    } else if (strcmp(argv[i], "--open") == 0) {
      options = value;
    } else {
      return usage();
    }
    ++i;
  }
  if (i >= argc) return usage();
  gpusim_device* device;
  if (gpusim_open(options, &device) != GPUSIM_OK) return trouble("opening the device");
  const int status = run(device, (const char* const*)argv + i, cores, &limits, wants_statistics);
  gpusim_close(device);
  return fflush(stdout) == 0 ? status : 2;
}
