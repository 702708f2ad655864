// Launches: grids and blocks of all shapes, counts, faults, what is refused.
#include "device_sim/base/error.h"
#include "tests/isa/ptx/launch_text.h"

using namespace gpusim;
using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

// out[linear number of the thread in the grid] = its coordinates.
const std::string kWhere = kHead + R"(
.visible .entry where(.param .u64 out)
{
  .reg .b32 %r<20>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %ntid.y;
  mov.u32 %r6, %ntid.z;
  mov.u32 %r7, %ctaid.x;
  mov.u32 %r8, %ctaid.y;
  mov.u32 %r9, %ctaid.z;
  mov.u32 %r10, %nctaid.x;
  mov.u32 %r11, %nctaid.y;
  mad.lo.u32 %r12, %r3, %r5, %r2;
  mad.lo.u32 %r12, %r12, %r4, %r1;
  mad.lo.u32 %r13, %r9, %r11, %r8;
  mad.lo.u32 %r13, %r13, %r10, %r7;
  mul.lo.u32 %r14, %r4, %r5;
  mul.lo.u32 %r14, %r14, %r6;
  mad.lo.u32 %r15, %r13, %r14, %r12;
  shl.b32 %r16, %r3, 8;
  or.b32 %r16, %r16, %r2;
  shl.b32 %r16, %r16, 8;
  or.b32 %r16, %r16, %r1;
  shl.b32 %r17, %r9, 8;
  or.b32 %r17, %r17, %r8;
  shl.b32 %r17, %r17, 8;
  or.b32 %r17, %r17, %r7;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r15, 8, %rd1;
  st.global.v2.u32 [%rd1], {%r16, %r17};
  ret;
}
)";

}  // namespace

TEST_CASE("every thread of a grid runs once, with its own coordinates") {
  const std::pair<Dim3, Dim3> shapes[] = {
      {{1, 1, 1}, {1, 1, 1}},  {{5, 1, 1}, {7, 1, 1}},  {{3, 2, 4}, {4, 3, 2}},
      {{2, 3, 1}, {64, 1, 1}}, {{9, 1, 1}, {32, 8, 1}}, {{2, 1, 1}, {1024, 1, 1}},
      {{4, 1, 2}, {33, 1, 1}}, {{70, 1, 1}, {8, 8, 4}},
  };
  for (const auto& [grid, threads_of_cta] : shapes)
    for (const char* backend : kBackends)
      for (const uint32_t threads : {1u, 3u}) {
        const Dim3 block = threads_of_cta;
        CAPTURE(backend);
        CAPTURE(block.x);
        std::vector<uint64_t> out(grid.count() * block.count(), ~uint64_t{0});
        const LaunchResult r =
            run_text(kWhere, "where", {backend, threads, grid, block}, pack(out.data()), out);
        CHECK(!r.fault);
        CHECK(r.threads == out.size());
        CHECK(r.thread_instructions == 30 * out.size());
        size_t wrong = 0;
        for (size_t n = 0; n < out.size(); ++n) {
          const uint64_t t = n % block.count(), c = n / block.count();
          const uint64_t thread =
              t % block.x | t / block.x % block.y << 8 | t / block.x / block.y << 16;
          const uint64_t cta = c % grid.x | c / grid.x % grid.y << 8 | c / grid.x / grid.y << 16;
          wrong += out[n] != (thread | cta << 32);
        }
        CHECK(wrong == 0);
      }
}

TEST_CASE("opcodes are counted by spelling, exactly") {
  // Thread t goes round t % 5 + 1 times; threads of odd numbers do one thing more.
  const std::string text = kHead + R"(
.visible .entry count(.param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .f32 %f<3>;
  mov.u32 %r1, %tid.x;
  rem.u32 %r2, %r1, 5;
  mov.f32 %f1, 0f00000000;
LOOP:
  add.f32 %f1, %f1, 0f3F800000;
  sub.s32 %r2, %r2, 1;
  setp.ge.s32 %p1, %r2, 0;
  @%p1 bra LOOP;
  and.b32 %r3, %r1, 1;
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra DONE;
  xor.b32 %r3, %r3, 5;
DONE:
  @%p2 not.b32 %r3, %r3;
  ret;
}
)";
  const uint64_t threads = 100 * 7;
  uint64_t rounds = 0, odd = 0;
  for (uint64_t c = 0; c < 7; ++c)
    for (uint64_t t = 0; t < 100; ++t) {
      rounds += t % 5 + 1;
      odd += t % 2;
    }
  for (const char* backend : kBackends) {
    std::vector<uint64_t> none(1);
    const LaunchResult r =
        run_text(text, "count", {backend, 1, {7, 1, 1}, {100, 1, 1}}, pack(none.data()), none);
    const std::map<std::string, uint64_t> expected = {
        {"mov.u32", threads},      {"rem.u32", threads}, {"mov.f32", threads},
        {"add.f32", rounds},       {"sub.s32", rounds},  {"setp.ge.s32", rounds},
        {"bra", rounds + threads}, {"and.b32", threads}, {"setp.eq.u32", threads},
        {"xor.b32", odd},          {"not.b32", threads}, {"ret", threads}};
    CHECK(counts_of(r) == expected);
    CHECK(r.classes[static_cast<size_t>(InsnClass::kFloatArithmetic)] == rounds);
    CHECK(r.classes[static_cast<size_t>(InsnClass::kIntegerDivision)] == threads);
    CHECK(r.classes[static_cast<size_t>(InsnClass::kControlFlow)] == rounds + 2 * threads);
  }
}

