// Runtime API: graphs. What a graph holds was recorded from streams or added node by node.
#include <algorithm>
#include <cstring>

#include "host/cuda_api/alias.h"
#include "host/cuda_api/copies.h"
#include "host/cuda_api/graph_nodes.h"
#include "host/cuda_api/launches.h"
#include "host/cuda_api/runtime.h"

using namespace gpusim::cuda_api;

namespace {

GraphCopy& copy_of(void* handle) {
  const auto at = runtime().graph_copies.find(static_cast<GraphCopy*>(handle));
  require(at != runtime().graph_copies.end());
  return **at;
}

Node copy_node_1d(void* to, const void* from, size_t count, CopyKind kind) {
  return copy_node({.to = static_cast<char*>(to),
                    .to_pitch = 0,
                    .to_slice = 0,
                    .from = static_cast<const char*>(from),
                    .from_pitch = 0,
                    .from_slice = 0,
                    .width = count},
                   kind);
}

// Gives a node of a graph, or its copy in an instantiated one, other work of the same type.
void change(Node& node, Node replacement) {
  require(node.type == replacement.type);
  node.call = std::move(replacement.call);
  node.work = std::move(replacement.work);
  node.size_bytes = replacement.size_bytes;
  node.direction = replacement.direction;
}

void change_original(void* handle, Node replacement) {
  const std::lock_guard lock(runtime().mutex);
  for (Graph* graph : runtime().graphs)
    if (graph->has(static_cast<Node*>(handle)))
      return change(*static_cast<Node*>(handle), std::move(replacement));
  refuse(kInvalidValue);
}

void change_copy(void* executable, void* handle, Node replacement) {
  const std::lock_guard lock(runtime().mutex);
  GraphCopy& copy = copy_of(executable);
  const auto at = std::find(copy.originals.begin(), copy.originals.end(), handle);
  require(at != copy.originals.end());
  change(copy.nodes[static_cast<size_t>(at - copy.originals.begin())], std::move(replacement));
}

}  // namespace

