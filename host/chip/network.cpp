#include "host/chip/network.h"

#include <fmt/format.h>

#include <algorithm>

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
      matrix_(size_t{tiles_} * tiles_) {
  size_t count = 0;
  switch (shape.topology) {
    case Topology::kMesh:
    case Topology::kTorus:
    case Topology::kRing:
      count = size_t{tiles_} * kDirections;
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
        count += size_t{2} * (tiles_ / level.tiles);
      }
      break;
  }
  links_.resize(count);
}

// X first, then Y. Around a ring or torus the shorter way; east and south if both are equal.
void Network::route_on_grid(uint32_t from, uint32_t to, std::vector<uint32_t>& links) const {
  const bool is_ring = shape_.topology == Topology::kRing;
  const uint32_t w = is_ring ? tiles_ : shape_.columns, h = is_ring ? 1 : shape_.rows;
  const bool wraps = shape_.topology != Topology::kMesh;
  uint32_t x = from % w, y = from / w;
  const uint32_t tx = to % w, ty = to / w;
  const auto forward = [&](uint32_t at, uint32_t target, uint32_t size) {
    return wraps ? 2 * ((target + size - at) % size) <= size : target > at;
  };
  if (x != tx) {
    const bool east = forward(x, tx, w);
    while (x != tx) {
      links.push_back((y * w + x) * kDirections + (east ? kEast : kWest));
      x = east ? (x + 1 == w ? 0 : x + 1) : (x == 0 ? w - 1 : x - 1);
    }
  }
  if (y != ty) {
    const bool south = forward(y, ty, h);
    while (y != ty) {
      links.push_back((y * w + x) * kDirections + (south ? kSouth : kNorth));
      y = south ? (y + 1 == h ? 0 : y + 1) : (y == 0 ? h - 1 : y - 1);
    }
  }
  links.push_back(to * kDirections + kEject);
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
  if (shape_.topology != Topology::kHierarchical) return flits * kCycle;
  size_t level = level_base_.size() - 1;
  while (level_base_[level] > link) --level;
  return ticks(flits / shape_.levels[level].ports);
}

Ticks Network::zero_load(uint32_t from, uint32_t to, uint32_t payload_bytes) const {
  if (from == to) return 0;
  const Ticks serial = (flits_of(payload_bytes) - 1) * kCycle;
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
  matrix_[size_t{from} * tiles_ + to] += payload_bytes + shape_.header_bytes;
  if (ignores_load_) {
    const uint32_t count = hops(from, to);
    flit_hops_ += uint64_t{flits} * count;
    return {at + zero_load(from, to, payload_bytes) + mean_queue_ * (count + 1), 0};
  }
  route(from, to, scratch_);
  Delivery d{at, 0};
  // The head goes on as soon as a link is free; the others follow it flit by flit.
  const bool is_single =
      shape_.topology == Topology::kCrossbar || shape_.topology == Topology::kBus;
  const bool is_levels = shape_.topology == Topology::kHierarchical;
  const Ticks flit_time = flits * kCycle;
  // Tiles of an innermost cluster have no link between them.
  const Ticks share = is_levels && !scratch_.empty()
                          ? ticks(shape_.levels[common_level(from, to)].cycles) / scratch_.size()
                          : 0;
  for (size_t i = 0; i < scratch_.size(); ++i) {
    const bool is_eject = !is_single && !is_levels && i + 1 == scratch_.size();
    if (!is_levels) d.arrival += router_;
    const Ticks begin = links_[scratch_[i]].take(
        d.arrival, is_levels ? link_time(scratch_[i], flits) : flit_time, now);
    d.queued += begin - d.arrival;
    d.arrival = begin + (is_levels ? share : is_eject ? 0 : link_);
    if (!is_eject) flit_hops_ += flits;
  }
  queued_ += d.queued;
  queues_ += hops(from, to) + 1;
  if (is_levels)
    d.arrival += ticks(shape_.levels[common_level(from, to)].cycles) - share * scratch_.size();
  d.arrival += (flits - 1) * kCycle;
  return d;
}

const Network::Tree& Network::tree_of(uint32_t from) {
  if (trees_.empty()) trees_.resize(tiles_);
  Tree& tree = trees_[from];
  if (!tree.last.empty()) return tree;
  tree.last.resize(tiles_, Tree::kRoot);
  std::vector<uint32_t> branch_of(links_.size(), Tree::kRoot);
  for (uint32_t to = 0; to < tiles_; ++to) {
    route(from, to, scratch_);
    uint32_t parent = Tree::kRoot;
    for (const uint32_t link : scratch_) {
      if (branch_of[link] == Tree::kRoot) {
        branch_of[link] = static_cast<uint32_t>(tree.branches.size());
        tree.branches.push_back({link, parent});
      }
      parent = branch_of[link];
    }
    tree.last[to] = parent;
  }
  const bool is_grid = shape_.topology == Topology::kMesh || shape_.topology == Topology::kTorus ||
                       shape_.topology == Topology::kRing;
  for (const Tree::Branch& branch : tree.branches)
    tree.hops += !is_grid || branch.link % kDirections != kEject;
  return tree;
}

void Network::broadcast(uint32_t from, uint32_t payload_bytes, Ticks at, Ticks now,
                        std::vector<Ticks>& arrivals) {
  const Tree& tree = tree_of(from);
  const uint32_t flits = flits_of(payload_bytes);
  const bool is_single =
      shape_.topology == Topology::kCrossbar || shape_.topology == Topology::kBus;
  const bool is_levels = shape_.topology == Topology::kHierarchical;
  ++messages_;
  if (ignores_load_) {
    flit_hops_ += uint64_t{flits} * tree.hops;
    arrivals.resize(tiles_);
    for (uint32_t to = 0; to < tiles_; ++to) {
      arrivals[to] = at + zero_load(from, to, payload_bytes);
      if (to == from) continue;
      arrivals[to] += mean_queue_ * (hops(from, to) + 1);
      matrix_[size_t{from} * tiles_ + to] += payload_bytes + shape_.header_bytes;
    }
    return;
  }
  heads_.resize(tree.branches.size());
  for (size_t i = 0; i < tree.branches.size(); ++i) {
    const Tree::Branch& branch = tree.branches[i];
    Ticks head = branch.parent == Tree::kRoot ? at : heads_[branch.parent];
    if (!is_levels) head += router_;
    head = links_[branch.link].take(
        head, is_levels ? link_time(branch.link, flits) : flits * kCycle, now);
    const bool is_eject = !is_single && !is_levels && branch.link % kDirections == kEject;
    if (!is_eject) flit_hops_ += flits;
    heads_[i] = head + (is_levels || is_eject ? 0 : link_);
  }
  arrivals.assign(tiles_, at);
  for (uint32_t to = 0; to < tiles_; ++to) {
    if (to == from) continue;
    matrix_[size_t{from} * tiles_ + to] += payload_bytes + shape_.header_bytes;
    arrivals[to] =
        (tree.last[to] == Tree::kRoot ? at : heads_[tree.last[to]]) + (flits - 1) * kCycle;
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
