// Products of matrices of a warpgroup (sm_90a): operands in shared memory as the layouts of the PTX
// ISA have them, or in registers; sums compared with those of integers, which are exact.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "device_memory.h"

constexpr int kRows = 64;

// How an operand lies in shared memory. `n` is a row of a or a column of b.
enum class Layout { kPieces, k128, k64, k32, k128Transposed, kPiecesTransposed };

// Bytes from one piece to the next, in the two directions.
struct Descriptor {
  unsigned leading = 0, stride = 0, swizzle = 0;
};

__host__ __device__ inline int width_of(Layout l) {
  return l == Layout::k64 ? 64 : l == Layout::k32 ? 32 : 128;
}
__host__ __device__ inline bool is_transposed(Layout l) {
  return l == Layout::k128Transposed || l == Layout::kPiecesTransposed;
}

// Where element (n, k) of a matrix of `count` times `depth` elements lies.
__host__ __device__ inline int place(Layout l, int size, int n, int k, int count, int depth) {
  const int byte = (is_transposed(l) ? n : k) * size, line = is_transposed(l) ? k : n;
  if (l == Layout::kPieces)  // pieces of 8 lines, one behind the other along the depth
    return (line / 8 * (depth * size / 16) + byte / 16) * 128 + line % 8 * 16 + byte % 16;
  if (l == Layout::kPiecesTransposed)
    return (line / 8 * (count * size / 16) + byte / 16) * 128 + line % 8 * 16 + byte % 16;
  const int width = width_of(l), lines = is_transposed(l) ? depth : count;
  const int at = byte / width * lines * width + line * width + byte % width;
  const int turn = width == 128 ? line % 8 : width == 64 ? line / 2 % 4 : line / 4 % 2;
  return at ^ turn * 16;
}
inline Descriptor descriptor_of(Layout l, int size, int count, int depth) {
  switch (l) {
    case Layout::kPieces:
      return {128, static_cast<unsigned>(depth * size * 8), 0};
    case Layout::kPiecesTransposed:
      return {static_cast<unsigned>(count * size * 8), 128, 0};
    case Layout::k128Transposed:
      return {static_cast<unsigned>(depth * 128), 1024, 1};
    case Layout::k128:
      return {16, 1024, 1};
    case Layout::k64:
      return {16, 512, 2};
    default:
      return {16, 256, 3};
  }
}

__device__ inline uint64_t descriptor(const void* at, const Descriptor& d) {
  const auto address = static_cast<uint64_t>(__cvta_generic_to_shared(at));
  return (address & 0x3ffff) >> 4 | uint64_t{d.leading >> 4} << 16 | uint64_t{d.stride >> 4} << 32 |
         uint64_t{d.swizzle} << 62;
}

#define SUMS8(d) \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define ISUMS4(d) "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])

