// Which bits of guest memory nobody has set.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

namespace gpusim::host::uninitialised {

// Where an undefined value came from: CheckedMachine::origin(). 0: it was not loaded yet.
using OriginId = uint32_t;

// Memory counts as defined until somebody says otherwise. A page of 4 KiB takes as much again where
// a part of it is undefined, and twice that where undefined values were stored to it.
class Shadow {
 public:
  // `space`: whose memory it is: 0 where all cores share it, else the core.
  // The undefined bits of up to 8 bytes; `origin` is that of the first undefined byte.
  uint64_t load(uint32_t space, uint64_t address, uint32_t size_bytes, OriginId* origin);
  void store(uint32_t space, uint64_t address, uint32_t size_bytes, uint64_t undefined,
             OriginId origin);
  void define(uint32_t space, uint64_t address, uint64_t size_bytes) {
    fill(space, address, size_bytes, 0);
  }
  void undefine(uint32_t space, uint64_t address, uint64_t size_bytes) {
    fill(space, address, size_bytes, 0xff);
  }
  // Masks per byte. Origins are not among them.
  void read(uint32_t space, uint64_t address, std::span<uint8_t> undefined);
  void write(uint32_t space, uint64_t address, std::span<const uint8_t> undefined);
  // The first byte of the range with an undefined bit, or its end.
  uint64_t find_undefined(uint32_t space, uint64_t address, uint64_t size_bytes);
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  static constexpr uint64_t kPageBytes = 4096;
  struct Origins {
    std::array<OriginId, kPageBytes / 4> of_word{};
  };
  struct Page {
    std::array<uint8_t, kPageBytes> undefined{};
    std::unique_ptr<Origins> origins;  // null: all 0
  };
  using Key = uint64_t;
  static Key key_of(uint32_t space, uint64_t address) {
    return address / kPageBytes ^ uint64_t { space } << 40;
  }
  const Page* find(Key key);  // null: all of it is defined
  Page& make(Key key);        // to be changed
  void fill(uint32_t space, uint64_t address, uint64_t size_bytes, uint8_t undefined);

  struct Recent {
    Key key = ~Key{0};
    const Page* page = nullptr;
    Page* own = nullptr;  // the same, where it can be changed
  };
  std::unordered_map<Key, std::unique_ptr<Page>> pages_;  // null: all of it is undefined
  std::array<Recent, 1024> recent_;
  uint64_t size_bytes_ = 0;
};

}  // namespace gpusim::host::uninitialised
