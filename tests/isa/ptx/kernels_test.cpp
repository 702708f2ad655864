// Small kernels: shared memory, barriers, calls, local memory, divergence. Equal on all backends.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "device_sim/base/error.h"
#include "tests/isa/ptx/launch_text.h"

using namespace gpusim;
using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

TEST_CASE("sums of blocks through shared memory and barriers") {
  const std::string text = kHead + R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .entry sum(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<9>;
  .shared .align 4 .b8 fixed[4];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  ld.param.u64 %rd1, [in];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.s32 %rd2, %r4, 4;
  add.s64 %rd2, %rd1, %rd2;
  ld.global.u32 %r5, [%rd2];
  mov.u32 %r6, dynamic;
  shl.b32 %r7, %r1, 2;
  add.s32 %r8, %r6, %r7;
  st.shared.u32 [%r8], %r5;
  setp.ne.s32 %p1, %r1, 0;
  @!%p1 st.shared.u32 [fixed], 1000;
  shr.u32 %r9, %r3, 1;
LOOP:
  bar.sync 0;
  setp.ge.u32 %p1, %r1, %r9;
  @%p1 bra SKIP;
  shl.b32 %r10, %r9, 2;
  add.s32 %r11, %r8, %r10;
  ld.shared.u32 %r12, [%r11];
  ld.shared.u32 %r13, [%r8];
  add.s32 %r13, %r13, %r12;
  st.shared.u32 [%r8], %r13;
SKIP:
  shr.u32 %r9, %r9, 1;
  setp.ne.s32 %p2, %r9, 0;
  @%p2 bra LOOP;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra END;
  ld.shared.u32 %r14, [dynamic];
  ld.shared.u32 %r15, [fixed];
  add.s32 %r14, %r14, %r15;
  ld.param.u64 %rd3, [out];
  mad.wide.u32 %rd3, %r2, 4, %rd3;
  st.global.u32 [%rd3], %r14;
END:
  ret;
}
)";
  for (const uint32_t block : {32u, 64u, 256u, 1024u})
    for (const char* backend : kBackends)
      for (const uint32_t threads : {1u, 2u}) {
        CAPTURE(block);
        CAPTURE(backend);
        constexpr uint32_t blocks = 9;
        std::vector<uint32_t> memory(blocks * block + blocks);
        std::iota(memory.begin(), memory.end() - blocks, 3u);
        const LaunchResult r =
            run_text(text, "sum", {backend, threads, {blocks, 1, 1}, {block, 1, 1}, 4 * block},
                     pack(memory.data(), memory.data() + blocks * block), memory);
        if (r.fault) FAIL(r.fault->text);
        for (uint32_t b = 0; b < blocks; ++b) {
          const auto begin = memory.begin() + b * block;
          CHECK(memory[blocks * block + b] == std::accumulate(begin, begin + block, 1000u));
        }
      }
}

