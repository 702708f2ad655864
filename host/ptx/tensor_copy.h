// Copies of boxes of tensors between global memory and a CTA's shared memory.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "host/ptx/tensor_map.h"
#include "translator/ptx/tensor_op.h"

namespace gpusim::ptx {

/// One box. What lies outside of the tensor is filled with zeros or NaNs, and not written.
struct BoxCopy {
  TensorMap map;
  TensorOp op;
  std::array<int32_t, TensorMap::kMostRank> first{};  // of the box, in elements of the tensor
  std::array<uint16_t, TensorMap::kMostRank - 2> offsets{};  // of images: to W, H and D of a pixel
  std::span<uint8_t> shared;                                 // all of the CTA's
  uint64_t at = 0;                                           // where the box begins there
  std::function<bool(uint64_t address, uint64_t size_bytes)> is_accessible;
  std::function<void(uint64_t address, uint64_t size_bytes)> written;

  /// Returns the first address that may not be accessed; nothing: all is well.
  std::optional<uint64_t> run();

 private:
  std::optional<uint64_t> run_pixels();
  std::optional<uint64_t> run_row(uint64_t box_offset, uint64_t row_address, bool is_inside);
  void fill(uint64_t box_offset, uint64_t size_bytes);
  void move(uint64_t box_offset, uint64_t address, uint64_t size_bytes);
};

/// Bytes came at a barrier, whose word that is (rows_async.cpp).
void count_bytes(std::span<uint8_t> barrier, uint64_t bytes);

}  // namespace gpusim::ptx