__device__ inline void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void end() {
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// 64 x 16 sums of f16 or bf16, both operands in shared memory; `depth` is a multiple of 16.
template <bool kBf16, int kTransposedA, int kTransposedB, int kSignA>
__device__ void multiply(float* d, uint64_t a, uint64_t b, int adds) {
#define FORM(types)                                                       \
  asm volatile(                                                           \
      "{ .reg .pred p; setp.ne.b32 p, %10, 0;\n\t"                        \
      "wgmma.mma_async.sync.aligned.m64n16k16." types                     \
      " {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, %11, 1, %12, %13; }" \
      : SUMS8(d)                                                          \
      : "l"(a), "l"(b), "r"(adds), "n"(kSignA), "n"(kTransposedA), "n"(kTransposedB))
  if constexpr (kBf16)
    FORM("f32.bf16.bf16");
  else
    FORM("f32.f16.f16");
#undef FORM
}

struct Operands {
  Layout a, b;
  Descriptor of_a, of_b;
  int depth;
};

template <class T, bool kBf16, int kTransposedA, int kTransposedB, int kSignA>
__global__ void sums(const T* a, const T* b, float* out, Operands o) {
  extern __shared__ __align__(1024) uint8_t room[];
  uint8_t* const room_b = room + kRows * o.depth * sizeof(T);
  for (int i = threadIdx.x; i < kRows * o.depth; i += blockDim.x)
    *reinterpret_cast<T*>(room + place(o.a, sizeof(T), i / o.depth, i % o.depth, kRows, o.depth)) =
        a[i];
  for (int i = threadIdx.x; i < 16 * o.depth; i += blockDim.x)
    *reinterpret_cast<T*>(room_b + place(o.b, sizeof(T), i / o.depth, i % o.depth, 16, o.depth)) =
        b[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[8];
  for (float& x : d) x = 7;
  begin();
  for (int k = 0; k < o.depth; k += 16) {
    const auto at = [&](Layout l, const Descriptor& d) {
      return l == Layout::kPieces             ? k / 8 * 128
             : l == Layout::k128Transposed    ? k / 8 * d.stride
             : l == Layout::kPiecesTransposed ? k / 8 * d.leading
                                              : k * sizeof(T);
    };
    const uint8_t *const at_a = room + at(o.a, o.of_a), *const at_b = room_b + at(o.b, o.of_b);
    multiply<kBf16, kTransposedA, kTransposedB, kSignA>(d, descriptor(at_a, o.of_a),
                                                        descriptor(at_b, o.of_b), k != 0);
  }
  end();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int r = 0; r < 8; ++r) {
    const int row = warp * 16 + r / 2 % 2 * 8 + lane / 4, column = r / 4 * 8 + lane % 4 * 2 + r % 2;
    out[row * 16 + column] = d[r];
  }
}

int value_a(int row, int k) { return (row * 5 + k * 3) % 15 - 7; }
int value_b(int column, int k) { return (column * 11 + k * 7) % 13 - 6; }
int sum_of(int row, int column, int depth) {
  int sum = 0;
  for (int k = 0; k < depth; ++k) sum += value_a(row, k) * value_b(column, k);
  return sum;
}
template <class T>
std::vector<T> operand(int count, int depth, int (*value)(int, int)) {
  std::vector<T> out(static_cast<size_t>(count * depth));
  for (int n = 0; n < count; ++n)
    for (int k = 0; k < depth; ++k) out[n * depth + k] = T(static_cast<float>(value(n, k)));
  return out;
}

template <class T, bool kBf16, int kTransposedA, int kTransposedB, int kSignA = 1>
void check_sums(Layout la, Layout lb, int depth) {
  Device<T> a(operand<T>(kRows, depth, value_a)), b(operand<T>(16, depth, value_b));
  Device<float> out(std::vector<float>(kRows * 16));
  const Operands o{la, lb, descriptor_of(la, sizeof(T), kRows, depth),
                   descriptor_of(lb, sizeof(T), 16, depth), depth};
  sums<T, kBf16, kTransposedA, kTransposedB, kSignA>
      <<<1, 128, (kRows + 16) * depth * sizeof(T)>>>(a.data, b.data, out.data, o);
  FINE(cudaGetLastError());
  FINE(cudaDeviceSynchronize());
  const std::vector<float> got = out.host();
  int wrong = 0;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < 16; ++column)
      wrong += got[row * 16 + column] != static_cast<float>(kSignA * sum_of(row, column, depth));
  CHECK(wrong == 0);
}

// a in registers, as mma.m16n8k16 has it; b of 64 bytes' swizzle.
__global__ void from_registers(const __half* a, const __half* b, float* out, Descriptor of_b) {
  __shared__ __align__(1024) uint8_t room[8 * 64];
  for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x)
    *reinterpret_cast<__half*>(room + place(Layout::k64, 2, i / 32, i % 32, 8, 32)) = b[i];
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float d[4] = {1, 2, 3, 4};
  for (int k = 0; k < 32; k += 16) {
    uint32_t words[4];
    for (int r = 0; r < 4; ++r) {
      const int row = warp * 16 + r % 2 * 8 + lane / 4, column = k + r / 2 * 8 + lane % 4 * 2;
      std::memcpy(&words[r], &a[row * 32 + column], 4);
    }
    begin();
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, "
        "1, 1, -1, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]),
          "l"(descriptor(room + k * 2, of_b)));
    end();
  }
  for (int r = 0; r < 4; ++r)
    out[(warp * 16 + r / 2 * 8 + lane / 4) * 8 + lane % 4 * 2 + r % 2] = d[r];
}

