#include "qemu_bridge/daemon/serve.h"

#include <atomic>
#include <optional>

#include "qemu_bridge/daemon/commands.h"
#include "qemu_bridge/daemon/idle_spin.h"

namespace gpusim::daemon {
namespace {

// Between two looks at the kernels, so that a guest that rings all the time starves none.
constexpr int kMostBells = 64;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Server {
 public:
  Server(Transport& transport, offload::Simulator& service, const ServeOptions& options, Log& log)
      : transport_(transport), service_(service), options_(options), log_(log) {}

  void run(const std::function<bool()>& stop) {
    IdleSpin spin(options_.spin);
    while (!stop() && !ended_) {
      bool worked = poll();
      worked |= serve_posted();
      worked |= step();
      transport_.flush();
      if (worked) {
        spin.worked();
        continue;
      }
      if (!transport_.is_paused() && spin.goes_on(IdleSpin::Clock::now())) {
        relax();
        continue;
      }
      if (listen(false) && take_posted()) continue;  // what came before somebody saw it
      transport_.sleep();
    }
    // Unless it is gone the guest lives on, and its commands get an answer.
    if (commands_ && !ended_ && !transport_.is_paused()) commands_->close_all();
    if (commands_) commands_->abandon();
    transport_.flush();
  }

 private:
  bool poll() {
    bool worked = false;
    for (int i = 0; i < kMostBells && !ended_; ++i) {
      const Transport::Report report = transport_.poll();
      if (report.event == Transport::Event::kNothing) break;
      handle(report);
      worked = true;
    }
    if (worked) kernels_wait_ = true;
    return worked;
  }

  bool serve_posted() {
    if (!listens_ && !listen(true)) return false;
    return take_posted();
  }

  bool take_posted() {
    if (!commands_ || transport_.is_paused()) return false;
    const bool found = commands_->serve_posted();
    kernels_wait_ |= found;
    return found;
  }

  // False: the guest stands still, and so must its memory.
  bool listen(bool listens) {
    if (!commands_ || transport_.is_paused()) return false;
    commands_->listen(listens);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    listens_ = listens;
    return true;
  }

  void handle(const Transport::Report& report) {
    switch (report.event) {
      case Transport::Event::kBell:
        commands_->serve(report.gpa);
        break;
      case Transport::Event::kNewGuest:
        begin();
        break;
      case Transport::Event::kGuestGone:
        commands_->abandon();
        commands_.reset();
        break;
      case Transport::Event::kEnd:
        ended_ = true;
        break;
      case Transport::Event::kWoken:
      case Transport::Event::kNothing:
        break;
    }
  }

  void begin() {
    log_.line("a guest with {} MiB of RAM; generation {}", transport_.memory().size_bytes() >> 20,
              transport_.generation());
    commands_.emplace(transport_.memory(), service_,
                      CommandOptions{.generation = transport_.generation(),
                                     .backends = options_.backends,
                                     .most_pieces = options_.most_pieces},
                      log_, [this](uint64_t gpa) { transport_.done(gpa); });
  }

  bool step() {
    if (!kernels_wait_ || transport_.is_paused()) return false;
    kernels_wait_ = service_.step();
    return kernels_wait_;
  }

  Transport& transport_;
  offload::Simulator& service_;
  const ServeOptions& options_;
  Log& log_;
  std::optional<Commands> commands_;
  bool kernels_wait_ = false, listens_ = true, ended_ = false;
};

}  // namespace

void serve(Transport& transport, offload::Simulator& service, const ServeOptions& options,
           const std::function<bool()>& stop, Log& log) {
  Server(transport, service, options, log).run(stop);
}

}  // namespace gpusim::daemon
