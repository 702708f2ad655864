// Calls that need a stack, calls and branches by address, and the heap of device code.
#include "tests/isa/ptx/launch_text.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

// f(n, x) = n == 0 ? x : n + f(n - 1, x) + f(n / 2, x), with a local variable that calls keep.
const std::string kRecursive = kHead + R"(
.func (.param .b64 back) f(.param .b32 n, .param .b64 x)
{
  .local .align 8 .b8 depot[16];
  .reg .b32 %r<5>;
  .reg .b64 %rd<9>;
  .reg .pred %p<2>;
  ld.param.b32 %r1, [n];
  ld.param.b64 %rd1, [x];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra MORE;
  st.param.b64 [back], %rd1;
  ret;
MORE:
  mov.b64 %rd8, depot;
  st.local.b32 [%rd8+4], %r1;
  sub.u32 %r2, %r1, 1;
  { .param .b32 p0; .param .b64 p1; .param .b64 out;
  st.param.b32 [p0], %r2;
  st.param.b64 [p1], %rd1;
  call (out), f, (p0, p1);
  ld.param.b64 %rd2, [out]; }
  shr.u32 %r3, %r1, 1;
  { .param .b32 p0; .param .b64 p1; .param .b64 out;
  st.param.b32 [p0], %r3;
  st.param.b64 [p1], %rd1;
  call (out), f, (p0, p1);
  ld.param.b64 %rd3, [out]; }
  ld.local.u32 %rd4, [depot+4];
  add.u64 %rd5, %rd2, %rd3;
  selp.u64 %rd6, %rd4, 0, %p1;
  add.u64 %rd5, %rd5, %rd6;
  st.param.b64 [back], %rd5;
  ret;
}
.visible .entry k(.param .u64 out, .param .u32 more)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r2, [more];
  rem.u32 %r3, %r1, 9;
  add.u32 %r3, %r3, %r2;
  cvt.u64.u32 %rd1, %r1;
  { .param .b32 p0; .param .b64 p1; .param .b64 back;
  st.param.b32 [p0], %r3;
  st.param.b64 [p1], %rd1;
  call (back), f, (p0, p1);
  ld.param.b64 %rd2, [back]; }
  ld.param.u64 %rd3, [out];
  mad.wide.u32 %rd3, %r1, 8, %rd3;
  st.global.u64 [%rd3], %rd2;
  ret;
}
)";
uint64_t f(uint64_t n, uint64_t x) { return n == 0 ? x : n + f(n - 1, x) + f(n / 2, x); }
uint64_t calls_of(uint64_t n) { return n == 0 ? 1 : 1 + calls_of(n - 1) + calls_of(n / 2); }

// Functions by a table that the text initialises, by an address that another kernel stored, and
// targets of brx.idx.
const std::string kByAddress = kHead + R"(
.global .align 8 .u64 table[3] = {twice, square, generic(less)};
.global .align 8 .u64 chosen;
.func (.param .b32 back) twice(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [back], %r2;
  ret;
}
.func (.param .b32 back) square(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  mul.lo.u32 %r2, %r1, %r1;
  st.param.b32 [back], %r2;
  ret;
}
.func (.param .b32 back) less(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  sub.u32 %r2, %r1, 3;
  st.param.b32 [back], %r2;
  ret;
}
.func nothing(.param .b64 x) { ret; }
.visible .entry choose()
{
  .reg .b64 %rd<2>;
  mov.u64 %rd1, square;
  st.global.u64 [chosen], %rd1;
  ret;
}
.visible .entry k(.param .u64 out, .param .u64 wrong)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  rem.u32 %r2, %r1, 4;
  mov.u64 %rd1, table;
  mad.wide.u32 %rd1, %r2, 8, %rd1;
  setp.eq.u32 %p1, %r2, 3;
  @%p1 mov.u64 %rd1, chosen;
  ld.global.u64 %rd2, [%rd1];
  ld.param.u64 %rd3, [wrong];
  setp.ne.u64 %p2, %rd3, 0;
  selp.u64 %rd2, %rd3, %rd2, %p2;
  { .param .b32 p0; .param .b32 back;
  st.param.b32 [p0], %r1;
  proto: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (back), %rd2, (p0), proto;
  ld.param.b32 %r3, [back]; }
  mov.u32 %r4, 0;
