/* SPDX-License-Identifier: MIT */
/*
 * libGPUSim: a simulated chip of thousands of cores, as a device that runs your kernels.
 *
 * The same header serves two libraries. In a guest under QEMU the device is /dev/gpusim, and kernels are
 * functions of the calling program itself (gpusim_program_from_self). In a host program the
 * device is simulated in the calling process, and kernels are functions of an ELF file of a guest ISA
 * (gpusim_program_from_file).
 *
 *   gpusim_device *device;
 *   gpusim_program *program;
 *   gpusim_kernel *kernel;
 *   gpusim_queue *queue;
 *   gpusim_buffer *buffer;
 *
 *   gpusim_open(NULL, &device);
 *   gpusim_program_from_self(device, &program);
 *   gpusim_kernel_from_function(program, (void *)add, &kernel);
 *   gpusim_buffer_create(device, 0, size, NULL, &buffer);
 *   gpusim_queue_create(device, &queue);
 *   gpusim_launch(queue, kernel, 2048, GPUSIM_CORE, buffer, 3.5f); (gpusim_launch.h)
 *   gpusim_queue_finish(queue);
 *
 * Addresses. Simulated cores see buffers at device addresses, gpusim_buffer_device_address(). Wherever the
 * address space allows they are the caller's own, so that pointers inside of buffers hold on both
 * sides; gpusim_buffer_is_unified() tells.
 *
 * Threads. All functions may be called from any thread. Objects count references: releasing one that is in use
 * by a command or another object is safe. Setting arguments of one kernel from two threads is not.
 *
 * Errors. Functions return 0 (GPUSIM_OK) or a negative gpusim_status; gpusim_last_error() has a
 * sentence about the calling thread's last failure.
 */
#ifndef GPUSIM_H
#define GPUSIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSIM_API_VERSION 2

typedef enum gpusim_status {
	GPUSIM_OK = 0,
	GPUSIM_INVALID_ARGUMENT = -1,
	GPUSIM_NO_DEVICE = -2,       /* no /dev/gpusim, no daemon, or no right to open it */
	GPUSIM_DEVICE_LOST = -3,     /* the daemon died: close the device and open it again */
	GPUSIM_OUT_OF_MEMORY = -4,
	GPUSIM_INVALID_PROGRAM = -5, /* not an ELF file or module that the device can run */
	GPUSIM_NOT_FOUND = -6,       /* no such symbol, property or target */
	GPUSIM_KERNEL_FAILED = -7,   /* it faulted, deadlocked, exceeded a limit or ended with a status
					other than 0; see statistics */
	GPUSIM_CANCELLED = -8,
	GPUSIM_TIMED_OUT = -9,
	GPUSIM_BUSY = -10,
	GPUSIM_NOT_SUPPORTED = -11,
	GPUSIM_INTERNAL = -12,
} gpusim_status;

/* "GPUSIM_NOT_FOUND" */
const char *gpusim_status_name(int status);
/* Of this thread's last failed call, in its own words; "" if there was none. Valid until the next one. */
const char *gpusim_last_error(void);

typedef struct gpusim_device gpusim_device;
typedef struct gpusim_buffer gpusim_buffer;
typedef struct gpusim_program gpusim_program;
typedef struct gpusim_kernel gpusim_kernel;
typedef struct gpusim_queue gpusim_queue;
typedef struct gpusim_event gpusim_event;

/* ---- Device ---- */

/*
 * `options`: NULL or "key=value,key=value". In a guest: device (path, /dev/gpusim), wait (sleep or
 * frozen: whether the guest's clocks may stand still while a thread waits without limit for a
 * running kernel; for programs in which nothing else has to happen meanwhile). In a host program:
 * backend (auto, scalar, simd, cuda), threads (0: all), memory (how a GPU reaches the program's:
 * auto, registered, pageable or copied; docs/gpu.md), regions (whether hot code is compiled for a
 * GPU: off, on or wait). NOT_FOUND: unknown key.
 */
int gpusim_open(const char *options, gpusim_device **device);
/* Waits for queued commands. The device goes when the last object made from it is released. */
int gpusim_close(gpusim_device *device);

typedef struct gpusim_properties {
	uint32_t api_version;
	uint32_t most_cores;          /* in one kernel */
	uint64_t address_space_bytes; /* device addresses are below this */
	uint64_t memory_bytes;        /* that the device may allocate */
	uint64_t page_size_bytes;     /* buffers over existing memory cover whole pages of this size */
	char isa[16];                 /* of programs: "aarch64" */
	char isas[64];                /* all that this device's simulator knows, separated by commas */
	char backend[16];             /* "simd" */
	char backends[64];            /* all, best first, separated by commas */
	char description[128];        /* what simulates: "simd: AMD EPYC, AVX3, 64 lanes"; of a GPU
	                                 also how it reaches guest memory */
	char transport[16];           /* "native", "semihosting" or "virtio" */
	uint64_t reserved[16];
} gpusim_properties;

