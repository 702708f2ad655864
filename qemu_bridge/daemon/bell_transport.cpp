#include "qemu_bridge/daemon/bell_transport.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "device_sim/base/error.h"
#include "host/offload/lost_pages.h"
#include "qemu_bridge/daemon/log.h"

namespace gpusim::daemon {
namespace {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

// Words of the page that QEMU changes, too.
template <typename T>
std::atomic_ref<T> shared(T& word) {
  return std::atomic_ref<T>(word);
}

void futex_wait(uint32_t& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

void futex_wake(uint32_t& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

// A message and what came with it.
struct Message {
  std::vector<uint8_t> bytes;
  std::vector<FileDescriptor> files;
};

Message receive(int socket) {
  Message message;
  message.bytes.resize(sizeof(gpusim_bell_hello) +
                       GPUSIM_BELL_MOST_REGIONS * sizeof(gpusim_bell_region) + 1);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * (GPUSIM_BELL_MOST_FDS + 1))];
  iovec data{message.bytes.data(), message.bytes.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size;
  do {
    size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) throw Error(fmt::format("QEMU's socket: {}", std::strerror(errno)));
  message.bytes.resize(static_cast<size_t>(size));
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      message.files.emplace_back(fd);
    }
  }
  if (header.msg_flags & MSG_CTRUNC) throw Error("QEMU's hello: descriptors were lost");
  return message;
}

}  // namespace

BellTransport::BellTransport(int socket, int timeout_s) : socket_(socket) {
  try {
    receive_hello(timeout_s);
  } catch (const Error& error) {
    ready(-EINVAL, error.what());
    if (page_) munmap(page_, sizeof *page_);
    throw;
  }
}

BellTransport::~BellTransport() { munmap(page_, sizeof *page_); }

void BellTransport::receive_hello(int timeout_s) {
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(socket_, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET)
    throw Error(fmt::format("--qemu-fd {}: not a socket from QEMU", socket_));
  pollfd wait{socket_, POLLIN, 0};
  if (::poll(&wait, 1, timeout_s * 1000) == 0)
    throw Error(fmt::format("QEMU sent no hello within {} s", timeout_s));
  Message message = receive(socket_);
  if (message.bytes.empty()) throw Error("QEMU went away before its hello");
  attach(message.bytes, std::move(message.files));
}

void BellTransport::attach(const std::vector<uint8_t>& bytes, std::vector<FileDescriptor> files) {
  const auto refuse = [](const std::string& why) { throw Error("QEMU's hello: " + why); };
  gpusim_bell_hello hello{};
  if (bytes.size() < sizeof hello) refuse("too short");
  std::memcpy(&hello, bytes.data(), sizeof hello);
  if (hello.magic != GPUSIM_BELL_MAGIC) refuse("wrong magic");
  generation_ = hello.generation;
  if (hello.version != GPUSIM_BELL_VERSION || hello.wire_version != GPUSIM_WIRE_VERSION)
    refuse(fmt::format("version {}, wire version {}; this daemon has {} and {}", hello.version,
                       hello.wire_version, GPUSIM_BELL_VERSION, GPUSIM_WIRE_VERSION));
  if (hello.generation == 0) refuse("generation 0");
  if (hello.region_count > GPUSIM_BELL_MOST_REGIONS ||
      bytes.size() != sizeof hello + hello.region_count * sizeof(gpusim_bell_region))
    refuse("its size does not fit its regions");
  if (hello.fd_count != files.size() || files.empty() || files.size() > GPUSIM_BELL_MOST_FDS)
    refuse(fmt::format("{} descriptors came, {} were announced", files.size(), hello.fd_count));

  std::vector<RamRegion> regions;
  for (uint32_t i = 0; i < hello.region_count; ++i) {
    gpusim_bell_region r;
    std::memcpy(&r, bytes.data() + sizeof hello + i * sizeof r, sizeof r);
    if (r.fd_index == 0) refuse("a region lies in the bell page's file");
    if (r.flags & ~uint32_t{GPUSIM_BELL_READ_ONLY}) refuse("unknown flags of a region");
    regions.push_back({.gpa = r.gpa,
                       .size_bytes = r.size_bytes,
                       .offset = r.offset,
                       .file = r.fd_index,
                       .read_only = (r.flags & GPUSIM_BELL_READ_ONLY) != 0});
  }

  struct stat status;
  if (fstat(files[0].get(), &status) != 0 ||
      status.st_size < static_cast<off_t>(sizeof(gpusim_bell_page)))
    refuse("the bell page's file is too small");
  void* at = mmap(nullptr, sizeof(gpusim_bell_page), PROT_READ | PROT_WRITE, MAP_SHARED,
                  files[0].get(), 0);
  if (at == MAP_FAILED) refuse(fmt::format("cannot map the bell page: {}", std::strerror(errno)));
  page_ = static_cast<gpusim_bell_page*>(at);
  offload::note_mapped(at, kPageSize);
  if (page_->magic != GPUSIM_BELL_MAGIC || page_->version != GPUSIM_BELL_VERSION ||
      page_->generation != hello.generation)
    refuse("the bell page is not this daemon's");
  tail_ = shared(page_->tail).load(memory_order_relaxed);
  pause_seen_ = shared(page_->paused).load(memory_order_relaxed);
  memory_ = GuestMemory(std::move(files), std::move(regions));
}

