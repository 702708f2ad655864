#include "host/chip/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "device_sim/base/error.h"
#include "device_sim/base/student.h"

namespace gpusim::host::chip {
namespace {

[[noreturn]] void fail(const std::string& text) {
  throw Error(fmt::format(
      "--chip-sample {}: expected detail=N,skip=M, instructions of all cores together, from 1 on",
      text));
}

uint64_t count_of(std::string_view number, const std::string& text) {
  uint64_t value = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, value);
  const std::string_view unit(stop, static_cast<size_t>(end - stop));
  const uint64_t scale = unit.empty()  ? 1
                         : unit == "K" ? 1'000
                         : unit == "M" ? 1'000'000
                         : unit == "G" ? 1'000'000'000
                                       : 0;
  constexpr uint64_t kMost = uint64_t{1} << 60;
  if (error != std::errc{} || scale == 0 || value == 0 || value > kMost / scale) fail(text);
  return value * scale;
}

}  // namespace

SamplingPlan parse_sampling(const std::string& text) {
  constexpr std::string_view kDetail = "detail=", kSkip = ",skip=";
  const size_t comma = text.find(kSkip);
  if (!text.starts_with(kDetail) || comma == std::string::npos) fail(text);
  const std::string_view whole = text;
  return {.detail = count_of(whole.substr(kDetail.size(), comma - kDetail.size()), text),
          .skip = count_of(whole.substr(comma + kSkip.size()), text)};
}

SampledCycles estimate_cycles(const std::vector<DetailPiece>& pieces, uint64_t instructions) {
  SampledCycles s;
  s.pieces = pieces.size();
  for (const DetailPiece& p : pieces) {
    s.instructions += p.instructions;
    s.detail_cycles += p.cycles;
  }
  if (s.instructions == 0) return s;
  const auto all = static_cast<double>(instructions), seen = static_cast<double>(s.instructions);
  const double per_instruction = s.detail_cycles / seen;
  s.cycles = per_instruction * all;
  if (s.pieces < 2) return s;
  double squares = 0;
  for (const DetailPiece& p : pieces) {
    const double rest = p.cycles - per_instruction * static_cast<double>(p.instructions);
    squares += rest * rest;
  }
  const auto n = static_cast<double>(s.pieces);
  const double of_piece = std::sqrt(squares / (n - 1) / n);
  const double left = std::sqrt(std::max(0.0, 1 - seen / all));
  s.uncertainty = student_t_95(s.pieces - 1) * of_piece / (seen / n) * left * all;
  return s;
}

}  // namespace gpusim::host::chip
