// The page of a study, and that of two studies side by side.
#pragma once
#include <string>

#include "device_sim/base/page.h"
#include "host/sweep/results.h"

namespace gpusim::sweep {

page::Page study_page(const Results& results);

// `a` and `b`: their names on the page.
page::Page compare_page(const Results& first, const std::string& a, const Results& second,
                        const std::string& b);
std::string compare_csv(const Results& first, const Results& second);

}  // namespace gpusim::sweep
