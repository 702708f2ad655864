// The network between tiles: which links a message takes, when, and how full they are.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/chip/calendar.h"
#include "host/chip/huge_pages.h"
#include "host/chip/link_rows.h"
#include "host/chip/shape.h"

namespace gpusim::host::chip {

struct Delivery {
  Ticks arrival = 0;  // of the last flit
  Ticks queued = 0;   // of that, waiting for links
};

// Zero-load latency of a message of k flits over h links of a mesh, torus or ring (Dally and
// Towles, Principles and Practices of Interconnection Networks, 3.3): (h + 1) routers, h links, and
// k - 1 cycles until the last flit is there. Through a crossbar or bus: one router and one link.
// Within a tile: nothing.
class Network {
 public:
  explicit Network(const NetworkShape& shape);

  Delivery send(uint32_t from, uint32_t to, uint32_t payload_bytes, Ticks at, Ticks now);
  uint32_t flits_of(uint32_t payload_bytes) const {
    return (payload_bytes + shape_.header_bytes + shape_.flit_bytes - 1) / shape_.flit_bytes;
  }
  // The same message to all tiles: over each link on the way once, copied where ways part.
  // `arrivals`: at each tile.
  void broadcast(uint32_t from, uint32_t payload_bytes, Ticks at, Ticks now,
                 std::vector<Ticks>& arrivals);
  // From now on messages take no link, and are counted as ever. They take what they take alone, but
  // each link is waited for as long as it was on average since the last time.
  void ignore_load(bool ignores) {
    if (ignores && queues_ != 0) mean_queue_ = queued_ / queues_;
    ignores_load_ = ignores;
    queued_ = queues_ = 0;
  }
  Ticks zero_load(uint32_t from, uint32_t to, uint32_t payload_bytes) const;

  // Links on the way, in its order; their numbers run from 0 to link_count() - 1.
  void route(uint32_t from, uint32_t to, std::vector<uint32_t>& links) const;
  uint32_t link_count() const { return link_count_; }
  std::string link_name(uint32_t link) const;
  // Ticks for which a link was taken, since the beginning.
  Ticks used(uint32_t link) const { return used()[place_of(link)]; }
  // The same of all, in the order of their places, which is another one.
  std::vector<Ticks> used() const;
  uint32_t place_of(uint32_t link) const;
  uint64_t messages() const { return messages_; }
  uint64_t flit_hops() const { return flit_hops_; }
  uint64_t bytes_between(uint32_t from, uint32_t to) const {
    return matrix_[pair_of(from, to)][from > to] + (from == to ? 0 : broadcast_bytes_[from]);
  }
  uint32_t tiles() const { return tiles_; }
  const NetworkShape& shape() const { return shape_; }

