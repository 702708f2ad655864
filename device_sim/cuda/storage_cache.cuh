// A part of device memory as the host reads and writes it between slices: in blocks, which stay on
// the host until device code runs again. What cores that stopped have on their stacks lies together
// (core/memory_view.h), so one copy serves many of them.
#pragma once
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "device_sim/cuda/device_array.cuh"

namespace gpusim::cuda {

// Puts blocks of so many bytes in their places; called for each word of each.
template <uint64_t kBlock>
struct PutBlockWord {
  uint8_t* storage;
  uint64_t size;  // a multiple of 8
  const uint64_t* numbers;
  const uint64_t* words;
  __device__ void operator()(uint64_t i) const {
    constexpr uint64_t kWords = kBlock / sizeof(uint64_t);
    const uint64_t at = numbers[i / kWords] * kBlock + i % kWords * sizeof(uint64_t);
    if (at < size) *reinterpret_cast<uint64_t*>(storage + at) = words[i];
  }
};

class StorageCache {
 public:
  // Nothing of another storage may be left: see flush().
  void attach(uint8_t* device, uint64_t size_bytes) {
    forget();
    device_ = device;
    size_ = size_bytes;
  }
  void read(uint64_t at, std::span<uint8_t> out) {
    if (out.size() >= kLarge) {
      flush();
      check(cudaMemcpy(out.data(), device_ + at, out.size(), cudaMemcpyDeviceToHost),
            "reading guest memory");
      return;
    }
    for_blocks(at, out.size(), [&](uint32_t slot, uint64_t in_block, uint64_t done, uint64_t size) {
      std::memcpy(out.data() + done, block(slot) + in_block, size);
    });
  }
  void write(uint64_t at, std::span<const uint8_t> in) {
    if (in.size() >= kLarge) {
      flush();
      check(cudaMemcpy(device_ + at, in.data(), in.size(), cudaMemcpyHostToDevice),
            "writing guest memory");
      return;
    }
    for_blocks(at, in.size(), [&](uint32_t slot, uint64_t in_block, uint64_t done, uint64_t size) {
      std::memcpy(block(slot) + in_block, in.data() + done, size);
      is_written_[slot] = true;
    });
    if (numbers_.size() > kMost) flush();
  }
  // Call before device code or anything else reads or writes the storage: sends what was written, and
  // forgets all.
  void flush() {
    std::vector<uint64_t> numbers;
    std::vector<uint8_t> bytes;
    for (uint32_t slot = 0; slot < numbers_.size(); ++slot) {
      if (!is_written_[slot]) continue;
      numbers.push_back(numbers_[slot]);
      bytes.insert(bytes.end(), block(slot), block(slot) + kBlock);
    }
    forget();
    if (numbers.empty()) return;
    sent_numbers_.reserve(numbers.size(), "guest memory on its way");
    sent_.reserve(bytes.size(), "guest memory on its way");
    sent_numbers_.upload(numbers);
    sent_.upload(bytes);
    thrust::for_each_n(thrust::device, thrust::counting_iterator<uint64_t>(0),
                       numbers.size() * (kBlock / sizeof(uint64_t)),
                       PutBlockWord<kBlock>{device_, size_, sent_numbers_.data(),
                                            reinterpret_cast<const uint64_t*>(sent_.data())});
  }

 private:
  static constexpr uint64_t kBlock = 4096;
  static constexpr uint64_t kAhead = 16;         // blocks that are read at once
  static constexpr uint64_t kLarge = 16 * kBlock;  // accesses past the cache
  static constexpr size_t kMost = 16384;           // blocks that are kept

  uint8_t* block(uint32_t slot) { return bytes_.data() + slot * kBlock; }
  template <class F>
  void for_blocks(uint64_t at, uint64_t size, F f) {
    for (uint64_t done = 0; done < size;) {
      const uint64_t in_block = (at + done) % kBlock;
      const uint64_t run = std::min(size - done, kBlock - in_block);
      f(slot_of((at + done) / kBlock), in_block, done, run);
      done += run;
    }
  }
  uint32_t slot_of(uint64_t number) {
    if (number == last_number_) return last_slot_;
    auto it = slots_.find(number);
    if (it == slots_.end()) {
      fetch(number);
      it = slots_.find(number);
    }
    last_number_ = number;
    return last_slot_ = it->second;
  }
  // The block and those behind it, up to one that is here.
  void fetch(uint64_t number) {
    uint64_t count = 1;
    const uint64_t all = (size_ + kBlock - 1) / kBlock;
    while (count < kAhead && number + count < all && !slots_.contains(number + count)) ++count;
    const uint64_t at = number * kBlock, old = bytes_.size();
    bytes_.resize(old + count * kBlock);
    check(cudaMemcpy(bytes_.data() + old, device_ + at, std::min(count * kBlock, size_ - at),
                     cudaMemcpyDeviceToHost),
          "reading guest memory");
    for (uint64_t i = 0; i < count; ++i) {
      slots_[number + i] = static_cast<uint32_t>(numbers_.size());
      numbers_.push_back(number + i);
      is_written_.push_back(false);
    }
  }
  void forget() {
    slots_.clear();
    numbers_.clear();
    is_written_.clear();
    bytes_.clear();
    last_number_ = ~uint64_t{0};
  }

  uint8_t* device_ = nullptr;
  uint64_t size_ = 0;
  std::unordered_map<uint64_t, uint32_t> slots_;  // of blocks that are here
  std::vector<uint64_t> numbers_;                 // of the blocks, by slot
  std::vector<bool> is_written_;
  std::vector<uint8_t> bytes_;
  uint64_t last_number_ = ~uint64_t{0};
  uint32_t last_slot_ = 0;
  DeviceArray<uint64_t> sent_numbers_;
  DeviceArray<uint8_t> sent_;
};

}  // namespace gpusim::cuda
