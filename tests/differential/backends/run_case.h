// Runs a case on a backend and compares everything that a guest or its host can see.
#pragma once
#include <string>

#include "device_sim/simd/jit/compiler.h"
#include "tests/differential/backends/random_case.h"

namespace gpusim::difftest {

struct RunConfig {
  std::string backend = "scalar";
  uint32_t group_width = 64;
  uint32_t threads = 1;
  uint64_t slice = uint64_t{1} << 40;
  uint32_t native_after = MachineConfig::kNeverNative;
  simd::VectorCode groups_code = simd::VectorCode::kAvx512;  // at most; backend simd
  bool regroup = true;
  uint64_t seed = 0;
  bool count_lanes = false;
  std::vector<uint32_t> devices = {};  // of the backend, if it has several
};
std::string print_run(const RunConfig& run);

struct Result {
  std::vector<uint64_t> slots;              // [core][slot]
  std::vector<std::vector<Event>> events;   // per core, in order
  std::vector<uint64_t> block_counts;
  std::vector<CoreTally> tallies;
  std::vector<std::vector<uint64_t>> journals;  // per core
  std::vector<bool> journal_is_full;            // per core: words were lost, since the slice was long
  std::vector<std::vector<uint8_t>> memory; // [0]: linear zone; then each core's window
  std::string trouble;                      // what no backend may do, e.g. never end
};

Result run_case(const Case& c, const RunConfig& run);

// Empty, or the first difference in words.
std::string difference(const Case& c, const Result& expected, const Result& actual);

// Makes the case as small as it can while `fails`: micro-ops become fences, which do nothing.
void shrink(Case& c, const std::function<bool(const Case&)>& fails);

// Compares `run` with what `reference`, the scalar backend unless told, gave. Empty, or a description
// of a minimal failing case.
std::string check_case(const Case& c, const Result& expected, const RunConfig& run,
                       const RunConfig& reference = {});

// The backends other than scalar that can run here.
std::vector<std::string> backends_under_test();
// Where the processor has both, either.
inline simd::VectorCode random_groups_code(Rng& rng) {
  return rng.pick({simd::VectorCode::kAvx2, simd::VectorCode::kAvx512});
}
// A few ways to run a case on each.
std::vector<RunConfig> random_runs(Rng& rng, uint32_t per_backend);

}  // namespace gpusim::difftest