TEST_CASE("functions take and give values, also in pieces") {
  const std::string text = kHead + R"(
.func (.param .b32 result) twice(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [x];
  setp_free:
  add.s32 %r2, %r1, %r1;
  st.param.b32 [result+0], %r2;
  ret;
}
.func (.param .align 8 .b8 result[16]) pair(.param .align 8 .b8 x[16], .param .b32 n)
{
  .reg .b64 %rd<5>;
  .reg .b32 %r<5>;
  .reg .pred %p;
  ld.param.v2.u64 {%rd1, %rd2}, [x];
  ld.param.u32 %r1, [n];
  { .reg .b32 %t; .param .b32 a; .param .b32 b;
  st.param.b32 [a+0], %r1;
  call.uni (b), twice, (a);
  ld.param.b32 %r2, [b+0]; }
  setp.gt.s32 %p, %r2, 10;
  @%p bra BIG;
  cvt.s64.s32 %rd3, %r2;
  st.param.b64 [result+0], %rd2;
  st.param.b64 [result+8], %rd3;
  ret;
BIG:
  st.param.b64 [result+0], %rd1;
  st.param.b64 [result+8], %rd2;
  ret;
}
.visible .entry calls(.param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<9>;
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %rd1, %r1;
  add.s64 %rd2, %rd1, 100;
  { .param .align 8 .b8 p0[16]; .param .b32 p1; .param .align 8 .b8 back[16];
  st.param.b64 [p0+0], %rd1;
  st.param.b64 [p0+8], %rd2;
  st.param.b32 [p1+0], %r1;
  call.uni (back), pair, (p0, p1);
  ld.param.v2.b64 {%rd3, %rd4}, [back+0]; }
  ld.param.u64 %rd5, [out];
  mad.wide.u32 %rd5, %r1, 16, %rd5;
  st.global.v2.u64 [%rd5], {%rd3, %rd4};
  ret;
}
)";
  for (const char* backend : kBackends) {
    std::vector<uint64_t> out(2 * 40);
    const LaunchResult r =
        run_text(text, "calls", {backend, 1, {}, {40, 1, 1}}, pack(out.data()), out);
    if (r.fault) FAIL(r.fault->text);
    for (uint64_t t = 0; t < 40; ++t) {
      CHECK(out[2 * t] == (2 * t > 10 ? t : t + 100));
      CHECK(out[2 * t + 1] == (2 * t > 10 ? t + 100 : 2 * t));
    }
    const auto counts = counts_of(r);
    CHECK(counts.at("call.uni") == 80);
    CHECK(counts.at("ret") == 40 * 3);
    CHECK(counts.at("ld.param.v2.u64") == 40);
  }
}

TEST_CASE("calls of what is not there are refused") {
  Engine engine({.backend = "scalar", .threads = 1});
  LoadedModule& module = engine.load(
      kHead + ".extern .func away();\n.visible .entry b() { call.uni away; ret; }\n", "t.ptx");
  // Of the runtime on the device, what is there for a device only.
  LoadedModule& other = engine.load(
      kHead + ".func (.param .b32 r) __cudaCDP2Memcpy3DAsync(.param .b64 a, .param .b64 b)\n{\n" +
          "  ret;\n}\n.visible .entry c() {\n  .param .b32 r;\n  .param .b64 a;\n" +
          "  .param .b64 b;\n  call.uni (r), __cudaCDP2Memcpy3DAsync, (a, b);\n  ret;\n}\n",
      "u.ptx");
  CHECK_THROWS_WITH_AS(engine.find_kernel(other, "c"),
                       doctest::Contains("kernels cannot call cudaMemcpy3DAsync here"), Error);
  CHECK_THROWS_WITH_AS(engine.find_kernel(module, "b"), doctest::Contains("nothing defines it"),
                       Error);
}

TEST_CASE("local memory is each thread's own") {
  const std::string text = kHead + R"(
.visible .entry local(.param .u64 out)
{
  .local .align 16 .b8 depot[128];
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>, %SP, %SPL;
  .reg .pred %p;
  mov.u64 %SPL, depot;
  cvta.local.u64 %SP, %SPL;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
FILL:
  mad.lo.s32 %r3, %r1, 100, %r2;
  mul.wide.u32 %rd1, %r2, 4;
  add.s64 %rd2, %SPL, %rd1;
  st.local.u32 [%rd2], %r3;
  add.s32 %r2, %r2, 1;
  setp.lt.s32 %p, %r2, 32;
  @%p bra FILL;
  and.b32 %r4, %r1, 31;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %SP, %rd3;
  ld.u32 %r5, [%rd4];
  ld.local.s8 %r6, [depot+4];
  add.s32 %r5, %r5, %r6;
  ld.param.u64 %rd5, [out];
  mad.wide.u32 %rd5, %r1, 4, %rd5;
  st.global.u32 [%rd5], %r5;
  ret;
}
)";
  for (const char* backend : kBackends) {
    std::vector<uint32_t> out(96);
    const LaunchResult r =
        run_text(text, "local", {backend, 1, {}, {96, 1, 1}}, pack(out.data()), out);
    if (r.fault) FAIL(r.fault->text);
    for (uint32_t t = 0; t < 96; ++t)
      CHECK(out[t] == t * 100 + t % 32 + static_cast<uint32_t>(static_cast<int8_t>(t * 100 + 1)));
  }
}

