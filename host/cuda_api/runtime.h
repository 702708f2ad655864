// The state behind the runtime's and the driver's functions: one device, its modules, streams,
// memory and errors. Functions of the API (api_*.cpp) are thin; they run inside `call`.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/cuda_api/allocations.h"
#include "host/cuda_api/check_report.h"
#include "host/cuda_api/chips.h"
#include "host/cuda_api/cuda_types.h"
#include "host/cuda_api/graph.h"
#include "host/cuda_api/kernel_engine.h"
#include "host/cuda_api/queue.h"
#include "host/cuda_api/settings.h"
#include "host/cuda_api/statistics.h"
#include "host/cuda_api/timeline.h"

#define GPUSIM_CUDA_API extern "C" __attribute__((visibility("default")))

namespace gpusim::cuda_api {

// What a function returns instead of its result.
struct Refusal {
  Status status;
};

struct LoadedImage;

// A kernel as programs name it: by the address of its host stub, or by its handle.
struct Function {
  LoadedImage* image = nullptr;
  std::string name;
  std::unique_ptr<KernelFacts> facts;  // null until it is first wanted
  std::atomic<bool> is_ready{false};   // facts are there
  uint32_t most_dynamic_shared_bytes = kSharedPerBlock;
  int carveout = -1;
  // Clusters: whether they may have more blocks than all chips allow, what they are to be (0: not
  // said), how they are spread (nobody heeds it).
  bool allows_large_clusters = false;
  std::array<int, 3> cluster{};
  int cluster_policy = 0;
};

inline constexpr uint64_t kPortableClusterBlocks = 8, kMostClusterBlocks = 16;
uint64_t largest_cluster_of(const Function& function);

struct DeviceVariable {
  std::string name;
  size_t size_bytes = 0;
  void** managed_pointer = nullptr;  // the host's pointer to a __managed__ variable
  void* address = nullptr;           // null until its module is loaded
};

// A fat binary of the program, or a module of the driver API. Loaded when first wanted.
struct LoadedImage {
  std::vector<std::span<const std::byte>> containers;  // in the program, until it is unloaded
  std::vector<NamedText> units;                        // texts, where they are there already
  uint32_t architecture = 0;
  std::string failure;  // why its PTX cannot be had
  Status failure_status = kNoKernelImageForDevice;
  KernelEngine::Module module = nullptr;
  std::map<std::string, Function*> by_name;
  std::map<const void*, DeviceVariable> variables;  // by the host's address of it
  std::vector<std::unique_ptr<Function>> functions;
};

struct Stream {
  uint64_t id = 0;    // 0: the default stream; 1, 2, ... in the order of their making
  uint64_t last = 0;  // number of its last work in the queue
  unsigned flags = 0;
  int priority = 0;
  std::unique_ptr<Capture> capture;
};

struct Event {
  uint64_t id = 0;  // 1, 2, ...
  unsigned flags = 0;
  bool was_recorded = false;
  uint64_t number = 0;
  std::shared_ptr<std::atomic<int64_t>> time_ns = std::make_shared<std::atomic<int64_t>>(0);
  std::vector<Node*> captured;  // what a stream had captured when the event was recorded
  Graph* captured_in = nullptr;
};

class Runtime {
 public:
  Runtime();

  const Chip& chip();
  // For add_memory and remove_memory only, which need no lock of ours.
  KernelEngine& engine_for_memory();

  // Registration.
  LoadedImage* add_image(const void* wrapper);
  // Of the driver API: PTX text, container or wrapper. Loaded at once.
  LoadedImage* add_module(const void* image);
  LoadedImage* add_units(std::vector<NamedText> units);  // linked
  bool has_kernel(LoadedImage& image, const std::string& name);
  std::vector<std::string> kernel_names(LoadedImage& image);
  std::optional<Variable> find_global(LoadedImage& image, const std::string& name);
  void remove_image(LoadedImage* image);
  Function* add_function(LoadedImage& image, const void* host, std::string name);
  // By stub or handle. Throws Refusal.
  Function& function(const void* handle);
  const KernelFacts& facts_of(Function& function);
  DeviceVariable& variable(const void* host);
  void load(LoadedImage& image);
  void load_managed(LoadedImage& image);

