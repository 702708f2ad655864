#include "host/run/summary_text.h"

#include <fmt/format.h>

#include <cmath>

#include "device_sim/base/digits.h"

namespace gpusim::host {

std::string summary_text(const RunSummary& s) {
  return fmt::format("{} core{} on {} ({}): {} guest instructions in {:.3f} s, {} MIPS",
                     grouped(s.cores), s.cores == 1 ? "" : "s", s.backend, s.device,
                     grouped(s.tally.instructions()), s.seconds,
                     s.mips() < 1000 ? fmt::format("{:.1f}", s.mips())
                                     : grouped(static_cast<uint64_t>(std::llround(s.mips()))));
}

}  // namespace gpusim::host
