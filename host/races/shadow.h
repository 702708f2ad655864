// Who accessed each word of memory last.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace gpusim::host::races {

// The latest access of a core to some bytes of a word.
struct Cell {
  enum Kind : uint8_t { kWrite = 1, kSynchronises = 2, kReadsAndWrites = 4 };
  uint32_t clock = 0;  // of the core, then
  uint32_t site = 0;   // which access of the program
  uint16_t core = 0;
  uint8_t bytes = 0;  // a mask; 0: the cell is free
  uint8_t kind = 0;
};

struct ShadowWord {
  // The newest last. More accesses that nothing orders than these are forgotten, loads first.
  std::array<Cell, 4> cells;
};

// Of 4 KiB.
struct ShadowPage {
  static constexpr uint64_t kWords = 512;
  std::array<ShadowWord, kWords> words;
  std::array<uint8_t, kWords> synchronises{};  // bytes by which cores synchronise, masks
};

class Shadow {
 public:
  ShadowPage& page(uint64_t number) {
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number != number) {
      std::unique_ptr<ShadowPage>& page = pages_[number];
      if (!page) page = std::make_unique<ShadowPage>();
      recent = {number, page.get()};
    }
    return *recent.page;
  }
  uint8_t synchronises(uint64_t word) {
    return page(word / ShadowPage::kWords).synchronises[word % ShadowPage::kWords];
  }
  uint64_t size_bytes() const { return pages_.size() * sizeof(ShadowPage); }

 private:
  struct Recent {
    uint64_t number = ~uint64_t{0};
    ShadowPage* page = nullptr;
  };
  std::unordered_map<uint64_t, std::unique_ptr<ShadowPage>> pages_;
  std::array<Recent, 1024> recent_;
};

}  // namespace gpusim::host::races
