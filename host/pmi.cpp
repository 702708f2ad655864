#include "host/pmi.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <string_view>

namespace gpusim::host {
namespace {

constexpr size_t kLongestLine = 1024;

// The variable may be of another program, its number one of our files.
bool is_stream_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

// The answer's line to a command's; nothing if there is none.
std::optional<std::string> answer_to(int fd, std::string_view command, int timeout_ms) {
  while (!command.empty()) {
    const ssize_t n = ::send(fd, command.data(), command.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    command.remove_prefix(static_cast<size_t>(n));
  }
  std::string line;
  while (line.size() < kLongestLine) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const int count = ::poll(&ready, 1, timeout_ms);
    if (count < 0 && errno == EINTR) continue;
    char c = 0;
    if (count <= 0 || ::recv(fd, &c, 1, 0) != 1) return std::nullopt;
    if (c == '\n') return line;
    line += c;
  }
  return std::nullopt;
}

// Of "cmd=my_kvsname kvsname=kvs_1 rc=0".
std::string value_of(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size() == line.size() ? word.size() : word.size() + 1);
    if (word.starts_with(key) && word.substr(key.size()).starts_with('='))
      return std::string(word.substr(key.size() + 1));
  }
  return "";
}

}  // namespace

std::string pmi_job_name(int fd, int timeout_ms) {
  if (!is_stream_socket(fd)) return "";
  const auto begun = answer_to(fd, "cmd=init pmi_version=1 pmi_subversion=1\n", timeout_ms);
  if (!begun || value_of(*begun, "cmd") != "response_to_init" || value_of(*begun, "rc") != "0")
    return "";
  // The name of the space in which ranks leave values for each other.
  const auto told = answer_to(fd, "cmd=get_my_kvsname\n", timeout_ms);
  if (!told) return "";
  (void)answer_to(fd, "cmd=finalize\n", timeout_ms);
  return value_of(*told, "kvsname");
}

}  // namespace gpusim::host
