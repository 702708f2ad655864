// Source lines from guests' programs, whose debug information may be made to do harm to its reader.
//
// A process of its own reads it for each request, and has nothing: no guest memory, no descriptor
// but the program's and a pipe for the answer, no system call beyond memory and these, a second of
// processor time. The sandboxed daemon cannot start processes, so a helper that it forks at first
// does.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <span>

#include "device_sim/base/file_descriptor.h"
#include "host/run/line_table.h"

namespace gpusim::daemon {

class LineHelper {
 public:
  /// Forks: before there are threads, guest memory or a sandbox. Where system calls cannot be
  /// filtered, or no process can be had, it finds nothing.
  LineHelper();
  LineHelper(const LineHelper&) = delete;
  LineHelper& operator=(const LineHelper&) = delete;

  /// An entry for each address, or nothing: the reader came to harm, or took longer than seconds.
  /// Any thread.
  host::LineTable find(std::span<const uint8_t> elf, std::span<const uint64_t> addresses) const;

  static constexpr size_t kMostAddresses = 64;

 private:
  FileDescriptor socket_;  // the helper ends when it is closed
};

}  // namespace gpusim::daemon
