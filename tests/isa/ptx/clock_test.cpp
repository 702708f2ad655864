// Clocks: instructions of the thread. Whole-grid barriers: all CTAs are resident.
#include "device_sim/base/error.h"
#include "tests/isa/ptx/launch_text.h"

using namespace gpusim;
using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

// Threads loop tid + 1 times between two looks at the clock, then sleep.
const std::string kClocks = kHead + R"(
.visible .entry clocks(.param .u64 out)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %clock;
  mov.u64 %rd2, %clock64;
  mov.u32 %r3, %r1;
L:
  sub.u32 %r3, %r3, 1;
  setp.ge.s32 %p1, %r3, 0;
  @%p1 bra L;
  mov.u64 %rd3, %clock64;
  mov.u32 %r4, %clock_hi;
  mov.u64 %rd4, %globaltimer;
  nanosleep.u32 500;
  mov.u64 %rd5, %globaltimer;
  sub.u64 %rd6, %rd3, %rd2;
  sub.u64 %rd7, %rd5, %rd4;
  mad.wide.u32 %rd1, %r1, 32, %rd1;
  st.global.u64 [%rd1], %rd6;
  st.global.u64 [%rd1+8], %rd7;
  st.global.u64 [%rd1+16], %rd2;
  st.global.v2.u32 [%rd1+24], {%r2, %r4};
  ret;
}
)";

// What cooperative groups compile to: all CTAs meet, then each reads what its neighbour wrote.
const std::string kGridBarrier = kHead + R"(
.visible .entry meet(.param .u64 data, .param .u64 out)
{
  .reg .b32 %r<20>;
  .reg .b64 %rd<9>;
  .reg .pred %p<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %envreg2;
  mov.u32 %r5, %envreg1;
  mov.b64 %rd3, {%r4, %r5};
  mad.wide.u32 %rd4, %r1, 4, %rd1;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra WAIT;
  mul.lo.u32 %r6, %r1, 10;
  st.global.u32 [%rd4], %r6;
  membar.gl;
  setp.eq.u32 %p2, %r1, 0;
  sub.u32 %r7, %r2, 1;
  sub.u32 %r7, 0x80000000, %r7;
  selp.u32 %r7, %r7, 1, %p2;
  atom.global.add.u32 %r8, [%rd3+4], %r7;
SPIN:
  ld.acquire.gpu.u32 %r9, [%rd3+4];
  xor.b32 %r10, %r9, %r8;
  setp.ge.s32 %p3, %r10, 0;
  @%p3 bra SPIN;
WAIT:
  bar.sync 0;
  add.u32 %r11, %r1, 1;
  rem.u32 %r11, %r11, %r2;
  mad.wide.u32 %rd5, %r11, 4, %rd1;
  ld.global.u32 %r12, [%rd5];
  add.u32 %r12, %r12, %r3;
  mov.u32 %r13, %ntid.x;
  mad.lo.u32 %r13, %r1, %r13, %r3;
  mad.wide.u32 %rd6, %r13, 4, %rd2;
  st.global.u32 [%rd6], %r12;
  ret;
}
)";

}  // namespace

TEST_CASE("clocks count the thread's instructions, and sleeping moves them on") {
  constexpr uint32_t kThreads = 70;
  std::vector<std::vector<uint64_t>> all;
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    Engine engine({.backend = backend, .threads = 1});
    LoadedModule& module = engine.load(kClocks, "test.ptx");
    std::vector<uint64_t> out(4 * kThreads);
    engine.add_memory(out.data(), out.size() * 8, "out");
    uint64_t last = 0;
    for (int launch = 0; launch < 2; ++launch) {
      const LaunchResult r = engine.launch({.kernel = engine.find_kernel(module, "clocks"),
                                            .grid = {1, 1, 1},
                                            .block = {kThreads, 1, 1},
                                            .params = pack(out.data())});
      REQUIRE(!r.fault);
      uint64_t latest = 0;
      for (uint32_t t = 0; t < kThreads; ++t) {
        const uint64_t* mine = &out[4 * t];
        // The read itself, a move, and three instructions for each turn of the loop.
        const uint64_t passed = 2 + 3 * (uint64_t{t} + 1);
        CHECK(mine[0] == passed);
        CHECK(mine[1] == 502);
        const uint64_t begin = last + 3;
        CHECK(mine[2] == begin);
        const uint32_t before = static_cast<uint32_t>(mine[2]) - 1;
        CHECK(static_cast<uint32_t>(mine[3]) == before);
        const uint64_t high = mine[3] >> 32;
        CHECK(high == 0);
        latest = std::max(latest, mine[2] + mine[0] + mine[1]);
      }
      // The device's clock goes on from launch to launch.
      if (launch == 0) {
        last = out[2] - 3 + r.thread_instructions;
        CHECK(last > latest);
      }
    }
    all.push_back(out);
  }
  CHECK(all[0] == all[1]);
}

TEST_CASE("the blocks of a cooperative grid are resident together") {
  for (const char* backend : kBackends)
    for (const uint32_t threads : {1u, 2u}) {
      CAPTURE(backend);
      CAPTURE(threads);
      constexpr uint32_t kBlocks = 90, kBlock = 48;
      Engine engine({.backend = backend, .threads = threads});
      LoadedModule& module = engine.load(kGridBarrier, "test.ptx");
      std::vector<uint32_t> data(kBlocks), out(kBlocks * kBlock);
      engine.add_memory(data.data(), data.size() * 4, "data");
      engine.add_memory(out.data(), out.size() * 4, "out");
      for (int launch = 0; launch < 2; ++launch) {
        std::fill(out.begin(), out.end(), 0);
        const LaunchResult r = engine.launch({.kernel = engine.find_kernel(module, "meet"),
                                              .grid = {kBlocks, 1, 1},
                                              .block = {kBlock, 1, 1},
                                              .params = pack(data.data(), out.data()),
                                              .cooperative = true});
        if (r.fault) FAIL(r.fault->text);
        size_t wrong = 0;
        for (uint32_t b = 0; b < kBlocks; ++b)
          for (uint32_t t = 0; t < kBlock; ++t)
            wrong += out[b * kBlock + t] != (b + 1) % kBlocks * 10 + t;
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("cooperative grids that cannot be resident are refused") {
  Engine engine({.backend = "simd", .threads = 1});
  LoadedModule& module = engine.load(kGridBarrier, "test.ptx");
  uint64_t nothing = 0;
  CHECK_THROWS_WITH_AS(engine.launch({.kernel = engine.find_kernel(module, "meet"),
                                      .grid = {1 << 20, 1, 1},
                                      .block = {32, 1, 1},
                                      .params = pack(&nothing, &nothing),
                                      .cooperative = true}),
                       doctest::Contains("all have to be resident"), Error);
}
