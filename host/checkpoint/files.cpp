#include "host/checkpoint/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "device_sim/base/error.h"
#include "host/linux/open_path.h"
#include "host/linux/own_files.h"

namespace gpusim::host {
namespace {

// Of open(2) flags, those that belong to the open file and not to the act of opening.
constexpr int kKeptFlags = O_ACCMODE | O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC | O_DIRECTORY |
                           O_NOATIME | O_PATH | O_DIRECT;

// Where the file is now: the guest may have renamed it.
std::string path_of(const OpenFile& file, const struct stat& open_file) {
  for (const std::string& path : {link_target(descriptor_path(file.host_fd())), file.path()}) {
    struct stat named {};
    if (!path.empty() && ::stat(path.c_str(), &named) == 0 && named.st_dev == open_file.st_dev &&
        named.st_ino == open_file.st_ino)
      return path;
  }
  throw Error(
      fmt::format("the guest has a file open that was deleted or replaced: {}", file.path()));
}

// What is in a pipe, without taking it out.
std::vector<uint8_t> contents_of(int read_end, uint32_t capacity) {
  int copy[2];
  if (::pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0)
    throw Error(fmt::format("a pipe of the guest cannot be copied: {}", std::strerror(errno)));
  ::fcntl(copy[1], F_SETPIPE_SZ, static_cast<int>(capacity));
  std::vector<uint8_t> bytes;
  const ssize_t size = ::tee(read_end, copy[1], capacity, SPLICE_F_NONBLOCK);
  if (size > 0) {
    bytes.resize(static_cast<size_t>(size));
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::read(copy[0], bytes.data() + done, bytes.size() - done);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
  }
  const int error = errno;
  ::close(copy[0]);
  ::close(copy[1]);
  if (size < 0 && error != EAGAIN)
    throw Error(fmt::format("a pipe of the guest cannot be copied: {}", std::strerror(error)));
  return bytes;
}

// What a checkpoint cannot hold; null: it can.
const char* unsaved_kind(OpenFile::Kind kind) {
  switch (kind) {
    case OpenFile::Kind::kMemory:
      return "a file in memory (memfd)";
    case OpenFile::Kind::kEventCounter:
      return "an event counter (eventfd)";
    case OpenFile::Kind::kTimer:
      return "a timer (timerfd)";
    case OpenFile::Kind::kEpoll:
      return "an epoll instance";
    case OpenFile::Kind::kSocket:
      return "a socket";
    case OpenFile::Kind::kSignals:
      return "a file of signals (signalfd)";
    case OpenFile::Kind::kOther:
    case OpenFile::Kind::kFolder:
    case OpenFile::Kind::kPipe:
      break;
  }
  return nullptr;
}

bool may_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

[[noreturn]] void cannot_reopen(const std::string& path, const std::string& why) {
  throw Error(fmt::format("the guest had {} open: {}", path, why));
}

}  // namespace

SavedFiles capture_files(const std::vector<FileRef>& files) {
  SavedFiles saved;
  std::map<ino_t, uint32_t> pipe_of;
  for (size_t i = 0; i < files.size(); ++i) {
    const OpenFile& file = *files[i];
    SavedFile& s = saved.files.emplace_back();
    s.is_nonblocking = file.is_nonblocking;
    struct stat host {};
    if (::fstat(file.host_fd(), &host) < 0) {
      if (i < kStandardFiles) continue;  // closed when gpusim started
      throw Error(fmt::format("{}: {}", file.path(), std::strerror(errno)));
    }
    if (S_ISREG(host.st_mode)) s.offset = ::lseek(file.host_fd(), 0, SEEK_CUR);
    if (i < kStandardFiles) continue;
    s.flags = ::fcntl(file.host_fd(), F_GETFL) & kKeptFlags;
    if (const char* what = unsaved_kind(file.kind()))
      throw Error(fmt::format("the guest has {} open, which a checkpoint cannot hold", what));
    if (file.kind() == OpenFile::Kind::kPipe && !file.is_reached_from_outside) {
      s.kind = SavedFile::Kind::kPipe;
      const auto [it, is_new] =
          pipe_of.try_emplace(host.st_ino, static_cast<uint32_t>(saved.pipes.size()));
      if (is_new) saved.pipes.emplace_back();
      s.pipe = it->second;
      SavedPipe& pipe = saved.pipes[s.pipe];
      pipe.capacity = static_cast<uint32_t>(::fcntl(file.host_fd(), F_GETPIPE_SZ));
      if (!may_write(s.flags)) pipe.contents = contents_of(file.host_fd(), pipe.capacity);
      continue;
    }
    if (file.is_text) {
      s.kind = SavedFile::Kind::kText;
      s.path = file.path();
      s.text.resize(static_cast<size_t>(host.st_size));
      if (::pread(file.host_fd(), s.text.data(), s.text.size(), 0) !=
          static_cast<ssize_t>(s.text.size()))
        throw Error(fmt::format("{}: {}", s.path, std::strerror(errno)));
      continue;
    }
    s.path = path_of(file, host);
    if (S_ISREG(host.st_mode)) {
      s.kind = SavedFile::Kind::kPlain;
      s.size = static_cast<uint64_t>(host.st_size);
    } else if (S_ISDIR(host.st_mode)) {
      s.kind = SavedFile::Kind::kFolder;
      s.offset = ::lseek(file.host_fd(), 0, SEEK_CUR);
    } else if (S_ISCHR(host.st_mode)) {
      s.kind = SavedFile::Kind::kDevice;
    } else {
      throw Error(fmt::format(
          "the guest has {} open, which is no file, folder or device (a socket or a named pipe)",
          s.path));
    }
  }
  return saved;
}

std::vector<FileRef> reopen_files(const SavedFiles& saved, const std::array<FileRef, 3>& standard,
                                  const PathPolicy& paths,
                                  const std::function<void(const std::string&)>& note) {
  std::vector<FileRef> files;
  std::vector<std::array<FileRef, 2>> pipes;
  for (const SavedPipe& p : saved.pipes) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
      throw Error(fmt::format("a pipe for the guest: {}", std::strerror(errno)));
    std::array<FileRef, 2>& refs = pipes.emplace_back();
    for (size_t e = 0; e < 2; ++e)
      refs[e] = std::make_shared<OpenFile>(ends[e], /*owned=*/true, OpenFile::Kind::kPipe);
    ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(p.capacity));
    const ssize_t n =
        p.contents.empty() ? 0 : ::write(ends[1], p.contents.data(), p.contents.size());
    if (n != static_cast<ssize_t>(p.contents.size()))
      throw Error("a pipe for the guest cannot hold what was in it");
  }
  for (size_t i = 0; i < saved.files.size(); ++i) {
    const SavedFile& s = saved.files[i];
    if (s.kind == SavedFile::Kind::kStandard) {
      files.push_back(standard[i]);
    } else if (s.kind == SavedFile::Kind::kPipe) {
      files.push_back(pipes[s.pipe][may_write(s.flags) ? 1 : 0]);
    } else if (s.kind == SavedFile::Kind::kText) {
      files.push_back(make_text_file(s.path, {s.text.begin(), s.text.end()}));
      if (!files.back()) cannot_reopen(s.path, std::strerror(errno));
    } else {
      const bool is_program = s.path == paths.program() && !may_write(s.flags);
      const Opened opened =
          open_path(paths, nullptr, is_program ? "/proc/self/exe" : s.path, s.flags & kKeptFlags, 0);
      if (!opened.file) cannot_reopen(s.path, std::strerror(opened.error));
      files.push_back(opened.file);
      const int fd = opened.file->host_fd();
      struct stat host {};
      ::fstat(fd, &host);
      const mode_t type = host.st_mode & S_IFMT;
      if (type != (s.kind == SavedFile::Kind::kPlain    ? S_IFREG
                   : s.kind == SavedFile::Kind::kFolder ? S_IFDIR
                                                        : S_IFCHR))
        cannot_reopen(s.path, "it is of another type now");
      if (s.kind == SavedFile::Kind::kPlain && static_cast<uint64_t>(host.st_size) < s.size)
        cannot_reopen(s.path, fmt::format("it had {} bytes and now has {}", s.size, host.st_size));
    }
    files.back()->is_nonblocking = s.is_nonblocking;
  }
  // What is only read must be as it was, unless the guest itself wrote it since.
  const auto size_now = [&](size_t i) {
    struct stat host {};
    ::fstat(files[i]->host_fd(), &host);
    return host;
  };
  for (size_t i = 0; i < files.size(); ++i) {
    const SavedFile& s = saved.files[i];
    if (s.kind != SavedFile::Kind::kPlain || may_write(s.flags)) continue;
    const struct stat mine = size_now(i);
    if (static_cast<uint64_t>(mine.st_size) == s.size) continue;
    bool is_written = false;
    for (size_t k = 0; k < files.size() && !is_written; ++k)
      if (saved.files[k].kind == SavedFile::Kind::kPlain && may_write(saved.files[k].flags)) {
        const struct stat other = size_now(k);
        is_written = other.st_ino == mine.st_ino && other.st_dev == mine.st_dev;
      }
    if (!is_written)
      cannot_reopen(s.path, fmt::format("it had {} bytes and now has {}", s.size, mine.st_size));
  }
  // From here on files change.
  for (size_t i = 0; i < files.size(); ++i) {
    const SavedFile& s = saved.files[i];
    const int fd = files[i]->host_fd();
    struct stat host {};
    if (s.kind == SavedFile::Kind::kStandard) {
      if (i != 0 || s.offset <= 0 || ::fstat(fd, &host) < 0) continue;
      if (S_ISREG(host.st_mode) && host.st_size >= s.offset)
        ::lseek(fd, s.offset, SEEK_SET);
      else
        note(fmt::format("standard input was a file, read up to byte {}; what it is now is read from "
                         "where it stands",
                         s.offset));
      continue;
    }
    if (s.kind == SavedFile::Kind::kPlain && may_write(s.flags) &&
        ::ftruncate(fd, static_cast<off_t>(s.size)) < 0)
      cannot_reopen(s.path, std::strerror(errno));
    if (s.offset >= 0 && ::lseek(fd, s.offset, SEEK_SET) < 0)
      cannot_reopen(s.path, std::strerror(errno));
  }
  return files;
}

}  // namespace gpusim::host
