// Modelled power of kernels, or of slices of time: what `gpusim energy predict` computes.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "energy/accelwattch/activity.h"
#include "energy/accelwattch/charts.h"
#include "energy/accelwattch/model.h"
#include "energy/accelwattch/sheet.h"

namespace gpusim::accelwattch {

struct Prediction {
  Model model;
  std::vector<KernelActivity> kernels;  // or slices
  bool is_sliced = false;
  // Watts per component; measured power where it is known, else 0.
  Sheet sheet;
  bool has_measured = false;  // of all kernels

  Joules energy() const;
  Seconds time() const;
};

Prediction predict(const Model& model, const ActivityFile& activity, const Scaling& scaling);

// Kernel, time, SMs, lanes, mix, watts, joules.
std::string prediction_table(const Prediction& p);
// The form that `gpusim energy validate` reads; slices have start_s, too.
std::string prediction_csv(const Prediction& p);
nlohmann::ordered_json prediction_json(const Prediction& p);

// Of slices.
TimeSeries time_series(const Prediction& p);
// Counter tracks, one per component, in the trace-event format that Perfetto opens.
std::string perfetto_trace(const Prediction& p);

}  // namespace gpusim::accelwattch
