#include "host/ptx/tensor_copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "device_sim/core/float_sum.h"

namespace gpusim::ptx {
namespace {

// Quiet NaNs, as arithmetic gives them.
uint64_t nan_of(TensorType t) {
  switch (t) {
    case TensorType::kF16:
    case TensorType::kBf16:
      return 0x7fff;
    case TensorType::kF32:
      return 0x7fffffff;
    case TensorType::kF64:
      return 0x7ff8'0000'0000'0000;
    default:
      return 0;
  }
}

// Whether a is less; of 16 bits. -0 is less than 0.
bool is_less_half(uint64_t a, uint64_t b) {
  const auto ordered = [](uint64_t x) {
    const auto size = static_cast<int>(x & 0x7fff);
    return (x & 0x8000) != 0 ? -size - 1 : size;
  };
  return ordered(a) < ordered(b);
}
bool is_nan_half(TensorType t, uint64_t x) {
  return (x & 0x7fff) > (t == TensorType::kF16 ? 0x7c00u : 0x7f80u);
}

uint64_t smaller_or_larger(TensorType t, bool wants_less, uint64_t a, uint64_t b) {
  bool is_less = false;
  switch (t) {
    case TensorType::kS32:
      is_less = static_cast<int32_t>(a) < static_cast<int32_t>(b);
      break;
    case TensorType::kS64:
      is_less = static_cast<int64_t>(a) < static_cast<int64_t>(b);
      break;
    case TensorType::kF16:
    case TensorType::kBf16:
      if (is_nan_half(t, a) && is_nan_half(t, b)) return 0x7fff;
      if (is_nan_half(t, a)) return b;
      if (is_nan_half(t, b)) return a;
      is_less = is_less_half(a, b);
      break;
    default:
      is_less = a < b;
  }
  return is_less == wants_less ? a : b;
}

uint64_t reduced(TensorReduce op, TensorType t, uint64_t a, uint64_t b) {
  switch (op) {
    case TensorReduce::kAdd:
      switch (t) {
        case TensorType::kF16:
          return float_sum(a, b, static_cast<uint32_t>(FloatWord::kF16));
        case TensorType::kBf16:
          return float_sum(a, b, static_cast<uint32_t>(FloatWord::kBf16));
        case TensorType::kF32:
          return float_sum(a, b, static_cast<uint32_t>(FloatWord::kF32Flushed));
        case TensorType::kF64:
          return float_sum(a, b, static_cast<uint32_t>(FloatWord::kF64));
        default:
          return a + b;
      }
    case TensorReduce::kMin:
      return smaller_or_larger(t, true, a, b);
    case TensorReduce::kMax:
      return smaller_or_larger(t, false, a, b);
    case TensorReduce::kInc:
      return a >= b ? 0 : a + 1;
    case TensorReduce::kDec:
      return a == 0 || a > b ? b : a - 1;
    case TensorReduce::kAnd:
      return a & b;
    case TensorReduce::kOr:
      return a | b;
    default:
      return a ^ b;
  }
}

// Other host threads may reduce there, too.
template <class T>
void reduce_at(uint64_t address, uint64_t value, TensorReduce op, TensorType t) {
  const std::atomic_ref<T> word(*reinterpret_cast<T*>(address));
  T old = word.load();
  while (!word.compare_exchange_weak(old, static_cast<T>(reduced(op, t, old, value)))) {
  }
}

}  // namespace

// Pixels begin at `first`; behind the upper corner of a dimension its lower one follows, in the
// next dimension's next, and behind the last dimension the next image.
std::optional<uint64_t> BoxCopy::run_pixels() {
  const uint64_t row_bytes = uint64_t{map.channels} * bytes_of(map.type);
  const uint32_t images = map.rank - 1u;
  std::array<int64_t, TensorMap::kMostRank> base{};
  for (uint32_t d = 1; d < map.rank; ++d) base[d] = first[d];
  for (uint64_t pixel = 0; pixel < map.pixels; ++pixel) {
    uint64_t address = map.address;
    bool is_inside = true;
    for (uint32_t d = 1; d < map.rank; ++d) {
      const int64_t coordinate = base[d] + (d < images ? int64_t{offsets[d - 1]} : 0);
      is_inside &= coordinate >= 0 && coordinate <= int64_t{map.last[d]};
      address += static_cast<uint64_t>(coordinate) * map.stride_bytes[d - 1];
    }
    if (const auto wrong = run_row(pixel * row_bytes, address, is_inside)) return wrong;
    uint32_t d = 1;
    for (; d < images; ++d) {
      base[d] += map.step[d];
      if (base[d] <= int64_t{map.last[d]} + map.upper[d - 1]) break;
      base[d] = map.lower[d - 1];
    }
    if (d == images) base[images] += map.step[images];
  }
  return std::nullopt;
}

std::optional<uint64_t> BoxCopy::run() {
  if (map.is_of_images != 0) return run_pixels();
  std::array<uint32_t, TensorMap::kMostRank> index{};
  const uint64_t row_bytes = uint64_t{map.count(0)} * bytes_of(map.type);
  const uint64_t rows = map.box_bytes() / row_bytes;
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t address = map.address;
    bool is_inside = true;
    for (uint32_t d = 1; d < map.rank; ++d) {
      const int64_t coordinate = first[d] + int64_t{index[d]} * map.step[d];
      is_inside &= coordinate >= 0 && coordinate <= int64_t{map.last[d]};
      address += static_cast<uint64_t>(coordinate) * map.stride_bytes[d - 1];
    }
    if (const auto wrong = run_row(row * row_bytes, address, is_inside)) return wrong;
    for (uint32_t d = 1; d < map.rank && ++index[d] == map.count(d); ++d) index[d] = 0;
  }
  return std::nullopt;
}

