// What the cores of one launch write to standard output and error, until it ends.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusim::offload {

class KernelOutput {
 public:
  /// Keeps the first `most_bytes` of whole lines. `by_core`: text() has core 0's first, and so on,
  /// and a line at the end that says what was lost, if anything was; else it is as it was written.
  KernelOutput(uint64_t most_bytes, bool by_core);

  void add(uint32_t core, std::span<const uint8_t> bytes);
  uint64_t written_bytes() const { return written_bytes_; }  // also what was not kept
  std::string text() const;

 private:
  struct Piece {
    uint32_t core = 0;
    uint64_t begin = 0, size_bytes = 0;  // of kept_
  };
  const uint64_t most_bytes_;  // of kept_
  const bool by_core_, has_note_;
  uint64_t written_bytes_ = 0, lost_lines_ = 0;
  bool is_full_ = false;
  std::string kept_;
  std::vector<Piece> pieces_;
};

}  // namespace gpusim::offload
