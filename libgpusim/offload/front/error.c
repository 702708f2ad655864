// SPDX-License-Identifier: MIT
// Statuses, their names, and the calling thread's last error.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

static _Thread_local char last_text[kTextBytes];

const char* gpusim_last_error(void) { return last_text; }

int gpusim_offload_fail(int status, const char* format, ...) {
  // The arguments may be the old text itself.
  char text[kTextBytes];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(last_text, sizeof last_text, "%s", text);
  return status;
}

const char* gpusim_status_name(int status) {
  static const char* const names[] = {"GPUSIM_OK",
                                      "GPUSIM_INVALID_ARGUMENT",
                                      "GPUSIM_NO_DEVICE",
                                      "GPUSIM_DEVICE_LOST",
                                      "GPUSIM_OUT_OF_MEMORY",
                                      "GPUSIM_INVALID_PROGRAM",
                                      "GPUSIM_NOT_FOUND",
                                      "GPUSIM_KERNEL_FAILED",
                                      "GPUSIM_CANCELLED",
                                      "GPUSIM_TIMED_OUT",
                                      "GPUSIM_BUSY",
                                      "GPUSIM_NOT_SUPPORTED",
                                      "GPUSIM_INTERNAL"};
  if (status == GPUSIM_RUNNING) return "GPUSIM_RUNNING";
  if (status > 0 || status < GPUSIM_INTERNAL) return "unknown status";
  return names[-status];
}

int gpusim_offload_status_of_errno(int number) {
  switch (number < 0 ? -number : number) {
    case 0:
      return GPUSIM_OK;
    case EINVAL:
    case EEXIST:
    case E2BIG:
    case EFAULT:
    case ERANGE:
    case EOVERFLOW:
      return GPUSIM_INVALID_ARGUMENT;
    case ENODEV:
    case ENXIO:
    case EACCES:
    case EPERM:
    case EPROTO:  // what was started as the simulator does not speak like one
      return GPUSIM_NO_DEVICE;
    case EIO:
      return GPUSIM_DEVICE_LOST;
    case ENOMEM:
    case EAGAIN:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case EDQUOT:
      return GPUSIM_OUT_OF_MEMORY;
    case ENOEXEC:
    case EFBIG:
      return GPUSIM_INVALID_PROGRAM;
    case ENOENT:
      return GPUSIM_NOT_FOUND;
    case EDEADLK:
      return GPUSIM_KERNEL_FAILED;
    case ECANCELED:
      return GPUSIM_CANCELLED;
    case ETIMEDOUT:
      return GPUSIM_TIMED_OUT;
    case EBUSY:
      return GPUSIM_BUSY;
    case EOPNOTSUPP:
    case ENOSYS:
    case ENOTTY:
      return GPUSIM_NOT_SUPPORTED;
    default:
      return GPUSIM_INTERNAL;
  }
}

const char* gpusim_class_name(unsigned index) {
  // As in docs/instruction_classes.md.
  static const char* const names[GPUSIM_CLASS_COUNT] = {
      "integer_arithmetic", "integer_division",  "integer_logical",
      "integer_comparison", "float_arithmetic",  "float_division",
      "float_comparison",   "double_arithmetic", "double_division",
      "special_function",   "on_chip_memory",    "off_chip_memory",
      "control_flow",       "parallelism",       "other"};
  return index < GPUSIM_CLASS_COUNT ? names[index] : NULL;
}
