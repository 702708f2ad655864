#include "host/cuda_api/graph.h"

#include <algorithm>
#include <map>

namespace gpusim::cuda_api {

bool Graph::has(const Node* node) const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const std::unique_ptr<Node>& n) { return n.get() == node; });
}

std::vector<const Node*> Graph::sorted() const {
  std::map<const Node*, size_t> index;
  for (size_t i = 0; i < nodes.size(); ++i) index[nodes[i].get()] = i;
  std::vector<size_t> waits_for(nodes.size());
  std::vector<std::vector<size_t>> followers(nodes.size());
  std::vector<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Node* before : nodes[i]->dependencies) {
      const auto at = index.find(before);
      if (at == index.end()) return {};
      followers[at->second].push_back(i);
      ++waits_for[i];
    }
    if (waits_for[i] == 0) ready.push_back(i);
  }
  std::make_heap(ready.begin(), ready.end(), std::greater<>());
  std::vector<const Node*> order;
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const size_t next = ready.back();
    ready.pop_back();
    order.push_back(nodes[next].get());
    for (const size_t follower : followers[next])
      if (--waits_for[follower] == 0) {
        ready.push_back(follower);
        std::push_heap(ready.begin(), ready.end(), std::greater<>());
      }
  }
  if (order.size() != nodes.size()) order.clear();
  return order;
}

void Graph::clone_into(Graph& other) const {
  std::map<const Node*, Node*> copies;
  for (const auto& node : nodes) copies[node.get()] = other.add(*node);
  for (const auto& [original, copy] : copies)
    for (Node*& before : copy->dependencies) before = copies.at(before);
}

}  // namespace gpusim::cuda_api
