// The same source compiled by nvcc to PTX, run here, and by the host's compiler: equal bits.
//   nvcc_test FILE.ptx...
#define DOCTEST_CONFIG_IMPLEMENT
#include <random>

#include "device_sim/base/file.h"
#include "tests/isa/ptx/host_kernels.h"
#include "tests/isa/ptx/launch_text.h"

using namespace gpusim::ptx;
using namespace gpusim::ptx::test;

namespace {

std::vector<std::string> files;
constexpr uint32_t kThreads = 3000, kBlock = 96;

std::vector<uint32_t> inputs() {
  std::mt19937 random(5);
  std::vector<uint32_t> in(kThreads);
  for (uint32_t& x : in) x = static_cast<uint32_t>(random()) >> random() % 32;
  return in;
}

using Words = std::vector<uint64_t>;
template <class Call>
Words on_host(Call call) {
  Words out(kThreads);
  const uint32_t blocks = (kThreads + kBlock - 1) / kBlock;
  blockDim.x = kBlock;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < kBlock; ++threadIdx.x) call(out.data());
  return out;
}

template <class... Before>
void compare(const char* name, const Words& expected, const Before&... before) {
  std::vector<uint32_t> in = inputs();
  for (const std::string& file : files) {
    std::vector<std::vector<OpcodeCount>> counts;
    for (const char* backend : kBackends) {
      CAPTURE(file);
      CAPTURE(name);
      CAPTURE(backend);
      Engine engine({.backend = backend, .threads = 2});
      LoadedModule& module = engine.load(gpusim::read_text(file), file);
      Words out(kThreads);
      engine.add_memory(out.data(), out.size() * 8, "out");
      engine.add_memory(in.data(), in.size() * 4, "in");
      const LaunchResult r =
          engine.launch({.kernel = engine.find_kernel(module, name),
                         .grid = {(kThreads + kBlock - 1) / kBlock, 1, 1},
                         .block = {kBlock, 1, 1},
                         .params = pack(out.data(), before..., in.data(), kThreads)});
      if (r.fault) FAIL(r.fault->text);
      CHECK(out == expected);
      counts.push_back(r.opcodes);
    }
    const auto same = [](const OpcodeCount& a, const OpcodeCount& b) {
      return a.opcode == b.opcode && a.count == b.count;
    };
    CHECK(std::equal(counts[0].begin(), counts[0].end(), counts[1].begin(), counts[1].end(), same));
  }
}

}  // namespace

#define GPUSIM_COMPARE(name)                                                         \
  TEST_CASE(#name) {                                                                 \
    const std::vector<uint32_t> in = inputs();                                       \
    compare(#name, on_host([&](uint64_t* out) { name(out, in.data(), kThreads); })); \
  }
GPUSIM_COMPARE(integers)
GPUSIM_COMPARE(bits)
GPUSIM_COMPARE(collatz)
GPUSIM_COMPARE(small_types)
GPUSIM_COMPARE(stacks)
GPUSIM_COMPARE(floats)

TEST_CASE("doubles, and a parameter of two values") {
  const std::vector<uint32_t> in = inputs();
  const Pair scale{1e-5, 0.25f};
  compare("doubles", on_host([&](uint64_t* out) { doubles(out, scale, in.data(), kThreads); }),
          scale);
}

int main(int argc, char** argv) {
  doctest::Context context;
  for (int k = 1; k < argc; ++k)
    if (std::string(argv[k]).ends_with(".ptx")) files.push_back(argv[k]);
  context.applyCommandLine(argc, argv);
  if (files.empty()) return 2;
  return context.run();
}