LIST: .branchtargets A, B, C;
  min.u32 %r5, %r2, 2;
  brx.idx %r5, LIST;
A:
  add.u32 %r4, %r4, 1;
B:
  add.u32 %r4, %r4, 10;
C:
  add.u32 %r4, %r4, 100;
  ld.param.u64 %rd4, [out];
  mad.wide.u32 %rd4, %r1, 8, %rd4;
  st.global.v2.u32 [%rd4], {%r3, %r4};
  ret;
}
)";

// Each thread makes a block of tid * 24 bytes, fills it, meets the others, and gives it back.
const std::string kHeap = kHead + R"(
.extern .func (.param .b64 back) malloc(.param .b64 size);
.extern .func free(.param .b64 p);
.visible .entry k(.param .u64 out, .param .u64 unit)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [unit];
  cvt.u64.u32 %rd2, %r1;
  mul.lo.u64 %rd2, %rd2, %rd1;
  { .param .b64 p0; .param .b64 back;
  st.param.b64 [p0], %rd2;
  call (back), malloc, (p0);
  ld.param.b64 %rd3, [back]; }
  setp.eq.u64 %p1, %rd3, 0;
  @%p1 bra DONE;
  add.u64 %rd4, %rd3, %rd2;
  st.global.u64 [%rd4+-8], %rd2;
  st.global.u64 [%rd3], %rd2;
  bar.sync 0;
  ld.global.u64 %rd5, [%rd4+-8];
  add.u64 %rd2, %rd5, 1;
  { .param .b64 p0;
  st.param.b64 [p0], %rd3;
  call free, (p0); }
  bra END;
DONE:
  mov.u64 %rd2, 0;
  bar.sync 0;
END:
  ld.param.u64 %rd6, [out];
  mad.wide.u32 %rd6, %r1, 8, %rd6;
  st.global.u64 [%rd6], %rd2;
  ret;
}
.visible .entry twice()
{
  .reg .b64 %rd<9>;
  { .param .b64 p0; .param .b64 back;
  st.param.b64 [p0], 100;
  call (back), malloc, (p0);
  ld.param.b64 %rd3, [back]; }
  { .param .b64 p0;
  st.param.b64 [p0], %rd3;
  call free, (p0); }
  { .param .b64 p0;
  st.param.b64 [p0], %rd3;
  call free, (p0); }
  ret;
}
)";

}  // namespace

TEST_CASE("functions call themselves, with variables of their own") {
  std::vector<std::map<std::string, uint64_t>> all;
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    constexpr uint64_t kThreads = 100;
    std::vector<uint64_t> out(kThreads);
    const LaunchResult r = run_text(kRecursive, "k", {backend, 1, {}, {kThreads, 1, 1}},
                                    pack(out.data(), uint32_t{0}), out);
    if (r.fault) FAIL(r.fault->text);
    uint64_t calls = 0;
    for (uint64_t t = 0; t < kThreads; ++t) {
      const uint64_t expected = f(t % 9, t);
      CHECK(out[t] == expected);
      calls += calls_of(t % 9);
    }
    all.push_back(counts_of(r));
    CHECK(all.back().at("call") == calls);
    const uint64_t returns = calls + kThreads;
    CHECK(all.back().at("ret") == returns);
  }
  CHECK(all[0] == all[1]);
}

TEST_CASE("a stack that overflows is a fault of its thread") {
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    std::vector<uint64_t> out(4);
    const LaunchResult r = run_text(kRecursive, "k", {backend, 1, {}, {4, 1, 1}},
                                    pack(out.data(), uint32_t{1000000}), out);
    REQUIRE(r.fault);
    CHECK(r.fault->text.find("a stack that overflows") != std::string::npos);
  }
}

