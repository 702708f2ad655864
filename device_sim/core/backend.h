// The interface between run control (host/) and the machines that execute micro-ops.
//
// A run alternates: Backend::run_slice executes every runnable core for up to a slice; the host
// then handles the events in core order and resumes or ends those cores. Only events cross.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/uir/module.h"

namespace gpusim {

enum class MemoryModel : uint8_t { kShared, kPrivate };

// Slices may overrun by so many micro-ops.
inline constexpr uint32_t kJournalMargin = 1024;

struct MachineConfig {
  uint32_t cores = 1;
  MemoryModel memory_model = MemoryModel::kShared;
  uint64_t linear_base = 0, linear_size = 0;  // multiples of the page size; see core/memory_view.h
  // Memory and SegmentFlags per page of the linear zone, if they are not the backend's own: the caller
  // has them at hand, may change them between slices, and calls reset() after it took away rights.
  uint8_t* linear_storage = nullptr;
  uint8_t* linear_rights = nullptr;
  uint64_t window_base = 0;
  uint32_t window_shift = 16;       // log2 of the bytes of one core's window, >= 12
  // Private model: where the last stack_size bytes of every window lie as addresses; 0: with the
  // rest. Multiples of the page size.
  uint64_t stack_base = 0, stack_size = 0;
  // Modules with warps: threads per CTA, 1 to kMostCtaThreads; `cores` is a number of places for
  // CTAs << cta_shift_of(cta_threads) (core/cta.h). Each place has cta_bytes of memory, a multiple
  // of 8, which its threads see at cta_base, and which always may be read and written.
  uint32_t cta_threads = 0;
  uint64_t cta_base = 0, cta_bytes = 0;
  // CTAs per cluster: so many neighbouring places, beginning at a multiple. One host thread runs
  // them all. Each sees the memory of number r of its cluster at cluster_base +
  // (r << cluster_shift), too; 0: not.
  uint32_t cluster_ctas = 1;
  uint64_t cluster_base = 0;
  uint32_t cluster_shift = 0;
  uint32_t threads = 1;             // host threads
  uint32_t group_width = 64;        // lanes per group: a power of two, at most 64 (simd)
  // Executions of a block by one group after which native code is generated for it (simd).
  uint32_t native_after = 64;
  static constexpr uint32_t kNeverNative = ~uint32_t{0};
  bool regroup = true;  // cores may move to other groups (simd)
  uint64_t seed = 0;  // of an interleaving that differs on purpose; 0: the usual one
  bool per_core_tallies = true;     // false: tally() may be empty (cuda keeps them only on request)
  bool count_lanes = false;         // for block_lanes() and group_use()
  // One core begins, and starts the others.
  bool starts_alone = false;
  bool keeps_groups = false;        // cores stay in groups even where they are faster alone (simd)
  uint64_t max_instructions = 0;    // per core; 0: none. Checked at ends of blocks; events go first.
  // Words of each core's journal (uir/journal.h); 0: none, the program must have no notes then. Slices
  // must be so short that they do not fill it: kJournalMargin words beyond what their instructions note.
  uint32_t journal_words = 0;
  // Journals tell what cores had executed (uir/journal.h, ClockWord), and how long that took: so
  // long each instruction of a class. They do not care which host thread runs which core when.
  bool notes_clocks = false;
  std::array<uint64_t, kInsnClassCount> class_ticks = {};
};

enum class CoreStatus : uint8_t {
  kIdle,     // not started, or ended by the host
  kRunnable,
  kService,  // waits for the host: a system call and the like
  kJump,     // jumped to `address`, where no block starts: translate or fault
  kFault,
  kLimit,    // reached max_instructions
  kCtaEnd,   // all threads of a CTA have ended; `core` is its first
};

// A core that stopped during a slice, or neighbours that stopped alike: from `core` on, `count` of them.
// They stay as they are until the host starts them.
struct Event {
  uint32_t core = 0;
  CoreStatus status = CoreStatus::kIdle;
  Service service = Service::kSyscall;  // kService
  Slot slot = 0;                        // kService: destination of a counter read
  Fault fault = Fault::kNone;           // kFault
  uint32_t uop = 0;      // kFault: the micro-op that faulted; kService, kJump, kLimit: where to go on
  uint32_t count = 1;    // more only of kJump, where thousands of cores return from a kernel at once
  uint64_t address = 0;  // kFault: the data address; kJump: the guest address
};

// Calls f with the event of each core.
template <class F>
void for_each_core(std::span<const Event> events, F f) {
  for (Event e : events)
    for (uint32_t left = std::exchange(e.count, 1); left != 0; --left, ++e.core) f(std::as_const(e));
}

struct CoreTally {
  ClassCounts classes{};  // guest instructions of completed blocks, per class

