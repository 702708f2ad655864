// Runs one PTX instruction on many operands, on a backend.
#pragma once
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "host/ptx/engine.h"

namespace gpusim::ptx::test {

struct Operands {
  uint64_t a, b, c;
};

/// The body computes %D from %A, %B and %C, whose types are the letters of `kinds`, result first:
/// h: 16 bits, r: 32, d: 64, p: a predicate (of a source: its lowest bit).
std::vector<uint64_t> run_body(const std::string& backend, const std::string& body,
                               const std::string& kinds, const std::vector<Operands>& operands);

/// Random words, small numbers, and those that are special as integers or floats.
std::vector<Operands> draw_operands(uint64_t seed, size_t count);

struct InsnCase {
  std::string body, kinds;
  std::function<uint64_t(uint64_t a, uint64_t b, uint64_t c)> expected;
  // Bits that are compared; floats: whether all NaNs count as one.
  bool any_nan_64 = false;
};

void check_case(const InsnCase& c, const std::vector<Operands>& operands);

}  // namespace gpusim::ptx::test
