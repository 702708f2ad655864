// A script as the program of a run: what runs is the interpreter that its first line names.
#pragma once
#include "host/options.h"

namespace gpusim::host {

// As they are, unless the program is a script. Throws Error for one that cannot be run.
RunOptions with_interpreter(RunOptions options);

}  // namespace gpusim::host