TEST_CASE("arithmetic that loops long enough for native code, on values of all kinds") {
  // Thread t takes the values at t + i, t + 3i and t + 7i in step i, and combines all results.
  const auto text = [](const std::string& type, int bytes) {
    const std::string bits = fmt::format("b{}", 8 * bytes);
    std::string body;
    for (const char* op : {"add.rn", "sub.rn", "mul.rn", "div.rn"})
      body += fmt::format("  {}.{} %d, %a, %b;\n  mov.{} %x, %d;\n  xor.{} %sum, %sum, %x;\n", op,
                          type, bits, bits);
    return kHead + fmt::format(R"(
.visible .entry loop(.param .u64 out, .param .u64 values, .param .u32 count)
{{
  .reg .b32 %r<9>, %t, %i, %n;
  .reg .b64 %rd<9>;
  .reg .{0} %a, %b, %c, %d;
  .reg .{1} %x, %sum;
  .reg .pred %p;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [values];
  ld.param.u32 %n, [count];
  mov.u32 %t, %tid.x;
  mov.u32 %i, 0;
  mov.{1} %sum, 0;
AGAIN:
  add.u32 %r1, %t, %i;
  rem.u32 %r1, %r1, %n;
  mad.lo.u32 %r2, %i, 3, %t;
  rem.u32 %r2, %r2, %n;
  mad.lo.u32 %r3, %i, 7, %t;
  rem.u32 %r3, %r3, %n;
  mad.wide.u32 %rd3, %r1, {2}, %rd2;
  ld.global.{0} %a, [%rd3];
  mad.wide.u32 %rd4, %r2, {2}, %rd2;
  ld.global.{0} %b, [%rd4];
  mad.wide.u32 %rd5, %r3, {2}, %rd2;
  ld.global.{0} %c, [%rd5];
  fma.rn.{0} %d, %a, %b, %c;
  mov.{1} %x, %d;
  xor.{1} %sum, %sum, %x;
  sqrt.rn.{0} %d, %c;
  mov.{1} %x, %d;
  xor.{1} %sum, %sum, %x;
{3}
  shl.{1} %x, %sum, 1;
  shr.{1} %sum, %sum, {4};
  or.{1} %sum, %sum, %x;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 3000;
  @%p bra AGAIN;
  mad.wide.u32 %rd6, %t, {2}, %rd1;
  st.global.{1} [%rd6], %sum;
  ret;
}}
)",
                               type, bits, bytes, body, 8 * bytes - 1);
  };
  const auto compare = [&](auto zero, const std::string& type) {
    using F = decltype(zero);
    using Limits = std::numeric_limits<F>;
    const F tiny = Limits::denorm_min(), least = Limits::min(), most = Limits::max();
    // Zeros are most of them, as in many programs.
    std::vector<F> values = {0,
                             0,
                             -F{0},
                             0,
                             1,
                             F(-1.5),
                             tiny,
                             -tiny,
                             3 * tiny,
                             least,
                             least / 4,
                             -least / 2,
                             most,
                             -most,
                             most / 2,
                             Limits::infinity(),
                             -Limits::infinity(),
                             Limits::quiet_NaN(),
                             F(1e-20),
                             F(-3e19),
                             F(1) / 3,
                             7,
                             F(1e-30),
                             0,
                             0};
    std::vector<F> memory(64 + values.size());
    std::copy(values.begin(), values.end(), memory.begin() + 64);
    const std::string all = text(type, sizeof(F));
    std::vector<std::vector<F>> results;
    for (const char* backend : kBackends) {
      std::vector<F> of_backend = memory;
      const LaunchResult r = run_text(
          all, "loop", {backend, 1, {}, {64, 1, 1}},
          pack(of_backend.data(), of_backend.data() + 64, static_cast<uint32_t>(values.size())),
          of_backend);
      if (r.fault) FAIL(r.fault->text);
      results.push_back(std::move(of_backend));
    }
    const auto bytes = [](const std::vector<F>& list) {
      const auto* const first = reinterpret_cast<const char*>(list.data());
      return std::string(first, 64 * sizeof(F));
    };
    CHECK(bytes(results[0]) == bytes(results[1]));
    CHECK(bytes(results[0]) != bytes(memory));
  };
  compare(float{}, "f32");
  compare(double{}, "f64");
}