GPUSIM_CUDA_API int cudaGraphCreate(void** graph, unsigned flags) {
  return call("cudaGraphCreate", [&] {
    require(graph != nullptr && flags == 0);
    const std::lock_guard lock(runtime().mutex);
    *graph = *runtime().graphs.insert(new Graph).first;
  });
}
GPUSIM_CUDA_API int cudaGraphDestroy(void* graph) {
  return call("cudaGraphDestroy", [&] {
    const std::lock_guard lock(runtime().mutex);
    Graph* const found = &graph_of(graph);
    require(!found->is_body);
    forget_bodies(*found);
    runtime().graphs.erase(found);
    delete found;
  });
}
GPUSIM_CUDA_API int cudaGraphClone(void** clone, void* graph) {
  return call("cudaGraphClone", [&] {
    require(clone != nullptr);
    const std::lock_guard lock(runtime().mutex);
    auto made = std::make_unique<Graph>();
    const Graph& original = graph_of(graph);
    for (const auto& node : original.nodes)
      require(node->condition == nullptr && node->memory == nullptr, kNotSupported);
    original.clone_into(*made);
    *clone = *runtime().graphs.insert(made.release()).first;
  });
}
GPUSIM_CUDA_API int cudaGraphAddKernelNode(void** node, void* graph, void* const* dependencies,
                                           size_t count, const KernelNodeParams* p) {
  return call("cudaGraphAddKernelNode",
              [&] { add_node(node, graph, dependencies, count, kernel_node(p)); });
}
GPUSIM_CUDA_API int cudaGraphAddMemcpyNode(void** node, void* graph, void* const* dependencies,
                                           size_t count, const Memcpy3DParms* p) {
  return call("cudaGraphAddMemcpyNode", [&] {
    require(p != nullptr);
    add_node(node, graph, dependencies, count, copy_node(box_of(*p), p->kind));
  });
}
GPUSIM_CUDA_API int cudaGraphAddMemcpyNode1D(void** node, void* graph, void* const* dependencies,
                                             size_t count, void* to, const void* from, size_t size,
                                             CopyKind kind) {
  return call("cudaGraphAddMemcpyNode1D", [&] {
    add_node(node, graph, dependencies, count, copy_node_1d(to, from, size, kind));
  });
}
GPUSIM_CUDA_API int cudaGraphAddMemsetNode(void** node, void* graph, void* const* dependencies,
                                           size_t count, const MemsetNodeParams* p) {
  return call("cudaGraphAddMemsetNode",
              [&] { add_node(node, graph, dependencies, count, memset_node(p)); });
}
GPUSIM_CUDA_API int cudaGraphAddHostNode(void** node, void* graph, void* const* dependencies,
                                         size_t count, const HostNodeParams* p) {
  return call("cudaGraphAddHostNode",
              [&] { add_node(node, graph, dependencies, count, host_node(p)); });
}
GPUSIM_CUDA_API int cudaGraphAddEmptyNode(void** node, void* graph, void* const* dependencies,
                                          size_t count) {
  return call("cudaGraphAddEmptyNode",
              [&] { add_node(node, graph, dependencies, count, {.type = NodeType::kEmpty}); });
}
GPUSIM_CUDA_API int cudaGraphAddChildGraphNode(void** node, void* graph, void* const* dependencies,
                                               size_t count, void* child) {
  return call("cudaGraphAddChildGraphNode",
              [&] { add_node(node, graph, dependencies, count, child_node(child)); });
}
// The edges' data (CUDA 13 has them as a further argument) only matter to programmatic launches.
GPUSIM_CUDA_API int cudaGraphAddDependencies(void* graph, void* const* from, void* const* to,
                                             const void* edge_data, size_t count) {
  return call("cudaGraphAddDependencies", [&] {
    require(edge_data == nullptr, kNotSupported);
    require(count == 0 || (from != nullptr && to != nullptr));
    const std::lock_guard lock(runtime().mutex);
    Graph& g = graph_of(graph);
    for (size_t i = 0; i < count; ++i) {
      auto *const before = static_cast<Node*>(from[i]), *const after = static_cast<Node*>(to[i]);
      require(g.has(before) && g.has(after) && before != after);
      after->dependencies.push_back(before);
    }
  });
}
GPUSIM_CUDA_API int cudaGraphGetNodes(void* graph, void** nodes, size_t* count) {
  return call("cudaGraphGetNodes", [&] {
    require(count != nullptr);
    const std::lock_guard lock(runtime().mutex);
    const Graph& g = graph_of(graph);
    for (size_t i = 0; nodes != nullptr && i < *count; ++i)
      nodes[i] = i < g.nodes.size() ? g.nodes[i].get() : nullptr;
    *count = nodes != nullptr ? std::min(*count, g.nodes.size()) : g.nodes.size();
  });
}
GPUSIM_CUDA_API int cudaGraphGetRootNodes(void* graph, void** nodes, size_t* count) {
  return call("cudaGraphGetRootNodes", [&] {
    require(count != nullptr);
    const std::lock_guard lock(runtime().mutex);
    size_t roots = 0;
    for (const auto& node : graph_of(graph).nodes) {
      if (!node->dependencies.empty()) continue;
      if (nodes != nullptr && roots < *count) nodes[roots] = node.get();
      ++roots;
    }
    *count = nodes != nullptr ? std::min(*count, roots) : roots;
  });
}
GPUSIM_CUDA_API int cudaGraphNodeGetType(void* node, int* type) {
  return call("cudaGraphNodeGetType", [&] {
    require(type != nullptr);
    const std::lock_guard lock(runtime().mutex);
    for (const Graph* graph : runtime().graphs)
      if (graph->has(static_cast<Node*>(node))) {
        *type = static_cast<int>(static_cast<Node*>(node)->type);
        return;
      }
    refuse(kInvalidValue);
  });
}

GPUSIM_CUDA_API int cudaGraphInstantiate(void** executable, void* graph, unsigned long long flags) {
  return call("cudaGraphInstantiate", [&] {
    require(executable != nullptr);
    const std::lock_guard lock(runtime().mutex);
    auto made = std::make_unique<GraphCopy>();
    fill(*made, graph_of(graph));
    constexpr unsigned long long kFreeAtLaunch = 1;
    made->frees_first = (flags & kFreeAtLaunch) != 0;
    *executable = *runtime().graph_copies.insert(made.release()).first;
  });
}
GPUSIM_CUDA_API int cudaGraphInstantiateWithFlags(void** executable, void* graph,
                                                  unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}
