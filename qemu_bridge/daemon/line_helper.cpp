#include "qemu_bridge/daemon/line_helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "qemu_bridge/daemon/sandbox.h"

namespace gpusim::daemon {
namespace {

using host::Frame;
using host::LineTable;

constexpr size_t kMostFrames = 16;  // of an address
constexpr size_t kMostName = 120;
constexpr size_t kMostAnswer = 256 * 1024;
constexpr int kMostReaders = 8;
constexpr rlim_t kReaderSeconds = 1;
constexpr rlim_t kReaderBytes = rlim_t{512} << 20;
constexpr std::chrono::seconds kPatience{3};
constexpr std::string_view kEnd = "end\n";

// --- what is said: the addresses with two descriptors, the program and the pipe for the answer.
// That is a line per frame, "NUMBER OF THE ADDRESS\tLINE\tFILE\tFUNCTION", and the word "end".

std::string field(const std::string& name) {
  std::string text = name.substr(0, kMostName);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  return text;
}

std::string to_text(std::span<const uint64_t> addresses, const LineTable& lines) {
  std::string text;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const std::vector<Frame>& frames = lines.at(addresses[i]);
    for (const Frame& f : std::span(frames).first(std::min(frames.size(), kMostFrames)))
      text += fmt::format("{}\t{}\t{}\t{}\n", i, f.line, field(f.file), field(f.function));
  }
  return text.append(kEnd);
}

// What a reader says that came to harm is checked like any guest's words. Nothing: it is wrong.
LineTable from_text(std::span<const uint64_t> addresses, std::string_view text) {
  if (!text.ends_with(kEnd)) return {};
  text.remove_suffix(kEnd.size());
  LineTable lines;
  for (const uint64_t address : addresses) lines[address];
  const auto take = [&](char end) {
    const size_t size = std::min(text.find(end), text.size());
    const std::string_view word = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    return word;
  };
  const auto number = [](std::string_view word, auto& value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc{} && end == word.data() + word.size();
  };
  while (!text.empty()) {
    size_t index = 0;
    Frame frame;
    if (!number(take('\t'), index) || index >= addresses.size() ||
        !number(take('\t'), frame.line) || frame.line < 0)
      return {};
    frame.file = field(std::string(take('\t')));
    frame.function = field(std::string(take('\n')));
    std::vector<Frame>& frames = lines[addresses[index]];
    if (frames.size() == kMostFrames) return {};
    frames.push_back(std::move(frame));
  }
  return lines;
}

struct Request {
  std::vector<uint64_t> addresses;
  FileDescriptor elf, answer;
};

bool send(int socket, const Request& request) {
  iovec data{const_cast<uint64_t*>(request.addresses.data()),
             request.addresses.size() * sizeof(uint64_t)};
  const std::array<int, 2> files{request.elf.get(), request.answer.get()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof files)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof files);
  std::memcpy(CMSG_DATA(c), files.data(), sizeof files);
  // A helper that does not listen is none.
  return ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(data.iov_len);
}

// False: the daemon is gone.
bool receive(int socket, Request& request) {
  request.addresses.resize(LineHelper::kMostAddresses);
  iovec data{request.addresses.data(), request.addresses.size() * sizeof(uint64_t)};
  std::array<int, 2> files{-1, -1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof files)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t size;
  do {
    size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return false;
  request.addresses.resize(static_cast<size_t>(size) / sizeof(uint64_t));
  const cmsghdr* const c = CMSG_FIRSTHDR(&header);
  if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
      c->cmsg_len == CMSG_LEN(sizeof files))
    std::memcpy(files.data(), CMSG_DATA(c), sizeof files);
  request.elf = FileDescriptor(files[0]);
  request.answer = FileDescriptor(files[1]);
  return true;
}

// --- the helper and its readers

void limit(__rlimit_resource_t resource, rlim_t value) {
  const rlimit limits{value, value};
  if (::setrlimit(resource, &limits) != 0) ::_exit(1);
}

[[noreturn]] void read_lines(const Request& request) {
  try {
    limit(RLIMIT_CPU, kReaderSeconds);
#ifndef __SANITIZE_ADDRESS__  // it takes terabytes of addresses
    limit(RLIMIT_DATA, kReaderBytes);
#endif
    limit(RLIMIT_FSIZE, 0);
    enter_reader_sandbox();
    const std::string text =
        to_text(request.addresses, host::find_lines(request.elf.get(), request.addresses));
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(request.answer.get(), text.data() + at, text.size() - at);
      if (n <= 0) ::_exit(1);
      at += static_cast<size_t>(n);
    }
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

[[noreturn]] void help(int socket) {
  // The daemon's death must be seen through all of its descriptors, and its output end with it.
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  constexpr int kMine = STDERR_FILENO + 1;
  if (socket != kMine && ::dup2(socket, kMine) < 0) ::_exit(1);
  if (::close_range(kMine + 1, ~0u, 0) != 0) ::_exit(1);
  for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);
  ::prctl(PR_SET_NAME, "gpusim-lines");
  int readers = 0;
  for (Request request; receive(kMine, request); request = {}) {
    while (readers > 0 && ::waitpid(-1, nullptr, readers < kMostReaders ? WNOHANG : 0) > 0)
      --readers;
    const pid_t reader = ::fork();
    if (reader == 0) {
      ::close(kMine);
      read_lines(request);
    }
    readers += reader > 0;
  }
  ::_exit(0);
}

// What comes until the pipe is closed; nothing if that takes too long, or is too much.
std::string read_answer(int pipe) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  for (std::array<char, 4096> buffer;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd wait{pipe, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) return {};
    const ssize_t n = ::read(pipe, buffer.data(), buffer.size());
    if (n == 0) return text;
    if (n < 0 || text.size() + static_cast<size_t>(n) > kMostAnswer) return {};
    text.append(buffer.data(), static_cast<size_t>(n));
  }
}

}  // namespace

LineHelper::LineHelper() {
  std::array<int, 2> ends;
  if (!sandbox_available(nullptr) ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return;
  socket_ = FileDescriptor(ends[0]);
  const FileDescriptor theirs(ends[1]);
  const pid_t helper = ::fork();
  if (helper == 0) help(theirs.get());
  if (helper < 0) socket_ = {};
}

LineTable LineHelper::find(std::span<const uint8_t> elf,
                           std::span<const uint64_t> addresses) const {
  std::array<int, 2> pipe;
  if (!socket_ || addresses.size() > kMostAddresses || ::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return {};
  const FileDescriptor answer(pipe[0]);
  Request request{{addresses.begin(), addresses.end()}, {}, FileDescriptor(pipe[1])};
  request.elf = host::memory_file(elf);
  if (!request.elf || !send(socket_.get(), request)) return {};
  request = {};  // the reader's end of the pipe is the last one
  return from_text(addresses, read_answer(answer.get()));
}

}  // namespace gpusim::daemon
