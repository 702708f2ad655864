// Runtime API: nodes of graphs of any type, those that allocate, free and decide.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "host/cuda_api/copies.h"
#include "host/cuda_api/graph_nodes.h"
#include "host/cuda_api/launches.h"

using namespace gpusim::cuda_api;

namespace {

struct AllocationParams {
  std::byte properties[88];
  const void* accesses;
  size_t access_count, size_bytes;
  void* address;
};

struct ConditionalParams {
  uint64_t handle;
  ConditionKind kind;
  unsigned count;
  void** graphs;
};

// cudaGraphNodeParams
struct NodeParams {
  int type;
  int reserved[3];
  union {
    std::byte all[232];
    KernelNodeParams kernel;
    struct {
      int flags[4];
      Memcpy3DParms copy;
    } copy;
    MemsetNodeParams set;
    HostNodeParams host;
    struct {
      void* graph;
      int ownership;
    } child;
    AllocationParams allocation;
    struct {
      void* address;
    } free;
    ConditionalParams conditional;
  };
};
static_assert(sizeof(AllocationParams) == 120 && sizeof(NodeParams) == 248);

// What nodes of graphs have allocated, and the most that they had at once since it was trimmed.
// In the order of submissions.
struct Usage {
  std::mutex mutex;
  uint64_t used = 0, most_used = 0, reserved = 0, most_reserved = 0;
  void grow(uint64_t bytes) {
    const std::lock_guard lock(mutex);
    used += bytes;
    most_used = std::max(most_used, used);
    reserved = std::max(reserved, used);
    most_reserved = std::max(most_reserved, reserved);
  }
  void shrink(uint64_t bytes) {
    const std::lock_guard lock(mutex);
    used -= std::min(used, bytes);
  }
};
Usage& usage() {
  static Usage* const only = new Usage;
  return *only;
}

const Condition& condition_of(uint64_t handle) {
  for (const Graph* graph : runtime().graphs)
    for (const Condition* c : graph->conditions)
      if (reinterpret_cast<uint64_t>(c->value) == handle) return *c;
  refuse(kInvalidValue);
}

Node conditional_node(ConditionalParams& p) {
  using enum ConditionKind;
  require(p.kind == kIf || p.kind == kWhile || p.kind == kSwitch);
  require(p.count >= 1 && (p.kind == kSwitch || p.count <= (p.kind == kIf ? 2 : 1)));
  Node node{.type = NodeType::kConditional,
            .condition_kind = p.kind,
            .body_handles = std::make_shared<std::vector<void*>>()};
  const std::lock_guard lock(runtime().mutex);
  node.condition = &condition_of(p.handle);
  for (unsigned k = 0; k < p.count; ++k) {
    node.bodies.push_back(std::make_shared<Graph>());
    node.bodies.back()->is_body = true;
    node.body_handles->push_back(node.bodies.back().get());
    runtime().graphs.insert(node.bodies.back().get());
  }
  p.graphs = node.body_handles->data();
  return node;
}

Node node_of(NodeParams& p) {
  switch (static_cast<NodeType>(p.type)) {
    case NodeType::kKernel:
      return kernel_node(&p.kernel);
    case NodeType::kCopy:
      return copy_node(box_of(p.copy.copy), p.copy.copy.kind);
    case NodeType::kSet:
      return memset_node(&p.set);
    case NodeType::kHost:
      return host_node(&p.host);
    case NodeType::kGraph:
      return child_node(p.child.graph);
    case NodeType::kEmpty:
      return {.type = NodeType::kEmpty};
    case NodeType::kAlloc: {
      Node node = allocation_node(p.allocation.size_bytes);
      p.allocation.address = node.memory->address;
      return node;
    }
    case NodeType::kFree:
      return free_node(p.free.address);
    case NodeType::kConditional:
      return conditional_node(p.conditional);
    default:
      refuse(kNotSupported);
  }
}

// By their order: 0 used, 1 the most that was used, 2 and 3 reserved.
uint64_t* attribute_of(int attribute) {
  Usage& u = usage();
  switch (attribute) {
    case 0:
      return &u.used;
    case 1:
      return &u.most_used;
    case 2:
      return &u.reserved;
    case 3:
      return &u.most_reserved;
    default:
      refuse(kInvalidValue);
  }
}

}  // namespace

