#include "host/run/watch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "host/run/watch_page.h"

namespace gpusim::host {
namespace {

constexpr size_t kMostSamples = 600, kLongestRequest = 8192;
constexpr int kPatienceMs = 2000;
constexpr std::chrono::milliseconds kInterval{250};

bool wait_for(int fd, short events) {
  pollfd one{fd, events, 0};
  return ::poll(&one, 1, kPatienceMs) > 0;
}

// Up to the empty line that ends a request's head; empty if that does not come.
std::string read_head(int fd) {
  std::string head;
  while (head.size() < kLongestRequest && head.find("\r\n\r\n") == std::string::npos) {
    char buffer[1024];
    if (!wait_for(fd, POLLIN)) return {};
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return {};
    head.append(buffer, static_cast<size_t>(n));
  }
  return head.find("\r\n\r\n") == std::string::npos ? std::string() : head;
}

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    if (!wait_for(fd, POLLOUT)) return;
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
}

void send_reply(int fd, const char* status, const char* type, std::string_view body) {
  send_all(fd, fmt::format("HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\n"
                           "Content-Length: {}\r\nCache-Control: no-store\r\n"
                           "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
                           status, type, body.size()));
  send_all(fd, body);
}

// The value of this field of a request's head.
std::string field(const std::string& head, std::string_view name) {
  for (size_t at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at + 2)) {
    const size_t begin = at + 2, colon = head.find(':', begin);
    if (colon == std::string::npos || colon - begin != name.size()) continue;
    if (::strncasecmp(head.data() + begin, name.data(), name.size()) != 0) continue;
    const size_t end = head.find("\r\n", colon);
    std::string value = head.substr(colon + 1, end - colon - 1);
    std::erase(value, ' ');
    return value;
  }
  return {};
}

}  // namespace

Watch::Watch(uint16_t port, std::string program)
    : program_(std::filesystem::path(std::move(program)).filename().string()) {
  listener_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (listener_.get() < 0 ||
      ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), 8) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw Error(fmt::format("--watch {}: {}; without a number it takes a free port", port,
                            std::strerror(errno)));
  port_ = ntohs(address.sin_port);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("--watch: {}", std::strerror(errno)));
  wake_reader_ = FileDescriptor(ends[0]);
  wake_writer_ = FileDescriptor(ends[1]);
  // Signals are for the run's own thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watch::~Watch() {
  constexpr auto kLinger = std::chrono::seconds(2);
  const auto deadline = Clock::now() + kLinger;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      const bool is_watched = Clock::now() - last_asked_ < kLinger;
      if (!has_ended_ || end_was_told_ || !is_watched || Clock::now() > deadline) break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  wake_writer_ = FileDescriptor();
  thread_.join();
}

std::string Watch::address() const { return fmt::format("http://127.0.0.1:{}/", port_); }

void Watch::show(const State& state) {
  const auto now = Clock::now();
  next_ = now + kInterval;
  const std::lock_guard lock(mutex_);
  state_ = state;
  samples_.push_back({std::chrono::duration<double>(now - start_).count(), state.instructions});
  if (samples_.size() < kMostSamples) return;
  // Every second one is enough from here on.
  size_t kept = 0;
  for (size_t i = 0; i < samples_.size(); i += 2) samples_[kept++] = samples_[i];
  samples_.resize(kept);
}

void Watch::end(int exit_status) {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  exit_status_ = exit_status;
}

std::string Watch::state_json() {
  const std::lock_guard lock(mutex_);
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  for (const Sample& s : samples_) samples.push_back({s.seconds, s.instructions});
  last_asked_ = Clock::now();
  end_was_told_ |= has_ended_;
  const nlohmann::ordered_json json = {
      {"program", program_},
      {"cores", state_.cores},
      {"started", state_.started},
      {"finished", state_.finished},
      {"instructions", state_.instructions},
      {"most_instructions", state_.most_instructions},
      {"seconds", samples_.empty() ? 0.0 : samples_.back().seconds},
      {"ended", has_ended_},
      {"exit_status", exit_status_},
      {"samples", std::move(samples)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void Watch::serve() {
  for (;;) {
    pollfd fds[] = {{listener_.get(), POLLIN, 0}, {wake_reader_.get(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;  // the other end was closed
    if (fds[0].revents == 0) continue;
    const FileDescriptor connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.get() >= 0) answer(connection.get());
  }
}

// A page of elsewhere that a browser shows must not read this one through a name that leads here.
void Watch::answer(int connection) {
  const std::string head = read_head(connection);
  if (head.empty()) return;
  const std::string host = field(head, "host");
  if (host != fmt::format("127.0.0.1:{}", port_) && host != fmt::format("localhost:{}", port_))
    return send_reply(connection, "403 Forbidden", "text/plain", "Only for this machine.\n");
  if (!head.starts_with("GET "))
    return send_reply(connection, "405 Method Not Allowed", "text/plain", "Only GET.\n");
  const std::string path = head.substr(4, head.find(' ', 4) - 4);
  if (path == "/") return send_reply(connection, "200 OK", "text/html", kWatchPage);
  if (path == "/state") return send_reply(connection, "200 OK", "application/json", state_json());
  send_reply(connection, "404 Not Found", "text/plain", "There are / and /state.\n");
}

}  // namespace gpusim::host
