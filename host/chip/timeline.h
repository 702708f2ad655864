// What a chip's cores did when, of a bounded size however long the run and however many the cores.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "host/chip/memory_system.h"
#include "host/chip/shape.h"

namespace gpusim::host::chip {

// Where a core's time goes, and of waiting what for.
enum class Phase : uint8_t {
  kWaitingOrder = static_cast<uint8_t>(Part::kWaiting),  // barriers, starts of threads, futexes
  kWaitingLock,
  kWaitingWord,  // that another core shall write
};
constexpr Phase phase_of(Part part) { return static_cast<Phase>(part); }
inline constexpr size_t kPhases = kParts + 2;
constexpr Part part_of(size_t phase) {
  return phase < kParts ? static_cast<Part>(phase) : Part::kWaiting;
}

class ChipTimeline {
 public:
  // Pieces are merged in pairs beyond so many; of more cores than rows, so many are shown.
  static constexpr size_t kMostPieces = 512, kMostRows = 64;
  static constexpr Ticks kFirstPiece = 16 * kCycle;

  explicit ChipTimeline(uint32_t cores, size_t most_pieces = kMostPieces,
                        size_t most_rows = kMostRows);

  // What the core does next, in the order of its time, without gaps.
  void add(uint32_t core, Phase phase, Ticks length);

  using Piece = std::array<Ticks, kPhases>;
  Ticks piece_length() const { return length_; }
  const std::vector<Piece>& all() const { return all_; }  // of all cores together
  // Cores that are shown, evenly spaced, and their pieces.
  const std::vector<uint32_t>& shown() const { return shown_; }
  const std::vector<Piece>& row(size_t number) const { return rows_[number]; }

 private:
  void merge_pairs();

  static constexpr uint32_t kNone = ~uint32_t{0};
  size_t most_pieces_;
  Ticks length_ = kFirstPiece;
  std::vector<Piece> all_;
  std::vector<uint32_t> shown_;
  std::vector<uint32_t> row_of_;  // per core
  std::vector<std::vector<Piece>> rows_;
  std::vector<Ticks> clocks_;  // per core
};

}  // namespace gpusim::host::chip
