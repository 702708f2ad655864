// alloca, stacksave, stackrestore: as the PTX ISA's text has them ("Stack Manipulation
// Instructions"), where blocks lie, when they are free again, and that no more is given than
// cudaLimitStackSize.
#include "tests/isa/ptx/launch_text.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

// f(n) writes n words and reads them backwards; it has no return of its own.
// out[t][0..7]: addresses as they come, and sums.
const std::string kBlocks = kHead + R"(
.func (.param .b64 back) f(.param .b32 n, .param .b64 where)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<9>;
  .reg .pred %p<3>;
  ld.param.b32 %r1, [n];
  ld.param.b64 %rd1, [where];
  mul.wide.u32 %rd2, %r1, 4;
  alloca.u64 %rd3, %rd2, 16;
  st.global.b64 [%rd1], %rd3;
  mov.b64 %rd4, %rd3;
  mov.b32 %r2, 0;
FILL:
  mul.lo.u32 %r3, %r2, %r2;
  st.local.b32 [%rd4], %r3;
  add.u64 %rd4, %rd4, 4;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra FILL;
  mov.b64 %rd5, 0;
  setp.gt.u32 %p2, %r1, 100;
  st.param.b64 [back], %rd5;
  @%p2 ret;
READ:
  sub.u64 %rd4, %rd4, 4;
  cvta.local.u64 %rd6, %rd4;
  ld.b32 %r3, [%rd6];
  cvt.u64.u32 %rd6, %r3;
  mul.lo.u64 %rd5, %rd5, 3;
  add.u64 %rd5, %rd5, %rd6;
  setp.ne.u64 %p1, %rd4, %rd3;
  @%p1 bra READ;
  st.param.b64 [back], %rd5;
  ret;
}
.visible .entry k(.param .u64 out)
{
  .local .align 8 .b8 depot[24];
  .reg .b32 %r<9>;
  .reg .b64 %rd<20>;
  .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 72, %rd1;
  st.local.u64 [depot+16], %rd1;
  add.u32 %r2, %r1, 1;
  mul.wide.u32 %rd2, %r2, 4;
  stacksave.u64 %rd3;
  st.global.u64 [%rd1], %rd3;
  alloca.u64 %rd4, %rd2;
  stacksave.u64 %rd5;
  sub.u64 %rd6, %rd5, %rd4;
  st.global.u64 [%rd1+8], %rd6;
  st.global.u64 [%rd1+16], %rd4;
  st.local.u32 [%rd4], %r1;
  setp.ge.u32 %p1, %r1, 3;
  mov.u64 %rd7, 5;
  @%p1 alloca.u64 %rd7, 10, 64;
  st.global.u64 [%rd1+24], %rd7;
  @%p1 st.local.u64 [%rd7], %rd1;
  mov.u32 %r4, 0;
AGAIN:
  { .param .b32 p0; .param .b64 p1; .param .b64 back;
  st.param.b32 [p0], %r2;
  add.u64 %rd8, %rd1, 32;
  st.param.b64 [p1], %rd8;
  call (back), f, (p0, p1);
  ld.param.b64 %rd9, [back]; }
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p2, %r4, 500;
  @%p2 bra AGAIN;
  st.global.u64 [%rd1+40], %rd9;
  ld.local.u32 %r5, [%rd4];
  cvt.u64.u32 %rd10, %r5;
  st.global.u64 [%rd1+48], %rd10;
  stackrestore.u64 %rd3;
  alloca.u64 %rd11, %rd2;
  st.global.u64 [%rd1+56], %rd11;
  stacksave.u32 %r6;
  stackrestore.u64 %rd3;
  stackrestore.u32 %r6;
  stacksave.u64 %rd12;
  sub.u64 %rd12, %rd12, %rd11;
  ld.local.u64 %rd13, [depot+16];
  add.u64 %rd12, %rd12, %rd13;
  sub.u64 %rd12, %rd12, %rd1;
  st.global.u64 [%rd1+64], %rd12;
  ret;
}
)";

// One block of so many bytes, whose first and last are written.
const std::string kOne = kHead + R"(
.visible .entry k(.param .u64 out, .param .u64 bytes)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<5>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [bytes];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd1, %r1, 8, %rd1;
  setp.ne.u32 %p1, %r1, 1;
  @!%p1 alloca.u64 %rd3, %rd2, 8;
  mov.b64 %rd4, 7;
  @!%p1 st.local.u8 [%rd3], %r1;
  add.u64 %rd3, %rd3, %rd2;
  @!%p1 st.local.u8 [%rd3+-1], %r1;
  st.global.u64 [%rd1], %rd4;
  ret;
}
)";

