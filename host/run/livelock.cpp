#include "host/run/livelock.h"

#define XXH_INLINE_ALL  // part of libgpusim_native.a, which programs link without libxxhash
#include <xxhash.h>

#include <vector>

#include "device_sim/core/backend_traits.h"
#include "device_sim/uir/uop.h"

namespace gpusim::host {
namespace {

bool writes_memory(Op op) {
  switch (op_info(op).shape) {
    case Shape::kStI:
    case Shape::kStX:
    case Shape::kStW:
    case Shape::kAmo:
    case Shape::kCas:
    case Shape::kCas128:
    case Shape::kStx:
    case Shape::kStx128:
    case Shape::kVector:
      return true;
    default:
      return false;
  }
}

uint64_t hash_registers(const Module& module, Backend& backend, uint32_t cores) {
  uint64_t hash = 0;
  std::vector<uint64_t> registers(module.slot_count);
  for (uint32_t core = 0; core < cores; ++core) {
    for (uint32_t s = 0; s < module.slot_count; ++s)
      registers[s] = backend.slot(core, static_cast<Slot>(s));
    hash = XXH3_64bits_withSeed(registers.data(), registers.size() * sizeof registers[0], hash);
  }
  return hash;
}

}  // namespace

bool LivelockDetector::only_waited(const Module& module, const std::vector<uint64_t>& counts,
                                   std::vector<bool>& executed) const {
  executed.assign(counts.size(), false);
  for (size_t b = 0; b < counts.size(); ++b)
    executed[b] = counts[b] != (b < counts_.size() ? counts_[b] : 0);
  bool gave_way = false;
  for (size_t u = 0; u < module.uops.size(); ++u) {
    const uint32_t block = module.uop_block[u];
    if (block >= executed.size() || !executed[block]) continue;
    if (writes_memory(module.uops[u].op)) return false;
    gave_way |= module.uops[u].op == Op::give_way;
  }
  return gave_way;
}

void LivelockDetector::start_over(uint64_t next_look) {
  quiet_slices_ = 0;
  look_at_ = next_look;
}

bool LivelockDetector::after_slice(const Module& module, Backend& backend, uint32_t cores,
                                   uint64_t instructions, bool quiet) {
  // Reading a register back from a GPU takes microseconds: there only machines of some thousand
  // cores are looked at.
  const uint64_t most_reads = uint64_t{1} << (traits_of(backend.name()).is_on_device ? 18 : 24);
  if (!quiet || uint64_t{cores} * module.slot_count > most_reads) {
    start_over(kFirstLook);
    return false;
  }
  if (++quiet_slices_ < look_at_) return false;
  const uint64_t apart = 1 + kTurns / instructions;
  if ((quiet_slices_ - look_at_) % apart != 0) return false;
  const uint64_t step = (quiet_slices_ - look_at_) / apart;
  std::vector<uint64_t> counts = backend.block_counts();
  std::vector<bool> executed;
  bool still = step == 0;  // the first look only takes the counts
  if (step == 1 && only_waited(module, counts, executed)) {
    registers_ = hash_registers(module, backend, cores);
    executed_ = executed;
    still = true;
  } else if (step == 2 && only_waited(module, counts, executed) && executed == executed_) {
    if (registers_ == hash_registers(module, backend, cores)) return true;
  }
  counts_ = std::move(counts);
  if (!still) start_over(look_at_ * 2);
  return false;
}

}  // namespace gpusim::host
