// A hostile guest before the daemon's decoder: commands, tables and bells of the input's making, in
// memory that another thread keeps changing. The engine runs nothing, but maps guest memory for
// real. Also QEMU's hello, as bytes.
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <thread>

#include "device_sim/base/error.h"
#include "qemu_bridge/daemon/bell_transport.h"
#include "qemu_bridge/daemon/commands.h"
#include "qemu_bridge/wire/gpusim_bell.h"
#include "tests/unit/daemon/fake_simulator.h"

using namespace gpusim;
using namespace gpusim::daemon;

namespace {

constexpr uint64_t kRam = 0x40000000, kRamSize = 64 * kPageSize;
constexpr uint64_t kFlash = 0x1000, kFlashSize = 2 * kPageSize;

constexpr uint64_t kSlot = 2048;  // a command has room in it

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

FileDescriptor file_of(uint64_t size_bytes) {
  FileDescriptor file(memfd_create("fuzz", MFD_CLOEXEC));
  require(ftruncate(file.get(), static_cast<off_t>(size_bytes)) == 0, "ftruncate");
  return file;
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  uint8_t byte() {
    uint8_t b = 0;
    take(&b, 1);
    return b;
  }
  void take(void* to, size_t size_bytes) {
    std::memset(to, 0, size_bytes);
    const size_t n = size_bytes < size_ ? size_bytes : size_;
    std::memcpy(to, data_, n);
    data_ += n;
    size_ -= n;
  }
  // Mostly near to what may be right.
  uint64_t number() {
    const uint8_t kind = byte(), small = byte();
    switch (kind % 16) {
      case 0:
        return small;
      case 1:
        return small * kPageSize;
      case 2:
        return kRam + small % 80 * kPageSize;
      case 3:
        return kRam + small * 64;
      case 4:
        return kRam + kRamSize - small * 64;
      case 5:
        return kFlash + small * 64;
      case 6:
        return uint64_t{0} - small;
      case 7:
        return uint64_t{0} - small * kPageSize;
      case 8:
        return (uint64_t{1} << 20) + small % 16 * kPageSize;  // device addresses
      case 9:
        return uint64_t{1} << (small % 64);
      case 10:
        return (uint64_t{1} << (small % 64)) - 1;
      case 11:
        return 1;
      case 12:
        return kPageSize;
      case 13:
        return 3;
      default: {
        uint64_t any;
        take(&any, sizeof any);
        return any;
      }
    }
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// Of each operation, printed at the end.
struct Tally {
  uint64_t served[GPUSIM_OP_CHECK + 1] = {}, refused[GPUSIM_OP_CHECK + 1] = {};
  ~Tally() {
    for (uint16_t op = GPUSIM_OP_HELLO; op <= GPUSIM_OP_CHECK; ++op)
      std::fprintf(stderr, "%-14s %8llu served %8llu refused\n", operation_name(op),
                   static_cast<unsigned long long>(served[op]),
                   static_cast<unsigned long long>(refused[op]));
  }
} tally;

class Guest {
 public:
  Guest() {
    std::vector<FileDescriptor> files;
    files.push_back(file_of(kRamSize));
    files.push_back(file_of(kFlashSize));
    // Two regions that adjoin and lie the other way round in the file.
    constexpr uint64_t kHalf = kRamSize / 2;
    memory_ =
        GuestMemory(std::move(files),
                    {{.gpa = kRam, .size_bytes = kHalf, .offset = kHalf},
                     {.gpa = kRam + kHalf, .size_bytes = kHalf},
                     {.gpa = kFlash, .size_bytes = kFlashSize, .file = 1, .read_only = true}});
    low_ = memory_.bytes(kRam, kHalf, true);
    high_ = memory_.bytes(kRam + kHalf, kHalf, true);
    changer_ = std::thread([this] { change(); });
    changer_.detach();
  }

  void run(Input input) {
    offload::Simulator service({.address_space_bytes = uint64_t{1} << 26, .most_contexts = 4});
    commands_.reset();
    service_ = &service;
    begin();
    const uint8_t kind = input.byte();
    still_ = kind % 4 == 0;
    if (kind & 16) {
      tables();
      // Two contexts, each with memory and a program.
      for (uint8_t context = 1; context <= 2; ++context) {
        right({GPUSIM_OP_CONTEXT_OPEN, 0, 0, 1, 0, 31});
        right({GPUSIM_OP_MAP, context, 0, 3, 1, 4, 1, 2, 1, 0, 1, 1, 0, 31});
        right({GPUSIM_OP_LOAD, context, 0, 1, 4, 1, 3, 0, 1, 0, 31});
        test::finish_one(0);
      }
    }
    for (int i = 0; i < 64 && !input.empty(); ++i) act(input);
    commands_->abandon();
    require(test::open_contexts() == 0 && test::waiting() == 0, "something is left");
    commands_.reset();
    for (const uint8_t b :
         std::vector<uint8_t>(memory_.bytes(kFlash, kFlashSize, false),
                              memory_.bytes(kFlash, kFlashSize, false) + kFlashSize))
      require(b == 0, "read-only memory was written");
  }

 private:
  uint8_t* at(uint64_t offset) {
    offset %= kRamSize - sizeof(gpusim_command);
    if (offset >= kRamSize / 2) return high_ + (offset - kRamSize / 2);
    return low_ + std::min(offset, kRamSize / 2 - sizeof(gpusim_command));
  }

  void begin() {
    commands_.emplace(memory_, *service_,
                      CommandOptions{.generation = 1,
                                     .backends = "none",
                                     .most_pieces = 100,
                                     .most_program_bytes = 1 << 16,
                                     .most_loading_bytes = 1 << 18,
                                     .most_programs = 8},
                      log_, [this](uint64_t gpa) {
                        require(memory_.bytes(gpa, GPUSIM_COMMAND_BASE_BYTES, true) != nullptr,
                                "a reply beside RAM");
                      });
  }

  void act(Input& input) {
    switch (input.byte() % 8) {
      case 0:
        return commands_->serve(input.number());
      case 1:
      case 2:
      case 3:
        return command(input);
      case 4: {  // a table
        if (input.byte() % 2) return tables();
        auto* table = reinterpret_cast<gpusim_extent*>(at(input.byte() * kPageSize / 4));
        for (int i = input.byte() % 8; i >= 0; --i) {
          const gpusim_extent extent{input.number(), input.number()};
          std::memcpy(table++, &extent, sizeof extent);
        }
        return;
      }
      case 5: {
        uint8_t bytes[64];
        input.take(bytes, sizeof bytes);
        std::memcpy(at(input.number()), bytes, sizeof bytes);
        return;
      }
      case 6:
        test::finish_one(input.byte() % 2 ? 0 : -ENOEXEC);
        return;
      default:
        if (input.byte() % 8 != 0) return;
        commands_->close_all();
        require(commands_->in_flight() == 0, "commands are left");
        begin();
    }
  }

  // What is right more often than not.
  static void fill(uint16_t op, gpusim_words& words, Input& input) {
    const auto any = [&](uint64_t usual) { return input.byte() % 8 == 0 ? input.number() : usual; };
    const auto pages = [&] { return uint64_t{input.byte() % 4u + 1} * kPageSize; };
    switch (op) {
      case GPUSIM_OP_HELLO:
        words.word[0] = any(GPUSIM_WIRE_VERSION);
        return;
      case GPUSIM_OP_MAP: {
        const uint64_t size = pages();
        words.word[0] = any((1 << 20) + input.byte() % 8 * kPageSize);
        words.word[1] = any(size);
        words.word[2] = any(input.byte() % 3 + 1);
        words.word[3] = any(kRam + input.byte() % 32 * kSlot);
        words.word[4] = any(size / kPageSize);
        return;
      }
      case GPUSIM_OP_UNMAP:
      case GPUSIM_OP_LOAD:
        words.word[0] = any((1 << 20) + input.byte() % 8 * kPageSize);
        words.word[1] = any(pages());
        words.word[2] = op == GPUSIM_OP_LOAD ? any(input.byte() % 2) : any(0);
        return;
      case GPUSIM_OP_DIRECT:
        words.word[0] = any((1 << 20) + input.byte() % 8 * kPageSize);
        return;
      case GPUSIM_OP_UNLOAD:
      case GPUSIM_OP_CANCEL:
        words.word[0] = any(input.byte() % 16);
        return;
      case GPUSIM_OP_SYMBOL:
        words.word[0] = any(input.byte() % 4);
        input.take(words.text, 256);
        return;
      case GPUSIM_OP_CHECK:
        words.word[0] = any(input.byte() % 4);
        words.word[1] = input.number();
        return;
      default:
        words.word[0] = any(0);
    }
  }

  void right(std::initializer_list<uint8_t> bytes) { command({bytes.begin(), bytes.size()}); }

  // Memory that is right, at the places that fill() likes.
  void tables() {
    for (uint64_t slot = 0; slot < 32; slot += 3) {
      auto* table = reinterpret_cast<gpusim_extent*>(at(slot * kSlot));
      for (uint64_t i = 0; i < 4; ++i)
        table[i] = {kRam + (30 + slot % 7 * i) * kPageSize, kPageSize};
    }
  }

  void command(Input&& input) { command(input); }
  void command(Input& input) {
    gpusim_command c{};
    c.magic = GPUSIM_COMMAND_MAGIC;
    c.version = GPUSIM_WIRE_VERSION;
    c.op = input.byte() % (GPUSIM_OP_CLASSES + 1);
    c.context = input.byte() % 4;
    c.generation = 1;
    c.ticket = input.byte() % 16;
    c.status = GPUSIM_PENDING;
    if (c.op == GPUSIM_OP_LAUNCH) {
      c.request.launch.program = input.byte() % 4;
      c.request.launch.cores = input.byte();
      c.request.launch.argument_count = input.byte() % 18;
      for (gpusim_argument& a : c.request.launch.arguments) a.kind = input.byte() % 5;
    } else {
      fill(c.op, c.request.words, input);
    }
    for (int i = input.byte() % 16 - 12; i > 0; --i)  // damage
      reinterpret_cast<uint8_t*>(&c)[(input.byte() << 8 | input.byte()) % sizeof c] = input.byte();
    const uint64_t slot = input.byte() % 32;
    std::memcpy(at(slot * kSlot), &c, sizeof c);
    commands_->serve(kRam + slot * kSlot);
    commands_->serve_posted();
    require(commands_->in_flight() == test::waiting(), "commands in flight");
    // How far it gets: a fuzzer whose every command is refused finds nothing.
    if (c.op < std::size(tally.served)) {
      int32_t status;
      std::memcpy(&status, at(slot * kSlot) + offsetof(gpusim_command, status), sizeof status);
      ++(status == 0 || status == GPUSIM_PENDING ? tally.served : tally.refused)[c.op];
    }
  }

  // The other vCPUs of the guest.
  [[noreturn]] __attribute__((no_sanitize("address", "undefined"))) void change() {
    uint64_t x = 88172645463325252;
    for (;;) {
      if (still_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        continue;
      }
      for (int i = 0; i < 8; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        // Mostly where commands and tables lie, and by numbers that mean something.
        volatile uint8_t* byte = at(x >> 20 & 0x7fff);
        *byte = static_cast<uint8_t>(x & 3 ? *byte ^ (1u << (x >> 8 & 7)) : x >> 16);
      }
      for (int i = 0; i < 2000; ++i) asm volatile("");
    }
  }

  GuestMemory memory_;
  uint8_t *low_ = nullptr, *high_ = nullptr;
  offload::Simulator* service_ = nullptr;
  Log log_;
  std::optional<Commands> commands_;
  std::atomic<bool> still_{true};
  std::thread changer_;
};

// What QEMU says first. It is trusted not to lie about sizes on purpose, but not blindly.
void hello(Input input) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  const FileDescriptor ours(ends[0]), daemons(ends[1]);
  const FileDescriptor page = file_of(GPUSIM_BELL_PAGE_BYTES), ram = file_of(16 * kPageSize);
  gpusim_bell_page bell{};
  bell.magic = GPUSIM_BELL_MAGIC;
  bell.version = GPUSIM_BELL_VERSION;
  bell.generation = 5;
  bell.head = input.byte();
  bell.tail = input.byte() % 4 == 0 ? input.byte() : bell.head;
  bell.pause_request = input.byte() % 3;
  for (int i = 0; i < 8; ++i) bell.ring[i] = input.number();
  require(pwrite(page.get(), &bell, sizeof bell, 0) == sizeof bell, "pwrite");
  struct {
    gpusim_bell_hello hello;
    gpusim_bell_region regions[GPUSIM_BELL_MOST_REGIONS + 2];
  } message{};
  const uint8_t kind = input.byte();
  const uint32_t regions = input.byte() % (GPUSIM_BELL_MOST_REGIONS + 2);
  const int fds[2] = {page.get(), ram.get()};
  message.hello = {GPUSIM_BELL_MAGIC, GPUSIM_BELL_VERSION, GPUSIM_WIRE_VERSION, 5, 2, regions, 0};
  for (uint32_t i = 0; i < regions; ++i)
    message.regions[i] = {input.number(), input.number(), input.number(),
                          static_cast<uint32_t>(input.byte() % 3), input.byte() % 2u};
  size_t size = sizeof message.hello + regions * sizeof message.regions[0];
  if (kind % 8 == 0) input.take(&message, size);
  if (kind % 8 == 1) size = (input.byte() << 8 | input.byte()) % (sizeof message + 1);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  iovec data{&message, size};
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
  require(sendmsg(ours.get(), &header, 0) == static_cast<ssize_t>(size), "sendmsg");
  try {
    BellTransport transport(daemons.get(), 1);
    for (int i = 0; i < 100; ++i) {
      const Transport::Report report = transport.poll();
      if (report.event == Transport::Event::kEnd) break;
      transport.memory().bytes(report.gpa, GPUSIM_COMMAND_BASE_BYTES, true);
    }
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Guest& guest = *new Guest;  // its thread never ends
  if (size < 2) return 0;
  if (data[0] % 8 == 0)
    hello({data + 1, size - 1});
  else
    guest.run({data + 1, size - 1});
  return 0;
}
