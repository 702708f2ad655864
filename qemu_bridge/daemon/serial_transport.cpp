#include "qemu_bridge/daemon/serial_transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "device_sim/base/error.h"

namespace gpusim::daemon {
namespace {

constexpr uint64_t kRamOfArmVirt = 0x40000000;
// A guest that rings and reads no answers is not listened to any longer.
constexpr size_t kMostOutBytes = 1 << 16;

uint64_t parse_number(const std::string& text, const std::string& all) {
  std::string digits = text;
  int base = 10, shift = 0;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    base = 16;
    digits = digits.substr(2);
  } else if (!digits.empty()) {
    const std::string units = "KMGT";
    const size_t unit = units.find(static_cast<char>(std::toupper(digits.back())));
    if (unit != std::string::npos) {
      shift = 10 * static_cast<int>(unit + 1);
      digits.pop_back();
    }
  }
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  if (error != std::errc{} || stop != end || value > ~uint64_t{0} >> shift)
    throw Error(fmt::format("--ram {}: {} is no number; expected FILE[@GPA][:SIZE][+OFFSET]", all,
                            text.empty() ? "nothing" : text));
  return value << shift;
}

sockaddr_un socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    throw Error(fmt::format("--listen {}: a socket's path has 1 to {} characters", path,
                            sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// What an earlier daemon left behind is removed; one that lives is not disturbed.
FileDescriptor listen_at(const std::string& path) {
  const sockaddr_un address = socket_address(path);
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  const auto fail = [&](const char* what) {
    throw Error(fmt::format("--listen {}: {}: {}", path, what, std::strerror(errno)));
  };
  struct stat status;
  if (lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode))
      throw Error(fmt::format("--listen {}: exists and is not a socket", path));
    const FileDescriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(probe.get(), at, sizeof address) == 0 || errno != ECONNREFUSED)
      throw Error(fmt::format("--listen {}: another process listens there", path));
    unlink(path.c_str());
  }
  FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) fail("no socket");
  const mode_t mask = umask(0177);  // for its owner alone
  const int bound = bind(listener.get(), at, sizeof address);
  umask(mask);
  if (bound != 0) fail("cannot create the socket");
  if (listen(listener.get(), 1) != 0) fail("cannot listen");
  return listener;
}

uint32_t random_generation() {
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) number = 1;
  return number & 0x7fffffff;
}

}  // namespace

RamFile parse_ram_file(const std::string& text) {
  RamFile ram;
  ram.gpa = kRamOfArmVirt;
  // From the end, and only what begins with a digit: paths may hold any of the three characters.
  std::string rest = text;
  const auto cut = [&](char mark) -> std::optional<std::string> {
    const size_t at = rest.rfind(mark);
    if (at == std::string::npos || at + 1 >= rest.size() || rest.find('/', at) != std::string::npos)
      return {};
    if (!std::isdigit(static_cast<unsigned char>(rest[at + 1]))) return {};
    std::string part = rest.substr(at + 1);
    rest.resize(at);
    return part;
  };
  if (const auto offset = cut('+')) ram.offset = parse_number(*offset, text);
  if (const auto size = cut(':')) ram.size_bytes = parse_number(*size, text);
  if (const auto gpa = cut('@')) ram.gpa = parse_number(*gpa, text);
  ram.path = rest;
  if (ram.path.empty()) throw Error(fmt::format("--ram {}: no file", text));
  return ram;
}

SerialTransport::SerialTransport(std::string socket_path, std::vector<RamFile> ram,
                                 const std::string& qmp_path, Log& log)
    : socket_path_(std::move(socket_path)),
      ram_(std::move(ram)),
      log_(log),
      listener_(listen_at(socket_path_)),
      wake_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      generation_(random_generation()) {
  if (!qmp_path.empty()) qmp_.emplace(qmp_path, log);
  if (!wake_event_) throw Error(fmt::format("no event descriptor: {}", std::strerror(errno)));
}

SerialTransport::~SerialTransport() { unlink(socket_path_.c_str()); }

void SerialTransport::next_generation() {
  if (++generation_ == 0) generation_ = 1;
  used_ = false;
}

void SerialTransport::ready(int status, const std::string& text) {
  if (status == 0) log_.line("listening on {}; {}", socket_path_, text);
}

Transport::Report SerialTransport::poll() {
  if (forget_memory_) {
    memory_ = GuestMemory();
    forget_memory_ = false;
  }
  if (woken_.load(std::memory_order_relaxed) && woken_.exchange(false, std::memory_order_acq_rel))
    return {Event::kWoken};
  if (!peer_) return accept_peer();
  if (qmp_) qmp_->poll();
  if (is_paused()) {
    if (!peer_hung_up()) return {};
    drop_peer();
    return peer_is_gone();
  }
  if (kept_) {
    const gpusim_message message = *kept_;
    kept_.reset();
    return take(message);
  }
  if (is_congested()) {
    flush();
    if (is_congested()) return {};
  }
  if (in_.size() < sizeof(gpusim_message)) receive();
  if (!peer_) return peer_is_gone();
  if (in_.size() < sizeof(gpusim_message)) return {};
  gpusim_message message;
  std::memcpy(&message, in_.data(), sizeof message);
  in_.erase(in_.begin(), in_.begin() + sizeof message);
  return take(message);
}

Transport::Report SerialTransport::peer_is_gone() {
  const bool was_attached = std::exchange(attached_, false);
  forget_memory_ = true;
  return {was_attached ? Event::kGuestGone : Event::kNothing};
}

