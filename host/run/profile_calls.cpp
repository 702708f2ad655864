#include "host/run/profile_calls.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "host/run/profile_split.h"

namespace gpusim::host {
namespace {

// The call tree without what was inlined, but with gpusim's own names as functions.
class Graph {
 public:
  struct Node {
    uint32_t parent = 0;
    std::string function, file;
    PlaceUse inclusive;                  // until add_up(): its own
    std::map<uint64_t, uint64_t> calls;  // by the address that they return to
    bool is_own_name = false;            // no function of the program
  };

  Graph() { nodes_.push_back({.function = CallCollector::kStart, .is_own_name = true}); }

  // Parents come before their children.
  uint32_t child(uint32_t parent, const std::string& function, bool is_own_name = false) {
    const auto [at, is_new] =
        numbers_.try_emplace({parent, function, is_own_name}, static_cast<uint32_t>(nodes_.size()));
    if (is_new)
      nodes_.push_back({.parent = parent, .function = function, .is_own_name = is_own_name});
    return at->second;
  }
  Node& operator[](uint32_t number) { return nodes_[number]; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }

  void add_up() {
    for (uint32_t n = size(); n-- > 1;) nodes_[nodes_[n].parent].inclusive += nodes_[n].inclusive;
  }
  // Whether its function is not among its callers.
  bool is_outermost(uint32_t number) const {
    const Node& node = nodes_[number];
    for (uint32_t n = number; n != 0;) {
      n = nodes_[n].parent;
      if (nodes_[n].function == node.function && nodes_[n].file == node.file) return false;
    }
    return true;
  }

 private:
  std::vector<Node> nodes_;
  std::map<std::tuple<uint32_t, std::string, bool>, uint32_t> numbers_;
};

}  // namespace

void CallCollector::add(uint32_t node, uint64_t pc, const Frame& compiled, const PlaceUse& use) {
  Own& own = own_[{node, compiled.function}];
  own.use += use;
  if (own.file.empty() || (!compiled.file.empty() && compiled.file < own.file))
    own.file = compiled.file;
  // Address 0 stands for what the host executes.
  if (pc != 0 && !compiled.function.empty()) names_[node] = compiled.function;
}

std::map<ProfileCall, CallUse> CallCollector::take(const InlineFrames& frames) const {
  Graph graph;
  const auto name_of = [&](uint32_t node) {
    const std::string& symbol = calls_.names[calls_.nodes[node].function];
    const auto found = names_.find(node);
    // Symbols tell apart what DWARF may not.
    return symbol.empty() && found != names_.end() ? found->second : symbol;
  };
  std::vector<uint32_t> numbers(calls_.nodes.size());
  for (uint32_t n = 1; n < numbers.size(); ++n) {
    const CallStacks::Node& node = calls_.nodes[n];
    uint32_t parent = numbers[node.parent];
    if (node.through) parent = graph.child(parent, calls_.names[*node.through], true);
    numbers[n] = graph.child(parent, name_of(n));
  }
  for (const auto& [place, own] : own_) {
    const auto& [node, function] = place;
    uint32_t number = numbers[node];
    if (function != graph[number].function) number = graph.child(graph[number].parent, function);
    graph[number].inclusive += own.use;
    std::string& file = graph[number].file;
    if (file.empty() || (!own.file.empty() && own.file < file)) file = own.file;
  }
  graph.add_up();
  for (const auto& [call, count] : calls_.calls) {
    const auto& [node, return_pc] = call;
    const uint32_t number = numbers[node], parent = graph[number].parent;
    // Who called through one of gpusim's own names is not known.
    graph[number].calls[graph[parent].is_own_name ? 0 : return_pc] += count;
    if (parent != 0 && graph[parent].is_own_name) graph[parent].calls[0] += count;
  }

  std::unordered_map<uint64_t, Frame> sites;
  std::map<ProfileCall, CallUse> result;
  for (uint32_t n = 1; n < graph.size(); ++n) {
    const Graph::Node& node = graph[n];
    const Graph::Node& caller = graph[node.parent];
    std::map<uint64_t, uint64_t> calls = node.calls;
    if (calls.empty()) calls[0] = 1;
    std::vector<uint64_t> counts;
    for (const auto& [return_pc, count] : calls) counts.push_back(count);
    // From which of several lines a function was called when it took what, nobody knows.
    const std::vector<PlaceUse> uses = graph.is_outermost(n) ? split_use(node.inclusive, counts)
                                                             : std::vector<PlaceUse>(counts.size());
    size_t i = 0;
    for (const auto& [return_pc, count] : calls) {
      const auto [site, is_new] = sites.try_emplace(return_pc);
      if (is_new && return_pc != 0) {
        const std::vector<Frame> chain = frames.at(return_pc - 1);
        if (!chain.empty()) site->second = chain.front();
      }
      CallUse& to = result[{.caller = caller.function,
                            .caller_file = caller.file,
                            .file = site->second.file,
                            .line = site->second.line,
                            .callee = node.function,
                            .callee_file = node.file}];
      to.count += count;
      to.inclusive += uses[i++];
    }
  }
  return result;
}

}  // namespace gpusim::host
