#include "qemu_bridge/daemon/watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "device_sim/base/error.h"

namespace gpusim::daemon {
namespace {

constexpr int kMostMs = 10'000;  // from a signal to the end; busy machines have other work, too

}  // namespace

Watcher::Watcher() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  signals_ = FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC));
  quit_ = FileDescriptor(eventfd(0, EFD_CLOEXEC));
  if (!signals_ || !quit_)
    throw Error(fmt::format("cannot wait for signals: {}", std::strerror(errno)));
}

Watcher::~Watcher() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!write(quit_.get(), &one, sizeof one);
  thread_.join();
}

void Watcher::start(int socket, std::function<void()> wake) {
  wake_ = std::move(wake);
  thread_ = std::thread([this, socket] { watch(socket); });
}

void Watcher::watch(int socket) {
  pollfd waits[3] = {{signals_.get(), POLLIN, 0}, {quit_.get(), POLLIN, 0}, {socket, POLLIN, 0}};
  int timeout_ms = -1;
  for (;;) {
    const int count = poll(waits, 3, timeout_ms);
    if (count < 0 && errno == EINTR) continue;
    // Slices end soon; whatever else keeps the daemon from its end keeps nobody waiting.
    if (count == 0) _exit(1);
    if (waits[1].revents) return;
    if (waits[2].revents) {
      char message[512];
      const ssize_t size = recv(socket, message, sizeof message, MSG_DONTWAIT);
      // Messages mean nothing today.
      if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) _exit(0);
    }
    if (waits[0].revents) {
      waits[0].fd = -1;
      timeout_ms = kMostMs;
      stop_.store(true, std::memory_order_relaxed);
      wake_();
    }
  }
}

}  // namespace gpusim::daemon
