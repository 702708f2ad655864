// A study's points, put together: curves over the number of cores, speed-ups, energy; as CSV and
// JSON.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "energy/model.h"
#include "host/sweep/scaling.h"
#include "host/sweep/study_folder.h"

namespace gpusim::sweep {

// The repetitions of one point. Counts are those of the first; speeds are medians.
struct Row {
  Point point;
  size_t repetitions = 0;
  double seconds = 0, mips = 0, mips_low = 0, mips_high = 0;
  std::vector<energy::Estimate> energy;  // one per target; empty without counts
};

struct Curve {
  const Case* one = nullptr;
  std::string label;  // with the backend if the study has several
  std::string backend;
  std::vector<Row> rows;           // of points that ran well, in rising order of cores
  std::vector<SpeedUp> speed_ups;  // beside `rows` that have work
  std::optional<SerialShare> serial;
  bool has_cycles = false;      // work is cycles
  bool outputs_differ = false;  // although the work is the same
};

struct Results {
  StoredStudy stored;
  std::vector<energy::Target> targets;
  std::vector<Curve> curves;
  std::vector<Point> failures;
};

// `energy_targets`: instead of the study's; empty: the study's.
std::unique_ptr<Results> put_together(StoredStudy stored, const std::string& energy_targets);

// The busiest core's share of the mean: 1 is perfect balance. 0 where nothing is known.
double imbalance(const Point& point);

// Where points ran beside the machine where the study began, and how many. How many host threads a
// process had is no difference: that stands with each point.
struct OtherMachine {
  Json machine;
  size_t points = 0;
};
std::vector<OtherMachine> other_machines(const StoredStudy& stored);

std::string results_csv(const Results& results);
// Curves and their points as a table of LaTeX (package booktabs).
std::string results_latex(const Results& results);
Json results_json(const Results& results);
// A line per curve, for a terminal.
std::string results_text(const Results& results);

}  // namespace gpusim::sweep
