// Cores that have a line, in the order in which they came to have it. Most lines have few.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace gpusim::host::chip {

// Where that core is among some, or their end. Piece by piece, so that compilers compare several at
// once: lines that all cores read have thousands.
inline const uint32_t* find_core(const uint32_t* at, const uint32_t* last, uint32_t core) {
  constexpr uint32_t kPiece = 16;
  for (; last - at >= kPiece; at += kPiece) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < kPiece; ++i) found |= static_cast<uint32_t>(at[i] == core);
    if (found != 0) break;
  }
  return std::find(at, last, core);
}

class Sharers {
 public:
  Sharers() = default;
  Sharers(Sharers&& other) noexcept { *this = std::move(other); }
  Sharers& operator=(Sharers&& other) noexcept {
    if (this == &other) return *this;
    release();
    std::memcpy(static_cast<void*>(&at_), &other.at_, sizeof(at_));
    size_ = std::exchange(other.size_, 0);
    room_ = std::exchange(other.room_, kFew);
    return *this;
  }
  ~Sharers() { release(); }

  const uint32_t* begin() const { return room_ == kFew ? at_.few : at_.many; }
  const uint32_t* end() const { return begin() + size_; }
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool has(uint32_t core) const { return find_core(begin(), end(), core) != end(); }
  void clear() { size_ = 0; }
  void push_back(uint32_t core) {
    if (size_ == room_) {
      const size_t room = std::max<size_t>(size_t{4} * kFew, size_t{4} * room_);
      auto* const more = new uint32_t[room];
      uint32_t n = 0;
      for (const uint32_t other : *this) more[n++] = other;
      release();
      at_.many = more;
      room_ = static_cast<uint32_t>(room);
    }
    (room_ == kFew ? at_.few : at_.many)[size_++] = core;
  }
  void erase(uint32_t core) {
    uint32_t* const all = room_ == kFew ? at_.few : at_.many;
    size_ = static_cast<uint32_t>(std::remove(all, all + size_, core) - all);
  }

 private:
  static constexpr uint32_t kFew = 2;
  void release() {
    if (room_ != kFew) delete[] at_.many;
    room_ = kFew;
  }
  union {
    uint32_t few[kFew];
    uint32_t* many;
  } at_{};
  uint32_t size_ = 0, room_ = kFew;
};

}  // namespace gpusim::host::chip
