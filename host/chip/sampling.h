// A chip that is simulated in detail only now and then: how long the run takes, and how sure that
// is.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusim::host::chip {

// Instructions of all cores together, in detail and between.
struct SamplingPlan {
  uint64_t detail = 0, skip = 0;
};
// "detail=N,skip=M"; numbers may end in K, M or G. Throws Error.
SamplingPlan parse_sampling(const std::string& text);

// A piece that was simulated in detail.
struct DetailPiece {
  uint64_t instructions = 0;
  double cycles = 0;
};

struct SampledCycles {
  size_t pieces = 0;
  uint64_t instructions = 0;  // in detail
  double detail_cycles = 0;
  double cycles = 0;  // of the whole run
  // Half of the 95 % confidence interval (Student's t) of the ratio of cycles to instructions of
  // all pieces, with the correction for finite populations; negative: less than two pieces.
  double uncertainty = -1;
  // Of the whole run as it was simulated, pieces in detail and all between. Where it differs from
  // `cycles`, the run took another way than it would have in detail.
  double modelled_cycles = 0;
  double error() const { return uncertainty + std::abs(cycles - modelled_cycles); }
};
SampledCycles estimate_cycles(const std::vector<DetailPiece>& pieces, uint64_t instructions);

}  // namespace gpusim::host::chip
