// Copies that are not waited for, and barriers in shared memory.
#include "tests/isa/ptx/launch_text.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

// Thread t copies 16, 8 and 4 bytes, of which t % 18 - 1 count (0: all by an ignored source).
const std::string kCopies = kHead + R"(
.visible .entry copies(.param .u64 in, .param .u64 out)
{
  .shared .align 16 .b8 room[4096];
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mad.wide.u32 %rd3, %r1, 32, %rd1;
  mad.wide.u32 %rd4, %r1, 32, %rd2;
  mov.u32 %r2, room;
  shl.b32 %r3, %r1, 5;
  add.u32 %r2, %r2, %r3;
  rem.u32 %r4, %r1, 18;
  setp.eq.u32 %p1, %r4, 0;
  sub.u32 %r4, %r4, 1;
  @%p1 bra ALL;
  min.u32 %r5, %r4, 8;
  min.u32 %r6, %r4, 4;
  setp.eq.u32 %p2, %r4, 0;
  selp.u64 %rd5, 0, %rd3, %p2;
  cp.async.cg.shared.global [%r2], [%rd5], 16, %r4;
  cp.async.ca.shared.global [%r2+16], [%rd5+16], 8, %r5;
  cp.async.ca.shared::cta.global [%r2+24], [%rd5+24], 4, %r6;
  bra DONE;
ALL:
  cp.async.ca.shared.global.L2::128B [%r2], [%rd3], 16;
  cp.async.ca.shared.global [%r2+16], [%rd3+16], 8;
  cp.async.ca.shared.global [%r2+24], [%rd3+24], 4, %p1;
DONE:
  cp.async.commit_group;
  cp.async.wait_group 0;
  cp.async.wait_all;
  bar.sync 0;
  ld.shared.v2.u64 {%rd5, %rd6}, [%r2];
  ld.shared.v2.u64 {%rd7, %rd8}, [%r2+16];
  st.global.v2.u64 [%rd4], {%rd5, %rd6};
  st.global.v2.u64 [%rd4+16], {%rd7, %rd8};
  ret;
}
)";

// In each of four phases threads pass a number to the next one of the block. Odd phases are waited
// for by parity. The first thread's arrivals count twice: the barrier expects so many.
const std::string kPhases = kHead + R"(
.visible .entry phases(.param .u64 out)
{
  .shared .align 8 .b64 barrier;
  .shared .align 4 .b8 room[4096];
  .reg .b32 %r<20>;
  .reg .b64 %rd<9>;
  .reg .pred %p<4>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ntid.x;
  setp.eq.u32 %p1, %r1, 0;
  add.u32 %r3, %r2, 1;
  @%p1 mbarrier.init.shared.b64 [barrier], %r3;
  bar.sync 0;
  mov.u32 %r4, %r1;
  mov.u32 %r5, 0;
  shl.b32 %r6, %r1, 2;
  mov.u32 %r7, room;
  add.u32 %r7, %r7, %r6;
  add.u32 %r8, %r1, 1;
  rem.u32 %r8, %r8, %r2;
  shl.b32 %r8, %r8, 2;
  mov.u32 %r9, room;
  add.u32 %r8, %r8, %r9;
  mov.u32 %r9, barrier;
LOOP:
  st.shared.u32 [%r7], %r4;
  selp.u32 %r10, 2, 1, %p1;
  mbarrier.arrive.shared.b64 %rd1, [%r9], %r10;
  and.b32 %r11, %r5, 1;
  setp.ne.u32 %p2, %r11, 0;
  @%p2 bra PARITY;
STATE:
  mbarrier.test_wait.shared.b64 %p3, [%r9], %rd1;
  @!%p3 bra STATE;
  bra READ;
PARITY:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r9], %r11;
  @!%p3 bra PARITY;
READ:
  ld.shared.u32 %r12, [%r8];
  add.u32 %r4, %r12, 1;
  bar.sync 1;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p2, %r5, 4;
  @%p2 bra LOOP;
  ld.param.u64 %rd2, [out];
  mad.wide.u32 %rd2, %r1, 4, %rd2;
  st.global.u32 [%rd2], %r4;
  ret;
}
)";

