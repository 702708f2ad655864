#include "host/chip/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpusim::host::chip {
namespace {

enum Direction : uint32_t { kEast, kWest, kSouth, kNorth, kEject, kDirections };
constexpr const char* kDirectionNames[] = {"east", "west", "south", "north", "into"};

}  // namespace

Network::Network(const NetworkShape& shape)
    : shape_(shape),
      tiles_(shape.columns * shape.rows),
      router_(ticks(shape.router_cycles)),
      link_(ticks(shape.link_cycles)),
      flit_(ticks(shape.flit_cycles)),
      matrix_(pair_of(tiles_ - 1, tiles_ - 1) + 1),
      broadcast_bytes_(tiles_) {
  size_t count = 0;
  switch (shape.topology) {
    case Topology::kMesh:
    case Topology::kTorus:
    case Topology::kRing:
      count = size_t{tiles_} * kDirections;
      width_ = shape.topology == Topology::kRing ? tiles_ : shape.columns;
      height_ = tiles_ / width_;
      for (uint32_t tile = 0; tile < tiles_; ++tile) {
        x_of_.push_back(tile % width_);
        y_of_.push_back(tile / width_);
      }
      break;
    case Topology::kCrossbar:
      count = tiles_;
      break;
    case Topology::kBus:
      count = 1;
      break;
    case Topology::kHierarchical:
      // A port out of and one into each cluster of a level, but of the last, which has all tiles.
      for (const auto& level : shape.levels) {
        level_base_.push_back(static_cast<uint32_t>(count));
        level_cycles_.push_back(ticks(level.cycles));
        count += size_t{2} * (tiles_ / level.tiles);
      }
      break;
  }
  link_count_ = static_cast<uint32_t>(count);
  begin_rows();
  links_ = decltype(links_)(count - first_calendar_);
}

// --- Rows

void Network::begin_rows() {
  const Ticks hop = router_ + link_;
  if (!is_grid() || (router_ | link_ | flit_) % kCycle != 0 ||
      hop > LinkRows::kMostHopCycles * kCycle)
    return;
  first_calendar_ = kEject * tiles_;
  const auto parts = [](uint32_t size) { return (size + LinkRows::kLinks - 1) / LinkRows::kLinks; };
  parts_of_row_ = parts(width_);
  parts_of_column_ = parts(height_);
  rows_ = std::make_unique<LinkRows>(2 * (height_ * parts_of_row_ + width_ * parts_of_column_),
                                     static_cast<uint32_t>(hop / kCycle));
}

// A message comes between two cycles: from now on each link has a calendar.
void Network::leave_rows(Ticks now) {
  used_before_ = used();
  used_before_.resize(first_calendar_);
  std::vector<uint32_t> places(size_t{LinkRows::kLinks} * rows_->count());
  for (uint32_t place = 0; place < first_calendar_; ++place) {
    const InRow at = in_row(place);
    places[at.row * LinkRows::kLinks + at.index] = place;
  }
  decltype(links_) all(link_count_);
  std::ranges::move(links_, all.begin() + first_calendar_);
  links_ = std::move(all);
  const std::unique_ptr<LinkRows> rows = std::move(rows_);
  first_calendar_ = 0;
  rows->take_out(now / kCycle, [&](uint32_t row, uint32_t link, uint64_t begin, uint64_t end) {
    const uint32_t place = places[row * LinkRows::kLinks + link];
    links_[place].take(begin * kCycle, (end - begin) * kCycle, now);
    used_before_[place] -= (end - begin) * kCycle;  // it is counted there
  });
}

Network::InRow Network::in_row(uint32_t place) const {
  const uint32_t direction = place / tiles_, rest = place % tiles_;
  const bool is_column = direction == kSouth || direction == kNorth;
  const bool is_ahead = direction == kEast || direction == kSouth;
  const uint32_t size = is_column ? height_ : width_, at = rest % size;
  const uint32_t index = is_ahead ? at : size - 1 - at;
  return {row_of(is_column, is_ahead, rest / size) + index / LinkRows::kLinks,
          index % LinkRows::kLinks};
}

std::vector<Ticks> Network::used() const {
  std::vector<Ticks> all(link_count_);
  for (size_t i = 0; i < links_.size(); ++i) all[first_calendar_ + i] = links_[i].used();
  for (size_t i = 0; i < used_before_.size(); ++i) all[i] += used_before_[i];
  std::array<uint64_t, LinkRows::kLinks> of_row{};
  uint32_t row = ~uint32_t{0};
  for (uint32_t place = 0; place < first_calendar_; ++place) {
    const InRow at = in_row(place);
    if (at.row != std::exchange(row, at.row)) of_row = rows_->used(at.row);
    all[place] = of_row[at.index] * kCycle;
  }
  return all;
}

