// The cores' slots in device memory, [slot][core], as the host reads and writes them between
// slices. Those of cores that stopped come over together after a slice, all slots of a few cores at
// once, of many cores only those slots that somebody asks for; others by rows.
#pragma once
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <unordered_map>

#include "device_sim/core/backend.h"
#include "device_sim/cuda/device_array.cuh"

namespace gpusim::cuda {

struct SlotWrite {
  uint32_t core;
  uint32_t slot;
  uint64_t value;
};

// --- what Thrust calls on the device

struct FillRow {
  uint64_t* row;
  CoreWord word;
  __device__ void operator()(uint32_t core) const { row[core] = word.value + core * word.step; }
};
struct GatherSlots {  // [slot][i] of `to` from cores[i]'s
  const uint64_t* slots;
  uint64_t* to;
  const uint32_t* cores;
  size_t count, core_count;
  __device__ void operator()(uint64_t i) const {
    to[i] = slots[i / count * core_count + cores[i % count]];
  }
};
struct ScatterSlots {  // cores[i]'s from [k][i] of `from`, for slot numbers[k]
  uint64_t* slots;
  const uint64_t* from;
  const uint32_t* numbers;
  const uint32_t* cores;
  size_t count, core_count;
  __device__ void operator()(uint64_t i) const {
    slots[numbers[i / count] * core_count + cores[i % count]] = from[i];
  }
};
struct ApplySlotWrite {
  uint64_t* slots;
  const SlotWrite* writes;
  size_t core_count;
  __device__ void operator()(uint64_t i) const {
    slots[writes[i].slot * core_count + writes[i].core] = writes[i].value;
  }
};

class Contexts {
 public:
  void configure(uint32_t slot_count, uint32_t cores) {
    forget();
    slot_count_ = slot_count;
    cores_ = cores;
    slots_ = DeviceArray<uint64_t>(size_t{slot_count} * cores, "contexts");
    place_of_core_.assign(cores, kNowhere);
    is_written_.assign(slot_count, false);
    gathered_.assign(slot_count, {});
  }
  void reset(std::span<const InitialValue> values) {
    forget();
    slots_.zero();
    for (const InitialValue& v : values) fill(v.slot, CoreWord{v.value, 0});
  }
  // For a slice, after which slice_has_run() is to be called.
  uint64_t* data() {
    flush();
    return slots_.data();
  }
  void slice_has_run() { forget(); }

  uint64_t get(uint32_t core, Slot slot) {
    if (const uint32_t place = place_of_core_[core]; place != kNowhere)
      return gathered_row(slot)[place];
    return row_of(slot)[core];
  }
  void set(uint32_t core, Slot slot, uint64_t value) {
    if (const uint32_t place = place_of_core_[core]; place != kNowhere) {
      gathered_row(slot)[place] = value;
      is_written_[slot] = true;
    } else {
      writes_.push_back({core, slot, value});
    }
    if (const auto row = rows_.find(slot); row != rows_.end()) row->second[core] = value;
  }
  void fill(Slot slot, CoreWord value) {
    flush();
    thrust::for_each_n(thrust::device, thrust::counting_iterator<uint32_t>(0), cores_,
                       FillRow{row(slot), value});
    forget();
  }
  void get_row(Slot slot, std::span<uint64_t> values) {
    flush();
    check(cudaMemcpy(values.data(), row(slot), values.size_bytes(), cudaMemcpyDeviceToHost),
          "reading registers");
  }
  void set_row(Slot slot, std::span<const uint64_t> values) {
    flush();
    check(cudaMemcpy(row(slot), values.data(), values.size_bytes(), cudaMemcpyHostToDevice),
          "writing registers");
    forget();
  }
  // `cores`: those that stopped, `on_device` the same, to stay there until the next slice has run.
  void gather(std::vector<uint32_t> cores, const uint32_t* on_device) {
    forget();
    gathered_cores_ = std::move(cores);
    cores_on_device_ = on_device;
    const size_t count = gathered_cores_.size();
    for (uint32_t i = 0; i < count; ++i) place_of_core_[gathered_cores_[i]] = i;
    if (slot_count_ * count > kFewWords) return;
    std::vector<uint64_t> all(slot_count_ * count);
    fetch(0, slot_count_, all);
    for (uint32_t slot = 0; slot < slot_count_; ++slot) {
      const auto row = all.begin() + static_cast<std::ptrdiff_t>(slot * count);
      gathered_[slot].assign(row, row + static_cast<std::ptrdiff_t>(count));
    }
  }

