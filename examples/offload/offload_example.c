// Runs a job on the device, then on the own processor, compares, and prints key=value lines.
#include "offload_example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libgpusim/offload/gpusim.h"

static const example_t* example;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int trouble(const char* what) {
  fprintf(stderr, "offload_%s: %s: %s\n", example->name, what, gpusim_last_error());
  return 2;
}

static int usage(void) {
  fprintf(stderr,
          "usage: offload_%s [--cores N] [--size N] [--repeat R] [--open OPTIONS]\n"
          "       [--device-only | --cpu-only] [--in PICTURE] [--out PICTURE] [--kernels FILE]\n",
          example->name);
  return 2;
}

static int parse_number(const char* text, uint64_t most, uint64_t* number) {
  char* end;
  if (text == NULL || *text < '0' || *text > '9') return -1;
  const unsigned long long n = strtoull(text, &end, 10);
  if (*end != 0 || n == 0 || n > most) return -1;
  *number = n;
  return 0;
}

static int parse(example_options_t* o, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const char* const key = argv[i];
    if (strcmp(key, "--device-only") == 0) {
      o->on_cpu = 0;
      continue;
    }
    if (strcmp(key, "--cpu-only") == 0) {
      o->on_device = 0;
      continue;
    }
    const char* const value = ++i < argc ? argv[i] : NULL;
    uint64_t number = 0;
    if (value == NULL) return -1;
    if (strcmp(key, "--cores") == 0) {
      if (parse_number(value, UINT32_MAX, &number) != 0) return -1;
      o->cores = (uint32_t)number;
    } else if (strcmp(key, "--size") == 0) {
      if (parse_number(value, UINT32_MAX, &o->size) != 0) return -1;
    } else if (strcmp(key, "--repeat") == 0) {
      if (parse_number(value, 1000000, &number) != 0) return -1;
      o->repeat = (uint32_t)number;
    } else if (strcmp(key, "--open") == 0) {
      o->open = value;
    } else if (strcmp(key, "--in") == 0) {
      o->in = value;
    } else if (strcmp(key, "--out") == 0) {
      o->out = value;
    } else if (strcmp(key, "--kernels") == 0) {
      o->kernels = value;
    } else {
      return -1;
    }
  }
  return o->on_cpu || o->on_device ? 0 : -1;
}

typedef struct {
  double open_seconds;    // device and program
  double device_seconds;  // memory, kernels, results
  double prepare_seconds;
  double kernel_seconds;  // of simulation, the host's clock
  uint64_t instructions;
  uint64_t copied_bytes;
  gpusim_device* device;
  gpusim_program* program;
  gpusim_buffer* buffer;
} device_run_t;

static int open_device(device_run_t* run, const example_options_t* o, gpusim_kernel** kernel) {
  if (gpusim_open(o->open, &run->device) != GPUSIM_OK) return trouble("opening the device");
#ifdef GPUSIM_NATIVE
  if (gpusim_program_from_file(run->device, o->kernels, &run->program) != GPUSIM_OK ||
      gpusim_kernel_from_name(run->program, example->kernel_name, kernel) != GPUSIM_OK) {
    return trouble("loading the kernels");
  }
#else
  if (gpusim_program_from_self(run->device, &run->program) != GPUSIM_OK ||
      gpusim_kernel_from_function(run->program, (const void*)(uintptr_t)example->kernel, kernel) !=
          GPUSIM_OK) {
    return trouble("loading the kernels");
  }
#endif
  return 0;
}

static int launch(device_run_t* run, gpusim_queue* queue, gpusim_kernel* kernel,
                  const example_options_t* o) {
  for (uint32_t r = 0; r < o->repeat; ++r) {
    gpusim_event* event;
    if (gpusim_enqueue_kernel(queue, kernel, o->cores, 0, NULL, &event) != GPUSIM_OK) {
      return trouble("starting the kernel");
    }
    const int status = gpusim_event_finish(event, -1);
    gpusim_statistics s;
    if (gpusim_event_statistics(event, &s) == GPUSIM_OK) {
      run->kernel_seconds += s.seconds;
      run->instructions += s.guest_instructions;
    }
    gpusim_event_release(event);
    if (status != GPUSIM_OK) return trouble("the kernel");
  }
  return 0;
}

