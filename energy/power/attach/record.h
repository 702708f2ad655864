// What the preloaded library tells gpusim: a file for each process, of records of one size, written
// while the program runs, so that a program that is killed leaves what it did. Only written and
// read on one machine.
#pragma once
#include <atomic>
#include <cstdint>

namespace gpusim::power::attach {

inline constexpr char kMagic[8] = {'G', 'P', 'S', 'A', 'T', 'T', '0', '1'};
inline constexpr uint64_t kChunkBytes = 4u << 20;  // the file grows by

enum class RecordKind : uint32_t {
  kNone = 0,  // not written (yet)
  kText = 1,  // `name` is its number, `text` up to 32 bytes; several are one text
  kCall = 2,  // of a function of CUDA, by the host's clock
  kKernel = 3,
  kCopy = 4,
  kSet = 5,  // of memory
  kGraph = 6,
  kNote = 7,  // `name`: something that a reader must know
};

enum class Timing : uint32_t { kSynchronous = 0, kEvents = 1, kCallbacks = 2 };

struct Record {
  // Written last: a record without it is unfinished.
  std::atomic<uint32_t> kind;
  uint32_t name;              // number of a text
  uint64_t begin_ns, end_ns;  // CLOCK_MONOTONIC; end 0: not known
  uint32_t thread;
  int32_t result;  // of a call; of a text, how many bytes are left from here on
  union {
    struct {
      uint64_t stream;
      uint64_t bytes;
      uint32_t blocks, threads;  // of a kernel; of a call: blocks is 1 for the runtime's
      uint32_t device;
      uint32_t estimated;  // times are the host's, because events or callbacks failed
    } on;
    char text[32];
  };
};
static_assert(sizeof(Record) == 64);

struct Header {
  char magic[8];
  uint32_t record_bytes;
  Timing timing;
  std::atomic<uint64_t> records;  // given out, the unfinished among them
  std::atomic<uint64_t> dropped;
  uint64_t begin_ns;
  uint32_t pid;
  uint32_t parent;
  char pci_bus[16];  // of the first device that did something
};
static_assert(sizeof(Header) == 64);

// Environment of the program.
inline constexpr const char* kFolderVariable = "GPUSIM_ATTACH_FOLDER";
inline constexpr const char* kTimingVariable = "GPUSIM_ATTACH_TIMING";  // 0, 1 or 2
inline constexpr const char* kMostVariable = "GPUSIM_ATTACH_MOST";      // records
inline constexpr const char* kCallsVariable = "GPUSIM_ATTACH_CALLS";    // 0: only operations

}  // namespace gpusim::power::attach