// The links of a row or a column. Calls begins(i, count, at) for those from the i-th of the leg on
// that are taken without a wait between them.
template <class Begins>
void Network::take_leg(const Leg& leg, Delivery& d, uint32_t flits, Ticks now, Begins begins) {
  const auto cycles = static_cast<uint32_t>(flits * flit_ / kCycle);
  const Ticks hop = router_ + link_;
  uint32_t index = leg.index;
  for (uint32_t i = 0; i < leg.length;) {
    if (i == leg.until_end) index = 0;
    const uint32_t row = leg.row + index / LinkRows::kLinks, first = index % LinkRows::kLinks;
    const uint32_t end = i < leg.until_end ? std::min(leg.length, leg.until_end) : leg.length;
    const uint32_t count = std::min(end - i, LinkRows::kLinks - first);
    const Ticks asked = d.arrival + router_;
    const Ticks last = kCycle * rows_->take(row, first, count, asked / kCycle, cycles, now / kCycle,
                                            [&](uint32_t link, uint32_t links, uint64_t at) {
                                              begins(i + link - first, links, at * kCycle);
                                            });
    d.queued += last - asked - (count - 1) * hop;
    d.arrival = last + link_;
    i += count;
    index += count;
  }
}

// --- Ways

uint32_t Network::place_of(uint32_t link) const {
  if (!is_grid()) return link;
  const uint32_t tile = link / kDirections, direction = link % kDirections;
  const bool is_column = direction == kSouth || direction == kNorth;
  return direction * tiles_ + (is_column ? x_of_[tile] * height_ + y_of_[tile] : tile);
}

uint32_t Network::link_at(uint32_t place) const {
  const uint32_t direction = place / tiles_, rest = place % tiles_;
  const bool is_column = direction == kSouth || direction == kNorth;
  const uint32_t tile = is_column ? rest % height_ * width_ + rest / height_ : rest;
  return tile * kDirections + direction;
}

// Around a ring or torus the shorter way; ahead if both are equal.
Network::Leg Network::leg(bool is_column, uint32_t line, uint32_t at, uint32_t to) const {
  Leg leg;
  if (at == to) return leg;
  const uint32_t size = is_column ? height_ : width_;
  const uint32_t way = to > at ? to - at : to + size - at;  // ahead, with the way around
  const bool wraps = shape_.topology != Topology::kMesh;
  const bool is_ahead = wraps ? 2 * way <= size : to > at;
  leg.length = is_ahead ? way : size - way;
  leg.step = is_ahead ? 1 : -1;
  leg.index = is_ahead ? at : size - 1 - at;
  leg.until_end = size - leg.index;
  const uint32_t direction = (is_column ? kSouth : kEast) + (is_ahead ? 0 : 1);
  const uint32_t first = direction * tiles_ + line * size;
  leg.first = first + at;
  leg.other_end = is_ahead ? first : first + size - 1;
  leg.row = row_of(is_column, is_ahead, line);
  return leg;
}
Network::Leg Network::leg_of_x(uint32_t from, uint32_t to) const {
  return leg(false, y_of_[from], x_of_[from], x_of_[to]);
}
// At the end of the leg along X.
Network::Leg Network::leg_of_y(uint32_t from, uint32_t to) const {
  return leg(true, x_of_[to], y_of_[from], y_of_[to]);
}

// X first, then Y.
void Network::route_on_grid(uint32_t from, uint32_t to, std::vector<uint32_t>& links) const {
  for (const Leg& leg : {leg_of_x(from, to), leg_of_y(from, to)}) {
    auto place = static_cast<int32_t>(leg.first);
    for (uint32_t i = 0; i < leg.length; ++i, place += leg.step) {
      if (i == leg.until_end) place = static_cast<int32_t>(leg.other_end);
      links.push_back(link_at(static_cast<uint32_t>(place)));
    }
  }
  links.push_back(to * kDirections + kEject);
}