GPUSIM_CUDA_API int cudaGraphExecDestroy(void* executable) {
  return call("cudaGraphExecDestroy", [&] {
    const std::lock_guard lock(runtime().mutex);
    GraphCopy* const found = &copy_of(executable);
    runtime().graph_copies.erase(found);
    delete found;  // launches have copies of its nodes
  });
}
GPUSIM_CUDA_API int cudaGraphUpload(void* executable, void*) {
  return call("cudaGraphUpload", [&] {
    const std::lock_guard lock(runtime().mutex);
    copy_of(executable);
  });
}
GPUSIM_CUDA_API int cudaGraphLaunch(void* executable, void* stream) {
  return call("cudaGraphLaunch", [&] {
    GraphCopy copy;
    {
      const std::lock_guard lock(runtime().mutex);
      copy = copy_of(executable);
    }
    prepare_memory(copy, stream);
    for (const Condition* c : copy.conditions)
      if (c->is_assigned)
        runtime().submit(stream, {.type = NodeType::kEmpty,
                                  .work = [c] { std::atomic_ref(*c->value).store(c->initial); }});
    std::vector<Node>& nodes = copy.nodes;
    for (Node& node : nodes) {
      node.dependencies.clear();
      runtime().submit(stream, std::move(node));
    }
  });
}
// The new graph must have the same nodes in the same order.
GPUSIM_CUDA_API int cudaGraphExecUpdate(void* executable, void* graph, void* result) {
  struct Result {
    int result;
    void *error_node, *error_from;
  };
  return call("cudaGraphExecUpdate", [&] {
    auto* const told = static_cast<Result*>(result);
    if (told != nullptr) *told = {};
    const std::lock_guard lock(runtime().mutex);
    GraphCopy& copy = copy_of(executable);
    GraphCopy fresh;
    fill(fresh, graph_of(graph));
    bool fits = fresh.nodes.size() == copy.nodes.size();
    for (size_t i = 0; fits && i < fresh.nodes.size(); ++i)
      fits = fresh.nodes[i].type == copy.nodes[i].type;
    if (!fits && told != nullptr) told->result = 2;  // cudaGraphExecUpdateErrorTopologyChanged
    require(fits, kGraphExecUpdateFailure);
    // Handles of the graph that it was made from stay valid.
    copy.nodes = std::move(fresh.nodes);
  });
}
GPUSIM_CUDA_API int cudaGraphKernelNodeSetParams(void* node, const KernelNodeParams* p) {
  return call("cudaGraphKernelNodeSetParams", [&] { change_original(node, kernel_node(p)); });
}
GPUSIM_CUDA_API int cudaGraphExecKernelNodeSetParams(void* executable, void* node,
                                                     const KernelNodeParams* p) {
  return call("cudaGraphExecKernelNodeSetParams",
              [&] { change_copy(executable, node, kernel_node(p)); });
}
GPUSIM_CUDA_API int cudaGraphExecMemcpyNodeSetParams1D(void* executable, void* node, void* to,
                                                       const void* from, size_t count,
                                                       CopyKind kind) {
  return call("cudaGraphExecMemcpyNodeSetParams1D",
              [&] { change_copy(executable, node, copy_node_1d(to, from, count, kind)); });
}
GPUSIM_CUDA_API int cudaGraphExecMemsetNodeSetParams(void* executable, void* node,
                                                     const MemsetNodeParams* p) {
  return call("cudaGraphExecMemsetNodeSetParams",
              [&] { change_copy(executable, node, memset_node(p)); });
}
GPUSIM_CUDA_API int cudaGraphExecHostNodeSetParams(void* executable, void* node,
                                                   const HostNodeParams* p) {
  return call("cudaGraphExecHostNodeSetParams",
              [&] { change_copy(executable, node, host_node(p)); });
}

GPUSIM_ALIAS(cudaGraphLaunch, _ptsz)
GPUSIM_ALIAS(cudaGraphUpload, _ptsz)
