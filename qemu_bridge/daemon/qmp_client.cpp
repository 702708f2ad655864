#include "qemu_bridge/daemon/qmp_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "device_sim/base/error.h"

namespace gpusim::daemon {
namespace {

constexpr std::chrono::milliseconds kLook{1}, kRetry{100};
// QEMU makes its monitors before or after the port's connection.
constexpr std::chrono::seconds kPatience{3};
constexpr size_t kMostLineBytes = 1 << 20;

constexpr char kQuestions[] =
    "{\"execute\":\"qmp_capabilities\"}\n{\"execute\":\"query-status\"}\n";

}  // namespace

QmpClient::QmpClient(std::string path, Log& log) : path_(std::move(path)), log_(log) {
  if (path_.size() >= sizeof sockaddr_un{}.sun_path)
    throw Error(fmt::format("--qmp {}: a socket's path has at most {} characters", path_,
                            sizeof sockaddr_un{}.sun_path - 1));
}

int QmpClient::retry_ms() const { return socket_ ? -1 : static_cast<int>(kRetry.count()); }

void QmpClient::drop() {
  socket_ = FileDescriptor();
  in_.clear();
  tried_ = complained_ = stopped_ = false;
}

void QmpClient::poll() {
  const Clock::time_point now = Clock::now();
  if (now < next_poll_) return;
  if (!socket_) connect();
  if (socket_) receive();
  next_poll_ = now + (socket_ ? kLook : kRetry);
}

void QmpClient::connect() {
  FileDescriptor peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (::connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return lose(std::strerror(errno));
  in_.clear();
  socket_ = std::move(peer);
}

// Until it is there again the machine counts as it last was.
void QmpClient::lose(const std::string& why) {
  socket_ = FileDescriptor();
  if (!std::exchange(tried_, true)) first_try_ = Clock::now();
  if (complained_ || Clock::now() - first_try_ < kPatience) return;
  complained_ = true;
  complain(fmt::format("--qmp {}: {}; kernels will not stop with the virtual machine", path_, why));
}

void QmpClient::receive() {
  char bytes[4096];
  for (;;) {
    const ssize_t size = recv(socket_.get(), bytes, sizeof bytes, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) return lose("the connection ended");
    in_.append(bytes, static_cast<size_t>(size));
    for (size_t end; (end = in_.find('\n')) != std::string::npos; in_.erase(0, end + 1)) {
      take(in_.substr(0, end));
      if (!socket_) return;
    }
    if (in_.size() > kMostLineBytes) return lose("what answers there is not QEMU's monitor");
  }
}

void QmpClient::take(const std::string& line) {
  const nlohmann::json message = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) return lose("what answers there is not QEMU's monitor");
  const bool was_stopped = stopped_;
  if (message.contains("QMP")) {
    // The greeting. Both answers come in order, before events of what happens later.
    if (send(socket_.get(), kQuestions, sizeof kQuestions - 1, MSG_NOSIGNAL) < 0)
      return lose(std::strerror(errno));
  } else if (const auto event = message.find("event"); event != message.end()) {
    if (*event == "STOP") stopped_ = true;
    if (*event == "RESUME") stopped_ = false;
  } else if (const auto answer = message.find("return"); answer != message.end()) {
    if (const auto running = answer->is_object() ? answer->find("running") : answer->end();
        running != answer->end() && running->is_boolean()) {
      stopped_ = !running->get<bool>();
      tried_ = complained_ = false;  // it works
    }
  } else if (message.contains("error")) {
    return lose("QEMU refuses: " + message["error"].dump());
  }
  if (stopped_ != was_stopped)
    log_.line("the virtual machine {}", stopped_ ? "is stopped" : "goes on");
}

}  // namespace gpusim::daemon