void check_registers() {
  Device<__half> a(operand<__half>(kRows, 32, value_a)), b(operand<__half>(8, 32, value_b));
  Device<float> out(std::vector<float>(kRows * 8));
  from_registers<<<1, 128>>>(a.data, b.data, out.data, descriptor_of(Layout::k64, 2, 8, 32));
  FINE(cudaDeviceSynchronize());
  int wrong = 0;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < 8; ++column) {
      const int start = 1 + column % 2 + (row % 16 >= 8 ? 2 : 0);
      wrong += out.host()[row * 8 + column] != static_cast<float>(start - sum_of(row, column, 32));
    }
  CHECK(wrong == 0);
}

// Two warpgroups, bytes.
__global__ void bytes(const int8_t* a, const uint8_t* b, int* out, Descriptor of_a,
                      Descriptor of_b) {
  __shared__ __align__(1024) uint8_t room_a[2][kRows * 32], room_b[8 * 32];
  for (int i = threadIdx.x; i < kRows * 32; i += blockDim.x)
    for (int g = 0; g < 2; ++g)
      room_a[g][place(Layout::k32, 1, i / 32, i % 32, kRows, 32)] = a[i] + g;
  for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x)
    room_b[place(Layout::kPieces, 1, i / 32, i % 32, 8, 32)] = b[i];
  __syncthreads();
  int d[4] = {100, 100, 100, 100};
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  begin();
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {%0, %1, %2, %3}, %4, %5, 1;"
               : ISUMS4(d)
               : "l"(descriptor(room_a[group], of_a)), "l"(descriptor(room_b, of_b)));
  end();
  for (int r = 0; r < 4; ++r)
    out[group * kRows * 8 + (warp * 16 + r / 2 * 8 + lane / 4) * 8 + lane % 4 * 2 + r % 2] = d[r];
}

void check_bytes() {
  std::vector<int8_t> a(kRows * 32);
  std::vector<uint8_t> b(8 * 32);
  for (int i = 0; i < kRows * 32; ++i) a[i] = static_cast<int8_t>(i * 37 % 200 - 100);
  for (int i = 0; i < 8 * 32; ++i) b[i] = static_cast<uint8_t>(i * 91);
  Device<int8_t> given_a(a);
  Device<uint8_t> given_b(b);
  Device<int> out(std::vector<int>(2 * kRows * 8));
  bytes<<<1, 256>>>(given_a.data, given_b.data, out.data, descriptor_of(Layout::k32, 1, kRows, 32),
                    descriptor_of(Layout::kPieces, 1, 8, 32));
  FINE(cudaDeviceSynchronize());
  const std::vector<int> got = out.host();
  int wrong = 0;
  for (int group = 0; group < 2; ++group)
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < 8; ++column) {
        int sum = 100;
        for (int k = 0; k < 32; ++k) sum += (a[row * 32 + k] + group) * b[column * 32 + k];
        wrong += got[(group * kRows + row) * 8 + column] != sum;
      }
  CHECK(wrong == 0);
}

// 64 x 256 sums of tf32: all the registers that a thread may have for them.
__global__ void wide(const float* a, const float* b, float* out, Descriptor of_a, Descriptor of_b) {
  extern __shared__ __align__(1024) uint8_t room[];
  uint8_t* const room_b = room + kRows * 32;
  for (int i = threadIdx.x; i < kRows * 8; i += blockDim.x)
    *reinterpret_cast<float*>(room + place(Layout::k32, 4, i / 8, i % 8, kRows, 8)) = a[i];
  for (int i = threadIdx.x; i < 256 * 8; i += blockDim.x)
    *reinterpret_cast<float*>(room_b + place(Layout::k32, 4, i / 8, i % 8, 256, 8)) = b[i];
  __syncthreads();
  float d[128] = {};
  begin();
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, "
      "%74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
      "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
      "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "
      "%123, %124, %125, %126, %127}, %128, %129, 0, 1, 1;"
      : SUMS8((d + 0)), SUMS8((d + 8)), SUMS8((d + 16)), SUMS8((d + 24)), SUMS8((d + 32)),
        SUMS8((d + 40)), SUMS8((d + 48)), SUMS8((d + 56)), SUMS8((d + 64)), SUMS8((d + 72)),
        SUMS8((d + 80)), SUMS8((d + 88)), SUMS8((d + 96)), SUMS8((d + 104)), SUMS8((d + 112)),
        SUMS8((d + 120))
      : "l"(descriptor(room, of_a)), "l"(descriptor(room_b, of_b)));
  end();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < 128; ++r)
    out[(warp * 16 + r / 2 % 2 * 8 + lane / 4) * 256 + r / 4 * 8 + lane % 4 * 2 + r % 2] = d[r];
}

