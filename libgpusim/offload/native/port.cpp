// SPDX-License-Identifier: MIT
// The port of a host program: the simulator in its own process.
#include "libgpusim/offload/port.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>

#include "device_sim/core/backend.h"
#include "device_sim/core/memory_view.h"
#include "libgpusim/offload/native/simulators.h"
#include "libgpusim/offload/native/user_memory.h"
#include "translator/common/isa_list.h"

using gpusim::offload::LaunchOutcome;
using gpusim::offload::LoadOutcome;
using gpusim::offload::OffloadError;
using gpusim::offload::Simulator;
using gpusim::offload::Simulators;
using Ownership = Simulators::Ownership;

namespace {

// How long a launch works on its kernel before it leaves it to the runner.
constexpr std::chrono::microseconds kPatience{200};

// A command whose end somebody may wait for.
struct Pending {
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  gpusim_port_end end{};
  uint32_t program = 0;
};

void set_text(gpusim_port_end& end, const std::string& text) {
  const size_t size = std::min(text.size(), sizeof end.reply.text - 1);
  std::memcpy(end.reply.text, text.data(), size);
  end.reply.text[size] = 0;
  // Diagnoses are lines; the last one needs no end.
  while (end.reply.text[0] != 0 && end.reply.text[std::strlen(end.reply.text) - 1] == '\n')
    end.reply.text[std::strlen(end.reply.text) - 1] = 0;
}

// What an operation throws, as a status and the thread's last error.
template <class F>
int guarded(const char* what, F&& operation) {
  try {
    return operation();
  } catch (const OffloadError& e) {
    return gpusim_offload_fail(gpusim_offload_status_of_errno(e.number()), "%s", e.what());
  } catch (const std::bad_alloc&) {
    return gpusim_offload_fail(GPUSIM_OUT_OF_MEMORY, "%s: out of memory", what);
  } catch (const std::system_error& e) {
    return gpusim_offload_fail(GPUSIM_OUT_OF_MEMORY, "%s: %s", what, e.what());
  } catch (const std::exception& e) {
    return gpusim_offload_fail(GPUSIM_INVALID_ARGUMENT, "%s: %s", what, e.what());
  }
}

void copy_text(char* to, size_t room, const std::string& text) {
  const size_t size = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), size);
  to[size] = 0;
}

}  // namespace

struct gpusim_port {
  Simulators::Options options;
  std::shared_ptr<Simulator> simulator;
  uint32_t context = 0;
  std::mutex mutex;
  uint64_t last_ticket = 0;
  std::map<uint64_t, std::shared_ptr<Pending>> pending;

  uint64_t new_ticket() {
    const std::lock_guard lock(mutex);
    return ++last_ticket;
  }
};

namespace {

Simulators& simulators() { return Simulators::instance(); }

// ---- The device
// ----------------------------------------------------------------------------------

int read_options(gpusim_port& port, const gpusim_port_option* options, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const std::string key = options[i].key, value = options[i].value;
    if (key == "backend") {
      port.options.backend = value;
    } else if (key == "memory") {
      port.options.memory = value;
    } else if (key == "regions") {
      const auto regions = gpusim::compiled_regions_of(value);
      if (!regions)
        return gpusim_offload_fail(GPUSIM_INVALID_ARGUMENT, "gpusim_open: regions=%s: there are %s",
                                   value.c_str(), gpusim::kCompiledRegionsWords);
      port.options.regions = *regions;
    } else if (key == "threads") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), port.options.threads);
      if (error != std::errc{} || end != value.data() + value.size() ||
          port.options.threads > 4096) {
        return gpusim_offload_fail(GPUSIM_INVALID_ARGUMENT, "gpusim_open: threads=%s: 0 to 4096",
                                   value.c_str());
      }
    } else {
      return gpusim_offload_fail(GPUSIM_NOT_FOUND, "gpusim_open: no option \"%s\": there are %s",
                                 key.c_str(), gpusim_offload_port.default_options_hint);
    }
  }
  return GPUSIM_OK;
}

int port_open(const gpusim_port_option* options, unsigned count, gpusim_port** result) {
  return guarded("gpusim_open", [&] {
    auto port = std::make_unique<gpusim_port>();
    const int status = read_options(*port, options, count);
    if (status != GPUSIM_OK) return status;
    port->simulator = simulators().acquire(port->options);
    try {
      const Ownership owned(simulators());
      port->context = port->simulator->open();
    } catch (...) {
      simulators().release(std::move(port->simulator));
      throw;
    }
    *result = port.release();
    return static_cast<int>(GPUSIM_OK);
  });
}

void port_close(gpusim_port* port) {
  guarded("gpusim_close", [&] {
    {
      const Ownership owned(simulators());
      port->simulator->close(port->context);
    }
    simulators().release(std::move(port->simulator));
    return static_cast<int>(GPUSIM_OK);
  });
  delete port;
}