TEST_CASE("isspacep tells the windows apart") {
  // One bit each, of an address of each kind: global, const, param, shared, local.
  const std::string text = kHead + R"(
.const .align 4 .u32 table[3] = {1, 2, 3};
.visible .entry spaces(.param .u64 out, .param .align 8 .b8 more[24])
{
  .shared .align 4 .b8 block[64];
  .local .align 4 .b8 depot[8];
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, table;
  cvta.const.u64 %rd2, %rd2;
  add.u64 %rd2, %rd2, 8;
  mov.b64 %rd3, more;
  cvta.param.u64 %rd3, %rd3;
  add.u64 %rd3, %rd3, 23;
  mov.u64 %rd4, block;
  cvta.shared.u64 %rd4, %rd4;
  mov.u64 %rd5, depot;
  cvta.local.u64 %rd5, %rd5;
)" + [] {
    std::string all;
    for (int k = 1; k <= 5; ++k) {
      all += "  mov.u32 %r1, 0;\n";
      int bit = 1;
      for (const char* space : {"global", "const", "param", "shared", "local"}) {
        all += fmt::format("  isspacep.{} %p, %rd{};\n  @%p or.b32 %r1, %r1, {};\n", space, k, bit);
        bit *= 2;
      }
      all += fmt::format("  st.global.u32 [%rd1+{}], %r1;\n", 4 * (k - 1));
    }
    // Behind the constants, and before the parameters.
    return all + R"(
  add.u64 %rd6, %rd2, 4;
  isspacep.const %p, %rd6;
  selp.u32 %r1, 1, 0, %p;
  add.u64 %rd6, %rd3, 1;
  isspacep.param::entry %p, %rd6;
  @%p or.b32 %r1, %r1, 2;
  st.global.u32 [%rd1+20], %r1;
  ret;
}
)";
  }();
  for (const char* backend : kBackends) {
    std::vector<uint32_t> out(6);
    std::vector<std::byte> params(32);
    const uint64_t address = reinterpret_cast<uint64_t>(out.data());
    std::memcpy(params.data(), &address, sizeof address);
    const LaunchResult r = run_text(text, "spaces", {backend, 1, {}, {1, 1, 1}}, params, out);
    if (r.fault) FAIL(r.fault->text);
    CHECK(out == std::vector<uint32_t>{1, 2, 4, 8, 16, 0});
  }
}

TEST_CASE("registers that are read before they are written are zero, in every CTA") {
  const std::string text = kHead + R"(
.visible .entry unset(.param .u64 out)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<3>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r2, 5;
  add.s32 %r3, %r3, %r1;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r3, 4, %rd1;
  st.global.u32 [%rd1], %r7;
  mov.u32 %r7, 77;
  st.global.u32 [%rd1+0], %r7;
  sub.s32 %r8, %r7, 77;
  @%p0 add.s32 %r8, %r8, 1;
  ret;
}
)";
  std::string with_predicate = text;
  with_predicate.insert(with_predicate.find(".reg .b64"), ".reg .pred %p0;\n  ");
  // The second store would hide the first: take it out.
  const size_t second = with_predicate.find("st.global.u32 [%rd1+0]");
  with_predicate.erase(second, with_predicate.find('\n', second) - second);
  for (const char* backend : kBackends) {
    std::vector<uint32_t> out(32 * 80, 9);
    const LaunchResult r = run_text(with_predicate, "unset", {backend, 1, {80, 1, 1}, {32, 1, 1}},
                                    pack(out.data()), out);
    if (r.fault) FAIL(r.fault->text);
    CHECK(std::accumulate(out.begin(), out.end(), uint64_t{0}) == 0);
  }
}

