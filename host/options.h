// What `gpusim run` was asked to do.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device_sim/core/compiled_regions.h"

struct gpusim_host;  // host/plugin/gpusim_plugin.h

namespace gpusim::host {

// A folder whose files a guest may open.
struct AllowedRoot {
  std::string folder;
  bool writable = false;
};

// On which cores of a shared machine a program starts.
enum class StartCores { kAuto, kAll, kFirst };

// Whether a profile follows calls: kAuto, where a file shows them and nothing speaks against it.
enum class FollowCalls : uint8_t { kAuto, kOn, kOff };

// Which hosts a guest's internet sockets may reach.
enum class Network { kNone, kLoopback, kHost };

struct RunOptions {
  std::string program;                    // as given: argv[0] of the guest
  std::vector<std::string> program_args;  // after --
  std::optional<std::string> argv0;       // none: program
  std::vector<std::string> environment;   // NAME=VALUE
  uint32_t cores = 1;
  // Of a machine with private memory whose cores are shared out over several runs: these cores are
  // part `number` (from 1) of so many. 0: this is the whole machine.
  struct Part {
    uint32_t number = 0, of = 0;
    uint32_t first_core = 0, all_cores = 0;
  } part;
  MemoryModel memory_model = MemoryModel::kShared;
  StartCores start = StartCores::kAuto;
  std::optional<std::string> entry;    // a function to call instead of the ELF's entry
  std::vector<std::string> call_args;  // its arguments, as written
  std::string backend = "auto";
  std::string devices;  // of the backend: see BackendRequest
  CompiledRegions compiled_regions = CompiledRegions::kAuto;
  std::string cpu;  // that the guest sees; empty: the ISA's default, or the module file's
  uint32_t threads = 0;  // 0: one per hardware thread
  uint32_t group_width = 64;
  bool regroup = true;  // backend simd may move cores between groups
  bool native = true;  // backend simd may generate native code
  uint32_t native_after = MachineConfig{}.native_after;  // for tests: see MachineConfig
  uint64_t slice = 0;              // instructions per core between looks at the host; 0: automatic
  uint64_t seed = 0;               // of an interleaving that differs on purpose; 0: the usual one
  uint64_t max_instructions = 0;   // per core; 0: no limit
  uint64_t memory_size_bytes = 0;  // shared: linear zone; private: one core's window; 0: automatic
  uint64_t stack_size_bytes = 0;   // per core; 0: automatic
  uint64_t host_memory_bytes = 0;  // that the run may take of this machine; 0: automatic
  std::vector<AllowedRoot> roots;
  // Where dynamic programs find their interpreter and libraries; none: the ISA's usual folder, if
  // it is there. Empty: nowhere.
  std::optional<std::string> sysroot;
  Network network = Network::kNone;
  uint32_t cpus = 0;  // that the guest counts; 0: all cores
  std::string stats_path;
  bool gathers_stats = false;  // what that file would have, with or without it
  std::string isa_coverage_path;  // rows of the decode table that were executed are appended
  std::string caches_path;     // a description of caches; empty: none are simulated
  bool check_races = false;    // between cores of a shared machine
  bool check_uninitialised = false;  // uses of what nobody set
  std::string trace;  // FILE[,CORE]; empty: none
  std::string trace_region;  // FROM..TO or a function; empty: all
  std::string chip;            // a description of a chip, or the name of one; empty: no chip
  std::string chip_page_path;  // a page of what the chip did
  std::string chip_sample;         // "detail=N,skip=M"; empty: all of the run in detail
  std::string chip_timeline_path;  // what the chip's cores did when
  // A function whose calls are looked at, or FROM..TO in instructions; empty: what the program
  // marks.
  std::string chip_region;
  std::vector<std::string> plugins;  // FILE[,ARGUMENT]... each
  // What gpusim_plugin_install() of a plug-in does that is part of this program.
  std::vector<std::function<void(const gpusim_host& host)>> own_plugins;
  bool simulated_time = false;  // in the cycles of timing_target
  bool locks_in_time = false;   // in simulated time, locks exclude
  std::string energy_targets;  // names with commas between; empty: no energy
  std::string profile;         // FILE[,FILE...]; "-": a table on the terminal; empty: none
  FollowCalls follow_calls = FollowCalls::kAuto;
  std::string core_path;  // of a core file, if a core dies; empty: none
  std::string timeline_path;
  std::string power_path;      // power over time on the energy targets
  // Whose cycles and clock profile and timeline use; empty: 1 per instruction.
  std::string timing_target;
  bool per_core = false;
  bool quiet = false;
  std::string gdb_address;        // where a debugger may connect; empty: nowhere
  std::string checkpoint_path;    // empty: no checkpoints
  uint64_t checkpoint_every = 0;  // instructions of all cores; 0: on SIGUSR1 only
  bool checkpoint_stop = false;   // the first one ends the run
  std::string resume_path;        // a checkpoint to go on from; empty: from the start

  bool wants_stats() const { return gathers_stats || !stats_path.empty(); }
};

}  // namespace gpusim::host
