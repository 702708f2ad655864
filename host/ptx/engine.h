// CUDA kernels as PTX text, on simulated threads: modules, launches of whole grids, memory.
//
// Global memory is this process's own: a device pointer is a host pointer. Kernels may access what
// was registered with add_memory() and the variables of loaded modules, by whole pages.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/ptx/profile.h"
#include "translator/ptx/kernel.h"
#include "translator/ptx/unit.h"

namespace gpusim::ptx {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

struct KernelInfo {
  std::string name;  // mangled, as in the text
  std::vector<ParamInfo> params;
  uint32_t param_bytes = 0, static_shared_bytes = 0, local_bytes = 0, const_bytes = 0,
           registers = 0;
  uint32_t max_threads = 1024;  // .maxntid or 1024
  std::optional<Dim3> cluster;  // .reqnctapercluster
  bool needs_cluster = false;   // .explicitcluster without it: a launch has to say the dimensions
};

class Kernel;  // kernel_machine.h
const KernelInfo& info(const Kernel& kernel);

struct OpcodeCount {
  std::string_view opcode;  // as spelled: "fma.rn.f32"; equal ones are one text, of the process
  uint64_t count = 0;       // executions by threads, whatever their guards say
  bool operator==(const OpcodeCount&) const = default;
};

struct Fault {
  enum class Reason : uint8_t { kAddress, kMisaligned, kAssert, kTrap, kDeadlock, kStack, kOther };
  Reason reason = Reason::kOther;
  std::string kernel;
  Dim3 block, thread;
  uint32_t line = 0;  // of the PTX text
  uint64_t address = 0;
  std::string text;  // all of it, ready to print
};

/// What `--check` looks for.
struct Checks {
  bool memory = false, races = false, barriers = false, uninitialised = false;
  bool any() const { return memory || races || barriers || uninitialised; }
};
/// "memory,races"; "all". Throws Error that names the option.
Checks parse_checks(const std::string& option, const std::string& text);

enum class FindingKind : uint8_t {
  kOutOfBounds,
  kUseAfterFree,
  kMisaligned,
  kUninitialised,
  kRace,
  kBarrier,
  kDeadlock,
};
/// "out of bounds", "use after free" ...
const char* kind_text(FindingKind kind);

/// Of one place of the program, or two: the first time, and how often in the launch.
struct Finding {
  FindingKind kind = FindingKind::kOutOfBounds;
  std::string kernel;
  Dim3 block, thread;
  uint32_t line = 0;  // of the PTX text
  uint64_t address = 0, count = 0;
  std::string source;  // "file:line", if the text says it
  std::string text;    // all of it, ready to print
  // Of the kernel: findings of one kind and kernel with the same places are one mistake.
  std::pair<uint64_t, uint64_t> places{};
};
nlohmann::ordered_json finding_json(const Finding& finding);
/// Whether the finding tells which mistake it was that ended its kernel.
bool explains(const Finding& finding, const Fault& fault);
/// After a finding that explains the fault: what ended the kernel, without why.
std::string brief_text(const Fault& fault);

struct Launch {
  const Kernel* kernel = nullptr;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> params;
  bool cooperative = false;
  std::optional<Dim3> cluster{};  // blocks of a cluster; else what the kernel says, or one
  uint64_t stack_bytes = 1024;    // of each thread; frames have 16 times as much: see docs/ptx.md
  uint64_t heap_bytes = 8 << 20;  // for malloc of kernels: the first launch that needs it counts
};

struct LaunchResult;
/// A kernel that kernels launched.
struct DeviceLaunch {
  std::string kernel;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  double seconds = 0;
  std::shared_ptr<LaunchResult> result;  // launches that counted the same share it
};

struct LaunchResult {
  uint64_t threads = 0, thread_instructions = 0;
  std::vector<OpcodeCount> opcodes;  // sorted by name
  ClassCounts classes{};             // instructions per class (uir/insn_class.h)
  std::optional<Fault> fault;
  // That it was dealt over; 0: there are not several.
  uint32_t devices = 0;
  // Of a launch that had several to choose from: why one has it all. Null: it does not.
  const char* why_one_device = nullptr;
  std::vector<Finding> findings;         // with EngineOptions::checks
  std::optional<KernelProfile> profile;  // with EngineOptions::has_profile
  /// What it launched, and what that launched, in the order in which they ran. A fault of theirs
  /// is the launch's, too, and ends all.
  std::vector<DeviceLaunch> device_launches;
};

struct EngineOptions {
  std::string backend = "auto";  // simd, scalar or cuda; auto is no GPU
  uint32_t threads = 0;          // host threads; 0: all. One where something is checked
  // Of a backend that has some; none: the first that can be used. Launches are dealt over several.
  std::vector<uint32_t> devices{};
  Checks checks{};
  bool has_profile = false;                      // not with checks; one host thread
  std::optional<host::HierarchyShape> caches{};  // simulated for the profile
  uint32_t compute_capability = 80;              // whose tensor cores; 90: 9.0
};

struct NamedText {
  std::string name, text;
};

struct DeviceVariable {
  void* address = nullptr;
  uint64_t size_bytes = 0;
};

class LoadedModule;

class Engine {
 public:
  /// Throws Error if the backend cannot run kernels, or addresses cannot be reserved.
  explicit Engine(EngineOptions options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Throws Error: what is wrong, where, and what to do. A kernel that needs what is not supported
  /// does not keep the others from being loaded: it throws when it is looked up.
  LoadedModule& load(std::string_view ptx, std::string_view origin);
  /// Of a text that was parsed; its origin names the module.
  LoadedModule& load(Unit unit);
  LoadedModule& link(std::vector<NamedText> units);
  void unload(LoadedModule& module);

  std::vector<std::string> kernel_names(const LoadedModule& module) const;
  /// Null if there is none of that name. Throws Error if it cannot be translated.
  const Kernel* find_kernel(LoadedModule& module, std::string_view name);
  /// Of a .global or .const variable; address null if there is none of that name.
  DeviceVariable find_variable(LoadedModule& module, std::string_view name);

  /// Runs a whole grid and returns when it has ended. A fault ends the grid. Throws Error for a
  /// launch that cannot be made. Launches from several threads take turns.
  LaunchResult launch(const Launch& launch);

  /// The backend's name.
  const std::string& backend() const;
  /// Of a backend on a device: lets go of it, before its driver ends. All else stays; launches are
  /// refused.
  void leave_device();

  /// Memory that kernels may read and write. Ranges must not overlap. `name` and `origin` are for
  /// reports: "device memory", "allocated by cudaMalloc number 3". `is_blank`: a kernel that reads
  /// there before somebody wrote makes a mistake.
  void add_memory(const void* address, uint64_t size_bytes, std::string name = {},
                  std::string origin = {}, bool is_blank = false);
  /// `by`, for reports: "freed by cudaFree number 2".
  void remove_memory(const void* address, const std::string& by = {});
  /// The host wrote there.
  void mark_written(const void* address, uint64_t size_bytes);
  /// The host copied `from` there: what nothing wrote is still unwritten.
  void copy_written(const void* to, const void* from, uint64_t size_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpusim::ptx