TEST_CASE("atomics add up, and warps vote and shuffle") {
  const std::string text = kHead + R"(
.visible .entry together(.param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<20>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %laneid;
  atom.global.add.u32 %r3, [%rd1], 3;
  red.global.max.s32 [%rd1+4], %r1;
  atom.global.inc.u32 %r3, [%rd1+8], 6;
  red.global.add.f32 [%rd1+12], 0f3F000000;
  atom.global.and.b32 %r3, [%rd1+16], -17;
  setp.lt.u32 %p1, %r2, 5;
  vote.sync.ballot.b32 %r4, %p1, -1;
  shfl.sync.bfly.b32 %r5|%p2, %r1, 1, 31, -1;
  shfl.sync.down.b32 %r6, %r1, 4, 31, -1;
  mad.wide.u32 %rd2, %r1, 16, %rd1;
  selp.u32 %r7, 1, 0, %p2;
  st.global.v4.u32 [%rd2+32], {%r4, %r5, %r6, %r7};
  ret;
}
)";
  std::vector<uint32_t> first;
  for (const char* backend : kBackends) {
    std::vector<uint32_t> out(8 + 4 * 64);
    out[4] = 0xffffffff;
    const LaunchResult r =
        run_text(text, "together", {backend, 1, {}, {64, 1, 1}}, pack(out.data()), out);
    if (r.fault) FAIL(r.fault->text);
    CHECK(out[0] == 3 * 64);
    CHECK(out[1] == 63);
    CHECK(out[2] == 64 % 7);
    CHECK(out[3] == 0x42000000);  // 32
    CHECK(out[4] == 0xffffffef);
    for (uint32_t t = 0; t < 64; ++t) {
      CHECK(out[8 + 4 * t] == 31);
      CHECK(out[8 + 4 * t + 1] == (t ^ 1));
      CHECK(out[8 + 4 * t + 2] == (t % 32 < 28 ? t + 4 : t));
      CHECK(out[8 + 4 * t + 3] == 1);
    }
    if (first.empty()) first = out;
    CHECK(out == first);
  }
}

// Each thread adds (1, its number) to a pair of words, or backs off; odd ones mostly do not.
TEST_CASE("registers of 128 bits, and atom.cas on them") {
  const std::string text = kHead + R"(
.visible .entry k(.param .u64 data)
{
  .reg .pred %p<4>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<20>;
  .reg .b128 %q<9>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %rd2, %r1;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 1;
  mov.b128 %q7, 5;
AGAIN:
  ld.volatile.global.u64 %rd3, [%rd1];
  ld.volatile.global.u64 %rd4, [%rd1+8];
  mov.b128 %q1, {%rd3, %rd4};
  add.u64 %rd5, %rd3, 1;
  add.u64 %rd6, %rd4, %rd2;
  mov.b128 %q2, {%rd5, %rd6};
  atom.global.cas.relaxed.gpu.b128 %q3, [%rd1], %q1, %q2;
  mov.b128 %q4, %q3;
  mov.b128 {%rd7, %rd8}, %q4;
  setp.ne.u64 %p2, %rd7, %rd3;
  setp.ne.or.u64 %p2, %rd8, %rd4, %p2;
  @%p2 bra AGAIN;
  mov.b128 {_, %rd9}, %q2;
  mov.b128 {%r3, %r4, %r5, %r6}, %q2;
  mov.b128 %q5, {%r6, %r5, %r4, %r3};
  @%p1 mov.b128 %q5, %q7;
  mad.wide.u32 %rd10, %r1, 32, %rd1;
  st.global.b128 [%rd10+32], %q5;
  ld.global.b128 %q6, [%rd10+32];
  mov.b128 {%rd11, %rd12}, %q6;
  xor.b64 %rd11, %rd11, %rd12;
  st.global.u64 [%rd10+48], %rd9;
  st.global.u64 [%rd10+56], %rd11;
  ret;
}
)";
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    constexpr uint32_t kThreads = 70;
    std::vector<uint64_t> data(5 + 4 * kThreads);
    uint64_t* const begin = data.data() + (reinterpret_cast<uintptr_t>(data.data()) % 16 != 0);
    const LaunchResult r =
        run_text(text, "k", {backend, 1, {}, {kThreads, 1, 1}}, pack(begin), data);
    if (r.fault) FAIL(r.fault->text);
    CHECK(begin[0] == kThreads);
    CHECK(begin[1] == kThreads * (kThreads - 1) / 2);
    for (uint32_t t = 0; t < kThreads; ++t) {
      const uint64_t* const own = begin + 4 + 4 * t;
      const uint64_t sum = own[2];  // as this thread left it
      const uint64_t low = t % 2 == 1 ? 5 : (sum << 32 | sum >> 32);
      CHECK(own[0] == low);
      CHECK(own[3] == (own[0] ^ own[1]));
      CHECK((t % 2 == 1 ? own[1] == 0 : (own[1] >> 32) != 0));
    }
  }
}

