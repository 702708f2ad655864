// Programs of random A64 instructions, through the real translator.
#pragma once
#include <cstdint>
#include <vector>

#include "tests/differential/backends/random_case.h"

namespace gpusim::difftest {

// The program's instructions; they lie at kTestText (tests/unit/translator/test_elf.h).
std::vector<uint32_t> random_a64_words(uint64_t seed);

// The program with private memory, where cores cannot race: whatever its micro-ops do, all backends
// have to do the same.
Case random_a64_case(uint64_t seed, uint32_t cores, bool optimise);

}  // namespace gpusim::difftest
