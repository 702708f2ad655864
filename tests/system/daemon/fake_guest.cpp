#include "tests/system/daemon/fake_guest.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace gpusim::test {
namespace {

using Clock = std::chrono::steady_clock;

template <typename T>
std::atomic_ref<T> shared(T& word) {
  return std::atomic_ref<T>(word);
}

void pause_briefly() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

// GPUSIM_DAEMON: another executable; GPUSIM_BACKEND: its backend, unless a test names one;
// GPUSIM_GUEST_MEMORY: how a GPU reaches guest RAM.
std::vector<std::string> daemon_command() {
  const char* const program = std::getenv("GPUSIM_DAEMON");
  const char* const backend = std::getenv("GPUSIM_BACKEND");
  std::vector<std::string> command{program ? program : GPUSIM_PROGRAM, "daemon"};
  if (backend) command.insert(command.end(), {"--backend", backend});
  if (const char* const way = std::getenv("GPUSIM_GUEST_MEMORY"))
    command.insert(command.end(), {"--guest-memory", way});
  return command;
}

}  // namespace

std::string kernels_file() {
  const char* const folder = std::getenv("GPUSIM_KERNELS_FOLDER");
  return folder ? std::string(folder) + "/kernels.elf" : GPUSIM_KERNELS;
}

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool eventually(double timeout_s, const std::function<bool()>& condition) {
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
  do {
    if (condition()) return true;
    pause_briefly();
  } while (Clock::now() < end);
  return condition();
}

Child::Child(const std::vector<std::string>& command, int pass_fd) {
  errors_fd_ = memfd_create("errors", MFD_CLOEXEC);
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ != 0) return;
  const int null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  dup2(null, 1);
  dup2(errors_fd_, 2);
  if (pass_fd >= 0) dup2(pass_fd, 3);
  close_range(pass_fd >= 0 ? 4 : 3, ~0u, 0);
  // One heap: threads that wait for each other by chance get more, and tests count mappings.
  setenv("MALLOC_ARENA_MAX", "1", 1);
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // the sandbox does not let it look
  execv(arguments[0], arguments.data());
  _exit(127);
}

Child::~Child() {
  if (status_ == -1) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ::close(errors_fd_);
}

void Child::signal(int number) const { kill(pid_, number); }

int Child::wait(double timeout_s) {
  eventually(timeout_s, [this] { return !lives(); });
  return status_;
}

