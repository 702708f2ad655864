#include "host/chip/timeline.h"

#include <algorithm>

namespace gpusim::host::chip {

ChipTimeline::ChipTimeline(uint32_t cores, size_t most_pieces, size_t most_rows)
    : most_pieces_(std::max<size_t>(2, most_pieces)), row_of_(cores, kNone), clocks_(cores) {
  const size_t rows = std::min<size_t>(cores, most_rows);
  for (size_t r = 0; r < rows; ++r) {
    const auto core = static_cast<uint32_t>(r * cores / rows);
    row_of_[core] = static_cast<uint32_t>(r);
    shown_.push_back(core);
  }
  rows_.resize(rows);
}

void ChipTimeline::add(uint32_t core, Phase phase, Ticks length) {
  if (length == 0) return;
  const auto p = static_cast<size_t>(phase);
  Ticks& clock = clocks_[core];
  // By a quotient: a product may be more than 64 bits hold, and this would have no end.
  while ((clock + length - 1) / most_pieces_ >= length_) merge_pairs();
  std::vector<Piece>* const row = row_of_[core] == kNone ? nullptr : &rows_[row_of_[core]];
  while (length != 0) {
    const size_t piece = clock / length_;
    const Ticks here = std::min(length, (piece + 1) * length_ - clock);
    if (all_.size() <= piece) all_.resize(piece + 1);
    all_[piece][p] += here;
    if (row) {
      if (row->size() <= piece) row->resize(piece + 1);
      (*row)[piece][p] += here;
    }
    clock += here;
    length -= here;
  }
}

void ChipTimeline::merge_pairs() {
  const auto merge = [](std::vector<Piece>& pieces) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece piece = pieces[i];
      if (i % 2 == 0) pieces[i / 2] = {};
      for (size_t p = 0; p < kPhases; ++p) pieces[i / 2][p] += piece[p];
    }
    pieces.resize((pieces.size() + 1) / 2);
  };
  merge(all_);
  for (auto& row : rows_) merge(row);
  length_ *= 2;
}

}  // namespace gpusim::host::chip
