#include "device_sim/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"

namespace gpusim {
namespace {

template <class Bytes>
Bytes read_whole(const std::string& path, uint64_t most) {
  const auto fail = [&] { throw Error(path + ": " + std::strerror(errno)); };
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) < 0) fail();
  // As long as it says it is, or as long as it turns out to be: a pipe says nothing.
  constexpr uint64_t kChunk = 1 << 16;
  const uint64_t said = S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
  Bytes bytes;
  size_t size = 0;
  for (;;) {
    if (size == bytes.size())
      bytes.resize(
          std::min(size == 0 && said > 0 ? said + 1 : size + std::max(size, kChunk), most + 1));
    const ssize_t n = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail();
    size += static_cast<size_t>(n);
    if (n == 0 || size > most) break;
  }
  if (size > most) throw Error(path + ": longer than " + std::to_string(most) + " bytes");
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::string read_text(const std::string& path, uint64_t most) {
  return read_whole<std::string>(path, most);
}

std::vector<uint8_t> read_file(const std::string& path, uint64_t most) {
  return read_whole<std::vector<uint8_t>>(path, most);
}

}  // namespace gpusim