bool Child::lives() {
  if (status_ != -1) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

std::string Child::errors() {
  std::string text(1 << 16, '\0');
  const ssize_t size = pread(errors_fd_, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

size_t Child::descriptors() const {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd"))
    ++count;
  return count;
}

size_t Child::mappings() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/maps");
  return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

std::string Child::status_line(const std::string& key) const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return line.substr(key.size() + 2);
  return {};
}

uint64_t Child::resident_kib() const { return std::stoull("0" + status_line("RssAnon")); }

Ram::Ram(const std::string& path) {
  fd_ = path.empty() ? memfd_create("ram", MFD_CLOEXEC)
                     : open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  flash_fd_ = memfd_create("flash", MFD_CLOEXEC);
  REQUIRE(ftruncate(fd_, kSize) == 0);
  REQUIRE(ftruncate(flash_fd_, kFlashSize) == 0);
  bytes_ = static_cast<uint8_t*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
}

Ram::~Ram() {
  munmap(bytes_, kSize);
  ::close(fd_);
  ::close(flash_fd_);
}

uint64_t Ram::pages(uint64_t count) {
  REQUIRE(next_ + count * kPage <= kSize);
  const uint64_t gpa = kRamGpa + next_;
  std::memset(bytes_ + next_, 0, count * kPage);
  next_ += count * kPage;
  return gpa;
}

uint64_t Ram::pages_for(std::span<const uint8_t> bytes) {
  const uint64_t gpa = pages((bytes.size() + kPage - 1) / kPage);
  std::memcpy(at<uint8_t>(gpa), bytes.data(), bytes.size());
  return gpa;
}

BellLink::BellLink(Ram& ram, std::vector<std::string> options, bool paused,
                   const std::function<void(gpusim_bell_hello&, std::vector<gpusim_bell_region>&,
                                            gpusim_bell_page&)>& change) {
  static uint32_t next_generation = 1000;
  generation_ = next_generation++;
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  socket_ = ends[0];
  page_fd_ = memfd_create("bell", MFD_CLOEXEC);
  REQUIRE(ftruncate(page_fd_, sizeof(gpusim_bell_page)) == 0);
  page_ = static_cast<gpusim_bell_page*>(
      mmap(nullptr, sizeof(gpusim_bell_page), PROT_READ | PROT_WRITE, MAP_SHARED, page_fd_, 0));
  page_->magic = GPUSIM_BELL_MAGIC;
  page_->version = GPUSIM_BELL_VERSION;
  page_->generation = generation_;
  page_->pause_request = paused;

  std::vector<std::string> command = daemon_command();
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--qemu-fd", "3"});
  daemon_ = std::make_unique<Child>(command, ends[1]);
  ::close(ends[1]);

  // RAM as two regions of one file, swapped, and read-only memory below them.
  constexpr uint64_t kHalf = Ram::kSize / 2;
  std::vector<gpusim_bell_region> regions{{kFlashGpa, Ram::kFlashSize, 0, 2, GPUSIM_BELL_READ_ONLY},
                                          {kRamGpa, kHalf, 0, 1, 0},
                                          {kRamGpa + kHalf, kHalf, kHalf, 1, 0}};
  gpusim_bell_hello hello{GPUSIM_BELL_MAGIC,
                          GPUSIM_BELL_VERSION,
                          GPUSIM_WIRE_VERSION,
                          generation_,
                          3,
                          static_cast<uint32_t>(regions.size()),
                          0};
  if (change) change(hello, regions, *page_);
  std::vector<uint8_t> message(sizeof hello + regions.size() * sizeof regions[0]);
  std::memcpy(message.data(), &hello, sizeof hello);
  std::memcpy(message.data() + sizeof hello, regions.data(), message.size() - sizeof hello);
  const int fds[3] = {page_fd_, ram.fd(), ram.flash_fd()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  iovec data{message.data(), message.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(c), fds, sizeof fds);
  (void)!sendmsg(socket_, &header, MSG_NOSIGNAL);
  pollfd wait{socket_, POLLIN, 0};
  if (::poll(&wait, 1, 20'000) != 1 || recv(socket_, &ready_, sizeof ready_, 0) != sizeof ready_)
    ready_.status = -EPIPE;
}

BellLink::~BellLink() {
  hang_up();
  munmap(page_, sizeof *page_);
  ::close(page_fd_);
}

void BellLink::hang_up() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void BellLink::wake() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (shared(page_->daemon_sleeps).load(std::memory_order_relaxed) != 0 &&
      shared(page_->daemon_sleeps).exchange(0) != 0)
    syscall(SYS_futex, &page_->daemon_sleeps, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void BellLink::ring(uint64_t gpa) {
  const uint32_t head = page_->head;
  while (head - shared(page_->tail).load(std::memory_order_acquire) == GPUSIM_BELL_RING)
    std::this_thread::yield();
  shared(page_->ring[head % GPUSIM_BELL_RING]).store(gpa, std::memory_order_relaxed);
  shared(page_->head).store(head + 1, std::memory_order_release);
  wake();
}

void BellLink::wait() {
  shared(page_->qemu_waits).fetch_add(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t seen = shared(page_->completions).load(std::memory_order_acquire);
  const timespec timeout{0, 1'000'000};
  syscall(SYS_futex, &page_->completions, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  shared(page_->qemu_waits).fetch_sub(1);
}

bool BellLink::pause(double timeout_s) {
  const uint32_t request = page_->pause_request + 1;
  shared(page_->pause_request).store(request, std::memory_order_release);
  wake();
  return eventually(
      timeout_s, [&] { return shared(page_->paused).load(std::memory_order_acquire) == request; });
}

void BellLink::resume() {
  shared(page_->pause_request).store(page_->pause_request + 1, std::memory_order_release);
  wake();
}

bool BellLink::sleeps() const {
  return shared(page_->daemon_sleeps).load(std::memory_order_relaxed) != 0;
}

SerialLink::SerialLink(const std::string& socket_path, const std::string& ram_path,
                       std::vector<std::string> options)
    : socket_path_(socket_path) {
  std::vector<std::string> command = daemon_command();
  command.insert(command.end(), {"--listen", socket_path, "--ram", ram_path});
  command.insert(command.end(), options.begin(), options.end());
  daemon_ = std::make_unique<Child>(command, -1);
}

SerialLink::~SerialLink() { hang_up(); }

void SerialLink::connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path_.c_str(), sizeof address.sun_path - 1);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(eventually(20, [&] {
    return ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }));
  const gpusim_message message = receive(20);
  CHECK(message.kind == GPUSIM_MESSAGE_HELLO);
  CHECK(message.value == GPUSIM_WIRE_VERSION);
  generation_ = message.generation;
}

void SerialLink::hello() {
  const gpusim_message message{GPUSIM_MESSAGE_HELLO, 0, GPUSIM_WIRE_VERSION};
  send(&message, sizeof message);
  for (;;) {
    const gpusim_message answer = receive(20);
    REQUIRE(answer.kind != 0);
    if (answer.kind != GPUSIM_MESSAGE_HELLO) continue;
    generation_ = answer.generation;
    return;
  }
}

void SerialLink::hang_up() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  in_.clear();
}

void SerialLink::send(const void* bytes, size_t size_bytes) {
  CHECK(::send(socket_, bytes, size_bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(size_bytes));
}

void SerialLink::ring(uint64_t gpa) {
  const gpusim_message message{GPUSIM_MESSAGE_BELL, generation_, gpa};
  send(&message, sizeof message);
}

gpusim_message SerialLink::receive(double timeout_s) {
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
  while (in_.size() < sizeof(gpusim_message)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(std::max<int64_t>(left, 0))) != 1) return {};
    uint8_t buffer[4096];
    const ssize_t size = recv(socket_, buffer, sizeof buffer, 0);
    if (size <= 0) return {};
    in_.insert(in_.end(), buffer, buffer + size);
  }
  gpusim_message message;
  std::memcpy(&message, in_.data(), sizeof message);
  in_.erase(in_.begin(), in_.begin() + sizeof message);
  return message;
}

void SerialLink::wait() {
  const gpusim_message message = receive(0.001);
  if (message.kind == GPUSIM_MESSAGE_DONE) ++done_;
}

gpusim_command Guest::command(uint16_t op, uint32_t context, std::initializer_list<uint64_t> words,
                              const std::string& text) {
  gpusim_command c{};
  c.magic = GPUSIM_COMMAND_MAGIC;
  c.version = GPUSIM_WIRE_VERSION;
  c.op = op;
  c.context = context;
  c.generation = op == GPUSIM_OP_HELLO ? 0 : link.generation();
  c.ticket = next_ticket++;
  c.status = GPUSIM_PENDING;
  std::copy(words.begin(), words.end(), c.request.words.word);
  std::memcpy(c.request.words.text, text.data(), text.size());
  return c;
}

uint64_t Guest::post(const gpusim_command& command) {
  if (blocks_.empty()) {
    const uint64_t page = ram.pages(1);
    for (uint64_t i = 0; i < 2; ++i) blocks_.push_back(page + i * 2048);
  }
  const uint64_t gpa = blocks_.back();
  blocks_.pop_back();
  *ram.at<gpusim_command>(gpa) = command;
  link.ring(gpa);
  return gpa;
}

Reply Guest::look(uint64_t gpa) {
  Reply reply;
  auto* block = ram.at<gpusim_command>(gpa);
  reply.status = shared(block->status).load(std::memory_order_acquire);
  if (reply.status != GPUSIM_PENDING) static_cast<gpusim_reply&>(reply) = block->reply;
  return reply;
}

Reply Guest::wait(uint64_t gpa, double timeout_s) {
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
  for (;;) {
    const Reply reply = look(gpa);
    if (reply.status != GPUSIM_PENDING) {
      blocks_.push_back(gpa);
      return reply;
    }
    if (Clock::now() > end) return reply;  // its block is not used again
    link.wait();
  }
}

uint32_t Guest::open() {
  const Reply reply = run(GPUSIM_OP_CONTEXT_OPEN);
  REQUIRE_MESSAGE(reply.status == 0, reply.what());
  return static_cast<uint32_t>(reply.word[0]);
}

void Guest::close(uint32_t context) { CHECK(run(GPUSIM_OP_CONTEXT_CLOSE, context).status == 0); }

uint64_t Guest::table(const std::vector<gpusim_extent>& extents) {
  return ram.pages_for(
      {reinterpret_cast<const uint8_t*>(extents.data()), extents.size() * sizeof extents[0]});
}

void Guest::map(uint32_t context, uint64_t address, const std::vector<gpusim_extent>& extents,
                uint64_t rights) {
  uint64_t size = 0;
  for (const gpusim_extent& e : extents) size += e.size_bytes;
  const Reply reply =
      run(GPUSIM_OP_MAP, context, {address, size, rights, table(extents), extents.size()});
  REQUIRE_MESSAGE(reply.status == 0, reply.what());
}

uint32_t Guest::load(uint32_t context, std::span<const uint8_t> elf) {
  const uint64_t size = (elf.size() + kPage - 1) / kPage * kPage;
  const uint64_t address = next_address;
  next_address += size;
  map(context, address, {{ram.pages_for(elf), size}}, GPUSIM_READ);
  const Reply reply = run(GPUSIM_OP_LOAD, context, {address, elf.size()});
  REQUIRE_MESSAGE(reply.status == 0, reply.what());
  return static_cast<uint32_t>(reply.word[0]);
}

uint64_t Guest::symbol(uint32_t context, uint32_t program, const std::string& name) {
  const Reply reply = run(GPUSIM_OP_SYMBOL, context, {program}, name);
  REQUIRE_MESSAGE(reply.status == 0, reply.what());
  return reply.word[0];
}

gpusim_command Guest::launch(uint32_t context, uint32_t program, uint64_t function, uint32_t cores,
                             std::initializer_list<gpusim_argument> arguments) {
  gpusim_command c = command(GPUSIM_OP_LAUNCH, context);
  c.request.launch.program = program;
  c.request.launch.function = function;
  c.request.launch.cores = cores;
  c.request.launch.argument_count = static_cast<uint32_t>(arguments.size());
  std::copy(arguments.begin(), arguments.end(), c.request.launch.arguments);
  return c;
}

}  // namespace gpusim::test
