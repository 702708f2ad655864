// The user's failure: bad input.
#pragma once
#include "energy/error.h"

namespace gpusim::accelwattch {
using energy::Error;
}  // namespace gpusim::accelwattch
