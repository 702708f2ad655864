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
}  // namespace gpusim::ptx::test