  // Streams. Null and the two special handles are the default stream. Throws Refusal.
  Stream& stream(void* handle);
  Event& event(void* handle);
  // Puts work into a stream, or into the graph that it captures.
  void submit(void* stream, Node node);
  void wait_for(uint64_t number);
  // A capture of the stream is spoiled, and the caller told so. Call with the mutex held.
  void require_no_capture(const Stream& s);
  void synchronize(void* stream);
  void synchronize_device();

  void check_launch(const KernelCall& call);
  // Throws Refusal unless those bytes are in memory that the device may use.
  void check_device(const void* address, size_t size_bytes) const;
  // Memory that nodes of graphs allocate, whether it is there now or not.
  std::shared_ptr<GraphMemory> graph_memory(const void* address) const;
  // Whether those bytes are in memory that the device may use, or in what nodes allocate.
  bool has_memory(const void* address, size_t size_bytes) const;
  // The program frees what a node allocated: waits for that. Nothing for other memory.
  void leave_graph(const void* address);
  // For work of the queue: no kernel runs meanwhile.
  void with_engine(const std::function<void(KernelEngine&)>& work);

  // At the end of the program: does what is left and writes the statistics.
  void finish();
  bool is_forked() const;  // a child of the process that used the device
  void reset();            // cudaDeviceReset
  void leave_device();     // before the driver of its device ends

  std::mutex mutex;  // of the tables below
  std::set<LoadedImage*> images;
  std::unordered_map<const void*, Function*> by_stub;
  std::set<Stream*> streams;
  uint64_t streams_made = 0, events_made = 0;
  std::set<Event*> events;
  std::set<Graph*> graphs;
  std::set<GraphCopy*> graph_copies;
  mutable std::mutex graph_memories_mutex;
  std::map<const void*, std::shared_ptr<GraphMemory>> graph_memories;  // by their addresses
  Stream default_stream;

  Allocations memory;
  Queue queue;
  Settings settings;
  Statistics statistics;
  ptx::Checks checks;
  CheckReport report;
  Timeline timeline;
  // The error that ended the device's work; every later call returns it.
  std::atomic<int> sticky{0};
  std::map<int, size_t> limits;  // by the numbers of cudaLimit

  void run(const Node& node, const Origin& origin);

 private:
  KernelEngine& engine();  // made when first wanted; under engine_mutex_
  // Throws Refusal if it is there no more.
  void check_loaded(const Function& function);
  void run_kernel(const KernelCall& call, uint64_t work);
  void run_conditional(const Node& node, const Origin& origin);
  void put_variables(LoadedImage& image);
  void note_leaks();
  int process_;
  std::mutex engine_mutex_;  // of launches and loading
  std::once_flag engine_once_;
  std::unique_ptr<KernelEngine> engine_;
  std::optional<Chip> chip_;
};

Runtime& runtime();

// One line to the user on standard error: "gpusim cuda: ...".
void say(const std::string& text);

// The function of the API that the thread called last, by the name that programs know.
const char*& called_function();
// "cudaMalloc number 3": counts the calls.
std::string numbered_call();

// The thread's last error, as cudaGetLastError and cudaPeekAtLastError tell it.
int& last_error();
int keep_error(int status);
// What an exception means: prints what the user must know. Inside a handler only.
int status_of_exception(const char* function) noexcept;

// The body of a function of the API: Refusals and exceptions become results, and a sticky error
// comes first.
template <typename F>
int call(const char* function, F&& body) noexcept {
  RecordedCall recorded(function);
  try {
    called_function() = function;
    if (const int sticky = runtime().sticky.load()) return recorded.end(keep_error(sticky));
    body();
    if (const int sticky = runtime().sticky.load()) return recorded.end(keep_error(sticky));
    return recorded.end(kSuccess);
  } catch (...) {
    return recorded.end(keep_error(status_of_exception(function)));
  }
}

[[noreturn]] inline void refuse(Status status) { throw Refusal{status}; }
inline void require(bool is_fine, Status status = kInvalidValue) {
  if (!is_fine) refuse(status);
}

}  // namespace gpusim::cuda_api
