// Where a debugger connects, and what is said to it.
#pragma once
#include <optional>
#include <string>

#include "device_sim/base/file_descriptor.h"
#include "host/gdb/packet.h"

namespace gpusim::host::gdb {

class Connection {
 public:
  explicit Connection(FileDescriptor socket) : socket_(std::move(socket)) {}

  // Why nothing more comes; empty while the connection stands.
  const std::string& lost() const { return lost_; }
  void stop_acknowledging() { acknowledges_ = false; }
  void send(std::string_view payload);
  // The next packet. Waits until there is one; nothing: the connection is lost, or a signal came to
  // this process. Interrupts are skipped: cores stand already.
  std::optional<std::string> receive();
  // While cores run: whether the debugger wants them to stop, or is gone. Does not wait.
  bool wants_stop();
  // Whether a packet of GDB's ever came.
  bool has_spoken() const { return has_spoken_; }

 private:
  // Reads what there is; false: nothing came within the time (-1: for ever), or the end did.
  bool read(int timeout_ms);
  void write(std::string_view bytes);
  void lose(const std::string& why);

  FileDescriptor socket_;
  PacketReader reader_;
  std::string lost_, last_;  // what was sent last
  bool acknowledges_ = true, has_spoken_ = false;
  int damaged_ = 0;
};

class Listener {
 public:
  // "PORT", "HOST:PORT", "[HOST]:PORT", or a socket's path. Throws Error.
  explicit Listener(const std::string& address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // As GDB's `target remote` takes it.
  const std::string& address() const { return address_; }
  // Whether others than this machine's users may reach it.
  bool is_open() const { return is_open_; }
  // Waits so long for a debugger (-1: until one comes, or a signal).
  std::optional<Connection> accept(int timeout_ms);

 private:
  void listen_on_path(const std::string& path);
  void listen_on_port(const std::string& host, const std::string& port);
  [[noreturn]] void fail(const std::string& what) const;

  std::string asked_for_, address_, path_;
  FileDescriptor socket_;
  bool is_open_ = false;
};

}  // namespace gpusim::host::gdb