int gpusim_device_properties(gpusim_device *device, gpusim_properties *properties);

/* Since the device was opened. */
typedef struct gpusim_counters {
	uint64_t copied_bytes;    /* between the caller's memory and the machine's, for kernels: 0 where
	                             the simulator works in place */
	uint64_t mapped_bytes;    /* that kernels reach, now */
	uint64_t kernels;         /* ended */
	uint64_t translations;    /* programs translated */
	uint64_t cached_programs; /* taken from the cache instead */
	uint64_t posted_kernels;  /* in a guest: launched without a system call */
	uint64_t reserved[2];
} gpusim_counters;

int gpusim_device_counters(gpusim_device *device, gpusim_counters *counters);

/*
 * Who gets what a kernel's cores print, gpusim_printf() and the like, when the kernel ends: whole lines,
 * core 0's first, then core 1's; at most 1 MiB, and then a line that says how many were lost. At
 * first it goes to the caller's standard output (stdio's stdout). NULL: only gpusim_event_output()
 * has it. The function is called by whichever thread finds that the kernel has ended, which may be
 * one of the library's; it must not call the library.
 */
typedef void (*gpusim_output_function)(void *context, const char *text, size_t size_bytes);
int gpusim_device_set_output(gpusim_device *device, gpusim_output_function function,
			     void *context);

/* ---- Buffers ---- */

enum gpusim_buffer_flags {
	GPUSIM_BUFFER_READ_ONLY = 1,     /* for kernels */
	GPUSIM_BUFFER_USE_HOST_PTR = 2,  /* over the caller's memory, without a copy */
	GPUSIM_BUFFER_COPY_HOST_PTR = 4, /* device memory with this content at first */
};

/*
 * Device memory is zero at first. With USE_HOST_PTR the memory must stay until the buffer is released; kernels can
 * reach all of the pages that it touches. Two such buffers may not share a page unless one lies
 * within the other. OUT_OF_MEMORY: also where memory cannot be pinned (RLIMIT_MEMLOCK).
 */
int gpusim_buffer_create(gpusim_device *device, uint32_t flags, size_t size_bytes, void *host_ptr,
			 gpusim_buffer **buffer);
int gpusim_buffer_release(gpusim_buffer *buffer);
size_t gpusim_buffer_size(const gpusim_buffer *buffer);
uint64_t gpusim_buffer_device_address(const gpusim_buffer *buffer);
/* 1 if the device address equals the address that gpusim_buffer_pointer() gives. */
int gpusim_buffer_is_unified(const gpusim_buffer *buffer);
/* The caller's view of the memory: for device memory as long as the buffer lives. Kernels and the caller must
 * not use it at once without atomics; mapping commands order that in a queue. */
void *gpusim_buffer_pointer(gpusim_buffer *buffer);

/* ---- Programs and kernels ---- */

/*
 * The calling executable: its code, and its global variables as they are, shared with the caller. It must
 * not be position-independent with addresses above the device's (link with -static or -no-pie).
 * NOT_SUPPORTED in a host program.
 */
int gpusim_program_from_self(gpusim_device *device, gpusim_program **program);
/* An ELF file or a module. Its global variables are the device's own. */
int gpusim_program_from_file(gpusim_device *device, const char *path, gpusim_program **program);
int gpusim_program_from_memory(gpusim_device *device, const void *bytes, size_t size_bytes,
			       gpusim_program **program);
int gpusim_program_release(gpusim_program *program);
/* Device address and size of a symbol; either pointer may be NULL. */
int gpusim_program_symbol(gpusim_program *program, const char *name, uint64_t *device_address,
			  uint64_t *size_bytes);

/*
 * NOT_SUPPORTED: the function calls printf(), malloc() or another function that takes locks of the
 * C library, in a program that shares its variables with the caller; gpusim_last_error() says which,
 * and what to do instead. What is called through pointers is stopped when it is called.
 */
int gpusim_kernel_from_name(gpusim_program *program, const char *name, gpusim_kernel **kernel);
/* A function of the calling executable; `program` comes from gpusim_program_from_self. */
int gpusim_kernel_from_function(gpusim_program *program, const void *function,
				gpusim_kernel **kernel);
int gpusim_kernel_release(gpusim_kernel *kernel);

