/* SPDX-License-Identifier: MIT */
/* What the guest's test programs share: checks, the driver's calls, what is in use. */
#ifndef GPUSIM_TESTS_GUEST_DRIVER_CHECK_H
#define GPUSIM_TESTS_GUEST_DRIVER_CHECK_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "guest_driver/include/uapi/linux/gpusim.h"
#include "qemu_bridge/wire/gpusim_wire.h"

static int failures;

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      ++failures;                                                                          \
      printf("FAILED %s:%d: %s (errno %d)\n", __FILE_NAME__, __LINE__, #condition, errno); \
    }                                                                                      \
  } while (0)

#define CHECK_ERRNO(call, number)                                                            \
  do {                                                                                       \
    errno = 0;                                                                               \
    const long result_ = (long)(call);                                                       \
    if (result_ != -1 || errno != (number)) {                                                \
      ++failures;                                                                            \
      printf("FAILED %s:%d: %s gave %ld, errno %d instead of %s\n", __FILE_NAME__, __LINE__, \
             #call, result_, errno, #number);                                                \
    }                                                                                        \
  } while (0)

#ifndef __FILE_NAME__
#define __FILE_NAME__ "test"
#endif

static inline uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline int open_device(void) { return open("/dev/gpusim", O_RDWR | O_CLOEXEC); }

static inline struct gpusim_ioc_info device_info(int fd) {
  struct gpusim_ioc_info info;
  memset(&info, 0, sizeof info);
  CHECK(ioctl(fd, GPUSIM_IOC_INFO, &info) == 0);
  return info;
}

static inline int device_alloc(int fd, uint64_t size, uint64_t address,
                               struct gpusim_ioc_alloc* alloc) {
  memset(alloc, 0, sizeof *alloc);
  alloc->size_bytes = size;
  alloc->device_address = address;
  return ioctl(fd, GPUSIM_IOC_ALLOC, alloc);
}

static inline int device_pin(int fd, const void* user, uint64_t size, uint64_t address,
                             uint32_t flags, struct gpusim_ioc_pin* pin) {
  memset(pin, 0, sizeof *pin);
  pin->user_address = (uint64_t)(uintptr_t)user;
  pin->size_bytes = size;
  pin->device_address = address;
  pin->flags = flags;
  return ioctl(fd, GPUSIM_IOC_PIN, pin);
}

static inline int device_free(int fd, uint32_t handle) {
  return ioctl(fd, GPUSIM_IOC_FREE, &handle);
}

static inline int device_submit(int fd, uint32_t op, struct gpusim_ioc_submit* submit) {
  static union gpusim_request request;
  memset(submit, 0, sizeof *submit);
  submit->op = op;
  submit->request = (uint64_t)(uintptr_t)&request;
  return ioctl(fd, GPUSIM_IOC_SUBMIT, submit);
}

static inline int device_wait(int fd, uint64_t ticket, uint64_t timeout_ns, uint32_t flags,
                              struct gpusim_ioc_wait* wait) {
  memset(wait, 0, sizeof *wait);
  wait->ticket = ticket;
  wait->timeout_ns = timeout_ns;
  wait->flags = flags;
  return ioctl(fd, GPUSIM_IOC_WAIT, wait);
}

/* A number from a file "NAME VALUE" per line, or of one value. */
static inline long read_number(const char* path, const char* name) {
  char line[256];
  long value = -1;
  FILE* const file = fopen(path, "r");
  if (!file) return -1;
  while (fgets(line, sizeof line, file)) {
    const size_t length = name ? strlen(name) : 0;
    if (!name || (!strncmp(line, name, length) && strchr(" \t:", line[length])))
      value = strtol(line + length + (name && line[length] == ':'), NULL, 10);
  }
  fclose(file);
  return value;
}

struct in_use {
  long files, calls, pinned, allocated, foll_pin, free_kib;
};

static inline struct in_use read_in_use(void) {
  read_number("/proc/sys/vm/stat_refresh", NULL); /* adds up what the CPUs counted */
  const struct in_use use = {
      read_number("/sys/class/misc/gpusim/files", NULL),
      read_number("/sys/class/misc/gpusim/calls", NULL),
      read_number("/sys/class/misc/gpusim/pinned_pages", NULL),
      read_number("/sys/class/misc/gpusim/allocated_pages", NULL),
      read_number("/proc/vmstat", "nr_foll_pin_acquired") -
          read_number("/proc/vmstat", "nr_foll_pin_released"),
      read_number("/proc/meminfo", "MemAvailable"),
  };
  return use;
}

static inline void print_in_use(const char* when, struct in_use use) {
  printf(
      "%s: files %ld, calls %ld, pinned pages %ld (kernel's count %ld), allocated pages %ld, "
      "available %ld KiB\n",
      when, use.files, use.calls, use.pinned, use.foll_pin, use.allocated, use.free_kib);
}

/* Waits until the driver keeps nothing any more, at most some seconds. */
static inline bool all_is_given_back(double seconds) {
  const uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
  for (;;) {
    const struct in_use use = read_in_use();
    if (!use.files && !use.calls && !use.pinned && !use.allocated && !use.foll_pin) return true;
    if (now_ns() > end) {
      print_in_use("left over", use);
      return false;
    }
    usleep(2000);
  }
}

#endif