TEST_CASE("a bad access ends the grid and says who, where and what is next to it") {
  const std::string text = kHead + R"(
.file 7 "source.cu"
.visible .entry bad(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  .reg .pred %p;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [out];
  setp.ne.u32 %p, %r1, 5;
  @%p bra END;
  .loc 7 42 3
  st.global.u32 [%rd1+8192], %r1;
END:
  ret;
}
)";
  for (const char* backend : kBackends) {
    // Whole pages, so that what lies behind is nobody's.
    std::vector<uint32_t> memory(4096);
    auto* const page = reinterpret_cast<uint32_t*>(
        (reinterpret_cast<uintptr_t>(memory.data()) + 4095) & ~uintptr_t{4095});
    Engine engine({.backend = backend, .threads = 1});
    const Kernel* k = engine.find_kernel(engine.load(text, "test.ptx"), "bad");
    engine.add_memory(page, 4096, "a page");
    const LaunchResult r =
        engine.launch({.kernel = k, .grid = {1, 1, 1}, .block = {32, 1, 1}, .params = pack(page)});
    REQUIRE(r.fault);
    CHECK(r.fault->kernel == "bad");
    CHECK(r.fault->thread.x == 5);
    CHECK(r.fault->line == 16);
    const std::string& all = r.fault->text;
    CHECK(all.find("kernel 'bad', block (0,0,0), thread (5,0,0)") != std::string::npos);
    CHECK(all.find("4096 bytes behind the end of a page of 4096 bytes") != std::string::npos);
    CHECK(all.find("st.global.u32 (source.cu:42)") != std::string::npos);
    // The engine goes on after a fault.
    const LaunchResult again =
        engine.launch({.kernel = k, .grid = {1, 1, 1}, .block = {4, 1, 1}, .params = pack(page)});
    CHECK(!again.fault);
  }
}

TEST_CASE("constants cannot be written, and variables keep their values between launches") {
  const std::string text = kHead + R"(
.const .align 4 .u32 limit = 5;
.global .align 4 .u32 counter = 10;
.global .align 8 .u64 where = generic(counter);
.visible .entry count()
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.const.u32 %r1, [limit];
  ld.global.u64 %rd1, [where];
  atom.global.add.u32 %r2, [%rd1], %r1;
  ret;
}
.visible .entry spoil()
{
  .reg .b64 %rd1;
  mov.u64 %rd1, limit;
  st.u32 [%rd1], 1;
  ret;
}
)";
  for (const char* backend : kBackends) {
    Engine engine({.backend = backend, .threads = 2});
    LoadedModule& module = engine.load(text, "test.ptx");
    for (int k = 0; k < 3; ++k)
      engine.launch({.kernel = engine.find_kernel(module, "count"),
                     .grid = {2, 1, 1},
                     .block = {40, 1, 1},
                     .params = {}});
    const DeviceVariable v = engine.find_variable(module, "counter");
    REQUIRE(v.size_bytes == 4);
    CHECK(*static_cast<uint32_t*>(v.address) == 10 + 3 * 80 * 5);
    const LaunchResult r = engine.launch(
        {.kernel = engine.find_kernel(module, "spoil"), .grid = {}, .block = {}, .params = {}});
    REQUIRE(r.fault);
    CHECK(r.fault->text.find("constants of test.ptx") != std::string::npos);
  }
}

TEST_CASE("launches that cannot be are refused with a sentence") {
  Engine engine({.backend = "scalar", .threads = 1});
  LoadedModule& module =
      engine.load(kHead +
                      ".visible .entry k(.param .u32 a) .maxntid 64 { ret; }\n"
                      ".visible .entry fixed() .reqntid 8, 4 { ret; }\n"
                      ".visible .entry unknown() { .reg .b32 %r; "
                      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; ret; }\n",
                  "test.ptx");
  const Kernel* k = engine.find_kernel(module, "k");
  CHECK(info(*k).max_threads == 64);
  CHECK(engine.find_kernel(module, "nobody") == nullptr);
  CHECK_THROWS_WITH_AS(engine.find_kernel(module, "unknown"),
                       doctest::Contains("'tcgen05' is not supported"), Error);
  const auto a = pack(uint32_t{1});
  const auto refused = [&](const Kernel* kernel, Dim3 grid, Dim3 block,
                           std::span<const std::byte> params, const char* why) {
    CHECK_THROWS_WITH_AS(
        engine.launch({.kernel = kernel, .grid = grid, .block = block, .params = params}),
        doctest::Contains(why), Error);
  };
  refused(k, {1, 1, 1}, {65, 1, 1}, a, ".maxntid");
  refused(k, {1, 1, 1}, {1025, 1, 1}, a, "at most 1024");
  refused(k, {1, 0, 1}, {1, 1, 1}, a, "grid of 1 x 0 x 1");
  refused(k, {1, 1, 1}, {1, 1, 1}, {}, "takes 4 bytes of parameters, not 0");
  refused(engine.find_kernel(module, "fixed"), {1, 1, 1}, {32, 1, 1}, {}, ".reqntid");
}