namespace gpusim::cuda_api {

Graph& graph_of(void* handle) {
  const auto at = runtime().graphs.find(static_cast<Graph*>(handle));
  require(at != runtime().graphs.end());
  return **at;
}

void fill(GraphCopy& copy, const Graph& graph) {
  copy.originals = graph.sorted();
  require(copy.originals.size() == graph.nodes.size());
  copy.nodes.clear();
  copy.conditions = graph.conditions;
  for (const Node* node : copy.originals) {
    Node& made = copy.nodes.emplace_back(*node);
    for (const auto& body : node->bodies) {
      auto body_copy = std::make_shared<GraphCopy>();
      fill(*body_copy, *body);
      copy.conditions.insert(copy.conditions.end(), body_copy->conditions.begin(),
                             body_copy->conditions.end());
      made.body_copies.push_back(std::move(body_copy));
    }
  }
}

void add_node(void** made, void* handle, void* const* dependencies, size_t count, Node node) {
  require(made != nullptr && (count == 0 || dependencies != nullptr));
  const std::lock_guard lock(runtime().mutex);
  Graph& graph = graph_of(handle);
  for (size_t i = 0; i < count; ++i) {
    auto* const before = static_cast<Node*>(dependencies[i]);
    require(graph.has(before));
    node.dependencies.push_back(before);
  }
  *made = graph.add(std::move(node));
}

Node kernel_node(const KernelNodeParams* p) {
  require(p != nullptr && p->extra == nullptr);
  return {.type = NodeType::kKernel,
          .call = make_call(p->function, p->grid, p->block, p->arguments, p->shared_bytes, {})};
}

Node host_node(const HostNodeParams* p) {
  require(p != nullptr && p->function != nullptr);
  return {.type = NodeType::kHost, .work = [call = *p] { call.function(call.argument); }};
}

Node memset_node(const MemsetNodeParams* p) {
  require(p != nullptr);
  return set_node(p->destination, p->pitch, p->value, p->element_bytes, p->width, p->height);
}

Node child_node(void* child) {
  auto copy = std::make_shared<GraphCopy>();
  const std::lock_guard lock(runtime().mutex);
  fill(*copy, graph_of(child));
  for (const Node& node : copy->nodes)
    require(node.condition == nullptr && node.memory == nullptr, kNotSupported);
  return {.type = NodeType::kGraph, .child = copy};
}

Node allocation_node(size_t size_bytes) {
  require(size_bytes != 0);
  Runtime& r = runtime();
  r.chip();  // which says how much there is
  auto memory = std::make_shared<GraphMemory>();
  memory->address = Allocations::reserve_for_graph(size_bytes);
  memory->size_bytes = size_bytes;
  require(memory->address != nullptr, kMemoryAllocation);
  {
    const std::lock_guard lock(r.graph_memories_mutex);
    r.graph_memories[memory->address] = memory;
  }
  const std::string origin = "allocated by the graph's node of " + numbered_call();
  return {.type = NodeType::kAlloc,
          .work =
              [&r, m = memory, origin] {
                require(r.memory.allocate_of_graph(m->address, m->size_bytes, origin),
                        kMemoryAllocation);
                r.engine_for_memory().add_memory(m->address, m->size_bytes, name_of(kDeviceMemory),
                                                 origin, true);
              },
          .memory = memory};
}

Node free_node(void* address) {
  Runtime& r = runtime();
  const std::shared_ptr<GraphMemory> memory = r.graph_memory(address);
  require(memory != nullptr && memory->address == address);
  const std::string by = "freed by the graph's node of " + numbered_call();
  return {.type = NodeType::kFree,
          .work =
              [&r, address, by] {
                r.engine_for_memory().remove_memory(address, by);
                r.memory.remove(address, by);
              },
          .memory = memory};
}

void prepare_memory(const GraphCopy& copy, void* stream) {
  Runtime& r = runtime();
  for (const Node& node : copy.nodes) {
    if (node.memory == nullptr) continue;
    GraphMemory& m = *node.memory;
    if (node.type == NodeType::kFree) {
      usage().shrink(m.size_bytes);
      m.is_allocated = false;
      continue;
    }
    if (m.is_allocated) {
      require(copy.frees_first);
      r.submit(stream, free_node(m.address));
      usage().shrink(m.size_bytes);
    }
    usage().grow(m.size_bytes);
    m.is_allocated = true;
  }
}

void Runtime::leave_graph(const void* address) {
  const std::shared_ptr<GraphMemory> m = graph_memory(address);
  if (m == nullptr || m->address != address) return;
  synchronize_device();  // its node may not have run
  if (!m->is_allocated) return;
  usage().shrink(m->size_bytes);
  m->is_allocated = false;
}

void forget_bodies(const Graph& graph) {
  for (const auto& node : graph.nodes)
    for (const auto& body : node->bodies) {
      forget_bodies(*body);
      runtime().graphs.erase(body.get());
    }
}

}  // namespace gpusim::cuda_api

