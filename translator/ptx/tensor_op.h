// Copies of boxes of tensors (cp.async.bulk.tensor): what a thread hands to the host for one.
#pragma once
#include <cstdint>

namespace gpusim::ptx {

enum class TensorCopy : uint8_t { kLoad, kStore, kReduce };
enum class TensorReduce : uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };

struct TensorOp {
  TensorCopy copy = TensorCopy::kLoad;
  TensorReduce reduce = TensorReduce::kAdd;
  uint8_t rank = 1;
  bool is_multicast = false;
  bool is_of_images = false;  // im2col

  constexpr uint64_t pack() const {
    return static_cast<uint64_t>(copy) | static_cast<uint64_t>(reduce) << 8 | uint64_t{rank} << 16 |
           uint64_t{is_multicast} << 24 | uint64_t{is_of_images} << 25;
  }
  static constexpr TensorOp unpack(uint64_t x) {
    return {static_cast<TensorCopy>(x & 0xff), static_cast<TensorReduce>(x >> 8 & 0xff),
            static_cast<uint8_t>(x >> 16), (x >> 24 & 1) != 0, (x >> 25 & 1) != 0};
  }
};

/// Words of local memory through which it is handed over.
enum TensorWord : uint8_t {
  kTensorMapAddress,
  kTensorShared,
  kTensorBarrier,
  kTensorMask,
  kTensorCoordinates,
  kTensorOffsets = kTensorCoordinates + 5,
  kTensorWords = kTensorOffsets + 3,
};
inline constexpr uint32_t kTensorRoomBytes = 8 * kTensorWords;

}  // namespace gpusim::ptx