  CoreTally& operator+=(const CoreTally& other) {
    for (size_t c = 0; c < classes.size(); ++c) classes[c] += other.classes[c];
    return *this;
  }
};

// What the lanes of a group of cores did: each instruction of a step counts once per lane.
struct GroupUse {
  uint64_t offered = 0;   // by steps of the group, to all of its cores
  uint64_t active = 0;    // executed
  uint64_t diverged = 0;  // the core could run, but other lanes, elsewhere in the program, did
  uint64_t asleep = 0;    // the core slept until an event. What is left: it had ended, or the host had it
  uint64_t alone = 0;     // of `active`: by cores that ran alone, as their group would have been slow
};

// A word that grows from core to core: core c's is value + c * step.
struct CoreWord {
  uint64_t value = 0, step = 0;
  uint64_t of(uint32_t core) const { return value + core * step; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual std::string device() const = 0;  // "AMD EPYC, AVX3, 64 lanes"; "NVIDIA H200"

  // Allocates memory and contexts for all cores; slots hold the module's initial values, memory is
  // zero and without permissions, no core is runnable. `module` must outlive the backend.
  // Throws std::runtime_error with a message for the user when the machine cannot hold it.
  virtual void configure(const Module& module, const MachineConfig& config) = 0;
  // For another run of the same code on the same memory: all cores idle, registers and tallies of
  // cores as after configure(). block_counts() go on.
  virtual void reset(uint64_t max_instructions) = 0;
  // Blocks were added to the module, or retired from its code map.
  virtual void module_changed() = 0;

  // Memory as `core` sees it. False: part of the range is outside the zones; nothing was done.
  // Permissions are not checked.
  virtual bool read_memory(uint32_t core, uint64_t address, std::span<uint8_t> out) = 0;
  virtual bool write_memory(uint32_t core, uint64_t address, std::span<const uint8_t> in) = 0;
  // Private model: the same bytes for every core.
  virtual bool write_memory_all(uint64_t address, std::span<const uint8_t> in) = 0;
  // Shared model: words from the same offset of every core's window on. `address`: in core 0's, a
  // multiple of 8.
  virtual bool write_windows(uint64_t address, std::span<const CoreWord> words) = 0;
  virtual bool fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes) = 0;
  // SegmentFlags for the pages that the range touches.
  virtual bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes,
                               uint8_t flags) = 0;
  virtual bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) = 0;
  virtual uint8_t permissions(uint32_t core, uint64_t address) = 0;  // 0 outside the zones

  virtual uint64_t slot(uint32_t core, Slot slot) = 0;
  virtual void set_slot(uint32_t core, Slot slot, uint64_t value) = 0;
  virtual void set_slots(Slot slot, CoreWord value) = 0;  // of all cores
  virtual void start(uint32_t core, uint32_t uop) = 0;  // runnable from this micro-op on
  virtual void start_all(uint32_t uop) = 0;             // the same, of all cores
  virtual void stop(uint32_t core) = 0;                 // idle
  virtual uint32_t place(uint32_t core) = 0;            // of a runnable core: where it goes on

  // Machines of modules with warps; `place` of a CTA: see core/cta.h. Its threads begin at `uop`,
  // with their slots as they are, and its barriers are new. When the last one has ended, there is
  // an event kCtaEnd; cores that the host stops end silently. Threads that wait for each other for
  // ever get faults kDeadlock, at the places where they wait.
  virtual void start_cta(uint32_t place, uint32_t uop);
  // Thread t of the CTA in this place has value.of(t).
  virtual void set_cta_slots(uint32_t place, Slot slot, CoreWord value);
  // The memory of this place.
  virtual std::span<uint8_t> cta_memory(uint32_t place);

  // Runs all runnable cores for about `instructions` each. Returns the cores that stopped in this
  // slice, by core number. `runnable()` says how many could go on.
  virtual std::span<const Event> run_slice(uint64_t instructions) = 0;
  virtual uint32_t runnable() const = 0;

  // What a core noted since clear_journals(). Throws std::logic_error if the slice was too long. May be
  // called by several threads for different cores.
  virtual std::span<const uint64_t> journal(uint32_t core) = 0;
  virtual void clear_journals() = 0;

  // Executions of each block, over all cores.
  virtual std::vector<uint64_t> block_counts() = 0;
  virtual CoreTally tally(uint32_t core) = 0;
  virtual CoreTally tally_of_all() = 0;  // the sum over all cores
  // With MachineConfig::count_lanes. Per block: lanes whose core could run, summed over the executions
  // by groups; what is beyond block_counts() was lost to divergence. Empty: the backend cannot tell.
  virtual std::vector<uint64_t> block_lanes() { return {}; }
  // Per group, in the order of cores; cores may have changed groups. Empty: the backend cannot tell.
  virtual std::vector<GroupUse> group_use() { return {}; }
};

struct BackendInfo {
  const char* name;  // as in --backend
  bool (*available)(std::string* why_not);
  std::string (*device)();
  std::unique_ptr<Backend> (*create)();
  size_t scheduling_bytes;  // of a core's state on the machine, beside its context and memory
  bool works_in_place;      // takes MachineConfig::linear_storage
  bool runs_warps;          // modules with a warp size
};
// The one list of backends, best first.
std::span<const BackendInfo> all_backends();
// What a use asks of a backend.
struct BackendNeeds {
  bool in_place = false;  // MachineConfig::linear_storage
  bool warps = false;
};
// By name or "auto"; throws std::runtime_error that names the possible ones.
std::unique_ptr<Backend> make_backend(const std::string& name, BackendNeeds needs = {});

}  // namespace gpusim
