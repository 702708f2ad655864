// Kernels that are compiled twice: by nvcc to PTX, and by the host's compiler as plain functions
// (host_kernels.h). Nothing here depends on the order of threads.
#include "tests/isa/ptx/host_kernels.h"

__constant__ uint32_t kPrimes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
__device__ int16_t deltas[8] = {-1, 300, -500, 7, 0, 32767, -32768, 12};

__device__ __noinline__ uint64_t mixed(uint64_t x, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    if (x & 1) x += kPrimes[(x >> 7) & 15];
  }
  return x;
}

GPUSIM_KERNEL(integers)(uint64_t* out, const uint32_t* in, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint32_t a = in[i], b = in[(i * 7 + 3) % n] | 1;
  const auto s = static_cast<int32_t>(a), t = static_cast<int32_t>(b);
  uint64_t sum = a / b + a % b;
  sum = sum * 31 + static_cast<uint64_t>(static_cast<int64_t>(s / t) ^ (s % t));
  sum = sum * 31 + (static_cast<uint64_t>(a) * b) / (b >> 3 | 1);
  sum = sum * 31 + static_cast<uint64_t>(static_cast<int64_t>(s) * t >> (a & 31));
  sum = sum * 31 + (s < t ? s >> 5 : t << 3);
  sum += mixed(a, static_cast<int>(b % 9));
  sum ^= static_cast<uint64_t>(static_cast<int64_t>(deltas[a & 7]));
  out[i] = sum;
}

GPUSIM_KERNEL(bits)(uint64_t* out, const uint32_t* in, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint32_t a = in[i], b = in[n - 1 - i];
  uint64_t r = static_cast<uint64_t>(__popc(a)) << 56 |
               static_cast<uint64_t>(__clz(static_cast<int>(b))) << 48;
  r ^= static_cast<uint64_t>(__brev(a)) << 7;
  r += __byte_perm(a, b, 0x2541) ^ __funnelshift_l(a, b, b & 31);
  r += static_cast<uint64_t>(__ffsll(static_cast<long long>(r)));
  out[i] = r;
}

GPUSIM_KERNEL(collatz)(uint64_t* out, const uint32_t* in, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint64_t x = in[i] % 100000 + 1, steps = 0;
  while (x != 1) {
    x = x & 1 ? 3 * x + 1 : x / 2;
    if (++steps == 150) break;
  }
  out[i] = steps << 32 | (x & 0xffffffff);
}

// Blocks of alloca that functions leave behind, of one that calls itself, and in a loop.
__device__ __noinline__ uint64_t sum_of(int n, uint32_t seed) {
  auto* const a = static_cast<uint32_t*>(alloca(n * sizeof(uint32_t)));
  for (int i = 0; i < n; ++i) a[i] = seed + static_cast<uint32_t>(i * i);
  uint64_t sum = 0;
  for (int i = n - 1; i >= 0; --i) sum = sum * 3 + a[i];
  return sum;
}
__device__ __noinline__ uint64_t deep(int n, uint32_t seed) {
  auto* const a = static_cast<uint64_t*>(alloca((n + 1) * sizeof(uint64_t)));
  for (int i = 0; i <= n; ++i) a[i] = seed ^ static_cast<uint64_t>(i);
  uint64_t below = n > 0 ? deep(n - 1, seed * 5) ^ sum_of(n, seed) : 7;
  for (int i = 0; i <= n; ++i) below = below * 31 + a[i];
  return below;
}
GPUSIM_KERNEL(stacks)(uint64_t* out, const uint32_t* in, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint64_t sum = 0;
  for (uint32_t k = 0; k < 40; ++k)
    sum += sum_of(static_cast<int>((in[i] + k) % 23 + 1), in[i] * k);
  auto* const bytes = static_cast<unsigned char*>(alloca(in[i] % 50 + 1));
  for (uint32_t k = 0; k <= in[i] % 50; ++k) bytes[k] = static_cast<unsigned char>(sum >> k % 50);
  sum ^= deep(static_cast<int>(in[i] % 7), i);
  for (uint32_t k = 0; k <= in[i] % 50; ++k) sum = sum * 7 + bytes[k];
  out[i] = sum;
}

GPUSIM_KERNEL(small_types)(uint64_t* out, const uint32_t* in, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const auto* bytes = reinterpret_cast<const int8_t*>(in);
  const auto* halves = reinterpret_cast<const uint16_t*>(in);
  int8_t local[32];
  for (int k = 0; k < 32; ++k) local[k] = static_cast<int8_t>(bytes[(4 * i + k) % (4 * n)] * k);
  uint16_t h = 0;
  for (int k = 0; k < 9; ++k) h = static_cast<uint16_t>(h * 3 + halves[(2 * i + k) % (2 * n)]);
  int64_t sum = h;
  for (uint32_t k = 0; k < 32; ++k) sum = sum * 5 + local[(k * in[i]) & 31];
  switch (in[i] % 11) {
    case 0:
      sum += 5;
      break;
    case 1:
      sum ^= 77;
      break;
    case 2:
      sum *= 3;
      break;
    case 3:
      sum -= h;
      break;
    case 4:
      sum = -sum;
      break;
    case 5:
      sum <<= 3;
      break;
    case 6:
      sum >>= 2;
      break;
    case 9:
      sum = ~sum;
      [[fallthrough]];
    default:
      sum += 1;
  }
  out[i] = static_cast<uint64_t>(sum);
}

GPUSIM_KERNEL(floats)(uint64_t* out, const uint32_t* in, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = __uint_as_float(in[i]), y = static_cast<float>(in[(i + 1) % n]) * 0.001f;
  float s = fminf(fmaxf(x, -1e6f), 1e6f);
  s = s / (y + 1.5f) + sqrtf(y);
  for (int k = 0; k < 5; ++k) s = fmaf(s, 0.75f, y - static_cast<float>(k)) - s * 0.125f;
  const int whole = static_cast<int>(s);
  if (s > y)
    s = -s;
  else if (s < 0.0f)
    s += floorf(y) + rintf(s);
  // NaNs differ between hosts and GPUs.
  const uint32_t low = s == s ? __float_as_uint(s) : 1;
  out[i] = static_cast<uint64_t>(low) << 32 | static_cast<uint32_t>(x == x ? whole : 0);
}

GPUSIM_KERNEL(doubles)(uint64_t* out, Pair scale, const uint32_t* in, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double s = static_cast<double>(in[i]) * scale.a, t = static_cast<float>(in[n - 1 - i]) + scale.b;
  for (int k = 0; k < 6; ++k) {
    s = s / (t + 2.0) + fma(s, 0.5, t);
    t = sqrt(fabs(t)) - ceil(s) * 1e-3;
  }
  const auto whole = static_cast<long long>(t * 1e6);
  out[i] = static_cast<uint64_t>(__double_as_longlong(s)) + static_cast<uint64_t>(whole);
}
