// The shadow of memory, compared with a map of bytes.
#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "host/uninitialised/heap.h"
#include "host/uninitialised/shadow.h"
#include "tests/differential/backends/rng.h"

namespace gpusim::host::uninitialised {
namespace {

using difftest::Rng;

TEST_CASE("the shadow of memory keeps what was put there") {
  const uint64_t seed = difftest::seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  Shadow shadow;
  std::map<std::pair<uint32_t, uint64_t>, uint8_t> bytes;
  const auto mask = [](uint32_t size) { return ~uint64_t{0} >> (64 - 8 * size); };
  for (int round = 0; round < 60000; ++round) {
    const uint32_t space = rng.below(2), size = 1u << rng.below(4);
    const uint64_t address = 0x10000 - 0x30 + rng.below(5) * 4096 + rng.below(96);
    const uint64_t length = rng.once_in(20) ? rng.below(9000) : rng.below(40);
    switch (rng.below(5)) {
      case 0: {
        const uint64_t undefined = rng.coin() ? 0 : rng.next();
        shadow.store(space, address, size, undefined, 7);
        for (uint32_t i = 0; i < size; ++i)
          bytes[{space, address + i}] = static_cast<uint8_t>(undefined >> (8 * i));
        break;
      }
      case 1:
        shadow.define(space, address, length);
        for (uint64_t i = 0; i < length; ++i) bytes[{space, address + i}] = 0;
        break;
      case 2:
        if (rng.coin()) break;
        shadow.undefine(space, address, length);
        for (uint64_t i = 0; i < length; ++i) bytes[{space, address + i}] = 0xff;
        break;
      case 3: {
        uint64_t end = address;
        while (end < address + length && bytes[{space, end}] == 0) ++end;
        REQUIRE(shadow.find_undefined(space, address, length) == end);
        break;
      }
      default: {
        uint64_t expected = 0;
        for (uint32_t i = 0; i < size; ++i)
          expected |= uint64_t{bytes[{space, address + i}]} << (8 * i);
        OriginId origin = 0;
        REQUIRE(shadow.load(space, address, size, &origin) == (expected & mask(size)));
        if (expected == 0) REQUIRE(origin == 0);
        std::vector<uint8_t> masks(length), same(length);
        shadow.read(space, address, masks);
        for (uint64_t i = 0; i < length; ++i) same[i] = bytes[{space, address + i}];
        REQUIRE(masks == same);
      }
    }
  }
}

TEST_CASE("origins stay with what was stored") {
  Shadow shadow;
  shadow.undefine(0, 0x1000, 64);
  OriginId origin = 0;
  CHECK(shadow.load(0, 0x1008, 8, &origin) == ~uint64_t{0});
  CHECK(origin == 0);
  shadow.store(0, 0x1008, 8, 0xff00, 3);
  CHECK(shadow.load(0, 0x1008, 8, &origin) == 0xff00);
  CHECK(origin == 3);
  shadow.undefine(0, 0x1008, 8);  // another life of the same memory
  origin = 0;
  shadow.load(0, 0x1008, 8, &origin);
  CHECK(origin == 0);
}

TEST_CASE("blocks of the heap take the place of freed ones") {
  Heap heap;
  heap.add(0, {.begin = 0x1000, .size_bytes = 100});
  heap.add(0, {.begin = 0x2000, .size_bytes = 100});
  REQUIRE(heap.at(0, 0x1063));
  CHECK(heap.at(0, 0x1064) == nullptr);
  CHECK(heap.at(1, 0x1000) == nullptr);
  heap.find(0, 0x1000)->is_freed = true;
  CHECK(heap.find(0, 0x1000) == nullptr);
  CHECK(heap.at(0, 0x1010)->is_freed);
  heap.add(0, {.begin = 0x1020, .size_bytes = 0x1000});
  CHECK(heap.at(0, 0x1010) == nullptr);
  CHECK(heap.at(0, 0x2000)->begin == 0x1020);
  CHECK(heap_call_of("malloc") == HeapCall::kAllocate);
  CHECK(heap_call_of("_ZnwmRKSt9nothrow_t") == HeapCall::kAllocate);
  CHECK(!heap_call_of("malloc_trim"));
}

}  // namespace
}  // namespace gpusim::host::uninitialised
