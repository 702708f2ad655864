// The page of a study, and that of two studies side by side.
#pragma once
#include <string>

#include "host/sweep/results.h"

namespace gpusim::sweep {

std::string study_page(const Results& results);

// `a` and `b`: their names on the page.
std::string compare_page(const Results& first, const std::string& a, const Results& second,
                         const std::string& b);
std::string compare_csv(const Results& first, const Results& second);

}  // namespace gpusim::sweep
