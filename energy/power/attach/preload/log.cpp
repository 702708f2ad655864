// The file that a process writes what it does into.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "energy/power/attach/preload/preload.h"

namespace gpusim::power::attach {
namespace {

struct Log {
  std::mutex mutex;           // of opening, growing, and texts
  std::atomic<int> state{0};  // 0: not tried, 1: open, -1: impossible
  int fd = -1;
  Header* header = nullptr;
  Record* records = nullptr;
  uint64_t most = 0;
  std::atomic<uint64_t> grown{0};  // records that the file has room for
  bool has_calls = true;
  std::unordered_map<std::string, uint32_t> texts;
};

// Never destroyed: threads may outlive main().
Log& log() {
  static Log* l = new Log;
  return *l;
}

bool grow(Log& l, uint64_t records) {
  const std::lock_guard lock(l.mutex);
  while (l.grown.load() < records) {
    const uint64_t have = sizeof(Header) + l.grown.load() * sizeof(Record);
    const uint64_t bytes = (have / kChunkBytes + 1) * kChunkBytes;
    // Room that the disk really has: a full disk must not kill the program.
    if (::posix_fallocate(l.fd, static_cast<off_t>(have), static_cast<off_t>(bytes - have)) != 0)
      return false;
    l.grown = (bytes - sizeof(Header)) / sizeof(Record);
  }
  return true;
}

void open_log(Log& l) {
  const char* folder = std::getenv(kFolderVariable);
  if (folder == nullptr) {
    l.state = -1;
    return;
  }
  const char* most = std::getenv(kMostVariable);
  l.most = most != nullptr ? std::strtoull(most, nullptr, 10) : 8u << 20;
  const char* calls = std::getenv(kCallsVariable);
  l.has_calls = calls == nullptr || std::strcmp(calls, "0") != 0;
  const std::string path = std::string(folder) + "/" + std::to_string(::getpid()) + "." +
                           std::to_string(now_ns()) + ".log";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const size_t span = sizeof(Header) + l.most * sizeof(Record);
  void* map = MAP_FAILED;
  if (fd >= 0 && ::posix_fallocate(fd, 0, kChunkBytes) == 0)
    map = ::mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (map == MAP_FAILED) {
    std::fprintf(stderr, "gpusim power attach: %s cannot be written: nothing is recorded\n",
                 path.c_str());
    if (fd >= 0) ::close(fd);
    l.state = -1;
    return;
  }
  l.fd = fd;
  l.header = static_cast<Header*>(map);
  l.records = reinterpret_cast<Record*>(l.header + 1);
  l.grown = (kChunkBytes - sizeof(Header)) / sizeof(Record);
  const char* timing = std::getenv(kTimingVariable);
  l.header->record_bytes = sizeof(Record);
  l.header->timing = static_cast<Timing>(timing != nullptr ? std::atoi(timing) : 0);
  l.header->begin_ns = now_ns();
  l.header->pid = static_cast<uint32_t>(::getpid());
  l.header->parent = static_cast<uint32_t>(::getppid());
  std::memcpy(l.header->magic, kMagic, sizeof kMagic);
  l.state = 1;
}

// A child of fork() gets its own file; it must not write into its parent's.
void after_fork_in_child() {
  Log& l = log();
  new (&l.mutex) std::mutex;
  if (l.state == 1) {
    ::munmap(l.header, sizeof(Header) + l.most * sizeof(Record));
    ::close(l.fd);
    l.header = nullptr;
  }
  l.texts.clear();
  l.state = 0;
  forget_after_fork();
}

Record* next_record(Log& l) {
  const uint64_t i = l.header->records.fetch_add(1, std::memory_order_relaxed);
  if (i >= l.most || (i >= l.grown.load(std::memory_order_relaxed) && !grow(l, i + 1))) {
    l.header->dropped.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  return &l.records[i];
}

void write_text(Log& l, uint32_t number, const char* text) {
  size_t left = std::min<size_t>(std::strlen(text), 1000);
  do {
    Record* r = next_record(l);
    if (r == nullptr) return;
    const size_t part = std::min(left, sizeof r->text);
    r->name = number;
    r->result = static_cast<int32_t>(left);
    std::memcpy(r->text, text, part);
    text += part;
    left -= part;
    r->kind.store(static_cast<uint32_t>(RecordKind::kText), std::memory_order_release);
  } while (left > 0);
}

}  // namespace

uint64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

bool log_is_open() {
  Log& l = log();
  if (l.state == 0) {
    const std::lock_guard lock(l.mutex);
    static bool has_fork_handler = false;
    if (!has_fork_handler) {
      has_fork_handler = true;
      ::pthread_atfork(nullptr, nullptr, after_fork_in_child);
    }
    if (l.state == 0) open_log(l);
  }
  return l.state == 1;
}

Timing timing() { return log().header->timing; }
bool records_calls() { return log().has_calls; }

uint32_t text_number(const char* text) {
  Log& l = log();
  uint32_t number = 0;
  {
    const std::lock_guard lock(l.mutex);
    const auto [at, is_new] = l.texts.emplace(text, static_cast<uint32_t>(l.texts.size() + 1));
    number = at->second;
    if (!is_new) return number;
  }
  // Another thread may use the number before the text is there; the reader puts them together
  // later.
  write_text(l, number, text);
  return number;
}

uint32_t thread_number() {
  thread_local const uint32_t number = static_cast<uint32_t>(::syscall(SYS_gettid));
  return number;
}

void write_record(const Written& w) {
  Record* r = next_record(log());
  if (r == nullptr) return;
  r->name = w.name;
  r->begin_ns = w.begin_ns;
  r->end_ns = w.end_ns;
  r->thread = w.thread != 0 ? w.thread : thread_number();
  r->result = w.result;
  r->on.stream = w.stream;
  r->on.bytes = w.bytes;
  r->on.blocks = w.blocks;
  r->on.threads = w.threads;
  r->on.device = w.device;
  r->on.estimated = w.estimated;
  r->kind.store(static_cast<uint32_t>(w.kind), std::memory_order_release);
}

void write_pci_bus(const char* text) {
  Header& h = *log().header;
  if (h.pci_bus[0] == 0) std::strncpy(h.pci_bus, text, sizeof h.pci_bus - 1);
}

void note(const char* text) {
  const uint64_t now = now_ns();
  write_record(
      {.kind = RecordKind::kNote, .name = text_number(text), .begin_ns = now, .end_ns = now});
}

}  // namespace gpusim::power::attach
