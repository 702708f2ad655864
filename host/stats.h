// The object that --stats writes.
#pragma once
#include <algorithm>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "energy/model.h"
#include "host/caches/hierarchy.h"
#include "host/output_file.h"
#include "host/run/profile.h"
#include "host/run/stop_report.h"
#include "host/run/tallies.h"

namespace gpusim::host {

namespace chip {
struct ChipReport;
}
namespace races {
struct RaceReport;
}
namespace uninitialised {
struct UninitialisedReport;
}

struct RunSummary {
  std::string program = {}, isa, backend, device;
  uint32_t cores = 0;
  Tally tally;
  double seconds = 0;  // of simulation: without loading and translation
  int exit_status = 0;
  std::vector<StopRecord> stops;
  std::vector<StopReport> stop_reports = {};  // of them
  std::vector<ClassCounts> per_core;  // empty unless asked for
  energy::LongestCores longest_cores = {};  // none unless statistics or energy are asked for
  Profile profile = {};               // empty unless statistics or energy are asked for
  LaneSummary lanes = {};             // the same for statistics
  std::vector<energy::ActivitySlice> slices = {};  // if the run was observed over time
  std::vector<energy::Target> energy_targets = {};  // of --energy
  struct Caches {
    HierarchyShape shape;
    CacheReport report;
  };
  std::optional<Caches> caches = {};
  struct Time {
    std::string timing;  // where the cycles come from
    energy::Hertz clock;
    std::vector<double> cycles, waited;  // per core: from the beginning; of them, for others
    bool leaves_out_locks = false;       // that the program took
    double most_cycles() const { return *std::max_element(cycles.begin(), cycles.end()); }
    double seconds() const { return most_cycles() / clock.value(); }
  };
  std::optional<Time> simulated_time = {};
  std::shared_ptr<const chip::ChipReport> chip = {};
  std::shared_ptr<const races::RaceReport> races = {};
  std::shared_ptr<const uninitialised::UninitialisedReport> uninitialised = {};

  // Of a part of a machine's cores (RunOptions::Part); `of` 0: this is the whole.
  struct Part {
    uint32_t number = 0, of = 0, first_core = 0, all_cores = 0;
    uint64_t program_hash = 0;  // parts of one machine run one program, with the same arguments
    std::vector<std::string> call = {};
    std::string entry = {};
  } part = {};

  double mips() const;
};

// What the energy models need of a run, and their estimates for its targets; none if nothing was
// executed.
energy::Activity activity_of(const RunSummary& summary);
std::vector<energy::Estimate> estimates_of(const RunSummary& summary,
                                           const energy::Activity& activity);

nlohmann::ordered_json stats_json(const RunSummary& summary);
// "part,name,quantity,value": all of that object's numbers and words, a row for each.
std::string stats_csv(const nlohmann::ordered_json& stats);
// As JSON, or as CSV if the file's name ends in .csv.
void write_stats(const RunSummary& summary, const OutputFile& file);

}  // namespace gpusim::host