void check_wide() {
  Device<float> a(operand<float>(kRows, 8, value_a)), b(operand<float>(256, 8, value_b));
  Device<float> out(std::vector<float>(kRows * 256));
  wide<<<1, 128, (kRows + 256) * 32>>>(a.data, b.data, out.data,
                                       descriptor_of(Layout::k32, 4, kRows, 8),
                                       descriptor_of(Layout::k32, 4, 256, 8));
  FINE(cudaGetLastError());
  FINE(cudaDeviceSynchronize());
  const std::vector<float> got = out.host();
  int wrong = 0;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < 256; ++column)
      wrong += got[row * 256 + column] != static_cast<float>(sum_of(row, column, 8));
  CHECK(wrong == 0);
}

// --- fragments to rows (stmatrix), as ldmatrix takes them from there
template <bool kTransposed>
__global__ void rows(uint16_t* out) {
  __shared__ __align__(16) uint16_t room[32 * 8];
  const unsigned lane = threadIdx.x;
  // Of matrix n an element is 1000 n + 8 row + column.
  unsigned words[4];
  for (unsigned n = 0; n < 4; ++n) {
    const unsigned first = 1000 * n + lane / 4 * 8 + lane % 4 * 2;
    words[n] = first | (first + 1) << 16;
  }
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(room + lane * 8));
  if (kTransposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
  __syncwarp();
  for (unsigned i = lane; i < 256; i += 32) out[i] = room[i];
}

void check_rows() {
  for (const bool is_transposed : {false, true}) {
    Device<uint16_t> out(std::vector<uint16_t>(256));
    if (is_transposed)
      rows<true><<<1, 32>>>(out.data);
    else
      rows<false><<<1, 32>>>(out.data);
    FINE(cudaDeviceSynchronize());
    const std::vector<uint16_t> got = out.host();
    for (int i = 0; i < 256; ++i) {
      const int row = i / 8 % 8, column = i % 8;
      CHECK(got[i] == i / 64 * 1000 + (is_transposed ? column * 8 + row : row * 8 + column));
    }
  }
}

// --- mistakes
__global__ void alone(float* out) {
  float d[8] = {};
  if (threadIdx.x >= 32) return;
  multiply<false, 0, 0, 1>(d, 0, 0, 1);
  out[threadIdx.x] = d[0];
}
__global__ void behind(float* out) {
  float d[8] = {};
  multiply<false, 0, 0, 1>(d, 0x3fff, 0x3fff, 1);
  out[threadIdx.x] = d[0];
}

int main(int argc, char** argv) {
  if (argc > 1) {
    Device<float> out(std::vector<float>(128));
    if (std::strcmp(argv[1], "alone") == 0) alone<<<1, 128>>>(out.data);
    if (std::strcmp(argv[1], "behind") == 0) behind<<<1, 128>>>(out.data);
    std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
  }
  check_sums<__half, false, 0, 0>(Layout::kPieces, Layout::kPieces, 16);
  check_sums<__half, false, 0, 0>(Layout::kPieces, Layout::kPieces, 48);
  check_sums<__half, false, 0, 0>(Layout::k32, Layout::k32, 16);
  check_sums<__half, false, 0, 0>(Layout::k64, Layout::k64, 32);
  check_sums<__half, false, 0, 0>(Layout::k128, Layout::k128, 64);
  check_sums<__half, false, 0, 0, -1>(Layout::k128, Layout::k128, 64);
  check_sums<__nv_bfloat16, true, 0, 0>(Layout::k128, Layout::k128, 64);
  check_sums<__half, false, 1, 0>(Layout::k128Transposed, Layout::k128, 64);
  check_sums<__half, false, 1, 1>(Layout::kPiecesTransposed, Layout::kPiecesTransposed, 32);
  check_sums<__nv_bfloat16, true, 0, 1>(Layout::k128, Layout::kPiecesTransposed, 64);
  check_registers();
  check_bytes();
  check_wide();
  check_rows();
  FINE(cudaDeviceSynchronize());
  return finish();
}
