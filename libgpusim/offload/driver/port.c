// SPDX-License-Identifier: MIT
// The port of a guest: /dev/gpusim.
#include "libgpusim/offload/port.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "guest_driver/include/uapi/linux/gpusim.h"

#define fail gpusim_offload_fail

struct leftover {
  struct leftover* next;
  struct gpusim_port_memory memory;
};

struct gpusim_port {
  int fd;
  uint32_t wait_flags;
  uint32_t transport;
  uint64_t address_space_bytes;
  char path[128];
  pthread_mutex_t mutex;
  struct leftover* leftovers;  // files that were loaded while kernels ran

  struct gpusim_direct* direct;  // NULL: launches go through the driver
  struct gpusim_port_memory direct_memory;
  atomic_bool direct_is_taken;  // by a thread that posts, or by a launch that has not ended
  uint64_t direct_tickets;      // given out; of whoever has taken it
  atomic_ullong direct_next_look;  // when to ask next whether the daemon lives, by now_ns()
  uint64_t question;               // ticket of what was asked then; 0: none
  unsigned forks;                  // of the process that opened it
};

#define QUOTA_HINT "this user has as much as the driver allows (parameter %s of its module)"

// Fails with what the driver said: `text` of a reply if there is any.
static int fail_errno(int number, const char* what, const char* text) {
  if (number < 0) number = -number;
  const int status = gpusim_offload_status_of_errno(number);
  if (status == GPUSIM_DEVICE_LOST) {
    return fail(status,
                "%s: the simulator behind /dev/gpusim is gone; close the device and open it "
                "again",
                what);
  }
  if (text != NULL && text[0] != 0) return fail(status, "%s: %s", what, text);
  if (number == EDQUOT) return fail(status, "%s: " QUOTA_HINT, what, "commands_per_user");
  return fail(status, "%s: %s", what, strerror(number));
}