 private:
  static constexpr uint32_t kNowhere = ~uint32_t{0};
  static constexpr size_t kFewWords = 1 << 16;  // that come over at once, needed or not

  // [slot][place] of cores that stopped.
  void fetch(uint32_t first, uint32_t slots, std::span<uint64_t> to) {
    const size_t count = gathered_cores_.size();
    moved_.reserve(to.size(), "registers on their way");
    thrust::for_each_n(thrust::device, thrust::counting_iterator<uint64_t>(0), slots * count,
                       GatherSlots{slots_.data() + size_t{first} * cores_, moved_.data(),
                                   cores_on_device_, count, cores_});
    check(cudaMemcpy(to.data(), moved_.data(), to.size_bytes(), cudaMemcpyDeviceToHost),
          "reading registers");
  }
  std::vector<uint64_t>& gathered_row(Slot slot) {
    std::vector<uint64_t>& row = gathered_[slot];
    if (row.empty()) {
      row.resize(gathered_cores_.size());
      fetch(slot, 1, row);
    }
    return row;
  }

  uint64_t* row(Slot slot) const { return slots_.data() + size_t{slot} * cores_; }
  std::vector<uint64_t>& row_of(Slot slot) {
    const auto it = rows_.find(slot);
    if (it != rows_.end()) return it->second;
    std::vector<uint64_t> values(cores_);
    get_row(slot, values);
    return rows_[slot] = std::move(values);
  }
  // Sends what was written. What came over stays valid.
  void flush() {
    send_gathered();
    send_others();
  }
  void send_gathered() {
    const size_t count = gathered_cores_.size();
    std::vector<uint32_t> numbers;
    std::vector<uint64_t> values;
    for (uint32_t slot = 0; slot < slot_count_; ++slot) {
      if (!is_written_[slot]) continue;
      numbers.push_back(slot);
      values.insert(values.end(), gathered_[slot].begin(), gathered_[slot].end());
    }
    if (numbers.empty()) return;
    is_written_.assign(slot_count_, false);
    sent_numbers_.reserve(slot_count_, "registers on their way");
    sent_numbers_.upload(numbers);
    moved_.reserve(values.size(), "registers on their way");
    moved_.upload(values);
    thrust::for_each_n(thrust::device, thrust::counting_iterator<uint64_t>(0), values.size(),
                       ScatterSlots{slots_.data(), moved_.data(), sent_numbers_.data(),
                                    cores_on_device_, count, cores_});
  }
  void send_others() {
    if (writes_.empty()) return;
    // Of writes to the same slot the last one counts.
    std::unordered_map<uint64_t, size_t> last;
    std::vector<SlotWrite> once;
    for (const SlotWrite& w : writes_) {
      const auto [it, is_new] = last.try_emplace(uint64_t{w.core} << 8 | w.slot, once.size());
      if (is_new)
        once.push_back(w);
      else
        once[it->second].value = w.value;
    }
    sent_writes_.reserve(once.size(), "registers on their way");
    sent_writes_.upload(once);
    thrust::for_each_n(thrust::device, thrust::counting_iterator<uint64_t>(0), once.size(),
                       ApplySlotWrite{slots_.data(), sent_writes_.data(), cores_});
    writes_.clear();
  }
  // What came over is out of date. All that was written has been sent.
  void forget() {
    writes_.clear();
    for (const uint32_t core : gathered_cores_) place_of_core_[core] = kNowhere;
    gathered_cores_.clear();
    for (std::vector<uint64_t>& row : gathered_) row.clear();
    is_written_.assign(slot_count_, false);
    rows_.clear();
  }

  uint32_t slot_count_ = 0, cores_ = 0;
  DeviceArray<uint64_t> slots_;
  std::vector<uint32_t> gathered_cores_;  // whose slots are here
  std::vector<uint32_t> place_of_core_;   // among these
  const uint32_t* cores_on_device_ = nullptr;
  std::vector<std::vector<uint64_t>> gathered_;  // [slot][place]; empty: that slot is not here
  std::vector<bool> is_written_;                 // per slot: some of these were
  std::unordered_map<Slot, std::vector<uint64_t>> rows_;  // others that came over
  std::vector<SlotWrite> writes_;                         // to cores that are not here
  DeviceArray<uint64_t> moved_;
  DeviceArray<uint32_t> sent_numbers_;
  DeviceArray<SlotWrite> sent_writes_;
};

}  // namespace gpusim::cuda
