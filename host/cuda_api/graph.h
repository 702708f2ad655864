// Work of streams as data: what a stream runs, and what graphs replay.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "host/cuda_api/cuda_types.h"

namespace gpusim::cuda_api {

struct Function;

// What the attributes of a launch say.
struct LaunchModes {
  bool is_cooperative = false;
  std::optional<Dim3> cluster;  // blocks of each
};

struct KernelCall {
  Function* function = nullptr;
  Dim3 grid, block;
  uint32_t shared_bytes = 0;
  LaunchModes modes;
  size_t stack_bytes = 1024, heap_bytes = 8 << 20;
  std::vector<std::byte> arguments;
};

// The numbers of enum cudaGraphNodeType.
enum class NodeType {
  kKernel = 0,
  kCopy = 1,
  kSet = 2,
  kHost = 3,
  kGraph = 4,
  kEmpty = 5,
  kWaitEvent = 6,
  kRecordEvent = 7,
  kAlloc = 10,
  kFree = 11,
  kConditional = 13
};

struct Graph;
struct GraphCopy;

// What a conditional node looks at: a word that kernels write (cudaGraphSetConditional). The handle
// is its address.
struct Condition {
  uint32_t* value = nullptr;
  uint32_t initial = 0;
  bool is_assigned = false;  // its initial value, at each launch
};
enum class ConditionKind : int { kIf = 0, kWhile = 1, kSwitch = 2 };

// Addresses that a graph's node allocates and another, or the program, frees.
struct GraphMemory {
  char* address = nullptr;
  size_t size_bytes = 0;
  bool is_allocated = false;  // when all is done that was submitted
};

struct Node {
  NodeType type = NodeType::kEmpty;
  std::function<void()> work;      // of all types but kernels
  std::optional<KernelCall> call;  // of kernels
  std::shared_ptr<const GraphCopy> child;
  size_t size_bytes = 0;                // of copies and sets
  const char* direction = "";           // of copies: "HtoD"
  uint64_t event = 0;                   // that is recorded
  std::shared_ptr<GraphMemory> memory;  // of kAlloc and kFree
  // Of kConditional: the graphs, to which the program adds nodes, and what they became.
  const Condition* condition = nullptr;
  ConditionKind condition_kind = ConditionKind::kIf;
  std::vector<std::shared_ptr<Graph>> bodies;
  std::shared_ptr<std::vector<void*>> body_handles;
  std::vector<std::shared_ptr<const GraphCopy>> body_copies;
  std::vector<Node*> dependencies;  // nodes of the same graph that come before
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<const Condition*> conditions;
  bool is_body = false;         // of a conditional node, which owns it
  bool is_invalidated = false;  // somebody asked a stream that captures into it to do or say more
  Node* add(Node node) { return nodes.emplace_back(std::make_unique<Node>(std::move(node))).get(); }
  bool has(const Node* node) const;
  // Each after what it depends on, else in the order in which they were added. Empty for a cycle.
  std::vector<const Node*> sorted() const;
  void clone_into(Graph& other) const;
};

// An instantiated graph (cudaGraphExec_t): its nodes are copies that can be changed by the
// original's handles.
struct GraphCopy {
  std::vector<Node> nodes;
  std::vector<const Node*> originals;
  std::vector<const Condition*> conditions;  // those of bodies, too
  bool frees_first = false;                  // what its last launch left allocated
};

// What a stream captures into, and the nodes that its next one depends on.
struct Capture {
  Graph* graph = nullptr;
  std::vector<Node*> last;
  bool is_origin = false;
  bool is_into_given = false;  // the program's own graph
};

}  // namespace gpusim::cuda_api
