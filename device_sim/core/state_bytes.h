// Plain values one after the other, for MachineState::scheduling(): written and read in the same
// order.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "device_sim/core/guest_memory.h"
#include "device_sim/core/wait.h"

namespace gpusim {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

// What a watch looks at lies where the memory's layout puts it: the same for machines of a kind.
struct WatchPlace {
  enum Zone : uint8_t { kEvents, kLinear, kWindows };
  uint8_t zone = kEvents;
  uint64_t offset = 0;
};

class StateWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(const T& v) {
    const auto* p = reinterpret_cast<const uint8_t*>(&v);
    bytes.insert(bytes.end(), p, p + sizeof v);
  }
  void operator()(const MemoryView& memory, const Watch& watch) {
    WatchPlace at;
    const auto* p = reinterpret_cast<const uint8_t*>(watch.word);
    if (p && p >= memory.linear && p < memory.linear + memory.linear_size)
      at = {WatchPlace::kLinear, static_cast<uint64_t>(p - memory.linear)};
    else if (p)
      at = {WatchPlace::kWindows, static_cast<uint64_t>(p - memory.windows)};
    (*this)(at.zone);
    (*this)(at.offset);
    (*this)(watch.seen);
  }
  std::vector<uint8_t> bytes;
};

// Once something is wrong, `ok` is false and all values are zero.
class StateReader {
 public:
  explicit StateReader(std::span<const uint8_t> bytes) : rest_(bytes) {}
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(T& v) {
    v = T{};
    if (rest_.size() < sizeof v) ok = false;
    if (!ok) return;
    if constexpr (std::is_same_v<T, bool>)
      v = rest_[0] != 0;
    else
      std::memcpy(&v, rest_.data(), sizeof v);
    rest_ = rest_.subspan(sizeof v);
  }
  void operator()(const MemoryView& memory, Watch& watch) {
    WatchPlace at;
    (*this)(at.zone);
    (*this)(at.offset);
    (*this)(watch.seen);
    watch.word = nullptr;
    if (!ok || at.zone == WatchPlace::kEvents) return;
    const bool linear = at.zone == WatchPlace::kLinear;
    const uint64_t size = linear ? memory.linear_size : windows_storage_bytes(memory);
    ok = at.zone <= WatchPlace::kWindows && at.offset % 8 == 0 && at.offset < size;
    if (ok)
      watch.word =
          reinterpret_cast<const uint64_t*>((linear ? memory.linear : memory.windows) + at.offset);
  }
  bool at_end() const { return rest_.empty(); }
  bool ok = true;

 private:
  std::span<const uint8_t> rest_;
};

// How a core waits, of a machine whose cores take turns one by one.
template <class Archive, class Core>
void describe_wait(Archive& a, const MemoryView& memory, Core& core) {
  a(core.waits);
  a(memory, core.watch);
  a(core.events_seen);
  a(core.rounds);
  a(core.until);
}

// `kind` says whose scheduling it is; `describe` gives its values to a StateWriter.
template <class Describe>
std::vector<uint8_t> write_scheduling(uint32_t kind, Describe describe) {
  StateWriter writer;
  writer(kind);
  describe(writer);
  return std::move(writer.bytes);
}

// False: `describe` was given values that are no scheduling. Another kind's are passed over.
template <class Describe>
bool read_scheduling(std::span<const uint8_t> bytes, uint32_t kind, Describe describe) {
  StateReader reader(bytes);
  uint32_t found = 0;
  reader(found);
  if (!reader.ok || found != kind) return true;
  describe(reader);
  return reader.ok && reader.at_end();
}

}  // namespace gpusim
