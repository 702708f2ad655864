// What `--check` knows of global memory: what was written of it, and by whom it was freed.
#include <sys/mman.h>

#include "tests/isa/ptx/launch_text.h"

namespace gpusim::ptx::test {
namespace {

constexpr uint64_t kBytes = 4096;

// Each thread loads its word of one range and stores it into another.
const std::string kCopy = kHead + R"(
.visible .entry copy(.param .u64 from, .param .u64 to)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.u32 %r2, [%rd4];
  add.u64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd5], %r2;
  ret;
}
)";

class Copier {
 public:
  explicit Copier(const std::string& backend)
      : engine({.backend = backend,
                .checks = {.memory = true, .uninitialised = true},
                .has_profile = false}),
        kernel_(engine.find_kernel(engine.load(kCopy, "copy.ptx"), "copy")) {
    for (int k = 0; k < 3; ++k)
      ranges_[k] =
          mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int k = 0; k < 3; ++k)
      engine.add_memory(ranges_[k], kBytes, "memory " + std::to_string(k), "made by a test", true);
  }
  ~Copier() {
    for (void* r : ranges_) munmap(r, kBytes);
  }
  char* at(int range) const { return static_cast<char*>(ranges_[range]); }
  std::vector<Finding> copy(int from, int to, uint32_t threads) {
    return engine
        .launch({.kernel = kernel_,
                 .grid = {1, 1, 1},
                 .block = {threads, 1, 1},
                 .params = pack(at(from), at(to))})
        .findings;
  }
  Engine engine;

 private:
  const Kernel* kernel_;
  void* ranges_[3];
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("loads of global memory that nothing wrote are found") {
  for (const char* backend : kBackends) {
    Copier c(backend);
    c.engine.mark_written(c.at(0), 60);
    CHECK(c.copy(0, 1, 15).empty());
    const std::vector<Finding> found = c.copy(0, 2, 16);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == FindingKind::kUninitialised);
    CHECK(found[0].thread == Dim3{15, 0, 0});
    CHECK(has(found[0].text, "that nothing has written, in memory 0 of 4096 bytes at 0x"));
    CHECK(has(found[0].text, "(made by a test)"));
    // What the kernels stored is written, whatever it was.
    CHECK(c.copy(2, 1, 16).empty());
    CHECK(c.copy(1, 0, 17).size() == 1);
    // Structures have bytes that nobody writes.
    c.engine.mark_written(c.at(1) + 67, 1);
    CHECK(c.copy(1, 0, 17).empty());
  }
}

TEST_CASE("a copy of the host hands on what was not written") {
  for (const char* backend : kBackends) {
    Copier c(backend);
    c.engine.mark_written(c.at(0) + 5, 59);
    c.engine.copy_written(c.at(1) + 3, c.at(0) + 8, 56);
    c.engine.mark_written(c.at(1), 3);
    CHECK(c.copy(1, 2, 15).empty());
    CHECK(c.copy(1, 2, 16).size() == 1);
    // From memory that nobody watches.
    const std::vector<char> host(kBytes);
    c.engine.copy_written(c.at(1), host.data(), 64);
    CHECK(c.copy(1, 2, 16).empty());
    // A second copy of unwritten bytes does not take back what was written.
    c.engine.copy_written(c.at(1), c.at(2) + 1024, 64);
    CHECK(c.copy(1, 0, 16).empty());
  }
}

TEST_CASE("memory that was freed is told with who freed it") {
  for (const char* backend : kBackends) {
    Copier c(backend);
    c.engine.mark_written(c.at(0), kBytes);
    c.engine.remove_memory(c.at(1), "freed by a test");
    const std::vector<Finding> found = c.copy(0, 1, 1);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == FindingKind::kUseAfterFree);
    CHECK(has(found[0].text, "in memory 1 of 4096 bytes"));
    CHECK(has(found[0].text, "(made by a test, freed by a test), which was freed"));
  }
}

}  // namespace
// Blocks of 32 threads access word[0] of `to`; `body` says how. %r1: the block.
std::vector<Finding> races_of(const std::string& backend, const std::string& body,
                              uint32_t blocks = 4) {
  const std::string text = kHead + R"(
.visible .entry k(.param .u64 to)
{
  .reg .b32 %r<8>; .reg .b64 %rd<6>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [to];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  setp.eq.u32 %p2, %r2, 0;
  mad.wide.u32 %rd2, %r1, 4, %rd1;
)" + body + "\nret;\n}\n";
  std::vector<uint32_t> memory(1024);
  Engine engine({.backend = backend, .checks = {.races = true}, .has_profile = false});
  engine.add_memory(memory.data(), 4096, "the test's memory");
  const LaunchResult r =
      engine.launch({.kernel = engine.find_kernel(engine.load(text, "test.ptx"), "k"),
                     .grid = {blocks, 1, 1},
                     .block = {32, 1, 1},
                     .params = pack(memory.data())});
  if (r.fault) FAIL(r.fault->text);
  return r.findings;
}