LaunchResult run_one(const char* backend, uint64_t stack, uint64_t bytes, const Checks& checks,
                     std::vector<uint64_t>& out) {
  Engine engine({.backend = backend, .threads = 1, .checks = checks});
  LoadedModule& module = engine.load(kOne, "test.ptx");
  engine.add_memory(out.data(), out.size() * 8, "out");
  const std::vector<std::byte> arguments = pack(out.data(), bytes);
  return engine.launch({.kernel = engine.find_kernel(module, "k"),
                        .grid = {},
                        .block = {static_cast<uint32_t>(out.size()), 1, 1},
                        .params = arguments,
                        .stack_bytes = stack});
}

uint64_t backwards(uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = n; i-- > 0;) sum = sum * 3 + i * i;
  return sum;
}

}  // namespace

TEST_CASE("alloca gives blocks of a stack that grows down, until they are restored or returned") {
  constexpr uint32_t kThreads = 70, kWords = 9;
  std::vector<std::map<std::string, uint64_t>> counts;
  std::vector<std::vector<uint64_t>> outs;
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    std::vector<uint64_t> out(kThreads * kWords);
    const LaunchResult r =
        run_text(kBlocks, "k", {backend, 1, {}, {kThreads, 1, 1}}, pack(out.data()), out);
    if (r.fault) FAIL(r.fault->text);
    for (uint64_t t = 0; t < kThreads; ++t) {
      CAPTURE(t);
      const uint64_t* const o = &out[t * kWords];
      const uint64_t bytes = 4 * (t + 1);
      CHECK(o[1] == 0);  // alloca leaves the stack pointer where its block begins
      CHECK(o[2] == ((o[0] - bytes) & ~uint64_t{7}));
      const uint64_t second = t < 3 ? o[2] : (o[2] - 10) & ~uint64_t{63};
      CHECK(o[3] == (t < 3 ? 5 : second));
      CHECK(o[4] == ((second - bytes) & ~uint64_t{15}));  // the same in each of 500 calls
      CHECK(o[5] == backwards(t + 1));
      CHECK(o[6] == t);
      CHECK(o[7] == o[2]);
      CHECK(o[8] == 0);
    }
    outs.push_back(out);
    counts.push_back(counts_of(r));
    CHECK(counts.back().at("alloca.u64") == kThreads * (3 + 500));  // with those that are guarded
    CHECK(counts.back().at("stacksave.u64") == kThreads * 3);
  }
  CHECK(outs[0] == outs[1]);
  CHECK(counts[0] == counts[1]);
}

TEST_CASE("a stack without room for a block is a fault, and no less room is given") {
  for (const char* backend : kBackends)
    for (const bool checks : {false, true}) {
      CAPTURE(backend);
      CAPTURE(checks);
      const Checks what = checks ? parse_checks("--check", "all") : Checks{};
      std::vector<uint64_t> out(40);
      const auto run = [&](uint64_t stack, uint64_t bytes) {
        return run_one(backend, stack, bytes, what, out);
      };
      for (const auto& [stack, bytes] : {std::pair{1024, 1024}, {2048, 1025}, {4096, 4090}}) {
        const LaunchResult r = run(stack, bytes);
        if (r.fault) FAIL(r.fault->text);
        CHECK(r.findings.empty());
        CHECK(out[1] == 7);
      }
      for (const uint64_t bytes :
           {uint64_t{1025}, uint64_t{1} << 47, ~uint64_t{0}, ~uint64_t{0} - 2000}) {
        CAPTURE(bytes);
        const LaunchResult r = run(1024, bytes);
        REQUIRE(r.fault);
        CHECK(r.fault->reason == Fault::Reason::kStack);
        CHECK(r.fault->text.find("thread (1,0,0)") != std::string::npos);
        CHECK(r.fault->text.find(std::to_string(bytes) + " bytes, and 1024 of 1024") !=
              std::string::npos);
      }
    }
}

TEST_CASE("alignments of alloca are powers of two up to 2^23") {
  for (const char* align : {"0", "3", "16777216"}) {
    Engine engine({.backend = "scalar", .threads = 1});
    LoadedModule& module = engine.load(
        kHead + ".visible .entry k() {\n.reg .b64 %a;\nalloca.u64 %a, 8, " + align + ";\nret;\n}\n",
        "test.ptx");
    CHECK_THROWS_WITH(engine.launch({.kernel = engine.find_kernel(module, "k"), .params = {}}),
                      doctest::Contains("power of two up to 2^23"));
  }
}
