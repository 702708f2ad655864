// The scalar machine's state for checkpoints.
#include <algorithm>

#include "device_sim/core/state_bytes.h"
#include "device_sim/scalar/scalar_backend.h"

namespace gpusim {
namespace {

constexpr uint32_t kKind = 0x4c414353;  // "SCAL"

}  // namespace

uint64_t ScalarBackend::instructions() {
  uint64_t sum = 0;
  for (const Core& c : cores_) sum += c.instructions;
  return sum;
}

std::vector<CoreSnapshot> ScalarBackend::cores() {
  std::vector<CoreSnapshot> all;
  for (const Core& c : cores_)
    all.push_back({.runnable = c.status == CoreStatus::kRunnable,
                   .place = c.pc,
                   .depth = 0,
                   .instructions = c.instructions,
                   .classes = c.tally.classes});
  return all;
}

template <class Archive>
void ScalarBackend::describe_scheduling(Archive& a) {
  a(slices_);
  for (Core& c : cores_) describe_wait(a, memory_.view(), c);
}

std::vector<uint8_t> ScalarBackend::scheduling() {
  return write_scheduling(kKind, [this](StateWriter& writer) { describe_scheduling(writer); });
}

void ScalarBackend::set_cores(std::span<const CoreSnapshot> cores,
                              std::span<const uint8_t> scheduling) {
  const auto describe = [this](StateReader& reader) { describe_scheduling(reader); };
  if (!read_scheduling(scheduling, kKind, describe)) reset(config_.max_instructions);
  for (size_t i = 0; i < cores_.size(); ++i) {
    Core& c = cores_[i];
    c.status = cores[i].runnable ? CoreStatus::kRunnable : CoreStatus::kIdle;
    c.pc = cores[i].place;
    c.instructions = cores[i].instructions;
    c.tally.classes = cores[i].classes;
  }
}

void ScalarBackend::slots(Slot slot, std::span<uint64_t> values) {
  for (size_t i = 0; i < cores_.size(); ++i) values[i] = cores_[i].slots[slot];
}

void ScalarBackend::set_all_slots(Slot slot, std::span<const uint64_t> values) {
  for (size_t i = 0; i < cores_.size(); ++i) cores_[i].slots[slot] = values[i];
}

void ScalarBackend::set_block_counts(std::span<const uint64_t> counts, std::span<const uint64_t>) {
  std::copy(counts.begin(), counts.end(), block_counts_.begin());
}

}  // namespace gpusim
