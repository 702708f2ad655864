// SPDX-License-Identifier: MIT
// What libGPUSim's front needs from the side that reaches the simulator: the driver (driver/), or
// a simulator in this process (native/). A library has exactly one port, gpusim_offload_port.
//
// All functions are thread-safe. They return a gpusim_status; for a failure they have called
// gpusim_offload_fail() before.
#ifndef GPUSIM_OFFLOAD_PORT_H
#define GPUSIM_OFFLOAD_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "libgpusim/offload/gpusim.h"
#include "qemu_bridge/wire/gpusim_wire.h"

#ifdef __cplusplus
extern "C" {
#endif

// Sets the calling thread's last error and returns `status`.
__attribute__((format(printf, 2, 3))) int gpusim_offload_fail(int status, const char* format, ...);
// The gpusim_status for an errno of Linux, positive or negative; 0 for 0.
int gpusim_offload_status_of_errno(int number);

struct gpusim_port_option {
  const char* key;
  const char* value;
};

// Memory that kernels reach.
struct gpusim_port_memory {
  uint64_t device_address;
  void* pointer;  // the caller's view of the first byte
  uint64_t size_bytes;
  uint64_t handle;  // the port's own
};

// How a kernel ended.
struct gpusim_port_end {
  int status;  // gpusim_status
  struct gpusim_reply reply;
};

struct gpusim_port;

struct gpusim_port_operations {
  const char* default_options_hint;  // the known keys, for messages
  int supports_self;                 // programs can be the calling executable

  int (*open)(const struct gpusim_port_option* options, unsigned count, struct gpusim_port** port);
  // No kernel runs, all memory was freed or is freed with it.
  void (*close)(struct gpusim_port* port);
  int (*properties)(struct gpusim_port* port, gpusim_properties* properties);
  int (*counters)(struct gpusim_port* port, gpusim_counters* counters);

  // Memory of the device's: whole pages, zero.
  int (*alloc)(struct gpusim_port* port, uint64_t size_bytes, int read_only,
               struct gpusim_port_memory* memory);
  // The caller's memory: whole pages. At its own address where that is a device address.
  int (*attach)(struct gpusim_port* port, void* pointer, uint64_t size_bytes, int read_only,
                struct gpusim_port_memory* memory);
  // GPUSIM_BUSY: not while kernels run; call again later. The memory is still there.
  int (*free)(struct gpusim_port* port, const struct gpusim_port_memory* memory);

  // `flags`: enum gpusim_load_flags. `name` stands in messages.
  int (*load)(struct gpusim_port* port, const void* bytes, size_t size_bytes, const char* name,
              uint32_t flags, uint32_t* program);
  int (*unload)(struct gpusim_port* port, uint32_t program);  // GPUSIM_BUSY as with free
  int (*symbol)(struct gpusim_port* port, uint32_t program, const char* name, uint64_t* address,
                uint64_t* size_bytes);

  // Whether the function can be a kernel, as far as its code shows.
  int (*check)(struct gpusim_port* port, uint32_t program, uint64_t function);

  // *ticket = 0: it has ended already, and *end says how. Fails only if nothing was started.
  int (*launch)(struct gpusim_port* port, const struct gpusim_launch* launch, uint64_t* ticket,
                struct gpusim_port_end* end);
  // GPUSIM_OK: it has ended, *end says how, and the ticket is gone. GPUSIM_TIMED_OUT (no error
  // text): it goes on. Anything else: it is lost. One thread at a time waits for a ticket.
  // `may_freeze`: the guest's clocks may stand still meanwhile, as nothing else is to happen.
  int (*wait)(struct gpusim_port* port, uint64_t ticket, uint64_t timeout_ns, int may_freeze,
              struct gpusim_port_end* end);
  // Of a ticket that has ended: nothing happens.
  int (*cancel)(struct gpusim_port* port, uint64_t ticket);
};

#define GPUSIM_PORT_NO_LIMIT UINT64_MAX  // of timeout_ns

extern const struct gpusim_port_operations gpusim_offload_port;

#ifdef __cplusplus
}
#endif

#endif  // GPUSIM_OFFLOAD_PORT_H