 private:
  // Links of a row or column that a message takes one after the other, at most in two parts: around
  // a torus it comes to the end and goes on at the other one.
  struct Leg {
    uint32_t first = 0;   // place of the first one in links_
    uint32_t length = 0;  // links
    uint32_t until_end = 0;
    uint32_t other_end = 0;
    int32_t step = 1;
    uint32_t row = 0, index = 0;  // in rows_: the first part of the row, and the first link in it
    uint32_t last() const {       // place
      const bool is_around = length > until_end;
      return (is_around ? other_end : first) +
             static_cast<uint32_t>(step) * (length - 1 - (is_around ? until_end : 0));
    }
  };
  // Parts of rows and columns, of 32 links each, numbered as messages go: of a row, or of column.
  uint32_t row_of(bool is_column, bool is_ahead, uint32_t line) const {
    return is_column
               ? (2 * height_ * parts_of_row_) + ((is_ahead ? 0 : width_) + line) * parts_of_column_
               : ((is_ahead ? 0 : height_) + line) * parts_of_row_;
  }
  void begin_rows();
  void leave_rows(Ticks now);
  // Where a link is in rows_.
  struct InRow {
    uint32_t row, index;
  };
  InRow in_row(uint32_t place) const;
  template <class Begins>
  void take_leg(const Leg& leg, Delivery& d, uint32_t flits, Ticks now, Begins begins);
  Calendar& calendar_of(uint32_t place) { return links_[place - first_calendar_]; }
  Leg leg(bool is_column, uint32_t line, uint32_t at, uint32_t to) const;
  Leg leg_of_x(uint32_t from, uint32_t to) const;
  Leg leg_of_y(uint32_t from, uint32_t to) const;
  bool is_grid() const { return width_ != 0; }
  // Of a grid, links of a row or a column are neighbours in links_, as messages take them.
  uint32_t link_at(uint32_t place) const;
  void route_on_grid(uint32_t from, uint32_t to, std::vector<uint32_t>& links) const;
  Delivery send_on_grid(uint32_t from, uint32_t to, uint32_t flits, Ticks at, Ticks now);
  Ticks link_time(uint32_t link, uint32_t flits) const;
  // Links that count as hops.
  uint32_t hops(uint32_t from, uint32_t to) const;
  size_t common_level(uint32_t from, uint32_t to) const;
  // What two tiles send each other is side by side.
  static size_t pair_of(uint32_t a, uint32_t b) {
    const size_t low = std::min(a, b), high = std::max(a, b);
    return high * (high + 1) / 2 + low;
  }
  uint64_t& bytes_of(uint32_t from, uint32_t to) { return matrix_[pair_of(from, to)][from > to]; }
  Delivery send_flits(uint32_t from, uint32_t to, uint32_t payload_bytes, uint32_t flits, Ticks at,
                      Ticks now);
  uint32_t tile_at(uint32_t x, uint32_t y) const { return y * width_ + x; }
  // Of a row or column, on the way that goes on by `step`.
  static uint32_t before(uint32_t at, int32_t step, uint32_t size) {
    return step > 0 ? (at == 0 ? size : at) - 1 : (at + 1 == size ? 0 : at + 1);
  }

  NetworkShape shape_;
  uint32_t tiles_;
  Ticks router_, link_, flit_;
  uint32_t width_ = 0, height_ = 0;    // of a grid; a ring is a row
  std::vector<uint32_t> x_of_, y_of_;  // of its tiles
  // Of a grid in which all takes whole cycles, links between tiles are in rows_, and the others in
  // links_.
  std::vector<Calendar, HugeAllocator<Calendar>> links_;
  std::unique_ptr<LinkRows> rows_;
  uint32_t parts_of_row_ = 1, parts_of_column_ = 1;
  uint32_t link_count_ = 0, first_calendar_ = 0;
  std::vector<Ticks> used_before_;    // by place: while they were in rows_
  std::vector<uint32_t> level_base_;  // hierarchical: number of the first link of each level
  std::vector<Ticks> level_cycles_;   // one way between two tiles
  // Bytes, up and down.
  std::vector<std::array<uint64_t, 2>, HugeAllocator<std::array<uint64_t, 2>>> matrix_;
  std::vector<uint64_t> broadcast_bytes_;  // of each tile to each other
  std::vector<uint32_t> scratch_;
  struct Tree {
    static constexpr uint32_t kRoot = ~uint32_t{0};
    struct Branch {
      uint32_t link, place;  // of a grid, no link
      uint32_t parent;       // index of a branch before it
      bool is_eject;
    };
    std::vector<Branch> branches;
    std::vector<uint32_t> last;  // per tile: the branch that comes to it
    uint32_t hops = 0;           // branches that count as hops
  };
  const Tree& tree_of(uint32_t from);
  void broadcast_on_rows(uint32_t from, uint32_t flits, Ticks at, Ticks now,
                         std::vector<Ticks>& arrivals);
  void grow_on_grid(uint32_t from, Tree& tree) const;
  void grow_elsewhere(uint32_t from, Tree& tree);
  std::vector<Tree> trees_;  // per tile, made when they are needed
  std::vector<Ticks> heads_;
  bool ignores_load_ = false;
  Ticks queued_ = 0, queues_ = 0, mean_queue_ = 0;  // waits for links, and how many
  uint64_t messages_ = 0, flit_hops_ = 0;
};

}  // namespace gpusim::host::chip
