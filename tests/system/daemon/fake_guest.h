// Plays QEMU and the guest's driver towards a real `gpusim daemon`: RAM in a shared file, command
// blocks, bells by either transport.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qemu_bridge/wire/gpusim_bell.h"
#include "qemu_bridge/wire/gpusim_wire.h"

namespace gpusim::test {

inline constexpr uint64_t kPage = 4096, kRamGpa = 0x40000000, kFlashGpa = 0;

/// A program that was started; killed and reaped when it goes out of scope.
class Child {
 public:
  /// `pass_fd`, unless -1, becomes descriptor 3.
  Child(const std::vector<std::string>& command, int pass_fd);
  ~Child();
  Child(const Child&) = delete;
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// The exit status, 128 + signal, or -1 if it is still there after `timeout_s`.
  int wait(double timeout_s);
  bool lives();
  std::string errors();  // its standard error so far

  size_t descriptors() const;
  size_t mappings() const;
  uint64_t resident_kib() const;
  std::string status_line(const std::string& key) const;  // of /proc/PID/status

 private:
  pid_t pid_ = -1;
  int status_ = -1, errors_fd_ = -1;
};

/// Guest RAM: half in one file region, half in another that lies elsewhere, and a read-only
/// "flash".
class Ram {
 public:
  explicit Ram(const std::string& path = "");  // else an anonymous file
  ~Ram();
  Ram(const Ram&) = delete;

  static constexpr uint64_t kSize = 64u << 20, kFlashSize = 1u << 20;
  int fd() const { return fd_; }
  int flash_fd() const { return flash_fd_; }
  template <class T>
  T* at(uint64_t gpa) {
    return reinterpret_cast<T*>(bytes_ + (gpa - kRamGpa));
  }
  /// Zeroed pages, never given twice.
  uint64_t pages(uint64_t count);
  uint64_t pages_for(std::span<const uint8_t> bytes);
  void forget() { next_ = kPage; }  // as after a reboot

 private:
  int fd_ = -1, flash_fd_ = -1;
  uint8_t* bytes_ = nullptr;
  uint64_t next_ = kPage;
};

/// The way to a daemon.
class Link {
 public:
  virtual ~Link() = default;
  virtual void ring(uint64_t gpa) = 0;
  /// Until there may be a reply, or a while has passed.
  virtual void wait() = 0;
  virtual uint32_t generation() const = 0;
  Child& daemon() { return *daemon_; }

 protected:
  std::unique_ptr<Child> daemon_;
};

class BellLink : public Link {
 public:
  /// `change` may spoil what is sent. `ready()` says how the daemon liked it.
  explicit BellLink(Ram& ram, std::vector<std::string> options = {}, bool paused = false,
                    const std::function<void(gpusim_bell_hello&, std::vector<gpusim_bell_region>&,
                                             gpusim_bell_page&)>& change = {});
  ~BellLink() override;
  void ring(uint64_t gpa) override;
  void wait() override;
  uint32_t generation() const override { return generation_; }

  const gpusim_bell_ready& ready() const { return ready_; }
  gpusim_bell_page& page() { return *page_; }
  void wake();
  bool pause(double timeout_s);  // false: the daemon did not follow
  void resume();
  void hang_up();  // as if QEMU were gone
  bool sleeps() const;

 private:
  int socket_ = -1, page_fd_ = -1;
  gpusim_bell_page* page_ = nullptr;
  gpusim_bell_ready ready_{};
  uint32_t generation_ = 0;
};

/// A stock QEMU: a file as RAM, messages through a socket.
class SerialLink : public Link {
 public:
  SerialLink(const std::string& socket_path, const std::string& ram_path,
             std::vector<std::string> options = {});
  ~SerialLink() override;
  void ring(uint64_t gpa) override;
  void wait() override;
  uint32_t generation() const override { return generation_; }

  void connect();  // and takes the daemon's hello
  void hello();    // a driver begins
  void hang_up();
  void send(const void* bytes, size_t size_bytes);
  gpusim_message receive(double timeout_s);  // kind 0: none came
  uint64_t done_messages() const { return done_; }

 private:
  void take(const gpusim_message& message);

  std::string socket_path_;
  int socket_ = -1;
  uint32_t generation_ = 0;
  uint64_t done_ = 0;
  std::vector<uint8_t> in_;
};

struct Reply : gpusim_reply {
  int status = GPUSIM_PENDING;
  std::string what() const { return text; }
};

inline gpusim_argument value(uint64_t v) { return {GPUSIM_ARGUMENT_VALUE, 0, {}, v, 0}; }
inline gpusim_argument core_number() { return {GPUSIM_ARGUMENT_AFFINE, 0, {}, 0, 1}; }
inline gpusim_argument core_count() { return {GPUSIM_ARGUMENT_CORES, 0, {}, 0, 0}; }

/// What the driver and the library do.
class Guest {
 public:
  Guest(Link& its_link, Ram& its_ram) : link(its_link), ram(its_ram) {}

  gpusim_command command(uint16_t op, uint32_t context = 0,
                         std::initializer_list<uint64_t> words = {}, const std::string& text = "");
  /// Puts it into guest memory and rings. -> its gpa
  uint64_t post(const gpusim_command& command);
  Reply wait(uint64_t gpa, double timeout_s = 20);
  Reply look(uint64_t gpa);
  Reply run(const gpusim_command& command) { return wait(post(command)); }
  Reply run(uint16_t op, uint32_t context = 0, std::initializer_list<uint64_t> words = {},
            const std::string& text = "") {
    return run(command(op, context, words, text));
  }

  // Each checks that it worked.
  uint32_t open();
  void close(uint32_t context);
  void map(uint32_t context, uint64_t address, const std::vector<gpusim_extent>& extents,
           uint64_t rights = GPUSIM_READ | GPUSIM_WRITE);
  uint64_t table(const std::vector<gpusim_extent>& extents);  // -> gpa
  uint32_t load(uint32_t context, std::span<const uint8_t> elf);
  uint64_t symbol(uint32_t context, uint32_t program, const std::string& name);

  gpusim_command launch(uint32_t context, uint32_t program, uint64_t function, uint32_t cores,
                        std::initializer_list<gpusim_argument> arguments = {});

  Link& link;
  Ram& ram;
  uint64_t next_ticket = 1;
  uint64_t next_address = 0x10000000;

 private:
  std::vector<uint64_t> blocks_;  // free
};

std::vector<uint8_t> read_file(const std::string& path);
/// kernels.elf of the build, or of the folder GPUSIM_KERNELS_FOLDER.
std::string kernels_file();
bool eventually(double timeout_s, const std::function<bool()>& condition);

}  // namespace gpusim::test