// One thread: what is pending, dropped arrivals, bytes.
const std::string kCounts = kHead + R"(
.visible .entry counts(.param .u64 out)
{
  .shared .align 8 .b64 barrier;
  .reg .b32 %r<20>;
  .reg .b64 %rd<9>;
  .reg .pred %p<9>;
  ld.param.u64 %rd1, [out];
  mbarrier.init.shared::cta.b64 [barrier], 5;
  mbarrier.arrive.noComplete.shared.b64 %rd2, [barrier], 2;
  mbarrier.pending_count.b64 %r1, %rd2;
  mbarrier.arrive_drop.release.cta.shared::cta.b64 %rd3, [barrier];
  mbarrier.pending_count.b64 %r2, %rd3;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd4, [barrier], 100;
  mbarrier.pending_count.b64 %r3, %rd4;
  cp.async.mbarrier.arrive.shared.b64 [barrier];
  mbarrier.test_wait.shared.b64 %p1, [barrier], %rd4;
  cp.async.mbarrier.arrive.noinc.shared.b64 [barrier];
  mbarrier.test_wait.shared.b64 %p2, [barrier], %rd4;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [barrier], 40;
  mbarrier.test_wait.shared.b64 %p3, [barrier], %rd4;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [barrier], 60;
  mbarrier.test_wait.shared.b64 %p4, [barrier], %rd4;
  mbarrier.arrive.shared.b64 _, [barrier], 3;
  mbarrier.arrive.shared.b64 %rd5, [barrier];
  mbarrier.pending_count.b64 %r4, %rd5;
  mbarrier.test_wait.parity.shared.b64 %p5, [barrier], 1;
  mbarrier.inval.shared.b64 [barrier];
  selp.u32 %r5, 1, 0, %p1;
  selp.u32 %r6, 1, 0, %p2;
  selp.u32 %r7, 1, 0, %p3;
  selp.u32 %r8, 1, 0, %p4;
  selp.u32 %r9, 1, 0, %p5;
  st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
  st.global.v4.u32 [%rd1+16], {%r5, %r6, %r7, %r8};
  st.global.u32 [%rd1+32], %r9;
  ret;
}
)";

}  // namespace

TEST_CASE("copies to shared memory, whole or in part") {
  constexpr uint32_t kThreads = 72;
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    std::vector<uint8_t> in(32 * kThreads), out(32 * kThreads, 0xee);
    for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<uint8_t>(k * 7 + k / 256 + 1);
    Engine engine({.backend = backend, .threads = 1});
    LoadedModule& module = engine.load(kCopies, "test.ptx");
    engine.add_memory(in.data(), in.size(), "in");
    engine.add_memory(out.data(), out.size(), "out");
    const LaunchResult r = engine.launch({.kernel = engine.find_kernel(module, "copies"),
                                          .grid = {},
                                          .block = {kThreads, 1, 1},
                                          .params = pack(in.data(), out.data())});
    if (r.fault) FAIL(r.fault->text);
    size_t wrong = 0;
    for (uint32_t t = 0; t < kThreads; ++t)
      for (uint32_t b = 0; b < 32; ++b) {
        const uint32_t part = b < 16 ? 0 : b < 24 ? 16 : 24, bytes = b < 16 ? 16 : b < 24 ? 8 : 4;
        uint32_t counted = t % 18 == 0 ? bytes : std::min(t % 18 - 1, bytes);
        if (t % 18 == 0 && part == 24) counted = 0;  // ignored
        wrong += out[32 * t + b] != (b - part < counted ? in[32 * t + b] : 0);
      }
    CHECK(wrong == 0);
    CHECK(counts_of(r).at("cp.async.commit_group") == kThreads);
  }
}

TEST_CASE("threads wait for phases of a barrier in shared memory") {
  std::vector<std::vector<uint32_t>> all;
  for (const char* backend : kBackends)
    for (const uint32_t threads : {1u, 32u, 70u, 256u}) {
      CAPTURE(backend);
      CAPTURE(threads);
      std::vector<uint32_t> out(threads);
      const LaunchResult r =
          run_text(kPhases, "phases", {backend, 1, {}, {threads, 1, 1}}, pack(out.data()), out);
      if (r.fault) FAIL(r.fault->text);
      size_t wrong = 0;
      for (uint32_t t = 0; t < threads; ++t) wrong += out[t] != (t + 4) % threads + 4;
      CHECK(wrong == 0);
      CHECK(counts_of(r).at("mbarrier.arrive.shared.b64") == 4 * threads);
      CHECK(counts_of(r).at("mbarrier.init.shared.b64") == threads);  // guarded ones count
    }
}

TEST_CASE("what a barrier in shared memory counts") {
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    std::vector<uint32_t> out(9, 99);
    const LaunchResult r = run_text(kCounts, "counts", {backend, 1, {}, {}}, pack(out.data()), out);
    if (r.fault) FAIL(r.fault->text);
    // Before each: 5, 3 and 2 pending; one more arrives and bytes are still to come; the next phase
    // expects four.
    const std::vector<uint32_t> expected = {5, 3, 2, 1, 0, 0, 0, 1, 1};
    CHECK(out == expected);
  }
}