// 300 values that are live at once, and all written again by half of the threads, with a guard and
// in a loop.
TEST_CASE("what does not fit registers is spilled") {
  constexpr uint32_t kValues = 300, kThreads = 70;
  std::string text = kHead + R"(
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<10>, %v<300>;
  .reg .b64 %rd<10>;
  .reg .pred %p<9>;
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 1;
  mov.u32 %r3, 0;
)";
  const auto all = [&](const auto& line) {
    for (uint32_t k = 0; k < kValues; ++k)
      text += line("%v" + std::to_string(k), std::to_string(k));
  };
  all([](auto v, auto k) { return "  mad.lo.u32 " + v + ", %r1, " + k + ", 7;\n"; });
  text += "AGAIN:\n";
  all([](auto v, auto k) { return "  @%p1 add.u32 " + v + ", " + v + ", " + k + ";\n"; });
  text +=
      "  add.u32 %r3, %r3, 1;\n  setp.lt.u32 %p2, %r3, 3;\n  @%p2 bra AGAIN;\n"
      "  mov.u32 %r4, 0;\n";
  all([](auto v, auto) { return "  mad.lo.u32 %r4, %r4, 31, " + v + ";\n"; });
  text += R"(
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  st.global.u32 [%rd1], %r4;
  ret;
}
)";
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    std::vector<uint32_t> out(kThreads);
    const LaunchResult r =
        run_text(text, "k", {backend, 1, {}, {kThreads, 1, 1}}, pack(out.data()), out);
    if (r.fault) FAIL(r.fault->text);
    for (uint32_t t = 0; t < kThreads; ++t) {
      uint32_t sum = 0;
      for (uint32_t k = 0; k < kValues; ++k) sum = sum * 31 + t * k + 7 + (t % 2) * 3 * k;
      CHECK(out[t] == sum);
    }
    CHECK(r.thread_instructions == kThreads * (4 + kValues + 3 * (kValues + 3) + 1 + kValues + 4));
    CHECK(counts_of(r).at("mad.lo.u32") == 2 * kValues * kThreads);
    CHECK(counts_of(r).count("ld") + counts_of(r).count("st") == 0);
  }
}

