#include <doctest/doctest.h>

#include <string>

#include "device_sim/base/error.h"
#include "host/cuda_api/chips.h"

namespace gpusim::cuda_api {

TEST_CASE("a chip is chosen by the PTX") {
  CHECK(chip_for(75).key == "t4");
  CHECK(chip_for(80).key == "a100");
  CHECK(chip_for(88).key == "l4");
  CHECK(chip_for(90).key == "h100");
  CHECK(chip_for(999).compute_capability == 120);
  CHECK_THROWS_WITH_AS(chip_named("k20"), doctest::Contains("there are: t4, a100"), Error);
}

TEST_CASE("attributes and properties say the same") {
  for (const Chip& chip : all_chips()) {
    const DeviceProp p = properties_of(chip);
    int value = -1;
    CHECK(attribute_of(chip, 16, value));
    CHECK(value == p.multi_processor_count);
    CHECK(attribute_of(chip, 75, value));
    CHECK(value * 10 + p.minor == static_cast<int>(chip.compute_capability));
    CHECK(attribute_of(chip, 97, value));
    CHECK(value == static_cast<int>(p.shared_mem_per_block_optin));
    CHECK_FALSE(attribute_of(chip, 0, value));
    CHECK_FALSE(attribute_of(chip, 1000, value));
  }
}

TEST_CASE("blocks of an SM") {
  const Chip& a100 = chip_named("a100");
  CHECK(resident_blocks(a100, 256, 32, 0) == 8);    // 2048 threads
  CHECK(resident_blocks(a100, 32, 16, 0) == 32);    // 32 blocks
  CHECK(resident_blocks(a100, 1024, 64, 0) == 1);   // 65536 registers
  CHECK(resident_blocks(a100, 1024, 255, 0) == 0);  // more than there are
  CHECK(resident_blocks(a100, 64, 32, 40 << 10) == 4);
  CHECK(resident_blocks(a100, 0, 32, 0) == 0);
}

}  // namespace gpusim::cuda_api
