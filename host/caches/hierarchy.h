// The caches of all simulated cores. docs/caches.md says what is modelled and what is not.
#pragma once
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "host/caches/cache.h"
#include "host/caches/shape.h"
#include "host/journal/journals.h"

namespace gpusim::host {

// Requests to one level, of all its instances together. Lines, but for the first level: there an
// access is one request, and a miss if any of its lines misses.
struct CacheCounts {
  uint64_t reads = 0, read_misses = 0;
  uint64_t writes = 0, write_misses = 0;
  uint64_t write_backs = 0;  // dirty lines that had to go

  CacheCounts& operator+=(const CacheCounts& o);
  uint64_t misses() const { return read_misses + write_misses; }
  bool operator==(const CacheCounts&) const = default;
};

struct CacheReport {
  std::vector<CacheCounts> levels;
  uint64_t memory_reads = 0, memory_writes = 0;  // lines; writes of write-through caches count each
  // Instructions that access memory and were not served on the chip: per word of the code map, and
  // per core.
  std::vector<uint64_t> off_chip_at;
  std::vector<uint64_t> off_chip_of;
  uint64_t off_chip() const {
    return std::accumulate(off_chip_of.begin(), off_chip_of.end(), uint64_t{0});
  }
};

// Private levels are simulated core by core. What they ask of shared ones is put in order by
// simulated time, the instructions that the core had executed, and then by core: the counts do not
// depend on the order in which cores happened to be run.
class CacheHierarchy final : public JournalReader {
 public:
  CacheHierarchy(HierarchyShape shape, const Module& module, const MachineConfig& config);
  ~CacheHierarchy() override;

  void read(uint32_t core, std::span<const uint64_t> words,
            std::span<const BlockSites> blocks) override;
  void end_slice() override;
  void started(uint32_t child, uint32_t parent) override;
  // Cores that will not run on hold up nobody.
  void ended(uint32_t core);

  // After the run.
  CacheReport report();
  const HierarchyShape& shape() const { return shape_; }

 private:
  struct Core;
  // What private levels ask of the next one.
  struct Request {
    uint64_t time;
    uint64_t line;
    uint32_t core;
    uint32_t place;  // of the instruction in the code map
    uint8_t flags;   // Request*
  };
  class SharedLevels;

  Core& core(uint32_t number);
  bool request(Core& core, const Request& request, size_t level, bool* hit);
  void note_off_chip(Core& core, uint64_t time, uint32_t place);
  std::vector<Request> take_requests(uint64_t before);
  void drain(uint64_t before);
  uint64_t line_of(uint32_t core, uint64_t address) const;

  HierarchyShape shape_;
  const CodeMap& code_;
  const MachineConfig config_;
  uint32_t line_shift_;
  size_t private_levels_;  // the first so many
  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<uint64_t> off_chip_at_;
  std::unique_ptr<SharedLevels> shared_;  // null: there are none
  size_t most_queued_ = size_t{1} << 23;  // requests to them
};

}  // namespace gpusim::host