namespace {

// In a single block: `values` that are live at once, and `local_bytes` of local memory.
std::string straight_line(uint32_t values, uint32_t local_bytes) {
  const auto all = [&](const auto& line) {
    std::string text;
    for (uint32_t k = 0; k < values; ++k) text += line("%v" + std::to_string(k), k);
    return text;
  };
  std::string text = kHead + ".visible .entry k(.param .u64 out)\n{\n  .local .align 8 .b8 own[" +
                     std::to_string(local_bytes) + "];\n  .reg .b32 %r<3>, %v<" +
                     std::to_string(values) +
                     ">;\n  .reg .b64 %rd<3>;\n  mov.u32 %r1, %tid.x;\n"
                     "  mov.u64 %rd1, own;\n  st.local.u32 [%rd1], %r1;\n";
  text += all([](auto v, uint32_t k) {
    return "  mad.lo.u32 " + v + ", %r1, " + std::to_string(k) + ", 7;\n";
  });
  text += "  ld.local.u32 %r2, [%rd1];\n";
  text += all([](auto v, uint32_t) { return "  mad.lo.u32 %r2, %r2, 31, " + v + ";\n"; });
  return text + R"(
  ld.param.u64 %rd2, [out];
  mad.wide.u32 %rd2, %r1, 4, %rd2;
  st.global.u32 [%rd2], %r2;
  ret;
}
)";
}

}  // namespace

TEST_CASE("values that live in one block only are spilled, too") {
  constexpr uint32_t kValues = 300, kThreads = 70;
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    std::vector<uint32_t> out(kThreads);
    const LaunchResult r = run_text(straight_line(kValues, 16), "k",
                                    {backend, 1, {}, {kThreads, 1, 1}}, pack(out.data()), out);
    if (r.fault) FAIL(r.fault->text);
    for (uint32_t t = 0; t < kThreads; ++t) {
      uint32_t sum = t;
      for (uint32_t k = 0; k < kValues; ++k) sum = sum * 31 + t * k + 7;
      CHECK(out[t] == sum);
    }
  }
}

TEST_CASE("kernels with too many values, or no room for them, are refused") {
  Engine engine({.backend = "scalar", .threads = 1});
  const auto find = [&](uint32_t values, uint32_t local_bytes) {
    engine.find_kernel(engine.load(straight_line(values, local_bytes), "t.ptx"), "k");
  };
  find(100, 1 << 20);
  CHECK_THROWS_WITH_AS(find(300, 1 << 20), doctest::Contains("bytes of local memory"), Error);
  CHECK_THROWS_WITH_AS(find(9000, 16), doctest::Contains("more than 8192 values"), Error);
}

// A kernel that counts, and launches itself at its tail.
TEST_CASE("launches by kernels that count the same have one result in memory") {
  const std::string text = kHead + R"(
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 kernel,
    .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12], .param .b32 shared);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 buffer, .param .b64 stream);
.visible .entry k(.param .u64 at)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  .reg .pred %p;
  .param .b64 kernel;
  .param .align 4 .b8 grid[12];
  .param .align 4 .b8 block[12];
  .param .b32 shared;
  .param .b64 buffer;
  .param .b64 stream;
  .param .b32 status;
  ld.param.u64 %rd1, [at];
  ld.global.u32 %r1, [%rd1];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%rd1], %r1;
  setp.eq.u32 %p, %r1, 50;
  @%p bra END;
  mov.u64 %rd2, k;
  st.param.b64 [kernel], %rd2;
  st.param.b32 [grid], 1;
  st.param.b32 [grid+4], 1;
  st.param.b32 [grid+8], 1;
  st.param.b32 [block], 1;
  st.param.b32 [block+4], 1;
  st.param.b32 [block+8], 1;
  st.param.b32 [shared], 0;
  call.uni (buffer), __cudaCDP2GetParameterBufferV2, (kernel, grid, block, shared);
  ld.param.b64 %rd3, [buffer];
  st.global.u64 [%rd3], %rd1;
  st.param.b64 [stream], 3;
  call.uni (status), __cudaCDP2LaunchDeviceV2, (buffer, stream);
END:
  ret;
}
)";
  std::vector<uint32_t> count(1);
  const LaunchResult r = run_text(text, "k", {}, pack(count.data()), count);
  if (r.fault) FAIL(r.fault->text);
  CHECK(count[0] == 50);
  REQUIRE(r.device_launches.size() == 49);
  for (size_t k = 0; k < 48; ++k) CHECK(r.device_launches[k].result == r.device_launches[0].result);
  CHECK(r.device_launches[48].result->thread_instructions <
        r.device_launches[0].result->thread_instructions);
}