int port_properties(gpusim_port* port, gpusim_properties* properties) {
  return guarded("gpusim_device_properties", [&] {
    std::memset(properties, 0, sizeof *properties);
    const Ownership owned(simulators());
    properties->most_cores = port->simulator->options().most_cores;
    properties->address_space_bytes = port->simulator->memory(port->context).size_bytes();
    properties->page_size_bytes =
        std::max<uint64_t>(gpusim::kPageSize, static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
    properties->memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    std::string isas, backends;
    for (const gpusim::GuestIsa* isa : gpusim::all_isas())
      isas += (isas.empty() ? "" : ",") + std::string(isa->name);
    for (const gpusim::BackendInfo& backend : gpusim::all_backends()) {
      std::string why_not;
      if (backend.available(&why_not))
        backends += (backends.empty() ? "" : ",") + std::string(backend.name);
    }
    copy_text(properties->isa, sizeof properties->isa, isas.substr(0, isas.find(',')));
    copy_text(properties->isas, sizeof properties->isas, isas);
    copy_text(properties->backend, sizeof properties->backend, port->simulator->backend());
    copy_text(properties->backends, sizeof properties->backends, backends);
    copy_text(properties->description, sizeof properties->description,
              port->simulator->backend() + ": " + port->simulator->device());
    copy_text(properties->transport, sizeof properties->transport, "native");
    return static_cast<int>(GPUSIM_OK);
  });
}

int port_counters(gpusim_port* port, gpusim_counters* counters) {
  return guarded("gpusim_device_counters", [&] {
    const Ownership owned(simulators());
    const gpusim::offload::Counters c = port->simulator->counters(port->context);
    counters->copied_bytes = c.copied_bytes;
    counters->mapped_bytes = c.mapped_bytes;
    counters->kernels = c.kernels;
    counters->translations = c.translations;
    counters->cached_programs = c.cached_programs;
    return static_cast<int>(GPUSIM_OK);
  });
}

// ---- Memory
// --------------------------------------------------------------------------------------

uint8_t rights(int read_only) {
  return static_cast<uint8_t>(read_only != 0 ? GPUSIM_READ : GPUSIM_READ | GPUSIM_WRITE);
}

enum : uint64_t { kOurs = 1 };  // handle: memory of ours, not the caller's

int map_own(gpusim_port* port, void* pointer, uint64_t size_bytes, int read_only, uint64_t handle,
            gpusim_port_memory* memory) {
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
  {
    const Ownership owned(simulators());
    port->simulator->map_own(port->context, address, size_bytes, rights(read_only));
  }
  *memory = {
      .device_address = address, .pointer = pointer, .size_bytes = size_bytes, .handle = handle};
  return GPUSIM_OK;
}

int port_alloc(gpusim_port* port, uint64_t size_bytes, int read_only, gpusim_port_memory* memory) {
  void* const p = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    return gpusim_offload_fail(GPUSIM_OUT_OF_MEMORY, "%llu bytes of device memory: %s",
                               static_cast<unsigned long long>(size_bytes), std::strerror(errno));
  }
  const int status = guarded(
      "device memory", [&] { return map_own(port, p, size_bytes, read_only, kOurs, memory); });
  if (status != GPUSIM_OK) munmap(p, size_bytes);
  return status;
}

int port_attach(gpusim_port* port, void* pointer, uint64_t size_bytes, int read_only,
                gpusim_port_memory* memory) {
  // A kernel that writes where the process may not would end the process.
  const uint8_t wanted = rights(read_only);
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
  if ((gpusim::offload::user_memory_rights(address, size_bytes) & wanted) != wanted) {
    return gpusim_offload_fail(
        GPUSIM_INVALID_ARGUMENT, "%llu bytes at %p are not memory that can be %s",
        static_cast<unsigned long long>(size_bytes), pointer, read_only != 0 ? "read" : "written");
  }
  return guarded("existing memory",
                 [&] { return map_own(port, pointer, size_bytes, read_only, 0, memory); });
}

int port_free(gpusim_port* port, const gpusim_port_memory* memory) {
  const int status = guarded("freeing memory", [&] {
    const Ownership owned(simulators());
    port->simulator->unmap(port->context, memory->device_address, memory->size_bytes);
    return static_cast<int>(GPUSIM_OK);
  });
  if (status != GPUSIM_BUSY && memory->handle == kOurs) munmap(memory->pointer, memory->size_bytes);
  return status;
}

// ---- Programs and kernels
// ------------------------------------------------------------------------

int port_load(gpusim_port* port, const void* bytes, size_t size_bytes, const char* name,
              uint32_t flags, uint32_t* program) {
  return guarded(name, [&] {
    const auto pending = std::make_shared<Pending>();
    simulators().need_runner();
    {
      const Ownership owned(simulators());
      port->simulator->load(port->context, port->new_ticket(),
                            {static_cast<const uint8_t*>(bytes), size_bytes}, name, flags,
                            [pending](const LoadOutcome& outcome) {
                              const std::lock_guard lock(pending->mutex);
                              pending->end.status = gpusim_offload_status_of_errno(outcome.status);
                              set_text(pending->end, outcome.text);
                              pending->program = outcome.program;
                              pending->has_ended = true;
                              pending->ended.notify_all();
                            });
    }
    std::unique_lock lock(pending->mutex);
    pending->ended.wait(lock, [&] { return pending->has_ended; });
    *program = pending->program;
    if (pending->end.status == GPUSIM_OK) return static_cast<int>(GPUSIM_OK);
    return gpusim_offload_fail(pending->end.status, "%s", pending->end.reply.text);
  });
}