// The head goes on as soon as a link is free; the others follow it flit by flit.
Delivery Network::send_on_grid(uint32_t from, uint32_t to, uint32_t flits, Ticks at, Ticks now) {
  const Ticks length = flits * flit_;
  Delivery d{at, 0};
  uint32_t hops = 0;
  const auto take = [&](Calendar& link) {
    const Ticks asked = d.arrival + router_;
    const Ticks begin = link.take(asked, length, now);
    d.queued += begin - asked;
    d.arrival = begin + link_;
  };
  if (rows_ && at % kCycle != 0) leave_rows(now);
  for (const Leg& leg : {leg_of_x(from, to), leg_of_y(from, to)}) {
    hops += leg.length;
    if (rows_) {
      take_leg(leg, d, flits, now, [](uint32_t, uint32_t, Ticks) {});
      continue;
    }
    Calendar* link = links_.data() + leg.first;
    const uint32_t straight = std::min(leg.length, leg.until_end);
    for (uint32_t i = 0; i < straight; ++i, link += leg.step) take(*link);
    link = links_.data() + leg.other_end;
    for (uint32_t i = straight; i < leg.length; ++i, link += leg.step) take(*link);
  }
  take(calendar_of(kEject * tiles_ + to));
  d.arrival += length - flit_ - link_;  // the way into the tile is no link
  flit_hops_ += uint64_t{flits} * hops;
  queued_ += d.queued;
  queues_ += hops + 1;
  return d;
}

size_t Network::common_level(uint32_t from, uint32_t to) const {
  size_t level = 0;
  while (from / shape_.levels[level].tiles != to / shape_.levels[level].tiles) ++level;
  return level;
}

void Network::route(uint32_t from, uint32_t to, std::vector<uint32_t>& links) const {
  links.clear();
  if (from == to) return;
  switch (shape_.topology) {
    case Topology::kMesh:
    case Topology::kTorus:
    case Topology::kRing:
      return route_on_grid(from, to, links);
    case Topology::kCrossbar:
      links.push_back(to);
      return;
    case Topology::kBus:
      links.push_back(0);
      return;
    case Topology::kHierarchical: {
      const size_t top = common_level(from, to);
      for (size_t l = 0; l < top; ++l)
        links.push_back(level_base_[l] + 2 * (from / shape_.levels[l].tiles));
      for (size_t l = top; l-- > 0;)
        links.push_back(level_base_[l] + 2 * (to / shape_.levels[l].tiles) + 1);
      return;
    }
  }
}

Ticks Network::link_time(uint32_t link, uint32_t flits) const {
  if (shape_.topology != Topology::kHierarchical) return flits * flit_;
  size_t level = level_base_.size() - 1;
  while (level_base_[level] > link) --level;
  return ticks(flits / shape_.levels[level].ports);
}

Ticks Network::zero_load(uint32_t from, uint32_t to, uint32_t payload_bytes) const {
  if (from == to) return 0;
  const Ticks serial = (flits_of(payload_bytes) - 1) * flit_;
  if (shape_.topology == Topology::kHierarchical)
    return ticks(shape_.levels[common_level(from, to)].cycles) + serial;
  if (shape_.topology == Topology::kCrossbar || shape_.topology == Topology::kBus)
    return router_ + link_ + serial;
  const Ticks count = hops(from, to);
  return (count + 1) * router_ + count * link_ + serial;
}

// As many as route() has, without the way out of the last router of a grid.
uint32_t Network::hops(uint32_t from, uint32_t to) const {
  if (from == to) return 0;
  const auto apart = [](uint32_t a, uint32_t b) { return a < b ? b - a : a - b; };
  const auto around = [&](uint32_t a, uint32_t b, uint32_t size) {
    return std::min(apart(a, b), size - apart(a, b));
  };
  const uint32_t w = shape_.columns, h = shape_.rows;
  switch (shape_.topology) {
    case Topology::kMesh:
      return apart(from % w, to % w) + apart(from / w, to / w);
    case Topology::kTorus:
      return around(from % w, to % w, w) + around(from / w, to / w, h);
    case Topology::kRing:
      return around(from, to, tiles_);
    case Topology::kHierarchical:
      return static_cast<uint32_t>(2 * common_level(from, to));
    default:
      return 1;
  }
}

Delivery Network::send(uint32_t from, uint32_t to, uint32_t payload_bytes, Ticks at, Ticks now) {
  if (from == to) return {at, 0};
  const uint32_t flits = flits_of(payload_bytes);
  ++messages_;
  // Of so many pairs, this one's count is seldom near in the host's memory: it comes meanwhile.
  uint64_t& bytes = bytes_of(from, to);
  __builtin_prefetch(&bytes, 1);
  const Delivery d = send_flits(from, to, payload_bytes, flits, at, now);
  bytes += payload_bytes + shape_.header_bytes;
  return d;
}