TEST_CASE("calls by address, whoever stored it, and branches by number") {
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    Engine engine({.backend = backend, .threads = 1});
    LoadedModule& module = engine.load(kByAddress, "test.ptx");
    constexpr uint32_t kThreads = 70;
    std::vector<uint32_t> out(2 * kThreads);
    engine.add_memory(out.data(), out.size() * 4, "out");
    const auto launch = [&](const char* name, const std::vector<std::byte>& arguments) {
      return engine.launch({.kernel = engine.find_kernel(module, name),
                            .grid = {},
                            .block = {kThreads, 1, 1},
                            .params = arguments});
    };
    REQUIRE(!launch("choose", {}).fault);
    const LaunchResult r = launch("k", pack(out.data(), uint64_t{0}));
    if (r.fault) FAIL(r.fault->text);
    for (uint32_t t = 0; t < kThreads; ++t) {
      const uint32_t results[] = {2 * t, t * t, t - 3, t * t}, ways[] = {111, 110, 100, 100};
      CHECK(out[2 * t] == results[t % 4]);
      CHECK(out[2 * t + 1] == ways[t % 4]);
    }
    CHECK(counts_of(r).at("brx.idx") == kThreads);
    CHECK(counts_of(r).at("call") == kThreads);
    // No function, and one that takes something else.
    const LaunchResult wrong = launch("k", pack(out.data(), uint64_t{0x123456}));
    REQUIRE(wrong.fault);
    CHECK(wrong.fault->text.find("calls 0x123456, where no function") != std::string::npos);
  }
}

TEST_CASE("kernels have a heap") {
  for (const char* backend : kBackends)
    for (const uint32_t threads : {1u, 2u}) {
      CAPTURE(backend);
      CAPTURE(threads);
      Engine engine({.backend = backend, .threads = threads});
      LoadedModule& module = engine.load(kHeap, "test.ptx");
      constexpr uint64_t kThreads = 96;
      std::vector<uint64_t> out(kThreads);
      engine.add_memory(out.data(), out.size() * 8, "out");
      const auto launch = [&](const char* name, uint32_t blocks,
                              const std::vector<std::byte>& arguments) {
        return engine.launch({.kernel = engine.find_kernel(module, name),
                              .grid = {blocks, 1, 1},
                              .block = {kThreads, 1, 1},
                              .params = arguments,
                              .heap_bytes = 1 << 20});
      };
      // 36,480 bytes at a time for each block, of which two host threads have 16 at once; three
      // times as many in all as there are.
      for (const uint64_t unit : {8u, 240u}) {
        const LaunchResult r = launch("k", unit == 8 ? 100 : 1, pack(out.data(), unit));
        if (r.fault) FAIL(r.fault->text);
        size_t without = 0, wrong = 0;
        for (uint64_t t = 1; t < kThreads; ++t)
          if (out[t] == 0)
            ++without;
          else
            wrong += out[t] != t * unit + 1;
        CHECK(wrong == 0);
        CHECK(out[0] == 0);  // of no bytes
        CHECK((without != 0) == (unit == 240));
      }
      const LaunchResult again = launch("twice", 1, {});
      REQUIRE(again.fault);
      CHECK(again.fault->text.find("where no block of the device's heap begins") !=
            std::string::npos);
    }
}

// A list of branch targets as nvcc makes it of a switch: most indices lead to the default.
TEST_CASE("branches by number find their range") {
  constexpr uint32_t kTargets = 300, kThreads = 352;
  const auto way = [](uint32_t index) { return index % 7 == 3 || index == 299 ? index : 1000; };
  std::string list = "LIST: .branchtargets ", places;
  for (uint32_t k = 0; k < kTargets; ++k) {
    const std::string name = way(k) == k ? "T" + std::to_string(k) : "DEFAULT";
    list += (k == 0 ? "" : ", ") + name;
    if (way(k) == k) places += name + ": mov.u32 %r2, " + std::to_string(k) + "; bra.uni END;\n";
  }
  const std::string text = kHead + R"(
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %tid.x;
)" + list + ";\n  brx.idx %r1, LIST;\n" +
                           places + R"(
DEFAULT: mov.u32 %r2, 1000;
END:
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    std::vector<uint32_t> out(kThreads);
    const LaunchResult r =
        run_text(text, "k", {backend, 1, {}, {kThreads, 1, 1}}, pack(out.data()), out);
    if (r.fault) FAIL(r.fault->text);
    for (uint32_t t = 0; t < kThreads; ++t) CHECK(out[t] == (t < kTargets ? way(t) : 299));
    CHECK(counts_of(r).at("brx.idx") == kThreads);
  }
}