/*
 * Arguments, numbered from 0 as in the function's declaration, at most eight integers or pointers and
 * eight floating-point numbers. They are copied when the kernel is enqueued. INVALID_ARGUMENT: the
 * function does not take that, as far as its debug information (-g) says; enqueuing says which
 * argument is missing.
 */
int gpusim_kernel_set_u64(gpusim_kernel *kernel, unsigned index, uint64_t value);
int gpusim_kernel_set_i64(gpusim_kernel *kernel, unsigned index, int64_t value);
int gpusim_kernel_set_float(gpusim_kernel *kernel, unsigned index, float value);
int gpusim_kernel_set_double(gpusim_kernel *kernel, unsigned index, double value);
/* The device address of a byte in the buffer. The kernel keeps a reference. */
int gpusim_kernel_set_buffer(gpusim_kernel *kernel, unsigned index, gpusim_buffer *buffer,
			     size_t offset_bytes);
/*
 * A structure by value, up to 4 KiB: each core has its own copy. It counts as one or two of the eight
 * integers (two from 9 to 16 bytes). Not for structures with members of 16 bytes' alignment.
 * Structures of nothing but one to four floats or doubles are passed otherwise. Where the program's debug
 * information says so set_structure does that; without it use set_floats and set_doubles.
 */
int gpusim_kernel_set_structure(gpusim_kernel *kernel, unsigned index, const void *bytes,
				size_t size_bytes);
int gpusim_kernel_set_floats(gpusim_kernel *kernel, unsigned index, const float *numbers,
			     size_t count);
int gpusim_kernel_set_doubles(gpusim_kernel *kernel, unsigned index, const double *numbers,
			      size_t count);
int gpusim_kernel_set_core_id(gpusim_kernel *kernel, unsigned index);
int gpusim_kernel_set_core_count(gpusim_kernel *kernel, unsigned index);
/* Of gpusim_enqueue_kernel_2d: the core's column and row, and how many there are. */
int gpusim_kernel_set_core_x(gpusim_kernel *kernel, unsigned index);
int gpusim_kernel_set_core_y(gpusim_kernel *kernel, unsigned index);
int gpusim_kernel_set_columns(gpusim_kernel *kernel, unsigned index);
int gpusim_kernel_set_rows(gpusim_kernel *kernel, unsigned index);
/* base + core * step */
int gpusim_kernel_set_affine(gpusim_kernel *kernel, unsigned index, uint64_t base, uint64_t step);
/* One value per core; copied at once. The kernel may then be enqueued over at most `count` cores. */
int gpusim_kernel_set_per_core_u64(gpusim_kernel *kernel, unsigned index, const uint64_t *values,
				   uint32_t count);
int gpusim_kernel_set_per_core_double(gpusim_kernel *kernel, unsigned index, const double *values,
				      uint32_t count);

typedef struct gpusim_limits {
	uint64_t stack_size_bytes; /* per core; 0: automatic */
	uint64_t max_instructions; /* per core; 0: no limit */
	double seconds;            /* of the host's clock; 0: no limit but the device's own */
} gpusim_limits;
int gpusim_kernel_set_limits(gpusim_kernel *kernel, const gpusim_limits *limits);

/* ---- Queues ---- */

/*
 * Commands of one queue execute in order, asynchronously to the caller; queues among each other do not:
 * kernels of different queues run at once, by turns of some milliseconds, up to eight of a device.
 */
int gpusim_queue_create(gpusim_device *device, gpusim_queue **queue);
int gpusim_queue_release(gpusim_queue *queue); /* waits */
/* Until all commands enqueued so far have ended. The status of the first that failed since the last call. */
int gpusim_queue_finish(gpusim_queue *queue);

/*
 * All commands: begin when the `wait_count` events have ended (failed ones make them fail), and give an
 * event if `event` is not NULL, which must be released.
 * After a failed command, later ones of the queue still execute.
 */

/* Each of `cores` cores calls the function once. */
int gpusim_enqueue_kernel(gpusim_queue *queue, gpusim_kernel *kernel, uint32_t cores,
			  unsigned wait_count, gpusim_event *const *wait_list,
			  gpusim_event **event);
/*
 * Over columns * rows cores: core c is in column c % columns of row c / columns.
 */
int gpusim_enqueue_kernel_2d(gpusim_queue *queue, gpusim_kernel *kernel, uint32_t columns,
			     uint32_t rows, unsigned wait_count, gpusim_event *const *wait_list,
			     gpusim_event **event);
/*
 * The whole program as a process of its own over `cores` cores, as `gpusim run` would: with its main, C
 * library and memory of its own. `argv` ends with NULL.
 */
int gpusim_enqueue_program(gpusim_queue *queue, gpusim_program *program, uint32_t cores,
			   const char *const *argv, const gpusim_limits *limits,
			   unsigned wait_count, gpusim_event *const *wait_list,
			   gpusim_event **event);
