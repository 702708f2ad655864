// The transport of a stock QEMU: struct gpusim_message through virtio-serial, whose other end is a
// Unix socket here, and guest RAM in a file that QEMU shares.
//
// QEMU may come and go, and so may the guest's driver (a reboot): each begins with a new generation
// and with nothing of the one before.
#pragma once
#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "qemu_bridge/daemon/log.h"
#include "qemu_bridge/daemon/qmp_client.h"
#include "qemu_bridge/daemon/transport.h"

namespace gpusim::daemon {

/// A part of guest RAM: FILE[@GPA][:SIZE][+OFFSET].
struct RamFile {
  std::string path;
  uint64_t gpa = 0, offset = 0;
  std::optional<uint64_t> size_bytes;  // else up to the file's end
};

/// gpusim::Error.
RamFile parse_ram_file(const std::string& text);

class SerialTransport : public Transport {
 public:
  /// Listens at once; RAM is opened when a guest says something. `qmp_path`: of QEMU's monitor, which
  /// tells when the machine stands still; empty: none. gpusim::Error.
  SerialTransport(std::string socket_path, std::vector<RamFile> ram, const std::string& qmp_path,
                  Log& log);
  ~SerialTransport() override;
  SerialTransport(const SerialTransport&) = delete;

  Report poll() override;
  bool is_paused() const override { return peer_ && qmp_ && qmp_->is_stopped(); }
  const GuestMemory& memory() const override { return memory_; }
  uint32_t generation() const override { return generation_; }
  void done(uint64_t gpa) override;
  void flush() override;
  void ready(int status, const std::string& text) override;
  void sleep() override;
  void wake() override;

 private:
  Report accept_peer();
  Report peer_is_gone();
  bool peer_hung_up() const;
  Report take(const gpusim_message& message);
  Report attach();
  void receive();
  void drop_peer();
  void say(uint32_t kind, uint64_t value);
  bool is_congested() const;
  void next_generation();

  const std::string socket_path_;
  const std::vector<RamFile> ram_;
  Log& log_;
  FileDescriptor listener_, peer_, wake_event_;
  std::optional<QmpClient> qmp_;
  GuestMemory memory_;
  uint32_t generation_ = 0;
  // Of the current peer: RAM is mapped; a bell has rung in this generation.
  bool attached_ = false, used_ = false, forget_memory_ = false;
  std::vector<uint8_t> in_, out_;
  std::optional<gpusim_message> kept_;  // taken again once RAM is mapped
  std::atomic<bool> woken_{false}, sleeps_{false};
};

}  // namespace gpusim::daemon