TEST_CASE("races of different blocks on global memory are found") {
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    // All store another number to the same word; block 0 stores what the others load.
    const auto stores = races_of(backend, "st.global.u32 [%rd1], %r1;");
    REQUIRE(stores.size() == 1);
    CHECK(stores[0].kind == FindingKind::kRace);
    CHECK(has(stores[0].text, "race on global memory: kernel 'k', 4 bytes at 0x"));
    CHECK(has(stores[0].text, "the test's memory"));
    CHECK(has(stores[0].text, "    block (0,0,0), thread ("));
    const std::string load = "@!%p1 ld.global.u32 %r3, [%rd1];";
    CHECK(races_of(backend, "@%p1 st.global.u32 [%rd1], 1;\n" + load).size() == 1);
    // A fence on one side only, or of both on the wrong side.
    CHECK(races_of(backend, "@%p1 st.global.u32 [%rd1], 1;\n@%p1 fence.acq_rel.gpu;\n" + load)
              .size() == 1);
    CHECK(races_of(backend, "membar.gl;\n@%p1 st.global.u32 [%rd1], 1;\n" + load).size() == 1);
    // Of one byte each, a half and a byte of it.
    CHECK(races_of(backend,
                   "cvt.u64.u32 %rd3, %r1;\nadd.u64 %rd3, %rd3, %rd1;\n"
                   "st.global.u8 [%rd3], %r1;")
              .empty());
    CHECK(races_of(backend, "@%p1 st.global.u16 [%rd1], 7;\n@!%p1 st.global.u8 [%rd1+1], 7;")
              .size() == 1);
  }
}

TEST_CASE("blocks that do not race are not reported") {
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    const auto none = [&](const std::string& body) { CHECK(races_of(backend, body).empty()); };
    none("st.global.u32 [%rd2], %r1;\nld.global.u32 %r3, [%rd2];");  // their own words
    none("ld.global.u32 %r3, [%rd1];");
    none("st.global.u32 [%rd1], 5;");  // the same number
    none("red.global.add.u32 [%rd1], 1;");
    none("st.volatile.global.u32 [%rd1], %r1;");
    none(
        "@%p1 st.global.u32 [%rd1], 1;\nfence.acq_rel.gpu;\nred.global.add.u32 [%rd1+64], 1;\n"
        "WAIT: ld.relaxed.gpu.global.u32 %r3, [%rd1+64];\nsetp.lt.u32 %p3, %r3, 128;\n"
        "@%p3 bra WAIT;\nfence.acq_rel.gpu;\n@!%p1 ld.global.u32 %r4, [%rd1];");
    // The same without a fence behind the look.
    none(
        "@%p1 st.global.u32 [%rd1], 1;\nfence.acq_rel.gpu;\nred.global.add.u32 [%rd1+64], 1;\n"
        "WAIT: atom.global.add.u32 %r3, [%rd1+64], 0;\nsetp.lt.u32 %p3, %r3, 128;\n"
        "@%p3 bra WAIT;\n@!%p1 ld.global.u32 %r4, [%rd1];");
    none(
        "@%p1 st.global.u32 [%rd1], 1;\n@%p1 st.release.gpu.global.u32 [%rd1+64], 1;\n"
        "@%p1 bra END;\nWAIT: ld.acquire.gpu.global.u32 %r3, [%rd1+64];\n"
        "setp.eq.u32 %p3, %r3, 0;\n@%p3 bra WAIT;\nld.global.u32 %r4, [%rd1];\nEND:");
  }
  // One launch after the other is ordered.
  const std::string text = kHead + R"(
.visible .entry k(.param .u64 to)
{
  .reg .b32 %r<3>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [to];
  mov.u32 %r1, %ctaid.x;
  ld.global.u32 %r2, [%rd1];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
  std::vector<uint32_t> memory(1024);
  Engine engine({.backend = "simd", .checks = {.races = true}, .has_profile = false});
  engine.add_memory(memory.data(), 4096, "the test's memory");
  const Kernel* const kernel = engine.find_kernel(engine.load(text, "test.ptx"), "k");
  for (int k = 0; k < 2; ++k)
    CHECK(engine
              .launch({.kernel = kernel,
                       .grid = {1, 1, 1},
                       .block = {1, 1, 1},
                       .params = pack(memory.data())})
              .findings.empty());
}

}  // namespace gpusim::ptx::test