Delivery Network::send_flits(uint32_t from, uint32_t to, uint32_t payload_bytes, uint32_t flits,
                             Ticks at, Ticks now) {
  if (ignores_load_) {
    const uint32_t count = hops(from, to);
    flit_hops_ += uint64_t{flits} * count;
    return {at + zero_load(from, to, payload_bytes) + mean_queue_ * (count + 1), 0};
  }
  if (is_grid()) return send_on_grid(from, to, flits, at, now);
  Delivery d{at, 0};
  if (shape_.topology != Topology::kHierarchical) {
    const Ticks begin =
        links_[shape_.topology == Topology::kBus ? 0 : to].take(at + router_, flits * flit_, now);
    d.queued = begin - at - router_;
    d.arrival = begin + link_;
    flit_hops_ += flits;
    queues_ += 2;
  } else {
    route(from, to, scratch_);
    // Tiles of an innermost cluster have no link between them.
    const Ticks cycles = level_cycles_[common_level(from, to)], hops = scratch_.size();
    const Ticks share = hops != 0 ? cycles / hops : 0;
    for (const uint32_t link : scratch_) {
      const Ticks begin = links_[link].take(d.arrival, link_time(link, flits), now);
      d.queued += begin - d.arrival;
      d.arrival = begin + share;
    }
    flit_hops_ += flits * hops;
    queues_ += hops + 1;
    d.arrival += cycles - share * hops;
  }
  queued_ += d.queued;
  d.arrival += (flits - 1) * flit_;
  return d;
}

const Network::Tree& Network::tree_of(uint32_t from) {
  if (trees_.empty()) trees_.resize(tiles_);
  Tree& tree = trees_[from];
  if (!tree.last.empty()) return tree;
  tree.last.resize(tiles_, Tree::kRoot);
  if (is_grid())
    grow_on_grid(from, tree);
  else
    grow_elsewhere(from, tree);
  return tree;
}

// The way to a tile is the one to the tile before it, and a link.
void Network::grow_on_grid(uint32_t from, Tree& tree) const {
  std::vector<uint32_t> into(tiles_, Tree::kRoot);  // per tile: the branch that comes to its router
  const auto add = [&](uint32_t place, uint32_t parent, bool is_eject) {
    tree.branches.push_back({0, place, parent, is_eject});
    tree.hops += !is_eject;
    return static_cast<uint32_t>(tree.branches.size() - 1);
  };
  std::vector<std::pair<uint32_t, uint32_t>> way;  // tiles, with the place of the link to each
  for (uint32_t to = 0; to < tiles_; ++to) {
    if (to == from) continue;
    way.clear();
    uint32_t tile = to;
    while (tile != from && into[tile] == Tree::kRoot) {
      const Leg y = leg_of_y(from, tile), x = leg_of_x(from, tile);
      way.emplace_back(tile, (y.length != 0 ? y : x).last());
      tile = y.length != 0 ? tile_at(x_of_[tile], before(y_of_[tile], y.step, height_))
                           : tile_at(before(x_of_[tile], x.step, width_), y_of_[tile]);
    }
    for (; !way.empty(); way.pop_back()) {
      const auto [next, place] = way.back();
      into[next] = add(place, tile == from ? Tree::kRoot : into[tile], false);
      tile = next;
    }
    tree.last[to] = add(kEject * tiles_ + to, into[to], true);
  }
}

void Network::grow_elsewhere(uint32_t from, Tree& tree) {
  std::vector<uint32_t> branch_of(link_count_, Tree::kRoot);
  for (uint32_t to = 0; to < tiles_; ++to) {
    route(from, to, scratch_);
    uint32_t parent = Tree::kRoot;
    for (const uint32_t link : scratch_) {
      if (branch_of[link] == Tree::kRoot) {
        branch_of[link] = static_cast<uint32_t>(tree.branches.size());
        tree.branches.push_back({link, link, parent, false});
        ++tree.hops;
      }
      parent = branch_of[link];
    }
    tree.last[to] = parent;
  }
}

