// Options of `gpusim run`, as the command line has them, for callers that have no command line.
#pragma once
#include <string>
#include <vector>

#include "host/options.h"

namespace gpusim::python {

struct OptionInfo {
  std::string name;  // without dashes
  std::string help;
  bool is_flag = false;  // no value, or none needed
  bool is_repeatable = false;
};
// Those that a run in another program has, too.
std::vector<OptionInfo> run_option_infos();

// `words`: as the command has them behind `gpusim run`. Throws Error.
host::RunOptions parse_run_options(std::vector<std::string> words,
                                   const std::vector<std::string>& guest_args);

}  // namespace gpusim::python
