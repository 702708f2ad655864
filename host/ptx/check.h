// `--check`: what a kernel's threads do wrong and a GPU does not tell. The threads write journals;
// after each slice a machine's are read here. docs/ptx-check.md says what is found.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/ptx/check_sites.h"
#include "host/ptx/cluster_races.h"
#include "host/ptx/engine.h"
#include "host/ptx/global_races.h"
#include "host/ptx/memory.h"
#include "host/ptx/shared_races.h"

namespace gpusim::ptx {

/// What was found in one launch: for each kind and place of the program the first, and how often.
class Findings {
 public:
  using Key = std::tuple<FindingKind, uint64_t, uint64_t>;
  /// Makes the text only for what is new.
  template <class Make>
  void add(const Key& key, Make make) {
    const auto [at, is_new] = number_of_.try_emplace(key, list_.size());
    if (is_new) {
      list_.push_back(make());
      list_.back().places = {std::get<1>(key), std::get<2>(key)};
    }
    ++list_[at->second].count;
  }
  std::vector<Finding> take();

 private:
  std::map<Key, size_t> number_of_;
  std::vector<Finding> list_;
};

class MachineCheck {
 public:
  /// Words of each core's journal.
  static constexpr uint32_t kJournalWords = 1 << 13;

  struct Shape {
    Dim3 block;
    uint32_t places = 1, shift = 5, cluster_ctas = 1;
    uint32_t shared_bytes = 0;
    uint64_t local_bytes = 0;  // of a thread, with its stack
  };
  MachineCheck(const KernelCode& code, const std::string& origin,
               const std::map<uint32_t, std::string>& files, ProcessMemory& memory,
               const Checks& checks, const Shape& shape);

  /// Instructions for which the journals have room.
  uint64_t longest_slice() const { return longest_slice_; }
  void begin(const Dim3& grid, Findings& findings);
  void start_cta(uint32_t place, uint64_t cta);
  void after_slice(Backend& backend);
  /// All threads of the CTA ended in the last slice.
  void end_cta(uint32_t place) { ctas_[place].has_ended = true; }
  /// The launch has ended.
  void end();
  /// Threads that wait for each other for ever.
  void deadlocks(std::span<const Event> events);

 private:
  struct Cursor {
    uint32_t block = 0, at = 0;
  };
  struct Cta {
    std::unique_ptr<SharedRaces> races;
    std::vector<uint8_t> written;  // per byte of shared memory
    uint64_t number = 0;
    uint32_t unit = 0;  // GlobalRaces's
    bool has_ended = false;
  };
  // Of a thread at a stamp: the words of its barrier.
  struct Stop {
    uint64_t stamp;
    uint32_t place, thread;
    const CheckSite* site;
    uint32_t barrier, threads;
    bool operator>(const Stop& o) const { return stamp > o.stamp; }
  };
  // A load of global memory before anybody wrote there, as far as the order is known.
  struct Suspect {
    uint32_t place, thread;
    const CheckSite* site;
    uint64_t address;
    bool is_cleared;
  };
  // A load of a CTA's own memory, of clusters: another CTA may have stored there in this slice.
  struct SharedSuspect {
    uint32_t place, thread;
    const CheckSite* site;
    uint64_t offset;
  };
  bool is_unwritten(uint32_t place, uint64_t offset, uint32_t bytes) const;
  void find_unwritten(const SharedSuspect& s);
  const CheckSite* next(uint32_t core, uint64_t& word);
  bool run(uint32_t place, uint32_t thread, Stop& stop);
  void judge(Backend& backend, std::vector<Cursor> before);
  void access(uint32_t place, uint32_t thread, const CheckSite& site, uint64_t address,
              std::span<const uint8_t> stored);
  void shared_access(uint32_t place, uint32_t thread, const CheckSite& site, uint64_t address,
                     std::span<const uint8_t> stored);
  void cluster_access(uint32_t place, uint32_t thread, const CheckSite& site, uint64_t address,
                      std::span<const uint8_t> stored);
  void global_access(uint32_t place, uint32_t thread, const CheckSite& site, uint64_t address,
                     std::span<const uint8_t> stored);
  void apply(const Stop& stop);
  void races_to(uint32_t place);
  void cluster_races_to(uint32_t cluster);
  void global_race(const GlobalRaces::Access& first, const GlobalRaces::Access& second,
                   uint64_t address, uint32_t bytes, size_t times);
  // Nothing: there are no clusters.
  ClusterRaces* cluster_races(uint32_t place) {
    return shape_.cluster_ctas == 1 ? nullptr : clusters_[place / shape_.cluster_ctas].get();
  }
  uint32_t rank_of(uint32_t place) const { return place % shape_.cluster_ctas; }
  void barrier_opened(uint32_t place, std::span<const SharedRaces::Arrival> arrivals);
  void find(FindingKind kind, uint32_t place, uint32_t thread, const CheckSite& site,
            uint64_t address, const std::string& what);
  std::string who(uint32_t place, uint32_t thread) const;
  std::string where(const CheckSite& site) const;
  std::string shared_name(uint64_t offset) const;
  Finding make(FindingKind kind, uint32_t place, uint32_t thread, const CheckSite& site,
               uint64_t address, std::string text) const;

  const KernelCode& code_;
  const std::string& origin_;
  const std::map<uint32_t, std::string>& files_;
  ProcessMemory& memory_;
  const Checks checks_;
  const Shape shape_;
  const uint32_t threads_;
  const bool knows_order_;  // of accesses to shared memory
  CheckSites sites_;
  uint64_t longest_slice_ = 1;
  std::vector<Cursor> cursors_;                   // per core; a slice may end within a block
  std::vector<std::span<const uint64_t>> words_;  // per core, of this slice
  std::vector<Cta> ctas_;                         // per place
  std::vector<std::unique_ptr<ClusterRaces>> clusters_;
  GlobalRaces global_races_;
  Dim3 grid_;
  Findings* findings_ = nullptr;
  std::vector<Suspect> suspects_;  // of this slice
  std::vector<SharedSuspect> shared_suspects_;
  // The range of memory that was accessed last.
  uint64_t range_begin_ = 1, range_end_ = 0;
  MemoryShadow* range_shadow_ = nullptr;
};

}  // namespace gpusim::ptx