// Along the row of `from`, from there along all columns, and into the tiles.
void Network::broadcast_on_rows(uint32_t from, uint32_t flits, Ticks at, Ticks now,
                                std::vector<Ticks>& arrivals) {
  arrivals.assign(tiles_, at);  // first of the head, at each tile's router
  const auto go = [&](bool is_column, uint32_t line, uint32_t begin, uint32_t to) {
    const uint32_t stride = is_column ? width_ : 1, size = is_column ? height_ : width_;
    const uint32_t base = is_column ? line : line * width_;
    const Leg way = leg(is_column, line, begin, to);
    Delivery d{arrivals[base + begin * stride], 0};
    take_leg(way, d, flits, now, [&](uint32_t first, uint32_t count, Ticks begins) {
      for (uint32_t i = first; i < first + count; ++i, begins += router_ + link_) {
        const uint32_t ahead = begin + (way.step > 0 ? i + 1 : size - i - 1);
        arrivals[base + ahead % size * stride] = begins + link_;
      }
    });
  };
  // To the last tile on the one way, and on the other.
  const auto both = [&](bool is_column, uint32_t line, uint32_t begin) {
    const uint32_t size = is_column ? height_ : width_;
    const bool wraps = shape_.topology != Topology::kMesh;
    const uint32_t ahead = wraps ? size / 2 : size - 1 - begin;
    const uint32_t back = wraps ? (size - 1) / 2 : begin;
    if (ahead != 0) go(is_column, line, begin, (begin + ahead) % size);
    if (back != 0) go(is_column, line, begin, (begin + size - back) % size);
  };
  both(false, y_of_[from], x_of_[from]);
  for (uint32_t x = 0; x < width_; ++x) both(true, x, y_of_[from]);
  for (uint32_t to = 0; to < tiles_; ++to)
    if (to != from)
      arrivals[to] =
          calendar_of(kEject * tiles_ + to).take(arrivals[to] + router_, flits * flit_, now) +
          (flits - 1) * flit_;
}

void Network::broadcast(uint32_t from, uint32_t payload_bytes, Ticks at, Ticks now,
                        std::vector<Ticks>& arrivals) {
  const uint32_t flits = flits_of(payload_bytes);
  const bool is_levels = shape_.topology == Topology::kHierarchical;
  ++messages_;
  broadcast_bytes_[from] += payload_bytes + shape_.header_bytes;
  // Of a grid: each tile's router is come to once.
  flit_hops_ += uint64_t{flits} * (is_grid() ? tiles_ - 1 : tree_of(from).hops);
  if (ignores_load_) {
    arrivals.resize(tiles_);
    for (uint32_t to = 0; to < tiles_; ++to) {
      arrivals[to] = at + zero_load(from, to, payload_bytes);
      if (to == from) continue;
      arrivals[to] += mean_queue_ * (hops(from, to) + 1);
    }
    return;
  }
  if (rows_ && at % kCycle != 0) leave_rows(now);
  if (rows_) return broadcast_on_rows(from, flits, at, now, arrivals);
  const Tree& tree = tree_of(from);
  heads_.resize(tree.branches.size());
  for (size_t i = 0; i < tree.branches.size(); ++i) {
    const Tree::Branch& branch = tree.branches[i];
    Ticks head = branch.parent == Tree::kRoot ? at : heads_[branch.parent];
    if (!is_levels) head += router_;
    head = links_[branch.place].take(
        head, is_levels ? link_time(branch.link, flits) : flits * flit_, now);
    heads_[i] = head + (is_levels || branch.is_eject ? 0 : link_);
  }
  arrivals.assign(tiles_, at);
  for (uint32_t to = 0; to < tiles_; ++to) {
    if (to == from) continue;
    arrivals[to] =
        (tree.last[to] == Tree::kRoot ? at : heads_[tree.last[to]]) + (flits - 1) * flit_;
    if (is_levels) arrivals[to] += ticks(shape_.levels[common_level(from, to)].cycles);
  }
}

std::string Network::link_name(uint32_t link) const {
  switch (shape_.topology) {
    case Topology::kMesh:
    case Topology::kTorus:
    case Topology::kRing:
      return fmt::format("{},{} {}", link / kDirections % shape_.columns,
                         link / kDirections / shape_.columns, kDirectionNames[link % kDirections]);
    case Topology::kCrossbar:
      return fmt::format("port {}", link);
    case Topology::kBus:
      return "bus";
    case Topology::kHierarchical: {
      size_t level = level_base_.size() - 1;
      while (level_base_[level] > link) --level;
      const uint32_t index = link - level_base_[level];
      return fmt::format("{} cluster {} of {} tiles", index % 2 ? "into" : "out of", index / 2,
                         shape_.levels[level].tiles);
    }
  }
  return {};
}

}  // namespace gpusim::host::chip
