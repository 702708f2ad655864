#include "host/run/line_table.h"

#include <sys/mman.h>
#include <unistd.h>

namespace gpusim::host {

LineTable find_lines(int elf, std::span<const uint64_t> addresses) {
  const InlineFrames frames(elf);
  LineTable lines;
  for (const uint64_t address : addresses) lines.emplace(address, frames.at(address));
  return lines;
}

FileDescriptor memory_file(std::span<const uint8_t> bytes) {
  FileDescriptor file(::memfd_create("gpusim", MFD_CLOEXEC));
  for (size_t at = 0; file && at < bytes.size();) {
    const ssize_t n = ::write(file.get(), bytes.data() + at, bytes.size() - at);
    if (n <= 0) return {};
    at += static_cast<size_t>(n);
  }
  return file;
}

}  // namespace gpusim::host