// Elements along the first dimension, which lie next to each other.
std::optional<uint64_t> BoxCopy::run_row(uint64_t box_offset, uint64_t row_address,
                                         bool is_inside) {
  const int64_t count = map.row_elements(), size = bytes_of(map.type);
  const int64_t end = int64_t{map.last[0]} + 1;
  int64_t from = std::clamp<int64_t>(-int64_t{first[0]}, 0, count);
  int64_t to = std::clamp<int64_t>(end - first[0], from, count);
  if (!is_inside) from = to = 0;
  if (op.copy == TensorCopy::kLoad) {
    fill(box_offset, static_cast<uint64_t>(from * size));
    fill(box_offset + static_cast<uint64_t>(to * size), static_cast<uint64_t>((count - to) * size));
  }
  if (from == to) return std::nullopt;
  const uint64_t address = row_address + static_cast<uint64_t>((first[0] + from) * size);
  const auto bytes = static_cast<uint64_t>((to - from) * size);
  if (!is_accessible(address, bytes)) return address;
  move(box_offset + static_cast<uint64_t>(from * size), address, bytes);
  if (op.copy != TensorCopy::kLoad) written(address, bytes);
  return std::nullopt;
}

void BoxCopy::fill(uint64_t box_offset, uint64_t size_bytes) {
  const uint64_t value = map.fills_nan ? nan_of(map.type) : 0;
  const uint64_t size = bytes_of(map.type);
  for (uint64_t done = 0; done < size_bytes; done += size)
    std::memcpy(&shared[map.swizzled(at + box_offset + done)], &value, size);
}

void BoxCopy::move(uint64_t box_offset, uint64_t address, uint64_t size_bytes) {
  const uint64_t size = bytes_of(map.type);
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t linear = at + box_offset + done;
    // A chunk of 16 bytes stays together.
    const uint64_t rest = std::min(size_bytes - done, 16 - linear % 16);
    uint8_t* const here = &shared[map.swizzled(linear)];
    auto* const there = reinterpret_cast<uint8_t*>(address + done);
    if (op.copy == TensorCopy::kLoad) {
      std::memcpy(here, there, rest);
    } else if (op.copy == TensorCopy::kStore) {
      std::memcpy(there, here, rest);
    } else {
      for (uint64_t k = 0; k < rest; k += size) {
        uint64_t value = 0;
        std::memcpy(&value, here + k, size);
        if (size == 2)
          reduce_at<uint16_t>(address + done + k, value, op.reduce, map.type);
        else if (size == 4)
          reduce_at<uint32_t>(address + done + k, value, op.reduce, map.type);
        else if (size == 8)
          reduce_at<uint64_t>(address + done + k, value, op.reduce, map.type);
      }
    }
    done += rest;
  }
}

void count_bytes(std::span<uint8_t> barrier, uint64_t bytes) {
  constexpr uint64_t kParity = uint64_t{1} << 63, kArrivals = 0xfffff;
  constexpr int kNextShift = 20, kBytesShift = 40;
  uint64_t word = 0;
  std::memcpy(&word, barrier.data(), sizeof word);
  const uint64_t parity = word & kParity;
  word = (word - (bytes << kBytesShift)) & ~kParity;
  const bool ends = (word & kArrivals) == 0 && word >> kBytesShift == 0;
  if (ends) word |= word >> kNextShift;
  word |= ends ? parity ^ kParity : parity;
  std::memcpy(barrier.data(), &word, sizeof word);
}

}  // namespace gpusim::ptx
