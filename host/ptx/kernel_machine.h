// A kernel and the machines that run it. A machine has places for some clusters of CTAs, most often
// of one; a grid's clusters take them in linear order.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/core/async_slices.h"
#include "device_sim/core/backend.h"
#include "device_sim/core/linear_space.h"
#include "host/ptx/engine.h"
#include "host/ptx/heap.h"
#include "host/ptx/matrix.h"
#include "host/ptx/memory.h"
#include "translator/ptx/memory_map.h"

namespace gpusim::ptx {

class DeviceLaunches;
class Findings;
class LoadedModule;
class MachineCheck;  // check.h

/// What the threads of a grid printed, in the order of CTAs.
struct Printed {
  uint64_t cta;
  std::string text;
};

/// A grid while it runs, for all machines that work on it.
struct Grid {
  const Launch& launch;
  uint64_t param_address;
  Dim3 cluster;                    // CTAs of each
  bool has_clusters = false;       // somebody said how many
  DeviceHeap* heap = nullptr;      // where the kernel calls malloc or free
  uint64_t clock = 0;              // of the device, at the beginning
  uint64_t workspace_address = 0;  // of a cooperative grid: its barrier
  Findings* findings = nullptr;
  DeviceLaunches* device = nullptr;            // where the kernel launches others
  uint32_t device_depth = 0;                   // DeviceCaller's
  std::span<const Function* const> kernels{};  // of its program
  std::atomic<uint64_t> next_cluster{0};
  std::atomic<bool> stops{false};
  std::mutex mutex;  // of what follows
  std::optional<Fault> fault;
  uint64_t fault_cta = 0;
  std::vector<Printed> printed;
  uint64_t latest_clock = 0;  // that a thread had at its end
};

// Of a thread, behind the local memory that its kernel always has: of what alloca gives, then of
// functions that stand apart.
struct StackBytes {
  uint64_t allocas = 0, frames = 0;
};

/// Of a machine on a device; no space: it is the host's.
struct DevicePlace {
  LinearSpace* space = nullptr;
  std::optional<uint32_t> number{};  // none: the first that can be used
};

class KernelMachine {
 public:
  KernelMachine(const KernelCode& code, const std::string& origin,
                const std::map<uint32_t, std::string>& files, ProcessMemory& memory,
                const EngineOptions& options, const DevicePlace& device, const Dim3& block,
                const Dim3& cluster, uint32_t shared_bytes, uint64_t ctas, bool all_resident,
                const StackBytes& stack, WarpCaches* caches);
  ~KernelMachine();

  /// Whether it can run such a launch, of so many CTAs on this machine.
  bool fits(const Dim3& block, const Dim3& cluster, uint32_t shared_bytes, uint64_t ctas,
            bool all_resident, const StackBytes& stack) const {
    return stack.frames <= stack_.frames && stack.allocas == stack_.allocas && block == block_ &&
           cluster == cluster_ && shared_bytes == shared_bytes_ &&
           places_for(block, cluster, ctas, all_resident) <= places_;
  }
  /// Takes up to so many of the grid's clusters.
  void begin(Grid& grid, uint64_t most_clusters);
  bool is_busy(const Grid& grid) const {
    return active_ != 0 && !grid.stops.load(std::memory_order_relaxed);
  }
  /// Of a machine that is busy: what runs on a device may do so until end_slice(), which takes the
  /// grid's next clusters.
  void begin_slice();
  void end_slice(Grid& grid);
  void end(Grid& grid);
  /// Of the last grid, whose blocks were executed so often.
  KernelProfile profile(std::span<const uint64_t> counts) const {
    return profile_->result(counts, origin_, files_);
  }
  std::vector<uint64_t> block_counts() {
    enter();
    return backend_->block_counts();
  }

 private:
  // Makes the machine's device the current one.
  void enter() const {
    if (space_) space_->enter();
  }
  uint32_t places_for(const Dim3& block, const Dim3& cluster, uint64_t ctas,
                      bool all_resident) const;
  void set_constant_slots();
  uint64_t stack_bottom() const { return kLocalWindowBase + code_.local_bytes; }
  void set_launch_slots(const Grid& grid);
  void set_all(Special what, uint64_t value);
  void set_of_cta(uint32_t place, Special what, uint64_t value);
  bool start_next(Grid& grid, uint32_t first_place);
  void start_cta(Grid& grid, uint32_t place, const Dim3& cluster_at);
  std::string describe(uint64_t address) const;
  void note_clock(Grid& grid, uint32_t place);
  void serve(Grid& grid, const Event& event);
  void report(Grid& grid, const Event& event, Fault::Reason reason, std::string why);
  void print(Grid& grid, const Event& event);
  void multiply_matrices(const Event& event);
  void multiply_of_group(Grid& grid, const Event& event);
  void call_device(Grid& grid, const Event& event);
  void copy_tensor(Grid& grid, const Event& event);
  void report_lone_products(Grid& grid);
  std::string assertion(const Event& event);
  uint64_t argument(const Event& event, int number);
  void set_result(const Event& event, uint64_t value);
  std::string read_string(uint32_t core, uint64_t address);
  bool may_read(uint32_t core, uint64_t address);
  bool read(uint32_t core, uint64_t address, std::span<uint8_t> out) {
    return backend_->read_memory(core, address, out);
  }

  const KernelCode& code_;
  const std::string& origin_;
  const std::map<uint32_t, std::string>& files_;
  ProcessMemory& memory_;
  const TensorCores tensor_cores_;
  LinearSpace* const space_;
  std::unique_ptr<Backend> backend_;
  AsyncSlices* const slices_;  // null: they run in end_slice()
  // Of a kernel with notes.
  std::unique_ptr<MachineCheck> check_;
  std::unique_ptr<MachineProfile> profile_;
  Dim3 block_, cluster_;
  uint32_t cluster_ctas_;
  uint32_t shared_bytes_;
  StackBytes stack_;
  uint32_t resident_threads_;
  uint32_t places_ = 1, shift_ = 5, entry_ = 0;
  uint64_t removals_ = 0;
  std::vector<uint64_t> cta_at_;   // per place: the linear number of its CTA
  std::vector<uint32_t> running_;  // per cluster of places: CTAs that have not ended
  bool needs_reset_ = false;
  uint32_t active_ = 0;  // clusters that run
  uint64_t slice_ = 0;   // instructions
  // Per warp: lanes that wait for the others of theirs, or of their warpgroup.
  std::vector<uint32_t> at_product_, at_group_product_;
};

class Kernel {
 public:
  // Of a block of the code: how often it has one of `opcodes`.
  struct InBlock {
    uint32_t opcode, count;
  };
  /// Once `code` is there.
  void count_opcodes();

  KernelInfo info;
  KernelCode code;
  std::vector<std::string_view> opcodes;  // sorted
  std::vector<std::vector<InBlock>> in_block;
  LoadedModule* module = nullptr;
  std::string origin;
  std::map<uint32_t, std::string> files;
  // One per host thread, of the last launch's shape.
  mutable std::vector<std::unique_ptr<KernelMachine>> machines;
};

}  // namespace gpusim::ptx
