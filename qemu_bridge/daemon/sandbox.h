// What the daemon gives up once it serves a guest.
#pragma once
#include <cstdint>
#include <string>

namespace gpusim::daemon {

struct SandboxOptions {
  bool may_open_files = false;  // guest RAM that is found by name, later
  bool may_accept = false;      // connections on a socket that listens already
  bool may_connect = false;     // to Unix sockets
};

/// Whether this build and this machine can filter system calls; else why not.
bool sandbox_available(std::string* why_not);

/// From now on all threads of this process can compute, use memory and the descriptors they have,
/// and start threads; whatever else they ask of the kernel fails with EACCES. No program can be
/// executed, no process started, no connection made. gpusim::Error.
void enter_sandbox(const SandboxOptions& options);

/// For a process that reads what nobody vouches for: memory, and the descriptors that it has.
/// gpusim::Error.
void enter_reader_sandbox();

/// Without any filter: no new privileges, no core files (they would hold guest memory).
void drop_privileges();

/// Memory of its own that this process may allocate, guest RAM not counted.
void limit_memory(uint64_t bytes);

}  // namespace gpusim::daemon