// Also with messages before its end, which nobody reads while the machine stands still.
bool SerialTransport::peer_hung_up() const {
  pollfd peer{peer_.get(), POLLRDHUP, 0};
  return ::poll(&peer, 1, 0) > 0;
}

Transport::Report SerialTransport::accept_peer() {
  const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return {};
  peer_ = FileDescriptor(fd);
  in_.clear();
  out_.clear();
  kept_.reset();
  next_generation();
  log_.line("QEMU connected; generation {}", generation_);
  // QEMU keeps it until the guest opens the port.
  say(GPUSIM_MESSAGE_HELLO, GPUSIM_WIRE_VERSION);
  flush();
  return {};
}

// RAM exists by now: the guest runs.
Transport::Report SerialTransport::attach() {
  try {
    std::vector<FileDescriptor> files;
    std::vector<RamRegion> regions;
    for (const RamFile& ram : ram_) {
      FileDescriptor file(open(ram.path.c_str(), O_RDWR | O_CLOEXEC));
      struct stat status;
      if (!file || fstat(file.get(), &status) != 0)
        throw Error(fmt::format("--ram {}: {}", ram.path, std::strerror(errno)));
      const auto file_size = static_cast<uint64_t>(status.st_size);
      if (ram.offset >= file_size)
        throw Error(fmt::format("--ram {}: the file has {} bytes", ram.path, file_size));
      regions.push_back({.gpa = ram.gpa,
                         .size_bytes = ram.size_bytes.value_or(file_size - ram.offset),
                         .offset = ram.offset,
                         .file = static_cast<uint32_t>(files.size())});
      files.push_back(std::move(file));
    }
    memory_ = GuestMemory(std::move(files), std::move(regions));
  } catch (const Error& error) {
    complain(error.what());
    drop_peer();
    return {};
  }
  attached_ = true;
  return {Event::kNewGuest};
}

Transport::Report SerialTransport::take(const gpusim_message& message) {
  switch (message.kind) {
    case GPUSIM_MESSAGE_HELLO:  // a driver begins
      if (used_) {
        next_generation();
        log_.line("a new driver; generation {}", generation_);
        kept_ = message;
        const bool was_attached = std::exchange(attached_, false);
        forget_memory_ = true;
        return {was_attached ? Event::kGuestGone : Event::kNothing};
      }
      say(GPUSIM_MESSAGE_HELLO, GPUSIM_WIRE_VERSION);
      flush();
      return {};
    case GPUSIM_MESSAGE_BELL:
      if (!attached_) {
        kept_ = message;
        return attach();
      }
      used_ = true;
      return {Event::kBell, message.value};
    case GPUSIM_MESSAGE_PING:
      say(GPUSIM_MESSAGE_PING, message.value);
      flush();
      return {};
    default:
      log_.line("a message of unknown kind {}", message.kind);
      return {};
  }
}

void SerialTransport::receive() {
  uint8_t buffer[4096];
  const ssize_t size = recv(peer_.get(), buffer, sizeof buffer, 0);
  if (size > 0) {
    in_.insert(in_.end(), buffer, buffer + size);
  } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
    drop_peer();
  }
}

void SerialTransport::drop_peer() {
  log_.line("QEMU is gone");
  peer_ = FileDescriptor();
  if (qmp_) qmp_->drop();
  in_.clear();
  out_.clear();
  kept_.reset();
}

void SerialTransport::say(uint32_t kind, uint64_t value) {
  const gpusim_message message{kind, generation_, value};
  const auto* bytes = reinterpret_cast<const uint8_t*>(&message);
  out_.insert(out_.end(), bytes, bytes + sizeof message);
}

void SerialTransport::done(uint64_t gpa) { say(GPUSIM_MESSAGE_DONE, gpa); }

bool SerialTransport::is_congested() const { return out_.size() > kMostOutBytes; }

void SerialTransport::flush() {
  while (peer_ && !out_.empty()) {
    const ssize_t size = send(peer_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (size <= 0) {
      // A connection that is gone: receive() finds out.
      if (errno != EAGAIN && errno != EINTR) out_.clear();
      return;
    }
    out_.erase(out_.begin(), out_.begin() + size);
  }
}

void SerialTransport::sleep() {
  sleeps_.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool has_messages = kept_ || (!is_congested() && in_.size() >= sizeof(gpusim_message));
  const bool has_work =
      woken_.load(std::memory_order_relaxed) || forget_memory_ || (has_messages && !is_paused());
  if (!has_work) {
    pollfd waits[3] = {
        {wake_event_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}, {-1, POLLIN, 0}};
    int timeout_ms = -1;
    if (peer_) {
      waits[1] = {peer_.get(), POLLRDHUP, 0};
      if (!is_congested() && !is_paused()) waits[1].events |= POLLIN;
      if (!out_.empty()) waits[1].events |= POLLOUT;
      if (qmp_) {
        waits[2].fd = qmp_->fd();
        timeout_ms = qmp_->retry_ms();
      }
    }
    ::poll(waits, 3, timeout_ms);
    if (!out_.empty()) flush();
  }
  sleeps_.store(false, std::memory_order_relaxed);
  uint64_t count;
  (void)!read(wake_event_.get(), &count, sizeof count);
}

void SerialTransport::wake() {
  woken_.store(true, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!sleeps_.load(std::memory_order_relaxed)) return;
  const uint64_t one = 1;
  (void)!write(wake_event_.get(), &one, sizeof one);
}

}  // namespace gpusim::daemon
