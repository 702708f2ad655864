// Nodes of graphs, for the functions that make graphs and those that capture.
#pragma once
#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {

// Throw Refusal; call them with the runtime's mutex held.
Graph& graph_of(void* handle);
void fill(GraphCopy& copy, const Graph& graph);

void add_node(void** made, void* handle, void* const* dependencies, size_t count, Node node);
Node kernel_node(const KernelNodeParams* p);
Node host_node(const HostNodeParams* p);
Node memset_node(const MemsetNodeParams* p);
Node child_node(void* child);
// Its addresses are the node's from now on; memory is there between this node and one that frees.
Node allocation_node(size_t size_bytes);
Node free_node(void* address);

// Before a launch of that copy: what its nodes allocate must not be allocated already. Throws
// Refusal. Frees it first where the copy was made so.
void prepare_memory(const GraphCopy& copy, void* stream);
// Graphs within conditional nodes go with theirs.
void forget_bodies(const Graph& graph);

}  // namespace gpusim::cuda_api