int port_unload(gpusim_port* port, uint32_t program) {
  return guarded("unloading a program", [&] {
    const Ownership owned(simulators());
    port->simulator->unload(port->context, program);
    return static_cast<int>(GPUSIM_OK);
  });
}

int port_symbol(gpusim_port* port, uint32_t program, const char* name, uint64_t* address,
                uint64_t* size_bytes) {
  return guarded(name, [&] {
    const Ownership owned(simulators());
    const Simulator::Symbol symbol = port->simulator->symbol(port->context, program, name);
    *address = symbol.address;
    *size_bytes = symbol.size_bytes;
    return static_cast<int>(GPUSIM_OK);
  });
}

int port_check(gpusim_port* port, uint32_t program, uint64_t function) {
  return guarded("a kernel", [&] {
    const Ownership owned(simulators());
    port->simulator->check(port->context, program, function);
    return static_cast<int>(GPUSIM_OK);
  });
}

int port_launch(gpusim_port* port, const gpusim_launch* launch, uint64_t* ticket,
                gpusim_port_end* end) {
  return guarded("launching a kernel", [&] {
    const auto pending = std::make_shared<Pending>();
    const uint64_t number = port->new_ticket();
    const auto is_over = [&] {
      const std::lock_guard lock(pending->mutex);
      return pending->has_ended;
    };
    simulators().need_runner();
    {
      const std::lock_guard lock(port->mutex);
      port->pending[number] = pending;
    }
    bool over = false;
    try {
      const Ownership owned(simulators());
      port->simulator->launch(
          port->context, number, *launch, [pending](const LaunchOutcome& outcome) {
            const std::lock_guard lock(pending->mutex);
            pending->end.status = gpusim_offload_status_of_errno(outcome.status);
            pending->end.reply.report = outcome.report;
            pending->end.reply.classes = outcome.classes;
            set_text(pending->end, outcome.text);
            pending->has_ended = true;
            pending->ended.notify_all();
          });
      const auto until = std::chrono::steady_clock::now() + kPatience;
      while (!(over = is_over()) && std::chrono::steady_clock::now() < until)
        port->simulator->step();
    } catch (...) {
      const std::lock_guard lock(port->mutex);
      port->pending.erase(number);
      throw;
    }
    if (!over) {
      simulators().wake();
      *ticket = number;
      return static_cast<int>(GPUSIM_OK);
    }
    *ticket = 0;
    *end = pending->end;
    const std::lock_guard lock(port->mutex);
    port->pending.erase(number);
    return static_cast<int>(GPUSIM_OK);
  });
}

int port_wait(gpusim_port* port, uint64_t ticket, uint64_t timeout_ns, int /*may_freeze*/,
              gpusim_port_end* end) {
  std::shared_ptr<Pending> pending;
  {
    const std::lock_guard lock(port->mutex);
    const auto it = port->pending.find(ticket);
    if (it == port->pending.end())
      return gpusim_offload_fail(GPUSIM_INTERNAL, "no kernel has the ticket %llu",
                                 static_cast<unsigned long long>(ticket));
    pending = it->second;
  }
  {
    std::unique_lock lock(pending->mutex);
    const auto over = [&] { return pending->has_ended; };
    // About 31 years and more are for ever: the clock's numbers end somewhere.
    constexpr uint64_t kLongest = 1'000'000'000'000'000'000;
    if (timeout_ns > kLongest) {
      pending->ended.wait(lock, over);
    } else if (!pending->ended.wait_for(lock, std::chrono::nanoseconds(timeout_ns), over)) {
      return GPUSIM_TIMED_OUT;
    }
    *end = pending->end;
  }
  const std::lock_guard lock(port->mutex);
  port->pending.erase(ticket);
  return GPUSIM_OK;
}

int port_cancel(gpusim_port* port, uint64_t ticket) {
  return guarded("cancelling a kernel", [&] {
    try {
      const Ownership owned(simulators());
      port->simulator->cancel(port->context, ticket);
    } catch (const OffloadError& e) {
      if (e.number() != ENOENT) throw;  // it has ended
    }
    return static_cast<int>(GPUSIM_OK);
  });
}

}  // namespace

const gpusim_port_operations gpusim_offload_port = {
    .default_options_hint = "backend=NAME, memory=WAY, regions=WORD and threads=N",
    .supports_self = 0,
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

// The front calls it only with a port that supports it.
struct gpusim_offload_self;
extern "C" int gpusim_offload_load_self(gpusim_device*, gpusim_offload_self*, uint32_t*) {
  return gpusim_offload_fail(GPUSIM_NOT_SUPPORTED, "gpusim_program_from_self");
}
