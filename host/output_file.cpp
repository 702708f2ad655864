#include "host/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "host/error.h"

namespace gpusim::host {
namespace {

[[noreturn]] void fail(const std::string& option, const std::string& path, int error) {
  throw UserError(fmt::format("{} {}: {}", option, path, std::strerror(error)));
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// Devices and pipes cannot be replaced by renaming.
bool is_plain_or_absent(const std::string& path) {
  struct stat s;
  return ::stat(path.c_str(), &s) < 0 || S_ISREG(s.st_mode);
}

void write_all(int fd, const std::string& text, const std::string& option,
               const std::string& path) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(option, path, errno);
    done += static_cast<size_t>(n);
  }
}

}  // namespace

void write_output_file(const std::string& option, const std::string& path,
                       const std::string& text) {
  if (!is_plain_or_absent(path)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) fail(option, path, errno);
    write_all(fd, text, option, path);
    ::close(fd);
    return;
  }
  std::string beside = path + ".XXXXXX";
  const int fd = ::mkstemp(beside.data());
  if (fd < 0) fail(option, path, errno);
  try {
    // mkstemp makes files private; this one is as other files of the user are.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(fd, 0666 & ~mask);
    write_all(fd, text, option, path);
    if (::close(fd) < 0 || ::rename(beside.c_str(), path.c_str()) < 0) fail(option, path, errno);
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
}

void check_output_file(const std::string& option, const std::string& path) {
  struct stat s;
  if (::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode)) fail(option, path, EISDIR);
  const std::string target = is_plain_or_absent(path) ? folder_of(path) : path;
  if (::access(target.c_str(), W_OK) < 0) fail(option, path, errno);
}

}  // namespace gpusim::host
