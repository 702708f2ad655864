// The order in which lanes that wait for each other should run, so that they meet again soon.
//
// Lanes of a group that went different ways run one set at a time, the one at the earliest place
// first. In this order a loop's body comes before its header and the header before what follows the
// loop, whatever their addresses: those that finish a turn, or leave the loop, wait for the others
// of that turn. Any order gives right results; a bad one runs lanes apart that could run together.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_sim/uir/module.h"

namespace gpusim {

// Nodes 0 .. size() - 1 with their successors.
class FlowGraph {
 public:
  struct Edge {
    uint32_t from, to;
  };
  FlowGraph(uint32_t node_count, std::span<const Edge> edges);
  uint32_t size() const { return static_cast<uint32_t>(first_.size() - 1); }
  // In ascending order.
  std::span<const uint32_t> successors(uint32_t node) const {
    return {to_.data() + first_[node], to_.data() + first_[node + 1]};
  }

 private:
  std::vector<uint32_t> first_, to_;
};

// All nodes: those of a loop without its header in topological order, then its header, then what
// follows; loops inside a loop stand for one node each. Where nothing else decides, by number. A
// loop with several entries counts as entered where a search from the roots, in their order, first
// met it.
std::vector<uint32_t> loop_order(const FlowGraph& graph, std::span<const uint32_t> roots);

// A numbering of a module's micro-ops. A link has the rank of the place where it leads: lanes that
// come to a link meet those that wait there.
class ReconvergenceOrder {
 public:
  // `ranks`: false where no core has another to wait for. Micro-ops then are in the module's order.
  explicit ReconvergenceOrder(bool ranks = true) : ranks_(ranks) {}
  void compute(const Module& module);
  // Micro-ops were added to the module. Where there are many, a few go behind all others: to rank
  // everything anew for each block that is found late would take too long. Returns the former
  // uop_at() if others changed their ranks, else nothing.
  std::vector<uint32_t> extend(const Module& module);
  // Whether some stand behind all others, where extend() put them. To compute() everything anew
  // gives them their place.
  bool is_partly_ranked() const { return ranks_ && computed_ != rank_.size(); }

  // For checkpoints: the ranks, and of how many micro-ops they were computed together.
  size_t computed() const { return computed_; }
  // False, and nothing done, if these are no ranks of as many micro-ops as there are.
  bool set(const Module& module, std::vector<uint32_t> rank, size_t computed);

  const std::vector<uint32_t>& rank() const { return rank_; }  // of each micro-op
  // The inverse, but of links.
  const std::vector<uint32_t>& uop_at() const { return uop_at_; }

 private:
  void place_link(const Module& module, uint32_t uop);

  bool ranks_;
  std::vector<uint32_t> rank_, uop_at_;
  size_t computed_ = 0;  // micro-ops when all were ranked
  size_t relinked_ = 0;  // of Module::relinked, that are known
};

}  // namespace gpusim
