// The oracle's window (window.h) in the memory of a backend.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device_sim/core/backend.h"
#include "tests/isa/oracle/window.h"

namespace gpusim::oracle {

// Every core's own copy of the window.
class Window {
 public:
  Window(Backend& backend, uint32_t cores) : backend_(backend) {
    for (size_t i = 0; i < pristine_.size(); ++i) pristine_[i] = oracle_window_word(i);
    for (uint32_t core = 0; core < cores; ++core) put(core, 0, pristine_);
    backend.set_permissions_all(ORACLE_WINDOW, ORACLE_WINDOW_BYTES, kRead | kWrite);
    backend.set_permissions_all(ORACLE_READ_ONLY, 0x1000, kRead);
  }
  std::vector<oracle_change> take_changes(uint32_t core) {
    std::vector<oracle_change> changes;
    backend_.read_memory(core, ORACLE_WINDOW, bytes(now_));
    if (now_ == pristine_) return changes;
    for (size_t i = 0; i < now_.size(); ++i) {
      if (now_[i] == pristine_[i]) continue;
      changes.push_back({i * 8, now_[i]});
      put(core, i, std::span(pristine_).subspan(i, 1));
    }
    return changes;
  }

 private:
  static std::span<uint8_t> bytes(std::span<uint64_t> words) {
    return {reinterpret_cast<uint8_t*>(words.data()), words.size_bytes()};
  }
  void put(uint32_t core, size_t index, std::span<uint64_t> words) {
    backend_.write_memory(core, ORACLE_WINDOW + 8 * index, bytes(words));
  }
  Backend& backend_;
  std::vector<uint64_t> pristine_ = std::vector<uint64_t>(ORACLE_WINDOW_BYTES / 8),
                        now_ = pristine_;
};

}  // namespace gpusim::oracle
