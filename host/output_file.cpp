#include "host/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "device_sim/base/error.h"

namespace gpusim::host {
namespace {

constexpr int kMostLinks = 40;  // as Linux

bool is_in_proc(int folder) {
  struct statfs s;
  return ::fstatfs(folder, &s) == 0 && s.f_type == PROC_SUPER_MAGIC;
}

// Whether `folder` is where the descriptors of this process have names.
bool holds_descriptors(int folder) {
  struct stat own, s;
  return ::stat("/proc/self/fd", &own) == 0 && ::fstat(folder, &s) == 0 && own.st_dev == s.st_dev &&
         own.st_ino == s.st_ino;
}

}  // namespace

OutputFile::OutputFile(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  find_place();
  const bool is_plain_file = kind_ == Kind::kPlain;
  if (kind_ != Kind::kDescriptor &&
      ::faccessat(folder_.get(), is_plain_file ? "." : name_.c_str(), W_OK, 0) < 0)
    fail(errno);
}

void OutputFile::find_place() {
  std::string rest = path_;
  for (int links = 0; links <= kMostLinks; ++links) {
    const size_t slash = rest.rfind('/');
    const std::string before = slash == std::string::npos ? "." : rest.substr(0, slash + 1);
    name_ = slash == std::string::npos ? rest : rest.substr(slash + 1);
    if (name_.empty()) fail(rest.empty() ? ENOENT : EISDIR);
    const int start = folder_ ? folder_.get() : AT_FDCWD;
    FileDescriptor folder(::openat(start, before.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) fail(errno);
    folder_ = std::move(folder);
    struct stat s;
    if (::fstatat(folder_.get(), name_.c_str(), &s, AT_SYMLINK_NOFOLLOW) < 0) {
      if (errno != ENOENT) fail(errno);
      return;
    }
    if (S_ISREG(s.st_mode)) return;
    if (S_ISDIR(s.st_mode)) fail(EISDIR);
    if (!S_ISLNK(s.st_mode)) {
      kind_ = Kind::kInPlace;
      return;
    }
    if (is_in_proc(folder_.get()) && holds_descriptors(folder_.get())) {
      kind_ = Kind::kDescriptor;
      return;
    }
    std::array<char, 4096> target;
    const ssize_t size = ::readlinkat(folder_.get(), name_.c_str(), target.data(), target.size());
    if (size < 0) fail(errno);
    rest.assign(target.data(), static_cast<size_t>(size));
  }
  fail(ELOOP);
}

void OutputFile::fail(int error) const {
  // A file that is to be written can miss nothing but its folder.
  const size_t slash = path_.rfind('/');
  const std::string folder =
      slash == std::string::npos || slash == 0 ? std::string() : path_.substr(0, slash);
  const std::string advice =
      error == ENOENT && !folder.empty() && ::access(folder.c_str(), F_OK) < 0
          ? fmt::format(" (there is no folder {0}; mkdir -p {0} makes it)", folder)
          : std::string();
  throw Error(fmt::format("{} {}: {}{}", option_, path_, std::strerror(error), advice));
}

void OutputFile::write_all(int fd, std::string_view text) const {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void OutputFile::write(std::string_view text) const {
  kind_ == Kind::kPlain ? replace(text) : write_in_place(text);
}

void OutputFile::append(std::string_view text) const {
  if (kind_ != Kind::kPlain) return write_in_place(text);
  // Neither a link nor a pipe that came here meanwhile leads elsewhere or waits.
  const FileDescriptor fd(::openat(folder_.get(), name_.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
                                       O_NOCTTY | O_CLOEXEC,
                                   0666));
  if (!fd) fail(errno);
  write_all(fd.get(), text);
}

void OutputFile::write_in_place(std::string_view text) const {
  // A duplicate goes on where the descriptor stands.
  const FileDescriptor fd(
      kind_ == Kind::kDescriptor
          ? ::fcntl(std::atoi(name_.c_str()), F_DUPFD_CLOEXEC, 0)
          : ::openat(folder_.get(), name_.c_str(), O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  if (!fd) fail(errno);
  write_all(fd.get(), text);
}

void OutputFile::replace(std::string_view text) const {
  std::string beside;
  FileDescriptor fd;
  for (int i = 0; !fd; ++i) {
    beside = fmt::format("{}.{}-{}.tmp", name_, ::getpid(), i);
    fd = FileDescriptor(::openat(folder_.get(), beside.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!fd && errno != EEXIST) fail(errno);
  }
  try {
    write_all(fd.get(), text);
    // Some file systems only say now that there is no room.
    if (::close(fd.release()) < 0) fail(errno);
    if (::renameat(folder_.get(), beside.c_str(), folder_.get(), name_.c_str()) < 0) fail(errno);
  } catch (...) {
    ::unlinkat(folder_.get(), beside.c_str(), 0);
    throw;
  }
}

}  // namespace gpusim::host