// As nvcc hands over a structure: bytes in, a word out, and the other way round.
TEST_CASE("caller and callee may access a parameter in different pieces") {
  const std::string text = kHead + R"(
.func (.param .align 8 .b8 back[8]) f(.param .align 8 .b8 x[8], .param .b32 y)
{
  .reg .b16 %h<3>;
  .reg .b32 %r<5>;
  ld.param.u32 %r1, [x];
  ld.param.v2.u16 {%h1, %h2}, [x+4];
  ld.param.s8 %r2, [y+1];
  st.param.v2.b16 [back], {%h2, %h1};
  add.u32 %r3, %r1, %r2;
  st.param.b32 [back+4], %r3;
  ret;
}
.func (.param .align 8 .b8 back[8]) again(.param .align 8 .b8 x[8], .param .b32 y, .param .b32 n)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  .reg .pred %p;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [y];
  ld.param.u32 %r2, [n];
  setp.eq.u32 %p, %r2, 0;
  @%p bra END;
  sub.u32 %r3, %r2, 1;
  { .param .align 8 .b8 p0[8]; .param .b32 p1; .param .b32 p2; .param .align 8 .b8 out[8];
  st.param.b64 [p0], %rd1;
  st.param.b32 [p1], %r1;
  st.param.b32 [p2], %r3;
  call (out), again, (p0, p1, p2);
  ld.param.b64 %rd1, [out]; }
  { .param .align 8 .b8 p0[8]; .param .b32 p1; .param .align 8 .b8 out[8];
  st.param.b64 [p0], %rd1;
  st.param.b32 [p1], %r1;
  call (out), f, (p0, p1);
  ld.param.b64 %rd1, [out]; }
END:
  st.param.b64 [back], %rd1;
  ret;
}
.visible .entry k(.param .u64 out, .param .u32 n)
{
  .reg .b16 %h<9>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r6, [n];
  add.u32 %r2, %r1, 0x1fe80;
  cvt.u16.u32 %h1, %r1;
  mov.u16 %h2, 0x55;
  { .param .align 8 .b8 p0[8]; .param .b32 p1; .param .align 8 .b8 out[8];
  st.param.v4.b8 [p0], {%h1, %h2, %h1, %h2};
  st.param.b32 [p0+4], %r2;
  st.param.b32 [p1], %r2;
  call (out), f, (p0, p1);
  ld.param.b64 %rd2, [out]; }
  { .param .align 8 .b8 p0[8]; .param .b32 p1; .param .b32 p2; .param .align 8 .b8 out[8];
  st.param.b64 [p0], %rd2;
  st.param.b32 [p1], %r2;
  st.param.b32 [p2], %r6;
  call (out), again, (p0, p1, p2);
  ld.param.b64 %rd2, [out]; }
  ld.param.u64 %rd3, [out];
  mad.wide.u32 %rd3, %r1, 8, %rd3;
  st.global.u64 [%rd3], %rd2;
  ret;
}
)";
  const auto f = [](uint64_t x, uint32_t y) {
    const auto low = static_cast<uint32_t>(x), high = static_cast<uint32_t>(x >> 32);
    const auto byte = static_cast<uint32_t>(static_cast<int8_t>(y >> 8));
    return uint64_t{low + byte} << 32 | (high >> 16 | high << 16);
  };
  for (const char* backend : kBackends)
    for (const uint32_t n : {0u, 3u}) {
      CAPTURE(backend);
      constexpr uint32_t kThreads = 70;
      std::vector<uint64_t> out(kThreads);
      const LaunchResult r =
          run_text(text, "k", {backend, 1, {}, {kThreads, 1, 1}}, pack(out.data(), n), out);
      if (r.fault) FAIL(r.fault->text);
      for (uint32_t t = 0; t < kThreads; ++t) {
        const uint32_t y = t + 0x1fe80;
        uint64_t x = f(uint64_t{y} << 32 | (0x55005500 | t << 16 | t), y);
        for (uint32_t k = 0; k < n; ++k) x = f(x, y);
        CHECK(out[t] == x);
      }
    }
}