static int run_on_device(device_run_t* run, const example_options_t* o, size_t bytes) {
  gpusim_kernel* kernel;
  gpusim_queue* queue;
  double begin = now();
  if (open_device(run, o, &kernel) != 0) return 2;
  run->open_seconds = now() - begin;

  begin = now();
  if (gpusim_buffer_create(run->device, 0, bytes, NULL, &run->buffer) != GPUSIM_OK ||
      gpusim_queue_create(run->device, &queue) != GPUSIM_OK) {
    return trouble("memory");
  }
  run->device_seconds = now() - begin;
  begin = now();
  // Where the cores will read it: nothing is copied.
  example->prepare(gpusim_buffer_pointer(run->buffer), o);
  run->prepare_seconds = now() - begin;

  begin = now();
  if (gpusim_kernel_set_buffer(kernel, 0, run->buffer, 0) != GPUSIM_OK ||
      gpusim_kernel_set_core_id(kernel, 1) != GPUSIM_OK ||
      gpusim_kernel_set_core_count(kernel, 2) != GPUSIM_OK) {
    return trouble("arguments");
  }
  const int status = launch(run, queue, kernel, o);
  run->device_seconds += now() - begin;
  gpusim_counters counters;
  if (gpusim_device_counters(run->device, &counters) == GPUSIM_OK) {
    run->copied_bytes = counters.copied_bytes;
  }
  gpusim_kernel_release(kernel);
  gpusim_queue_release(queue);
  return status;
}

// Where two results differ at all shows in this number.
static uint64_t checksum(const void* results, size_t size_bytes) {
  const unsigned char* const p = results;
  uint64_t x = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size_bytes; ++i) x = (x ^ p[i]) * UINT64_C(0x100000001b3);
  return x;
}

static int run_all(const example_options_t* o, size_t bytes) {
  device_run_t run;
  memset(&run, 0, sizeof run);
  int status = 0;
  const void* on_device = NULL;
  const void* on_cpu = NULL;
  size_t size_bytes = 0;
  if (o->on_device) {
    status = run_on_device(&run, o, bytes);
    if (status != 0) return status;
    on_device = example->results(gpusim_buffer_pointer(run.buffer), &size_bytes);
  }
  double cpu_seconds = 0;
  void* job = NULL;
  if (o->on_cpu) {
    job = calloc(1, bytes);
    if (job == NULL) {
      fprintf(stderr, "offload_%s: out of memory\n", example->name);
      return 2;
    }
    double begin = now();
    example->prepare(job, o);
    if (!o->on_device) run.prepare_seconds = now() - begin;
    begin = now();
    for (uint32_t r = 0; r < o->repeat; ++r) example->kernel(job, 0, 1);
    cpu_seconds = now() - begin;
    on_cpu = example->results(job, &size_bytes);
  }
  printf("program=offload_%s\nsize=%llu\nrepeat=%u\n", example->name, (unsigned long long)o->size,
         o->repeat);
#ifdef GPUSIM_NATIVE
  printf("setting=native\n");
#else
  printf("setting=guest\n");
#endif
  printf("prepare_seconds=%.6f\n", run.prepare_seconds);
  if (o->on_device) {
    printf("cores=%u\nopen_seconds=%.6f\ndevice_seconds=%.6f\nkernel_seconds=%.6f\n", o->cores,
           run.open_seconds, run.device_seconds, run.kernel_seconds);
    printf("guest_instructions=%llu\nmips=%.0f\ncopied_bytes=%llu\n",
           (unsigned long long)run.instructions,
           run.kernel_seconds > 0 ? (double)run.instructions / run.kernel_seconds / 1e6 : 0.0,
           (unsigned long long)run.copied_bytes);
  }
  if (o->on_cpu) printf("cpu_seconds=%.6f\n", cpu_seconds);
  printf("checksum=%016llx\n",
         (unsigned long long)checksum(on_device != NULL ? on_device : on_cpu, size_bytes));
  if (o->on_device && o->on_cpu) {
    const double device = run.open_seconds + run.device_seconds;
    const int equal = memcmp(on_device, on_cpu, size_bytes) == 0;
    printf("region_speedup=%.2f\n", cpu_seconds / run.device_seconds);
    printf("speedup=%.2f\nwhole_speedup=%.2f\nequal=%s\n", cpu_seconds / device,
           (run.prepare_seconds + cpu_seconds) / (run.prepare_seconds + device),
           equal ? "yes" : "no");
    status = equal ? 0 : 1;
  }
  if (example->save != NULL && o->out != NULL &&
      example->save(o->on_device ? gpusim_buffer_pointer(run.buffer) : job, o) != 0) {
    status = 2;
  }
  free(job);
  if (o->on_device) {
    gpusim_buffer_release(run.buffer);
    gpusim_program_release(run.program);
    gpusim_close(run.device);
  }
  return fflush(stdout) == 0 ? status : 2;
}

int example_run(const example_t* its, int argc, char** argv) {
  example = its;
  static char kernels[4096];
  example_options_t options = {.cores = 64, .repeat = 1, .on_device = 1, .on_cpu = 1};
  if (parse(&options, argc, argv) != 0) return usage();
  if (options.size == 0) options.size = example->default_size;
  if (options.kernels == NULL) {
    // X.native finds its kernels in X.elf, the same program for the guest.
    snprintf(kernels, sizeof kernels - 4, "%s", argv[0]);
    char* const dot = strrchr(kernels, '.');
    if (dot != NULL) strcpy(dot, ".elf");
    options.kernels = kernels;
  }
  const size_t bytes = example->plan(&options);
  return bytes == 0 ? 2 : run_all(&options, bytes);
}
