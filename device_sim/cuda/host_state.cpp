// The state of cuda-host for checkpoints.
#include <algorithm>

#include "device_sim/core/state_bytes.h"
#include "device_sim/cuda/host_backend.h"

namespace gpusim::cuda {
namespace {

constexpr uint32_t kKind = 0x54534f48;  // "HOST"

}  // namespace

uint64_t HostBackend::instructions() {
  uint64_t sum = 0;
  for (const CoreState& s : states_) sum += s.instructions;
  return sum;
}

std::vector<CoreSnapshot> HostBackend::cores() {
  std::vector<CoreSnapshot> all;
  for (size_t i = 0; i < states_.size(); ++i)
    all.push_back({.runnable = states_[i].status == CoreStatus::kRunnable,
                   .place = states_[i].pc,
                   .depth = states_[i].depth,
                   .instructions = states_[i].instructions,
                   .classes = tallies_[i].classes});
  return all;
}

template <class Archive>
void HostBackend::describe_scheduling(Archive& a) {
  a(slice_);
  for (CoreState& s : states_) describe_wait(a, memory_.view(), s);
}

std::vector<uint8_t> HostBackend::scheduling() {
  return write_scheduling(kKind, [this](StateWriter& writer) { describe_scheduling(writer); });
}

void HostBackend::set_cores(std::span<const CoreSnapshot> cores,
                            std::span<const uint8_t> scheduling) {
  const auto describe = [this](StateReader& reader) { describe_scheduling(reader); };
  if (!read_scheduling(scheduling, kKind, describe)) reset(config_.max_instructions);
  for (size_t i = 0; i < states_.size(); ++i) {
    CoreState& s = states_[i];
    s.status = cores[i].runnable ? CoreStatus::kRunnable : CoreStatus::kIdle;
    s.pc = cores[i].place;
    s.depth = cores[i].depth;
    s.instructions = cores[i].instructions;
    tallies_[i].classes = cores[i].classes;
  }
}

void HostBackend::slots(Slot slot, std::span<uint64_t> values) {
  for (uint32_t core = 0; core < states_.size(); ++core) values[core] = slots_[index(core, slot)];
}

void HostBackend::set_all_slots(Slot slot, std::span<const uint64_t> values) {
  for (uint32_t core = 0; core < states_.size(); ++core) slots_[index(core, slot)] = values[core];
}

void HostBackend::set_block_counts(std::span<const uint64_t> counts, std::span<const uint64_t>) {
  std::copy(counts.begin(), counts.end(), block_counts_.begin());
}

}  // namespace gpusim::cuda
