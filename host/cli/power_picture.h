// Curves of power as an SVG file and as a page.
#pragma once
#include <string>
#include <vector>

#include "energy/power/calibrate.h"
#include "energy/power/chart.h"
#include "energy/power/trace.h"

namespace gpusim::host {

struct PictureFiles {
  std::string svg, html;

  void check() const;  // throws Error now where they could not be written later
};

// Times are shown from the first one of all series on. `text`: numbers below the page's chart.
void write_pictures(const PictureFiles& files, const std::string& title,
                    std::vector<power::ChartSeries> series, const std::string& text);

power::ChartSeries series_of(const std::string& name, const std::vector<power::Sample>& samples);
// As read, corrected, and the reference, whose clock is moved to the recording's.
std::vector<power::ChartSeries> calibration_series(const power::Trace& trace,
                                                   const std::optional<power::Trace>& reference,
                                                   const power::Calibration& calibration);

}  // namespace gpusim::host