void BellTransport::ready(int status, const std::string& text) {
  gpusim_bell_ready message{};
  message.magic = GPUSIM_BELL_MAGIC;
  message.version = GPUSIM_BELL_VERSION;
  message.wire_version = GPUSIM_WIRE_VERSION;
  message.generation = generation_;
  message.status = status;
  std::memcpy(message.text, text.data(), std::min(text.size(), sizeof message.text - 1));
  // QEMU gone: the socket's end of file tells.
  (void)!send(socket_, &message, sizeof message, MSG_NOSIGNAL);
}

void BellTransport::follow_pause_request() {
  const uint32_t request = shared(page_->pause_request).load(memory_order_acquire);
  if (request == pause_seen_) return;
  pause_seen_ = request;
  paused_ = request % 2 != 0;
  shared(page_->paused).store(request, memory_order_release);
  futex_wake(page_->paused, INT_MAX);
}

Transport::Report BellTransport::poll() {
  if (broken_) return {Event::kEnd};
  if (!announced_) {
    announced_ = true;
    return {Event::kNewGuest};
  }
  if (woken_.load(memory_order_relaxed) && woken_.exchange(false, memory_order_acq_rel))
    return {Event::kWoken};
  follow_pause_request();
  if (paused_) return {};
  const uint32_t head = shared(page_->head).load(memory_order_acquire);
  if (head == tail_) return {};
  if (head - tail_ > GPUSIM_BELL_RING) {
    broken_ = true;
    complain("the bell page is damaged: more bells than its ring holds");
    return {Event::kEnd};
  }
  const uint64_t gpa = shared(page_->ring[tail_ % GPUSIM_BELL_RING]).load(memory_order_relaxed);
  shared(page_->tail).store(++tail_, memory_order_release);
  return {Event::kBell, gpa};
}

void BellTransport::done(uint64_t) { replied_ = true; }

void BellTransport::flush() {
  if (!replied_) return;
  replied_ = false;
  shared(page_->completions).fetch_add(1, memory_order_seq_cst);
  std::atomic_thread_fence(memory_order_seq_cst);
  if (shared(page_->qemu_waits).load(memory_order_relaxed) != 0)
    futex_wake(page_->completions, INT_MAX);
}

bool BellTransport::has_work() const {
  if (woken_.load(memory_order_relaxed) || broken_ || !announced_) return true;
  if (shared(page_->pause_request).load(memory_order_acquire) != pause_seen_) return true;
  return !paused_ && shared(page_->head).load(memory_order_acquire) != tail_;
}

void BellTransport::sleep() {
  shared(page_->daemon_sleeps).store(1, memory_order_relaxed);
  std::atomic_thread_fence(memory_order_seq_cst);
  if (!has_work()) futex_wait(page_->daemon_sleeps, 1);
  shared(page_->daemon_sleeps).store(0, memory_order_relaxed);
}

void BellTransport::wake() {
  woken_.store(true, memory_order_release);
  std::atomic_thread_fence(memory_order_seq_cst);
  if (shared(page_->daemon_sleeps).load(memory_order_relaxed) != 0 &&
      shared(page_->daemon_sleeps).exchange(0, memory_order_seq_cst) != 0)
    futex_wake(page_->daemon_sleeps, 1);
}

}  // namespace gpusim::daemon
