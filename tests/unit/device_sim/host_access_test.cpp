// What the host reads and writes of guest memory, on every backend.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "device_sim/core/backend.h"
#include "tests/unit/device_sim/toy_program.h"

namespace gpusim {
namespace {

TEST_CASE("ranges from the linear zone into windows, on every backend") {
  Module module;
  add_block(module, {{.op = Op::trap, .aux = static_cast<uint8_t>(Fault::kBreakpoint)}});
  finish(module, 1);
  constexpr uint64_t kLinear = 0x10000, kWindows = kLinear + 0x4000, kWindow = 4096;
  for (const BackendInfo& info : all_backends()) {
    if (std::string why; !info.available(&why)) continue;
    CAPTURE(std::string(info.name));
    MachineConfig config;
    config.cores = 70;
    config.linear_base = kLinear;
    config.linear_size = kWindows - kLinear;
    config.window_base = kWindows;
    config.window_shift = 12;
    const std::unique_ptr<Backend> b = make_backend(info.name);
    b->configure(module, config);
    // Over two windows and into a third one.
    std::vector<uint8_t> want(21 + 2 * kWindow + 13), got(want.size());
    for (size_t i = 0; i < want.size(); ++i) want[i] = static_cast<uint8_t>(i * 7 + 1);
    const uint64_t at = kWindows - 21;
    REQUIRE(b->write_memory(0, at, want));
    REQUIRE(b->read_memory(69, at, got));
    CHECK(got == want);
    REQUIRE(b->fill_zero(3, at + 3, want.size() - 6));
    std::fill(want.begin() + 3, want.end() - 3, uint8_t{0});
    REQUIRE(b->read_memory(0, at, got));
    CHECK(got == want);
    const uint64_t end = kWindows + config.cores * kWindow;
    CHECK(b->read_memory(0, end - got.size(), got));
    CHECK(!b->read_memory(0, end - got.size() + 1, got));
    CHECK(!b->write_memory(0, kLinear - 1, want));
  }
}

}  // namespace
}  // namespace gpusim