int gpusim_enqueue_write(gpusim_queue *queue, gpusim_buffer *buffer, size_t offset_bytes,
			 size_t size_bytes, const void *from, unsigned wait_count,
			 gpusim_event *const *wait_list, gpusim_event **event);
int gpusim_enqueue_read(gpusim_queue *queue, gpusim_buffer *buffer, size_t offset_bytes,
			size_t size_bytes, void *to, unsigned wait_count,
			gpusim_event *const *wait_list, gpusim_event **event);
int gpusim_enqueue_copy(gpusim_queue *queue, gpusim_buffer *from, size_t from_offset_bytes,
			gpusim_buffer *to, size_t to_offset_bytes, size_t size_bytes,
			unsigned wait_count, gpusim_event *const *wait_list, gpusim_event **event);
/* The pattern over and over; sizes are multiples of its size, 1 to 128 bytes. */
int gpusim_enqueue_fill(gpusim_queue *queue, gpusim_buffer *buffer, const void *pattern,
			size_t pattern_size_bytes, size_t offset_bytes, size_t size_bytes,
			unsigned wait_count, gpusim_event *const *wait_list, gpusim_event **event);
/* *pointer is valid for the caller from the event's end to the unmapping. */
int gpusim_enqueue_map(gpusim_queue *queue, gpusim_buffer *buffer, size_t offset_bytes,
		       size_t size_bytes, void **pointer, unsigned wait_count,
		       gpusim_event *const *wait_list, gpusim_event **event);
int gpusim_enqueue_unmap(gpusim_queue *queue, gpusim_buffer *buffer, void *pointer,
			 unsigned wait_count, gpusim_event *const *wait_list,
			 gpusim_event **event);
/* Ends when all that was enqueued before it has. */
int gpusim_enqueue_marker(gpusim_queue *queue, gpusim_event **event);

/* ---- Events ---- */

#define GPUSIM_RUNNING 1 /* queued or running */

/* GPUSIM_RUNNING, or the status that the command ended with. */
int gpusim_event_status(gpusim_event *event);
/* The command's status; TIMED_OUT (it goes on) after `seconds`, < 0: no limit. */
int gpusim_event_finish(gpusim_event *event, double seconds);
/* A kernel is stopped at the end of its slice; a command that has not begun never does. */
int gpusim_event_cancel(gpusim_event *event);
int gpusim_event_retain(gpusim_event *event);
int gpusim_event_release(gpusim_event *event);

/*
 * On the caller's CLOCK_MONOTONIC: when the command was enqueued, when it began, when it ended. A
 * command that never began has started_ns 0. BUSY: it has not ended. How long a kernel
 * ran is measured by the simulator's clock; where the caller's stands still meanwhile
 * (wait=frozen) the times are as close together as that one says.
 */
typedef struct gpusim_times {
	uint64_t queued_ns, started_ns, ended_ns;
} gpusim_times;
int gpusim_event_times(gpusim_event *event, gpusim_times *times);

#define GPUSIM_CLASS_COUNT 15

/* Of a kernel that has ended. */
typedef struct gpusim_statistics {
	uint64_t guest_instructions; /* all cores together */
	uint64_t classes[GPUSIM_CLASS_COUNT];
	double seconds; /* of simulation, host's clock */
	double mips;    /* guest instructions per microsecond of it */
	uint32_t cores;
	int32_t exit_status; /* 0, or the lowest-numbered failing core's; 128 + signal for a fault */
	uint32_t faults;     /* cores that faulted */
	uint32_t fault_core; /* the first of them */
	uint64_t fault_pc;
	uint64_t output_bytes; /* that cores wrote to standard output and error */
	uint64_t copied_bytes; /* between the caller's memory and the machine's, while it ran */
	uint64_t reserved[7];
} gpusim_statistics;

int gpusim_event_statistics(gpusim_event *event, gpusim_statistics *statistics);
/* "integer_arithmetic"; NULL outside 0 ... GPUSIM_CLASS_COUNT - 1. */
const char *gpusim_class_name(unsigned index);
/* Joules that the kernel's instructions take on a target, "fermi" for example; NOT_FOUND: unknown,
 * with the known ones in gpusim_last_error(). */
int gpusim_event_energy(gpusim_event *event, const char *target, double *joules);
/* What the kernel's cores wrote, as gpusim_device_set_output() says; valid as long as the event. */
int gpusim_event_output(gpusim_event *event, const char **text, size_t *size_bytes);

#ifdef __cplusplus
}
#endif

#include "gpusim_launch.h"

#endif