GPUSIM_CUDA_API int cudaGraphAddNode(void** node, void* graph, void* const* dependencies,
                                     const void* edge_data, size_t count, NodeParams* params) {
  return call("cudaGraphAddNode", [&] {
    require(params != nullptr);
    require(edge_data == nullptr, kNotSupported);
    Node made = node_of(*params);
    const std::vector<std::shared_ptr<Graph>> bodies = made.bodies;
    try {
      add_node(node, graph, dependencies, count, std::move(made));
    } catch (const Refusal&) {
      const std::lock_guard lock(runtime().mutex);
      for (const auto& body : bodies) runtime().graphs.erase(body.get());
      throw;
    }
  });
}
GPUSIM_CUDA_API int cudaGraphAddMemAllocNode(void** node, void* graph, void* const* dependencies,
                                             size_t count, AllocationParams* params) {
  return call("cudaGraphAddMemAllocNode", [&] {
    require(params != nullptr);
    Node made = allocation_node(params->size_bytes);
    params->address = made.memory->address;
    add_node(node, graph, dependencies, count, std::move(made));
  });
}
GPUSIM_CUDA_API int cudaGraphAddMemFreeNode(void** node, void* graph, void* const* dependencies,
                                            size_t count, void* address) {
  return call("cudaGraphAddMemFreeNode",
              [&] { add_node(node, graph, dependencies, count, free_node(address)); });
}
GPUSIM_CUDA_API int cudaGraphConditionalHandleCreate(uint64_t* handle, void* graph,
                                                     unsigned initial, unsigned flags) {
  return call("cudaGraphConditionalHandleCreate", [&] {
    constexpr unsigned kAssigned = 1;
    require(handle != nullptr && flags <= kAssigned);
    Runtime& r = runtime();
    // Kernels have rights by pages.
    constexpr size_t kPage = 4096;
    void* const page = ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(page != MAP_FAILED, kMemoryAllocation);
    r.engine_for_memory().add_memory(page, sizeof(uint32_t), "a graph's condition", "", false);
    const std::lock_guard lock(r.mutex);
    // Executable graphs may outlive theirs: conditions stay.
    graph_of(graph).conditions.push_back(new Condition{
        .value = static_cast<uint32_t*>(page), .initial = initial, .is_assigned = flags != 0});
    *handle = reinterpret_cast<uint64_t>(page);
  });
}
GPUSIM_CUDA_API int cudaDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return call("cudaDeviceGetGraphMemAttribute", [&] {
    require(device == 0, kInvalidDevice);
    require(value != nullptr);
    const std::lock_guard lock(usage().mutex);
    *static_cast<uint64_t*>(value) = *attribute_of(attribute);
  });
}
// Only the highest values can be set, to what they are now.
GPUSIM_CUDA_API int cudaDeviceSetGraphMemAttribute(int device, int attribute, void* value) {
  return call("cudaDeviceSetGraphMemAttribute", [&] {
    require(device == 0, kInvalidDevice);
    require(value != nullptr && (attribute == 1 || attribute == 3) &&
            *static_cast<uint64_t*>(value) == 0);
    const std::lock_guard lock(usage().mutex);
    *attribute_of(attribute) = *attribute_of(attribute - 1);
  });
}
GPUSIM_CUDA_API int cudaDeviceGraphMemTrim(int device) {
  return call("cudaDeviceGraphMemTrim", [&] {
    require(device == 0, kInvalidDevice);
    const std::lock_guard lock(usage().mutex);
    usage().reserved = usage().used;
  });
}
