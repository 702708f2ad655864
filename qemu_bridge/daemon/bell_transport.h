// The transport of a patched QEMU: qemu_bridge/wire/gpusim_bell.h.
#pragma once
#include <atomic>

#include "qemu_bridge/daemon/transport.h"
#include "qemu_bridge/wire/gpusim_bell.h"

namespace gpusim::daemon {

class BellTransport : public Transport {
 public:
  /// Waits for QEMU's hello on the socket and maps all that comes with it. gpusim::Error, and QEMU
  /// has been told: the hello is wrong, none comes within `timeout_s`, or memory cannot be mapped.
  BellTransport(int socket, int timeout_s);
  ~BellTransport() override;
  BellTransport(const BellTransport&) = delete;

  Report poll() override;
  bool is_paused() const override { return paused_; }
  const GuestMemory& memory() const override { return memory_; }
  uint32_t generation() const override { return generation_; }
  void done(uint64_t gpa) override;
  void flush() override;
  void ready(int status, const std::string& text) override;
  void sleep() override;
  void wake() override;

 private:
  void receive_hello(int timeout_s);
  void attach(const std::vector<uint8_t>& message, std::vector<FileDescriptor> files);
  bool has_work() const;
  void follow_pause_request();

  int socket_;
  gpusim_bell_page* page_ = nullptr;
  GuestMemory memory_;
  uint32_t generation_ = 0, tail_ = 0, pause_seen_ = 0;
  bool announced_ = false, paused_ = false, replied_ = false, broken_ = false;
  std::atomic<bool> woken_{false};
};

}  // namespace gpusim::daemon
