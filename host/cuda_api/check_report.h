// What `gpusim cuda --check` found in one process: said when it is found, counted for the end.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "host/cuda_api/allocations.h"
#include "host/ptx/engine.h"

namespace gpusim::cuda_api {

class CheckReport {
 public:
  // A file FOLDER/PROCESS.found tells that something was found, however the process ends.
  void begin(const std::string& folder, int process);
  // Of one launch. What an earlier one had, too, is only counted.
  // Returns whether one that was said explains why the launch ended.
  bool add(uint64_t launch, std::vector<ptx::Finding> findings,
           const std::optional<ptx::Fault>& fault);
  // A mistake in a call of the API: "double free"; `text` says all of it. Of very many the first.
  void add_misuse(const std::string& kind, const void* address, const std::string& text);
  // A kernel ended with a fault, which is said elsewhere, too.
  void note_fault();
  void add_leak(const Block& block);
  bool is_empty() const;
  // "findings" and "leaks".
  void add_to(nlohmann::ordered_json& root) const;

 private:
  struct Entry {
    ptx::Finding finding;
    std::string kind;
    uint64_t launch = 0;  // the first; 0: none
    uint64_t launches = 0;
  };
  using Key = std::tuple<ptx::FindingKind, std::string, std::pair<uint64_t, uint64_t>>;
  void mark_found();

  mutable std::mutex mutex_;
  std::string found_;  // the file
  bool is_marked_ = false;
  std::map<Key, size_t> number_of_;
  std::vector<Entry> entries_;
  size_t misuses_ = 0;
  std::vector<Block> leaks_;
};

}  // namespace gpusim::cuda_api
