// Kernels that execute one kind of PTX instruction over and over, as PTX text. The loop's work
// depends on values that only the launch knows, and its results are stored, so ptxas -O3 cannot
// take it away.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "energy/power/microbench/catalog.h"

namespace gpusim::power {

inline constexpr const char* kKernelName = "gpusim_bench";

struct KernelShape {
  uint32_t unroll = 64;  // measured instructions per iteration of the loop
};

// What a kernel does. `is_overhead`: the same without what is measured (Equation 1 of Arafa et
// al.).
struct KernelSpec {
  std::vector<const Instruction*> instructions;  // several take turns; none: an empty loop
  bool is_overhead = false;
  KernelShape shape;
};

// The kernel's parameters, in order. Offsets are those of the struct.
struct KernelParameters {
  uint64_t out = 0;               // 8 bytes for each thread
  uint64_t buffer = 0;            // for memory instructions
  uint64_t stride = 0, mask = 0;  // in bytes; the offset into the buffer stays below mask + 1
  uint32_t iterations = 1;
  uint32_t lanes = 32;  // threads of each warp that do not leave at once
  uint32_t int_a = 1664525, int_b = 1013904223, int_c = 13, int_y = 0x2545F491;
  uint32_t int_even = 1013904226, int_x = 12345;
  float float_a = -1, float_b = 3, float_c = 0.75f, float_y = 1.375f, float_x = 1.0625f;
  uint32_t unused = 0;
  double double_a = -1, double_b = 3, double_c = 0.75, double_y = 1.375;
  uint64_t long_a = 6364136223846793005u, long_b = 1442695040888963407u;

  // Pointers to each member, as cuLaunchKernel wants them.
  std::vector<void*> pointers();
};

// PTX 6.3 for compute capability 7.5: what every driver since CUDA 10 translates for every GPU
// since Turing. Throws Error for an unroll of 0 or above 4096.
std::string kernel_ptx(const KernelSpec& spec);
// Where it is unrolled less, so that loops stay inside the instruction caches.
KernelShape default_shape(const Instruction& instruction);
// The instructions of PTX text between its loop's label and its branch back, without the branch:
// what is executed per iteration.
std::vector<std::string> loop_body(const std::string& ptx);

}  // namespace gpusim::power
