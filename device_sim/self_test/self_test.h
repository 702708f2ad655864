// Small programs on a backend and on scalar: do they agree? About a second on a GPU.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "device_sim/core/backend.h"

namespace gpusim::self_test {

// Empty, or what differed first: "values, 70 cores, private memory: core 3: register 5: ...".
// `make`: a new backend of the kind that is tested. What that throws goes on.
std::string run_self_test(const std::function<std::unique_ptr<Backend>()>& make);

}  // namespace gpusim::self_test
