// Where the published measurements are.
#pragma once
#include <string>

inline std::string published_folder() { return GPUSIM_PUBLISHED; }
