#include "device_sim/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"
#include "device_sim/base/nearest_name.h"

namespace gpusim {
namespace {

namespace fs = std::filesystem;

// Of a file that is not there: the name that was meant, or where it was looked for.
std::string where_it_may_be(const std::string& path) {
  std::error_code error;
  const fs::path given(path), folder = given.has_parent_path() ? given.parent_path() : ".";
  if (!fs::is_directory(folder, error)) return " (there is no folder " + folder.string() + ")";
  const std::string meant = nearest_file(path);
  if (!meant.empty() || given.is_absolute()) return meant;
  return " (looked for in " + fs::current_path(error).string() + ")";
}

template <class Bytes>
Bytes read_whole(const std::string& path, uint64_t most) {
  const auto fail = [&] {
    const int error = errno;
    throw Error(path + ": " + std::strerror(error) +
                (error == ENOENT && !path.empty() ? where_it_may_be(path) : ""));
  };
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

std::string nearest_file(const std::string& path) {
  constexpr size_t kMostNames = 10'000;
  const fs::path folder = fs::path(path).parent_path();
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end;
       !error && at != end && names.size() < kMostNames; at.increment(error))
    names.push_back((folder / at->path().filename()).string());
  std::sort(names.begin(), names.end());
  return did_you_mean(path, names);
}

std::string read_text_of(const std::string& path, const std::string& expected) {
  try {
    return read_text(path);
  } catch (const Error& error) {
    throw Error(error.what() + ("; expected " + expected));
  }
}

std::string read_text(const std::string& path, uint64_t most) {
  return read_whole<std::string>(path, most);
}

std::vector<uint8_t> read_file(const std::string& path, uint64_t most) {
  return read_whole<std::vector<uint8_t>>(path, most);
}

}  // namespace gpusim