// 0 or an errno. Signals that the program handles do not show.
static int call(int fd, unsigned long request, void* argument) {
  for (;;) {
    if (ioctl(fd, request, argument) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// ---- Operations of the daemon ------------------------------------------------------------------

// 0, with *status; ETIMEDOUT; or another errno: the ticket is lost.
static int wait_ticket(struct gpusim_port* port, uint64_t ticket, uint64_t timeout_ns,
                       uint32_t flags, struct gpusim_reply* reply, int* status) {
  const uint64_t begin = timeout_ns != GPUSIM_PORT_NO_LIMIT && timeout_ns != 0 ? now_ns() : 0;
  uint64_t left = timeout_ns;
  for (;;) {
    struct gpusim_ioc_wait wait;
    memset(&wait, 0, sizeof wait);
    wait.ticket = ticket;
    wait.timeout_ns = left;
    wait.reply = (uint64_t)(uintptr_t)reply;
    wait.flags = flags;
    if (ioctl(port->fd, GPUSIM_IOC_WAIT, &wait) == 0) {
      *status = wait.status;
      return 0;
    }
    if (errno == EAGAIN) return ETIMEDOUT;
    if (errno != EINTR) return errno;
    if (begin != 0) {
      const uint64_t gone = now_ns() - begin;
      left = gone < timeout_ns ? timeout_ns - gone : 0;
    }
  }
}

static int submit(struct gpusim_port* port, uint32_t op, const union gpusim_request* request,
                  struct gpusim_reply* reply, struct gpusim_ioc_submit* result) {
  memset(result, 0, sizeof *result);
  result->op = op;
  result->request = (uint64_t)(uintptr_t)request;
  result->reply = (uint64_t)(uintptr_t)reply;
  return call(port->fd, GPUSIM_IOC_SUBMIT, result);
}

// To the end. Returns a gpusim_status.
static int operate(struct gpusim_port* port, uint32_t op, const union gpusim_request* request,
                   struct gpusim_reply* reply, const char* what) {
  struct gpusim_ioc_submit result;
  memset(reply, 0, sizeof *reply);
  int error = submit(port, op, request, reply, &result);
  int status = result.status;
  if (error == 0 && !result.done) {
    error = wait_ticket(port, result.ticket, GPUSIM_PORT_NO_LIMIT, 0, reply, &status);
  }
  reply->text[sizeof reply->text - 1] = 0;
  // Without a context the driver leaves the reason in the reply.
  if (error != 0) return fail_errno(error, what, reply->text);
  return status == 0 ? GPUSIM_OK : fail_errno(status, what, reply->text);
}

// ---- The device --------------------------------------------------------------------------------

static int read_options(struct gpusim_port* port, const struct gpusim_port_option* options,
                        unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const char* const key = options[i].key;
    const char* const value = options[i].value;
    if (strcmp(key, "device") == 0) {
      if (strlen(value) >= sizeof port->path) {
        return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_open: device=%s is too long", value);
      }
      snprintf(port->path, sizeof port->path, "%s", value);
    } else if (strcmp(key, "wait") == 0) {
      if (strcmp(value, "sleep") != 0 && strcmp(value, "frozen") != 0) {
        return fail(GPUSIM_INVALID_ARGUMENT, "gpusim_open: wait=%s: sleep or frozen", value);
      }
      port->wait_flags = strcmp(value, "frozen") == 0 ? GPUSIM_WAIT_FROZEN : 0;
    } else {
      return fail(GPUSIM_NOT_FOUND, "gpusim_open: no option \"%s\": there are %s", key,
                  gpusim_offload_port.default_options_hint);
    }
  }
  return GPUSIM_OK;
}

// Why there is no device, and what to do.
static int fail_open(const struct gpusim_port* port, int error) {
  if (error == EDQUOT) {
    return fail(GPUSIM_OUT_OF_MEMORY, "%s: " QUOTA_HINT, port->path, "contexts_per_user");
  }
  const char* hint = "";
  int status = GPUSIM_NO_DEVICE;
  switch (error) {
    case ENOENT:
      hint = "; is the driver loaded (modprobe gpusim)?";
      break;
    case EACCES:
    case EPERM:
      hint = "; give yourself the right to open it";
      break;
    case ENODEV:
    case ENXIO:
      hint = "; no simulator answers: QEMU was started without one, or its daemon has ended";
      break;
    case ETIMEDOUT:
      hint = "; the simulator was started, but does not answer";
      break;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EBUSY:  // no more contexts
    case EAGAIN:
      status = GPUSIM_OUT_OF_MEMORY;
      break;
    default:
      break;
  }
  return fail(status, "%s: %s%s", port->path, strerror(error), hint);
}

static int open_file(struct gpusim_port* port) {
  port->fd = open(port->path, O_RDWR | O_CLOEXEC);
  if (port->fd < 0) return fail_open(port, errno);
  struct gpusim_ioc_info info;
  memset(&info, 0, sizeof info);
  const int error = call(port->fd, GPUSIM_IOC_INFO, &info);
  if (error == ENOTTY || error == EINVAL) {
    return fail(GPUSIM_NO_DEVICE, "%s is not a gpusim device", port->path);
  }
  if (error != 0) return fail_open(port, error);
  if (info.driver_version != GPUSIM_DRIVER_VERSION || info.wire_version != GPUSIM_WIRE_VERSION) {
    return fail(GPUSIM_NO_DEVICE,
                "%s: the driver has version %u (wire %u), this library %u (wire %u): take both "
                "from one version of gpusim",
                port->path, info.driver_version, info.wire_version, GPUSIM_DRIVER_VERSION,
                GPUSIM_WIRE_VERSION);
  }
  port->transport = info.transport;
  return GPUSIM_OK;
}

static void port_close(struct gpusim_port* port) {
  if (port->fd >= 0) close(port->fd);
  if (port->direct != NULL) {
    gpusim_arena_release(port->direct_memory.device_address, port->direct_memory.size_bytes);
  }
  while (port->leftovers != NULL) {
    struct leftover* const one = port->leftovers;
    port->leftovers = one->next;
    gpusim_arena_release(one->memory.device_address, one->memory.size_bytes);
    free(one);
  }
  pthread_mutex_destroy(&port->mutex);
  free(port);
}

static int port_open(const struct gpusim_port_option* options, unsigned count,
                     struct gpusim_port** result) {
  struct gpusim_port* const port = calloc(1, sizeof *port);
  if (port == NULL) return fail(GPUSIM_OUT_OF_MEMORY, "gpusim_open: out of memory");
  port->fd = -1;
  pthread_mutex_init(&port->mutex, NULL);
  snprintf(port->path, sizeof port->path, "/dev/gpusim");
  int status = read_options(port, options, count);
  if (status == GPUSIM_OK) status = open_file(port);
  if (status != GPUSIM_OK) {
    port_close(port);
    return status;
  }
  *result = port;
  return GPUSIM_OK;
}

// "name: device" lines, best first.
static void describe_backends(gpusim_properties* properties, const char* text) {
  const char* const end = strchrnul(text, '\n');
  snprintf(properties->description, sizeof properties->description, "%.*s", (int)(end - text),
           text);
  size_t at = 0;
  for (const char* line = text; *line != 0;) {
    const char* const line_end = strchrnul(line, '\n');
    const char* colon = memchr(line, ':', (size_t)(line_end - line));
    if (colon == NULL) colon = line_end;
    const int length = (int)(colon - line);
    if (line == text)
      snprintf(properties->backend, sizeof properties->backend, "%.*s", length, line);
    const size_t room = sizeof properties->backends - at;
    const int n =
        snprintf(properties->backends + at, room, "%s%.*s", at == 0 ? "" : ",", length, line);
    if (n < 0 || (size_t)n >= room) break;
    at += (size_t)n;
    line = *line_end == '\n' ? line_end + 1 : line_end;
  }
}

// The simulator may have more classes than this library, behind those that the library knows.
static int check_classes(struct gpusim_port* port) {
  for (unsigned c = 0; c < GPUSIM_CLASS_COUNT;) {
    union gpusim_request request;
    struct gpusim_reply reply;
    memset(&request, 0, sizeof request);
    request.words.word[0] = c;
    const int status = operate(port, GPUSIM_OP_CLASSES, &request, &reply, port->path);
    if (status != GPUSIM_OK) return status;
    char* rest = reply.text;
    do {
      const char* const name = strsep(&rest, "\n");
      if (strcmp(name, gpusim_class_name(c)) != 0) {
        return fail(GPUSIM_NO_DEVICE,
                    "%s: instruction class %u is \"%s\" there and \"%s\" in this library: take "
                    "both from one version of gpusim",
                    port->path, c, name, gpusim_class_name(c));
      }
      ++c;
    } while (c < GPUSIM_CLASS_COUNT && rest != NULL && *rest != 0);
  }
  return GPUSIM_OK;
}

static void open_direct(struct gpusim_port* port);

static int port_properties(struct gpusim_port* port, gpusim_properties* properties) {
  union gpusim_request request;
  struct gpusim_reply reply;
  memset(&request, 0, sizeof request);
  request.words.word[0] = GPUSIM_WIRE_VERSION;
  const int status = operate(port, GPUSIM_OP_HELLO, &request, &reply, port->path);
  if (status != GPUSIM_OK) return status;
  memset(properties, 0, sizeof *properties);
  properties->most_cores = (uint32_t)reply.word[2];
  properties->address_space_bytes = reply.word[4];
  properties->page_size_bytes = reply.word[5];
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  if (properties->page_size_bytes < page) properties->page_size_bytes = page;
  properties->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
  // What this library was compiled for, as programs and kernels are the same code here.
#if defined(__aarch64__)
  snprintf(properties->isa, sizeof properties->isa, "aarch64");
#elif defined(__riscv)
  snprintf(properties->isa, sizeof properties->isa, "riscv%d", __riscv_xlen);
#elif defined(__x86_64__)
  snprintf(properties->isa, sizeof properties->isa, "x86_64");
#elif defined(__arm__)
  snprintf(properties->isa, sizeof properties->isa, "arm");
#endif
  snprintf(properties->isas, sizeof properties->isas, "%s", properties->isa);
  describe_backends(properties, reply.text);
  snprintf(properties->transport, sizeof properties->transport, "%s",
           port->transport == GPUSIM_TRANSPORT_VIRTIO ? "virtio" : "semihosting");
  port->address_space_bytes = properties->address_space_bytes;
  if (port->direct == NULL) open_direct(port);
  return check_classes(port);
}

static int port_counters(struct gpusim_port* port, gpusim_counters* counters) {
  union gpusim_request request;
  struct gpusim_reply reply;
  memset(&request, 0, sizeof request);
  const int status = operate(port, GPUSIM_OP_COUNTERS, &request, &reply, "gpusim_device_counters");
  if (status != GPUSIM_OK) return status;
  counters->copied_bytes = reply.word[0];
  counters->mapped_bytes = reply.word[1];
  counters->kernels = reply.word[2];
  counters->translations = reply.word[3];
  counters->cached_programs = reply.word[4];
  counters->posted_kernels = reply.word[5];
  return GPUSIM_OK;
}

// ---- Memory ------------------------------------------------------------------------------------

// What `handle` of gpusim_port_memory says beside the driver's 32 bits.
#define MEMORY_IS_MAPPED (UINT64_C(1) << 32)  // by us
#define MEMORY_IN_ARENA (UINT64_C(1) << 33)

static int port_alloc(struct gpusim_port* port, uint64_t size_bytes, int read_only,
                      struct gpusim_port_memory* memory) {
  uint64_t address;
  int status = gpusim_arena_reserve(port->address_space_bytes, size_bytes, &address);
  if (status != GPUSIM_OK) return status;
  struct gpusim_ioc_alloc alloc;
  memset(&alloc, 0, sizeof alloc);
  alloc.size_bytes = size_bytes;
  alloc.device_address = address;
  alloc.flags = read_only ? GPUSIM_ALLOC_READ_ONLY : 0;
  const int error = call(port->fd, GPUSIM_IOC_ALLOC, &alloc);
  if (error != 0) {
    gpusim_arena_release(address, size_bytes);
    if (error == ENOMEM) {
      return fail(GPUSIM_OUT_OF_MEMORY,
                  "%llu bytes of device memory: the guest has not so much left",
                  (unsigned long long)size_bytes);
    }
    if (error == EDQUOT) {
      return fail(GPUSIM_OUT_OF_MEMORY, "%llu bytes of device memory: " QUOTA_HINT,
                  (unsigned long long)size_bytes, "memory_per_user_mib");
    }
    return fail_errno(error, "allocating device memory", NULL);
  }
  void* const pointer = mmap((void*)(uintptr_t)address, size_bytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, port->fd, (off_t)alloc.mmap_offset);
  if (pointer == MAP_FAILED) {
    status = fail_errno(errno, "mapping device memory", NULL);
    call(port->fd, GPUSIM_IOC_FREE, &alloc.handle);
    gpusim_arena_release(address, size_bytes);
    return status;
  }
  memory->device_address = address;
  memory->pointer = pointer;
  memory->size_bytes = size_bytes;
  memory->handle = alloc.handle | MEMORY_IS_MAPPED | MEMORY_IN_ARENA;
  return GPUSIM_OK;
}

static int port_attach(struct gpusim_port* port, void* pointer, uint64_t size_bytes, int read_only,
                       struct gpusim_port_memory* memory) {
  const uint64_t own = (uint64_t)(uintptr_t)pointer;
  const int is_unified =
      own < port->address_space_bytes && size_bytes <= port->address_space_bytes - own;
  uint64_t address = own;
  if (!is_unified) {
    const int status = gpusim_arena_reserve(port->address_space_bytes, size_bytes, &address);
    if (status != GPUSIM_OK) return status;
  }
  struct gpusim_ioc_pin pin;
  memset(&pin, 0, sizeof pin);
  pin.user_address = own;
  pin.size_bytes = size_bytes;
  pin.device_address = address;
  pin.flags = read_only ? GPUSIM_PIN_READ_ONLY : 0;
  const int error = call(port->fd, GPUSIM_IOC_PIN, &pin);
  if (error != 0) {
    if (!is_unified) gpusim_arena_release(address, size_bytes);
    if (error == ENOMEM) {
      return fail(GPUSIM_OUT_OF_MEMORY,
                  "pinning %llu bytes at %p: not enough memory, or more than RLIMIT_MEMLOCK "
                  "(ulimit -l) allows",
                  (unsigned long long)size_bytes, pointer);
    }
    if (error == EDQUOT) {
      return fail(GPUSIM_OUT_OF_MEMORY, "pinning %llu bytes: " QUOTA_HINT,
                  (unsigned long long)size_bytes, "memory_per_user_mib");
    }
    if (error == EFAULT) {
      return fail(GPUSIM_INVALID_ARGUMENT, "%llu bytes at %p are not memory that can be %s",
                  (unsigned long long)size_bytes, pointer, read_only ? "read" : "written");
    }
    return fail_errno(error, "pinning memory", NULL);
  }
  memory->device_address = address;
  memory->pointer = pointer;
  memory->size_bytes = size_bytes;
  memory->handle = pin.handle | (is_unified ? 0 : MEMORY_IN_ARENA);
  return GPUSIM_OK;
}

static int free_memory(struct gpusim_port* port, const struct gpusim_port_memory* memory) {
  uint32_t handle = (uint32_t)memory->handle;
  const int error = call(port->fd, GPUSIM_IOC_FREE, &handle);
  if (error == EBUSY) return GPUSIM_BUSY;
  // After any other error the driver keeps nothing that could be freed once more. What was mapped
  // here is replaced by a reservation, which the arena then gives back.
  if (memory->handle & MEMORY_IN_ARENA) {
    gpusim_arena_release(memory->device_address, memory->size_bytes);
  }
  return error == 0 ? GPUSIM_OK : fail_errno(error, "freeing device memory", NULL);
}

// Frees what could not be freed before, as far as kernels allow; keeps `memory` if not NULL.
static void free_leftovers(struct gpusim_port* port, const struct gpusim_port_memory* memory) {
  pthread_mutex_lock(&port->mutex);
  for (struct leftover** place = &port->leftovers; *place != NULL;) {
    struct leftover* const one = *place;
    if (free_memory(port, &one->memory) == GPUSIM_BUSY) {
      place = &one->next;
    } else {
      *place = one->next;
      free(one);
    }
  }
  struct leftover* const one = memory != NULL ? malloc(sizeof *one) : NULL;
  if (one != NULL) {
    one->memory = *memory;
    one->next = port->leftovers;
    port->leftovers = one;
  }
  pthread_mutex_unlock(&port->mutex);
}

static int port_free(struct gpusim_port* port, const struct gpusim_port_memory* memory) {
  const int status = free_memory(port, memory);
  if (status != GPUSIM_BUSY) free_leftovers(port, NULL);
  return status;
}

// ---- Launches past the driver ------------------------------------------------------------------

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static atomic_uint forks;  // between the first process and this one
static void count_fork(void) { atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

// A child shares the page with its parent, whose it is.
static bool is_parents(const struct gpusim_port* port) {
  return port->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

// The daemon looks at the page by itself as long as it is awake. Without one all goes the other way,
// as it does where somebody waits for QEMU's sake: frozen, or for a message.
static void open_direct(struct gpusim_port* port) {
  struct gpusim_port_memory* const memory = &port->direct_memory;
  if (port->transport != GPUSIM_TRANSPORT_SEMIHOSTING || port->wait_flags != 0) return;
  pthread_once(&fork_once, watch_forks);
  port->forks = atomic_load_explicit(&forks, memory_order_relaxed);
  if (port_alloc(port, (uint64_t)sysconf(_SC_PAGESIZE), 0, memory) != GPUSIM_OK) return;
  union gpusim_request request;
  struct gpusim_reply reply;
  memset(&request, 0, sizeof request);
  request.words.word[0] = memory->device_address;
  if (operate(port, GPUSIM_OP_DIRECT, &request, &reply, "posting launches") == GPUSIM_OK) {
    port->direct = memory->pointer;
  } else {
    free_memory(port, memory);
  }
}

static bool is_pending(const struct gpusim_direct* direct) {
  return __atomic_load_n(&direct->command.status, __ATOMIC_ACQUIRE) == GPUSIM_PENDING;
}

static void set_end(struct gpusim_port_end* end, int status);

static void end_direct(struct gpusim_port* port, struct gpusim_port_end* end) {
  struct gpusim_direct* const direct = port->direct;
  end->reply.report = direct->command.reply.report;
  end->reply.classes = direct->command.reply.classes;
  end->reply.text[0] = 0;
  if (direct->command.reply.text[0] != 0) {
    memcpy(end->reply.text, direct->command.reply.text, sizeof end->reply.text);
  }
  set_end(end, direct->command.status);
  if (is_parents(port)) return;
  __atomic_store_n(&direct->state, GPUSIM_DIRECT_FREE, __ATOMIC_RELEASE);
  atomic_store_explicit(&port->direct_is_taken, false, memory_order_release);
}

// Asks the daemon for something, which wakes it up, too, and does not wait for the answer. False: it is gone.
static bool ask(struct gpusim_port* port) {
  int status = 0;
  if (port->question != 0) {
    const int error = wait_ticket(port, port->question, 0, 0, NULL, &status);
    if (error == ETIMEDOUT) return true;
    port->question = 0;
    if (gpusim_offload_status_of_errno(error) == GPUSIM_DEVICE_LOST) return false;
  }
  union gpusim_request request;
  struct gpusim_ioc_submit result;
  memset(&request, 0, sizeof request);
  const int error = submit(port, GPUSIM_OP_COUNTERS, &request, NULL, &result);
  if (error == 0 && !result.done) port->question = result.ticket;
  return gpusim_offload_status_of_errno(error) != GPUSIM_DEVICE_LOST;
}

static void look_later(struct gpusim_port* port) {
  const uint64_t kPeriod = 50000000;
  atomic_store_explicit(&port->direct_next_look, now_ns() + kPeriod, memory_order_relaxed);
}

// False: the launch has to go through the driver.
static bool launch_direct(struct gpusim_port* port, const struct gpusim_launch* launch,
                          uint64_t* ticket, struct gpusim_port_end* end) {
  enum { kLooks = 8000 };  // for the reply, before somebody has to wait for it
  struct gpusim_direct* const direct = port->direct;
  if (direct == NULL || !__atomic_load_n(&direct->listening, __ATOMIC_RELAXED) || is_parents(port) ||
      atomic_exchange_explicit(&port->direct_is_taken, true, memory_order_acquire)) {
    return false;
  }
  struct gpusim_command* const command = &direct->command;
  command->magic = GPUSIM_COMMAND_MAGIC;
  command->version = GPUSIM_WIRE_VERSION;
  command->op = GPUSIM_OP_LAUNCH;
  command->ticket = GPUSIM_DIRECT_TICKET | ++port->direct_tickets;
  command->status = GPUSIM_PENDING;
  const size_t arguments = launch->argument_count * sizeof launch->arguments[0];
  memcpy(&command->request, launch, offsetof(struct gpusim_launch, arguments) + arguments);
  __atomic_store_n(&direct->state, GPUSIM_DIRECT_POSTED, __ATOMIC_RELEASE);
  atomic_thread_fence(memory_order_seq_cst);
  const bool is_heard = __atomic_load_n(&direct->listening, __ATOMIC_RELAXED);
  if (!is_heard) ask(port);
  for (int i = 0; i < kLooks && is_heard; ++i) {
    if (is_pending(direct)) continue;
    end_direct(port, end);
    *ticket = 0;
    return true;
  }
  *ticket = command->ticket;
  look_later(port);
  return true;
}

// As port_wait(): nobody but the daemon knows of what was posted.
static int wait_direct(struct gpusim_port* port, uint64_t timeout_ns, struct gpusim_port_end* end) {
  const uint64_t kFirstNap = 20000, kLongestNap = 1000000;
  const uint64_t begin = now_ns();
  while (is_pending(port->direct)) {
    const uint64_t now = now_ns(), gone = now - begin;
    // Also for one who waits for short times only, again and again.
    if (now >= atomic_load_explicit(&port->direct_next_look, memory_order_relaxed)) {
      if (!ask(port) && is_pending(port->direct)) return fail_errno(EIO, "waiting for a kernel", NULL);
      look_later(port);
    }
    if (gone >= timeout_ns) return GPUSIM_TIMED_OUT;
    // The longer it takes the less it matters when its end is noticed.
    uint64_t nap = gone / 8 < kFirstNap ? kFirstNap : gone / 8;
    if (nap > kLongestNap) nap = kLongestNap;
    if (nap > timeout_ns - gone) nap = timeout_ns - gone;
    const struct timespec pause = {.tv_nsec = (long)nap};
    nanosleep(&pause, NULL);
  }
  end_direct(port, end);
  return GPUSIM_OK;
}

// ---- Programs and kernels ----------------------------------------------------------------------

static int port_load(struct gpusim_port* port, const void* bytes, size_t size_bytes,
                     const char* name, uint32_t flags, uint32_t* program) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  struct gpusim_port_memory memory;
  int status = port_alloc(port, (size_bytes + page - 1) & ~(page - 1), 0, &memory);
  if (status != GPUSIM_OK) return status;
  memcpy(memory.pointer, bytes, size_bytes);
  union gpusim_request request;
  struct gpusim_reply reply;
  memset(&request, 0, sizeof request);
  request.words.word[0] = memory.device_address;
  request.words.word[1] = size_bytes;
  request.words.word[2] = flags;
  status = operate(port, GPUSIM_OP_LOAD, &request, &reply, name);
  *program = (uint32_t)reply.word[0];
  if (free_memory(port, &memory) == GPUSIM_BUSY) free_leftovers(port, &memory);
  return status;
}

static int port_unload(struct gpusim_port* port, uint32_t program) {
  union gpusim_request request;
  struct gpusim_reply reply;
  memset(&request, 0, sizeof request);
  request.words.word[0] = program;
  return operate(port, GPUSIM_OP_UNLOAD, &request, &reply, "unloading a program");
}

static int port_symbol(struct gpusim_port* port, uint32_t program, const char* name,
                       uint64_t* address, uint64_t* size_bytes) {
  union gpusim_request request;
  struct gpusim_reply reply;
  memset(&request, 0, sizeof request);
  request.words.word[0] = program;
  snprintf(request.words.text, sizeof request.words.text, "%s", name);
  const int status = operate(port, GPUSIM_OP_SYMBOL, &request, &reply, name);
  *address = reply.word[0];
  *size_bytes = reply.word[1];
  return status;
}

static int port_check(struct gpusim_port* port, uint32_t program, uint64_t function) {
  union gpusim_request request;
  struct gpusim_reply reply;
  memset(&request, 0, sizeof request);
  request.words.word[0] = program;
  request.words.word[1] = function;
  return operate(port, GPUSIM_OP_CHECK, &request, &reply, "a kernel");
}

// `end` has the reply.
static void set_end(struct gpusim_port_end* end, int status) {
  end->status = gpusim_offload_status_of_errno(status);
  end->reply.text[sizeof end->reply.text - 1] = 0;
  if (end->status != GPUSIM_OK && end->reply.text[0] == 0) {
    snprintf(end->reply.text, sizeof end->reply.text, "%s",
             end->status == GPUSIM_DEVICE_LOST
                 ? "the simulator behind /dev/gpusim is gone; close the device and open it again"
                 : strerror(status < 0 ? -status : status));
  }
}

static int port_launch(struct gpusim_port* port, const struct gpusim_launch* launch,
                       uint64_t* ticket, struct gpusim_port_end* end) {
  if (launch_direct(port, launch, ticket, end)) return GPUSIM_OK;
  // Each copy, and each page that is touched, counts here: an empty kernel takes microseconds.
  struct gpusim_ioc_submit result;
  const union gpusim_request* const request = (const union gpusim_request*)launch;
  const int error = submit(port, GPUSIM_OP_LAUNCH, request, &end->reply, &result);
  if (error != 0) return fail_errno(error, "launching a kernel", NULL);
  *ticket = result.done ? 0 : result.ticket;
  if (result.done) set_end(end, result.status);
  return GPUSIM_OK;
}

static int port_wait(struct gpusim_port* port, uint64_t ticket, uint64_t timeout_ns, int may_freeze,
                     struct gpusim_port_end* end) {
  if (ticket & GPUSIM_DIRECT_TICKET) return wait_direct(port, timeout_ns, end);
  int status = 0;
  const int error = wait_ticket(port, ticket, timeout_ns, may_freeze ? port->wait_flags : 0,
                                &end->reply, &status);
  if (error == ETIMEDOUT) return GPUSIM_TIMED_OUT;
  if (error != 0) return fail_errno(error, "waiting for a kernel", NULL);
  set_end(end, status);
  return GPUSIM_OK;
}

static int port_cancel(struct gpusim_port* port, uint64_t ticket) {
  const int error = call(port->fd, GPUSIM_IOC_CANCEL, &ticket);
  if (error == 0 || error == ENOENT) return GPUSIM_OK;
  return fail_errno(error, "cancelling a kernel", NULL);
}

const struct gpusim_port_operations gpusim_offload_port = {
    .default_options_hint = "device=PATH and wait=sleep|frozen",
    .supports_self = 1,
    .open = port_open,
    .close = port_close,
    .properties = port_properties,
    .counters = port_counters,
    .alloc = port_alloc,
    .attach = port_attach,
    .free = port_free,
    .load = port_load,
    .unload = port_unload,
    .symbol = port_symbol,
    .check = port_check,
    .launch = port_launch,
    .wait = port_wait,
    .cancel = port_cancel,
};
