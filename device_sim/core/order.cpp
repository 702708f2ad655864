#include "device_sim/core/order.h"

#include <algorithm>
#include <numeric>

#include "device_sim/core/effects.h"

namespace gpusim {

FlowGraph::FlowGraph(uint32_t node_count, std::span<const Edge> edges)
    : first_(size_t{node_count} + 1), to_(edges.size()) {
  for (const Edge& e : edges) ++first_[e.from + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  for (const Edge& e : edges) to_[next[e.from]++] = e.to;
  for (uint32_t node = 0; node < node_count; ++node)
    std::sort(to_.begin() + first_[node], to_.begin() + first_[node + 1]);
}

namespace {

// Loops nested deeper are not taken apart; keeps the work near linear in the size of any graph.
constexpr uint32_t kMaxNesting = 32;

// Tarjan, "Depth-first search and linear graph algorithms" (1972), finds strongly connected
// components in reverse topological order. Each is a loop, entered at the node that the search met
// first; what is left without that node is searched again, as in Bourdoncle, "Efficient chaotic
// iteration strategies with widenings" (1993).
class LoopOrder {
 public:
  explicit LoopOrder(const FlowGraph& graph)
      : graph_(graph),
        order_(graph.size()),
        region_(graph.size(), 1),
        index_(graph.size()),
        low_(graph.size()) {}

  std::vector<uint32_t> run(std::span<const uint32_t> roots) {
    const Region all{.id = 1, .end = graph_.size(), .nesting = 0, .header = 0};
    end_ = all.end;
    for (uint32_t node : roots) search(all, node);
    for (uint32_t node = 0; node < graph_.size(); ++node) search(all, node);
    while (!regions_.empty()) {
      const Region region = regions_.back();
      regions_.pop_back();
      end_ = region.end;
      // From the header every node of its loop can be reached.
      const std::span<const uint32_t> entries = graph_.successors(region.header);
      for (size_t i = entries.size(); i-- > 0;) search(region, entries[i]);
    }
    return std::move(order_);
  }

 private:
  // Nodes that still have to be ordered among each other: a loop without its header.
  struct Region {
    uint32_t id;
    uint32_t end;  // they go to order_ before here
    uint32_t nesting;
    uint32_t header;
  };
  struct Frame {
    uint32_t node, next;
  };

  void enter(uint32_t node) {
    index_[node] = low_[node] = ++last_index_;
    stack_.push_back(node);
    frames_.push_back({node, 0});
  }

  // Nodes leave their region when their component is complete: those of `region` that have an index
  // are on the stack.
  void search(const Region& region, uint32_t root) {
    if (region_[root] != region.id) return;
    enter(root);
    while (!frames_.empty()) {
      const uint32_t node = frames_.back().node;
      const std::span<const uint32_t> next = graph_.successors(node);
      if (frames_.back().next < next.size()) {
        // What is searched first comes last.
        const uint32_t to = next[next.size() - ++frames_.back().next];
        if (region_[to] != region.id) continue;
        if (index_[to] == 0)
          enter(to);
        else
          low_[node] = std::min(low_[node], index_[to]);
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) {
        uint32_t& low = low_[frames_.back().node];
        low = std::min(low, low_[node]);
      }
      if (low_[node] == index_[node]) complete(region, node);
    }
  }

  void complete(const Region& region, uint32_t header) {
    order_[--end_] = header;
    region_[header] = 0;
    auto first = stack_.end() - 1;
    while (*first != header) --first;
    const auto size = static_cast<uint32_t>(stack_.end() - first) - 1;
    if (size > 0) {
      const Region inner{
          .id = ++last_region_, .end = end_, .nesting = region.nesting + 1, .header = header};
      end_ -= size;
      const auto place = order_.begin() + end_;
      std::copy(first + 1, stack_.end(), place);
      const bool split = inner.nesting < kMaxNesting;
      if (split)
        regions_.push_back(inner);
      else
        std::sort(place, place + size);
      for (auto node = first + 1; node != stack_.end(); ++node) {
        region_[*node] = split ? inner.id : 0;
        index_[*node] = 0;
      }
    }
    stack_.erase(first, stack_.end());
  }

  const FlowGraph& graph_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> region_;  // 0: in its final place
  std::vector<uint32_t> index_;   // when the search met the node; 0: not yet
  std::vector<uint32_t> low_;
  std::vector<uint32_t> stack_;
  std::vector<Frame> frames_;
  std::vector<Region> regions_;
  uint32_t end_ = 0;  // order_[end_ ...] of the current region is final
  uint32_t last_index_ = 0, last_region_ = 1;
};

// The control flow of a module: nodes are runs of micro-ops that are entered only at the first.
class ModuleGraph {
 public:
  explicit ModuleGraph(const Module& module)
      : uops_(module.uops),
        code_{module.uops.data(), module.code.uop_at.data(), module.code.text_base,
              module.code.uop_at.size(), module.code.pc_shift},
        node_of_(module.uops.size()) {
    find_nodes(module);
    find_edges(module);
    find_stops(module);
    find_roots(module);
  }

  // The micro-ops in order. What leads to nothing but places where lanes stop comes first: it may
  // be a part of any loop, so the others wait for what follows there.
  std::vector<uint32_t> order() {
    const FlowGraph graph(static_cast<uint32_t>(first_uop_.size()), edges_);
    std::vector<uint32_t> nodes = loop_order(graph, roots_);
    for (size_t i = nodes.size(); i-- > 0;) {
      const std::span<const uint32_t> next = graph.successors(nodes[i]);
      if (!next.empty() && std::ranges::all_of(next, [&](uint32_t to) { return stops_[to]; }))
        stops_[nodes[i]] = true;
    }
    std::stable_partition(nodes.begin(), nodes.end(),
                          [this](uint32_t node) { return stops_[node]; });
    std::vector<uint32_t> uops;
    uops.reserve(uops_.size());
    for (uint32_t node : nodes)
      for (uint32_t u = first_uop_[node]; u < end_of(node); ++u) uops.push_back(u);
    return uops;
  }

 private:
  uint32_t end_of(uint32_t node) const {
    return node + 1 < first_uop_.size() ? first_uop_[node + 1]
                                        : static_cast<uint32_t>(uops_.size());
  }
  bool is_call(const Uop& u) const {
    return (u.op == Op::jmp || u.op == Op::jmp_reg) &&
           u.aux == static_cast<uint8_t>(JumpHint::kCall);
  }

  void find_nodes(const Module& module) {
    // First marks, then numbers.
    std::vector<uint32_t>& mark = node_of_;
    const auto start = [&](size_t u) {
      if (u < mark.size()) mark[u] = 1;
    };
    start(0);
    for (const Block& b : module.blocks) start(b.first_uop);
    for (size_t u = 0; u < uops_.size(); ++u) {
      const ShapeInfo shape = shape_info(op_info(uops_[u].op).shape);
      if (!shape.ends_block) continue;
      start(u + 1);
      if (shape.has_target) start(uops_[u].target());
    }
    uint32_t count = 0;
    for (uint32_t u = 0; u < mark.size(); ++u) {
      if (mark[u]) {
        first_uop_.push_back(u);
        ++count;
      }
      node_of_[u] = count - 1;
    }
  }

  void add_edge(uint32_t from, uint32_t to_uop) {
    if (to_uop < uops_.size()) edges_.push_back({from, node_of_[to_uop]});
  }

  // A call goes on where it returns, if that is translated; how deep lanes are in calls counts
  // before this order. Where other indirect jumps go is not known.
  void find_edges(const Module& module) {
    for (uint32_t node = 0; node < first_uop_.size(); ++node) {
      const uint32_t end = end_of(node);
      const Uop& last = uops_[end - 1];
      const ShapeInfo shape = shape_info(op_info(last.op).shape);
      if (is_call(last)) {
        add_edge(node, code_.find(end_pc(module, module.blocks[last.block()])));
        continue;
      }
      if (!shape.ends_block || shape.falls_through) add_edge(node, end);
      if (shape.has_target) add_edge(node, last.target());
    }
  }

  // Blocks without instructions: lanes stop there for what is not translated, or not there.
  void find_stops(const Module& module) {
    stops_.resize(first_uop_.size());
    for (const Block& b : module.blocks)
      if (b.insn_count == 0 && b.first_uop < uops_.size()) stops_[node_of_[b.first_uop]] = true;
  }

  // Where functions are entered comes first, from the last one to the first, then any other node
  // that no edge leads to.
  void find_roots(const Module& module) {
    std::vector<bool> entered(first_uop_.size()), reached(first_uop_.size());
    const auto enter = [&](uint32_t uop) {
      if (uop < node_of_.size()) entered[node_of_[uop]] = true;
    };
    for (const Uop& u : uops_)
      if (u.op == Op::jmp && is_call(u)) enter(u.target());
    enter(code_.find(module.entry));
    for (const Symbol& s : module.symbols)
      if (s.is_function) enter(code_.find(s.address));
    for (const FlowGraph::Edge& e : edges_) reached[e.to] = true;
    for (size_t node = entered.size(); node-- > 0;)
      if (entered[node]) roots_.push_back(static_cast<uint32_t>(node));
    for (size_t node = entered.size(); node-- > 0;)
      if (!entered[node] && !reached[node]) roots_.push_back(static_cast<uint32_t>(node));
  }

  const std::vector<Uop>& uops_;
  CodeView code_;
  std::vector<uint32_t> node_of_;    // per micro-op
  std::vector<uint32_t> first_uop_;  // per node
  std::vector<bool> stops_;          // per node
  std::vector<FlowGraph::Edge> edges_;
  std::vector<uint32_t> roots_;
};

}  // namespace

std::vector<uint32_t> loop_order(const FlowGraph& graph, std::span<const uint32_t> roots) {
  return LoopOrder(graph).run(roots);
}

void ReconvergenceOrder::compute(const Module& module) {
  if (ranks_) {
    uop_at_ = ModuleGraph(module).order();
  } else {
    uop_at_.resize(module.uops.size());
    std::iota(uop_at_.begin(), uop_at_.end(), 0u);
  }
  rank_.resize(uop_at_.size());
  for (size_t i = 0; i < uop_at_.size(); ++i) rank_[uop_at_[i]] = static_cast<uint32_t>(i);
  computed_ = uop_at_.size();
  relinked_ = module.relinked.size();
  for (uint32_t uop = 0; uop < rank_.size(); ++uop) place_link(module, uop);
}

std::vector<uint32_t> ReconvergenceOrder::extend(const Module& module) {
  // To rank so many takes no longer than to translate a few blocks.
  constexpr size_t kFew = 4096;
  const size_t uops = module.uops.size();
  if (ranks_ && (uops <= kFew || uops - computed_ > computed_ / 8)) {
    std::vector<uint32_t> former = std::move(uop_at_);
    compute(module);
    return former;
  }
  auto added = static_cast<uint32_t>(rank_.size());
  for (uint32_t uop = added; uop < uops; ++uop) {
    rank_.push_back(uop);
    uop_at_.push_back(uop);
  }
  for (; added < uops; ++added) place_link(module, added);
  for (; relinked_ < module.relinked.size(); ++relinked_)
    place_link(module, module.relinked[relinked_]);
  return {};
}

void ReconvergenceOrder::place_link(const Module& module, uint32_t uop) {
  const Uop& u = module.uops[uop];
  if (ranks_ && u.op == Op::link && u.target() < rank_.size()) rank_[uop] = rank_[u.target()];
}

bool ReconvergenceOrder::set(const Module& module, std::vector<uint32_t> rank, size_t computed) {
  if (rank.size() != rank_.size() || computed > rank.size()) return false;
  std::vector<uint32_t> uop_at(rank.size(), kNoUop), links;
  for (uint32_t uop = 0; uop < rank.size(); ++uop) {
    if (ranks_ && module.uops[uop].op == Op::link) {
      links.push_back(uop);
      continue;
    }
    if (rank[uop] >= rank.size() || uop_at[rank[uop]] != kNoUop) return false;
    uop_at[rank[uop]] = uop;
  }
  for (uint32_t& uop : uop_at) {
    if (uop != kNoUop) continue;
    uop = links.back();  // nothing is there: links are where they lead to
    links.pop_back();
  }
  rank_ = std::move(rank);
  uop_at_ = std::move(uop_at);
  computed_ = computed;
  relinked_ = module.relinked.size();
  for (uint32_t uop = 0; uop < rank_.size(); ++uop) place_link(module, uop);
  return true;
}

}  // namespace gpusim
