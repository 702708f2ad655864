// How often each block ran, as groups count it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusim::simd {

// Of the groups that one host thread runs. Where lanes are counted, one word has both sums
// (Group::weight), and is taken apart before either exceeds 32 bits.
class BlockCounter {
 public:
  // Steps of groups that a word of two 32-bit sums of lanes holds: twice these, as a group may add
  // as many before somebody looks.
  static constexpr uint32_t kMostSteps = uint32_t{1} << 24;

  void resize(size_t blocks, bool counts_lanes);
  // What groups add to.
  uint64_t* data() { return both_.empty() ? counts_.data() : both_.data(); }
  // After a group has run so many steps.
  void note_steps(uint64_t steps);
  // Takes what the other has counted.
  void take_over(BlockCounter& other);

  // Executions, and lanes that could run. Empty lanes: they are not counted.
  const std::vector<uint64_t>& counts();
  const std::vector<uint64_t>& lanes();
  void set(std::vector<uint64_t> counts, std::vector<uint64_t> lanes);

 private:
  void take_apart();

  std::vector<uint64_t> counts_, lanes_;
  std::vector<uint64_t> both_;  // empty unless lanes are counted
  uint64_t steps_ = 0;          // at most so many in `both_`
};

}  // namespace gpusim::simd
