// The softfloat as device code: same results and flags as on the host. Exits with 77 ("skipped")
// where no GPU is found.
#include <cstdint>
#include <cstdio>

#include "device_sim/uir/softfloat/softfloat.h"
#include "tests/unit/softfloat/sequence.h"

namespace {

using namespace gpusim::softfloat;

struct Sample {
  uint64_t a;
  uint64_t b;
  uint64_t c;
  uint64_t state;
};

struct Outcome {
  uint64_t result;
  uint64_t state;
};

constexpr int kOperations = 21;

template <class F>
GPUSIM_HD uint64_t evaluate(int operation, const Sample& s, uint64_t& st) {
  const Rounding mode = static_cast<Rounding>(s.c % 6);
  bool exact = false;
  switch (operation) {
    case 0:
      return fp_add<F>(s.a, s.b, st);
    case 1:
      return fp_sub<F>(s.a, s.b, st);
    case 2:
      return fp_mul<F>(s.a, s.b, st);
    case 3:
      return fp_mulx<F>(s.a, s.b, st);
    case 4:
      return fp_div<F>(s.a, s.b, st);
    case 5:
      return fp_sqrt<F>(s.a, st);
    case 6:
      return fp_muladd<F>(s.c, s.a, s.b, st);
    case 7:
      return fp_compare<F>(s.a, s.b, true, st);
    case 8:
      return fp_max<F>(s.a, s.b, st);
    case 9:
      return fp_minnum<F>(s.a, s.b, st);
    case 10:
      return fp_recip_estimate<F>(s.a, st);
    case 11:
      return fp_rsqrt_estimate<F>(s.a, st);
    case 12:
      return fp_recip_step<F>(s.a, s.b, st);
    case 13:
      return fp_rsqrt_step<F>(s.a, s.b, st);
    case 14:
      return fp_recpx<F>(s.a, st);
    case 15:
      return fp_round_int<F>(s.a, mode, true, st);
    case 16:
      return fp_to_fixed<F>(s.a, 32, 3, (s.b & 1) != 0, mode, st);
    case 17:
      return fp_to_fixed<F>(s.a, 64, 0, (s.b & 1) != 0, mode, st);
    case 18:
      return fixed_to_fp<F>(s.b, 64, 7, (s.a & 1) != 0, st);
    case 19:
      return fp_convert<F16, F>(s.a, mode, st) ^ fp_convert<F64, F>(s.b, st) << 16;
    default:
      return fp_to_int32_js(s.a, exact, st);
  }
}

GPUSIM_HD Outcome evaluate(int operation, const Sample& s) {
  Outcome r{0, s.state};
  switch (operation / kOperations) {
    case 0:
      r.result = evaluate<F32>(operation % kOperations, s, r.state);
      break;
    case 1:
      r.result = evaluate<F64>(operation % kOperations, s, r.state);
      break;
    default:
      r.result = evaluate<F16>(operation % kOperations, s, r.state);
      break;
  }
  return r;
}

__global__ void evaluate_all(int operation, const Sample* samples, Outcome* outcomes, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) outcomes[i] = evaluate(operation, samples[i]);
}

bool cuda_ok(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  return false;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU\n");
    return 77;
  }
  constexpr int kCount = 1 << 16;
  constexpr int kKinds[] = {kSingle, kDouble, kHalf};
  sequence operands{12345};
  Sample* samples = nullptr;
  Outcome* outcomes = nullptr;
  if (!cuda_ok(cudaMallocManaged(&samples, kCount * sizeof(Sample)), "samples") ||
      !cuda_ok(cudaMallocManaged(&outcomes, kCount * sizeof(Outcome)), "outcomes")) {
    return 1;
  }
  int differences = 0;
  for (int operation = 0; operation < 3 * kOperations; ++operation) {
    for (int i = 0; i < kCount; ++i) {
      uint64_t in[3];
      random_operands(&operands, kKinds[operation / kOperations], in);
      samples[i] = {in[0], in[1], in[2], random_fpcr(&operands) << 32};
    }
    evaluate_all<<<(kCount + 255) / 256, 256>>>(operation, samples, outcomes, kCount);
    if (!cuda_ok(cudaDeviceSynchronize(), "kernel")) return 1;
    for (int i = 0; i < kCount; ++i) {
      const Outcome want = evaluate(operation, samples[i]);
      if (want.result == outcomes[i].result && want.state == outcomes[i].state) continue;
      if (++differences > 10) continue;
      std::printf("operation %d: a=%#lx b=%#lx c=%#lx state=%#lx: %#lx %#lx, host %#lx %#lx\n",
                  operation, samples[i].a, samples[i].b, samples[i].c, samples[i].state,
                  outcomes[i].result, outcomes[i].state, want.result, want.state);
    }
  }
  cudaFree(samples);
  cudaFree(outcomes);
  std::printf("%d comparisons, %d differences\n", 3 * kOperations * kCount, differences);
  return differences == 0 ? 0 : 1;
}
