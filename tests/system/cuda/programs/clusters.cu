// Clusters of blocks: what they are told of themselves, their barrier, memory of other blocks, and
// launches. "failing N": kernels that make a mistake.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstring>
#include <cuda/ptx>
#include <vector>

#include "device_memory.h"

namespace cg = cooperative_groups;

// --- launches

template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, dim3 cluster, size_t shared,
                   A... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...);
}

// --- what blocks are told

struct Told {
  unsigned block[3], in_cluster[3], cluster_dim[3], rank, blocks, cluster[3], clusters[3],
      is_explicit;
  unsigned thread_rank, threads, of_address;
};

__global__ void tell(Told* out) {
  __shared__ int here;
  const cg::cluster_group c = cg::this_cluster();
  if (threadIdx.x != 3) return c.sync();
  Told t{};
  t.block[0] = blockIdx.x, t.block[1] = blockIdx.y, t.block[2] = blockIdx.z;
  const dim3 in = c.block_index(), dim = c.dim_blocks();
  t.in_cluster[0] = in.x, t.in_cluster[1] = in.y, t.in_cluster[2] = in.z;
  t.cluster_dim[0] = dim.x, t.cluster_dim[1] = dim.y, t.cluster_dim[2] = dim.z;
  t.rank = c.block_rank();
  t.blocks = c.num_blocks();
  t.thread_rank = c.thread_rank();
  t.threads = c.num_threads();
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(t.cluster[0]));
  asm("mov.u32 %0, %%clusterid.y;" : "=r"(t.cluster[1]));
  asm("mov.u32 %0, %%clusterid.z;" : "=r"(t.cluster[2]));
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(t.clusters[0]));
  asm("mov.u32 %0, %%nclusterid.y;" : "=r"(t.clusters[1]));
  asm("mov.u32 %0, %%nclusterid.z;" : "=r"(t.clusters[2]));
  asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }"
      : "=r"(t.is_explicit));
  int* const other = c.map_shared_rank(&here, c.num_blocks() - 1);
  t.of_address = c.query_shared_rank(other) * 100 + c.query_shared_rank(&here);
  out[blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)] = t;
  c.sync();
}

void check_told(dim3 grid, dim3 of, bool has_attribute) {
  Device<Told> out(grid.x * grid.y * grid.z);
  if (has_attribute)
    FINE(launch(tell, grid, dim3(5), of, 0, out.data));
  else
    tell<<<grid, 5>>>(out.data);
  FINE(cudaDeviceSynchronize());
  size_t at = 0;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        const Told t = out.host()[at++];
        const unsigned block[3] = {x, y, z}, size[3] = {of.x, of.y, of.z},
                       grids[3] = {grid.x, grid.y, grid.z};
        for (int d = 0; d < 3; ++d) {
          CHECK(t.block[d] == block[d]);
          CHECK(t.in_cluster[d] == block[d] % size[d]);
          CHECK(t.cluster_dim[d] == size[d]);
          CHECK(t.cluster[d] == block[d] / size[d]);
          CHECK(t.clusters[d] == grids[d] / size[d]);
        }
        const unsigned rank = x % of.x + of.x * (y % of.y + of.y * (z % of.z));
        CHECK(t.rank == rank);
        CHECK(t.blocks == of.x * of.y * of.z);
        CHECK(t.thread_rank == rank * 5 + 3);
        CHECK(t.threads == t.blocks * 5);
        CHECK(t.is_explicit == has_attribute);
        CHECK(t.of_address == (t.blocks - 1) * 100 + rank);
      }
}

// --- memory of other blocks

// Bins are shared out to the blocks of a cluster, which add to each other's.
__global__ void __cluster_dims__(4, 1, 1) histogram(const unsigned* values, int count, int* bins) {
  extern __shared__ int own[];
  const cg::cluster_group c = cg::this_cluster();
  const int per_block = 64;
  for (int i = threadIdx.x; i < per_block; i += blockDim.x) own[i] = 0;
  c.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const unsigned bin = values[i] % 256;
    atomicAdd(c.map_shared_rank(own, bin / per_block) + bin % per_block, 1);
  }
  c.sync();
  for (int i = threadIdx.x; i < per_block; i += blockDim.x)
    atomicAdd(&bins[c.block_rank() * per_block + i], own[i]);
}

// Words go round the cluster, a block in each step; the barrier is in two parts.
__global__ void ring(unsigned* out, int steps) {
  __shared__ unsigned words[2][96];
  const cg::cluster_group c = cg::this_cluster();
  const unsigned next = (c.block_rank() + 1) % c.num_blocks();
  words[0][threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
  auto token = c.barrier_arrive();
  unsigned own_work = 1;
  for (unsigned i = 0; i < threadIdx.x % 7; ++i) own_work = own_work * 3 + 1;
  c.barrier_wait(std::move(token));
  for (int s = 0; s < steps; ++s) {
    unsigned* const there = c.map_shared_rank(&words[(s + 1) % 2][0], next);
    there[threadIdx.x] = words[s % 2][threadIdx.x] + 1;
    c.sync();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = words[steps % 2][threadIdx.x] + 0 * own_work;
}

// One block waits, without any barrier, for a word that another stores late.
__global__ void __cluster_dims__(2, 1, 1) handshake(int* out) {
  __shared__ volatile int flag;
  const cg::cluster_group c = cg::this_cluster();
  if (threadIdx.x == 0) flag = 0;
  c.sync();
  if (threadIdx.x == 0) {
    volatile int* const other = c.map_shared_rank(const_cast<int*>(&flag), c.block_rank() ^ 1);
    if (c.block_rank() == 0) {
      int spent = 0;
      for (int i = 0; i < 20000; ++i) spent += i & blockIdx.x;
      *other = 7 + 0 * spent;
      while (flag == 0) {
      }
      out[0] = flag;
    } else {
      while (flag == 0) {
      }
      *other = flag + 1;
    }
  }
  c.sync();
}

// All kinds of accesses by generic addresses, vectors, and 32-bit addresses.
__global__ void __cluster_dims__(2, 1, 1) kinds(int* out) {
  __shared__ alignas(16) int4 vector;
  __shared__ unsigned long long wide;
  __shared__ double sum;
  __shared__ int word, small;
  __shared__ unsigned short half_word;
  const cg::cluster_group c = cg::this_cluster();
  if (threadIdx.x == 0) wide = 0, sum = 0, word = 5, small = 0, half_word = 9;
  c.sync();
  const unsigned other = c.block_rank() ^ 1;
  if (threadIdx.x == 0) *c.map_shared_rank(&vector, other) = make_int4(1, 2, 3, 4 + other);
  atomicAdd(c.map_shared_rank(&wide, other), 3ull);
  atomicAdd(c.map_shared_rank(&sum, other), 0.5);
  atomicMax(c.map_shared_rank(&word, 0), static_cast<int>(c.thread_rank()));
  if (threadIdx.x == 1) {
    atomicCAS(c.map_shared_rank(&small, other), 0, 11);
    unsigned at = 0, loaded = 0;
    const auto own = static_cast<unsigned>(__cvta_generic_to_shared(&half_word));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(own), "r"(other));
    asm volatile("{ .reg .u16 h; ld.shared::cluster.u16 h, [%1]; cvt.u32.u16 %0, h; }"
                 : "=r"(loaded)
                 : "r"(at));
    unsigned rank = 0, is_own = 0, is_cluster = 0, is_own_mapped = 0, is_global = 0;
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(at));
    const int* const mapped = c.map_shared_rank(&small, other);
    asm("{ .reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p; }"
        : "=r"(is_own)
        : "l"(mapped));
    asm("{ .reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p; }"
        : "=r"(is_cluster)
        : "l"(mapped));
    asm("{ .reg .pred p; isspacep.global p, %1; selp.u32 %0, 1, 0, p; }"
        : "=r"(is_global)
        : "l"(mapped));
    asm("{ .reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p; }"
        : "=r"(is_own_mapped)
        : "l"(c.map_shared_rank(&small, c.block_rank())));
    out[blockIdx.x * 8 + 4] = loaded;
    out[blockIdx.x * 8 + 5] = rank;
    out[blockIdx.x * 8 + 6] = is_own + 2 * is_cluster + 4 * is_own_mapped + 8 * is_global;
  }
  c.sync();
  if (threadIdx.x == 0) {
    out[blockIdx.x * 8 + 0] = vector.x + 10 * vector.y + 100 * vector.z + 1000 * vector.w;
    out[blockIdx.x * 8 + 1] = static_cast<int>(wide);
    out[blockIdx.x * 8 + 2] = static_cast<int>(2 * sum);
    out[blockIdx.x * 8 + 3] = word + small;
  }
}

// --- barriers in the memory of other blocks

// Each thread stores a word in the next block, whose barrier counts the bytes; then adds to a word
// there, likewise.
__global__ void messages(int* out) {
  namespace ptx = cuda::ptx;
  __shared__ alignas(8) uint64_t came, added;
  __shared__ alignas(16) int words[64];
  __shared__ unsigned sum;
  const cg::cluster_group c = cg::this_cluster();
  if (threadIdx.x == 0) {
    sum = 100;
    ptx::mbarrier_init(&came, 1);
    ptx::mbarrier_init(&added, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &came,
                                   64 * 4);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &added,
                                   64 * 4);
  }
  c.sync();
  const unsigned next = (c.block_rank() + 1) % c.num_blocks();
  ptx::st_async(c.map_shared_rank(words, next) + threadIdx.x,
                static_cast<int>(blockIdx.x * 100 + threadIdx.x), c.map_shared_rank(&came, next));
  ptx::red_async(ptx::op_add, c.map_shared_rank(&sum, next), threadIdx.x,
                 c.map_shared_rank(&added, next));
  while (!ptx::mbarrier_try_wait_parity(&came, 0)) {
  }
  while (!ptx::mbarrier_try_wait_parity(&added, 0)) {
  }
  out[blockIdx.x * 64 + threadIdx.x] = words[threadIdx.x] + static_cast<int>(sum) * 1000;
  c.sync();
}

// The threads of all blocks arrive at a barrier of the first.
__global__ void __cluster_dims__(4, 1, 1) gather(int* out) {
  namespace ptx = cuda::ptx;
  __shared__ alignas(8) uint64_t barrier;
  __shared__ int total;
  const cg::cluster_group c = cg::this_cluster();
  if (threadIdx.x == 0) {
    total = 0;
    ptx::mbarrier_init(&barrier, c.num_threads() + 2);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  c.sync();
  atomicAdd(c.map_shared_rank(&total, 0), static_cast<int>(c.thread_rank()));
  uint64_t* const there = c.map_shared_rank(&barrier, 0);
  ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, there);
  if (c.thread_rank() == 5)
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, there, 2);
  if (c.block_rank() == 0) {
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &barrier, 0)) {
    }
    if (threadIdx.x == 0) out[blockIdx.x / 4] = total;
  }
  c.sync();
}

// One lane of each warp is elected.
__global__ void leaders(unsigned* out) {
  unsigned leader = 0, is_leader = 0;
  if (threadIdx.x % 32 >= 3)
    asm volatile("{ .reg .pred p; elect.sync %0|p, 0xfffffff8; selp.u32 %1, 1, 0, p; }"
                 : "=r"(leader), "=r"(is_leader));
  out[threadIdx.x] = leader * 2 + is_leader;
}

// --- mistakes

__global__ void __cluster_dims__(2, 1, 1) beyond(int* out) {
  __shared__ int word;
  out[0] = *cg::this_cluster().map_shared_rank(&word, 5);
}
__global__ void __cluster_dims__(2, 1, 1) lonely(int* out) {
  if (cg::this_cluster().block_rank() == 0)
    cg::this_cluster().sync();
  else
    asm volatile("barrier.sync 1, 64;" ::: "memory");
  out[0] = 1;
}
__global__ void __cluster_dims__(2, 1, 1) twice(int* out) {
  asm volatile("barrier.cluster.arrive; barrier.cluster.arrive;" ::: "memory");
  out[0] = 1;
}
__global__ void __cluster_dims__(2, 1, 1) missing(int* out) {
  if (blockIdx.x == 0 && threadIdx.x == 7) return;
  cg::this_cluster().sync();
  out[0] = 1;
}
__global__ void __cluster_dims__(2, 1, 1) too_early(int* out) {
  __shared__ int word;
  const cg::cluster_group c = cg::this_cluster();
  if (c.block_rank() == 1) return;
  int sum = 0;
  for (int i = 0; i < 20000; ++i) sum += *static_cast<volatile int*>(c.map_shared_rank(&word, 1));
  out[0] = sum;
}

int fail(const char* which) {
  Device<int> out(1);
  if (std::strcmp(which, "beyond") == 0) beyond<<<2, 32>>>(out.data);
  if (std::strcmp(which, "lonely") == 0) lonely<<<2, 32>>>(out.data);
  if (std::strcmp(which, "twice") == 0) twice<<<2, 32>>>(out.data);
  if (std::strcmp(which, "missing") == 0) missing<<<2, 32>>>(out.data);
  if (std::strcmp(which, "too_early") == 0) too_early<<<2, 32>>>(out.data);
  std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}

void check_launches() {
  int value = 0;
  FINE(cudaDeviceGetAttribute(&value, cudaDevAttrClusterLaunch, 0));
  CHECK(value == 1);
  cudaDeviceProp properties{};
  FINE(cudaGetDeviceProperties(&properties, 0));
  CHECK(properties.clusterLaunch == 1);
  cudaFuncAttributes attributes{};
  FINE(cudaFuncGetAttributes(&attributes, histogram));
  CHECK(attributes.clusterDimMustBeSet == 1);
  CHECK(attributes.requiredClusterWidth == 4);
  CHECK(attributes.requiredClusterHeight == 1);
  FINE(cudaFuncGetAttributes(&attributes, ring));
  CHECK(attributes.clusterDimMustBeSet == 0);
  CHECK(attributes.requiredClusterWidth == 0);
  CHECK(attributes.nonPortableClusterSizeAllowed == 0);

  Device<unsigned> out(16 * 96);
  CHECK(launch(ring, dim3(16), dim3(96), dim3(16), 0, out.data, 16) == cudaErrorInvalidClusterSize);
  CHECK(launch(ring, dim3(15), dim3(96), dim3(4), 0, out.data, 16) != cudaSuccess);
  Device<int> bins(256);
  CHECK(launch(histogram, dim3(4), dim3(96), dim3(2), 0, nullptr, 0, bins.data) ==
        cudaErrorInvalidClusterSize);
  cudaGetLastError();

  cudaLaunchConfig_t config{};
  config.gridDim = 16;
  config.blockDim = 96;
  int size = 0, clusters = 0;
  FINE(cudaOccupancyMaxPotentialClusterSize(&size, ring, &config));
  CHECK(size == 8);
  FINE(cudaFuncSetAttribute(ring, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  FINE(cudaOccupancyMaxPotentialClusterSize(&size, ring, &config));
  CHECK(size == 16);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {16, 1, 1};
  config.attrs = &attribute;
  config.numAttrs = 1;
  FINE(cudaOccupancyMaxActiveClusters(&clusters, ring, &config));
  CHECK(clusters >= 1);
  for (const unsigned of : {1u, 2u, 3u, 8u, 16u}) {
    const unsigned blocks = of == 3 ? 15 : 16;
    FINE(launch(ring, dim3(blocks), dim3(96), dim3(of), 0, out.data, 5));
    const std::vector<unsigned> words = out.host();
    for (unsigned b = 0; b < blocks; ++b)
      for (unsigned t = 0; t < 96; ++t) {
        const unsigned first = b / of * of, from = first + (b - first + 15 * of - 5) % of;
        CHECK(words[b * 96 + t] == from * 1000 + t + 5);
      }
  }
}

int main(int argc, char** argv) {
  if (argc > 1) return fail(argv[1]);
  check_told(dim3(6, 4, 2), dim3(3, 2, 1), true);
  check_told(dim3(2, 4, 4), dim3(1, 1, 4), true);
  check_told(dim3(4, 2, 1), dim3(1, 1, 1), true);
  check_told(dim3(4, 2, 3), dim3(1, 1, 1), false);
  check_launches();

  const int count = 10000;
  std::vector<unsigned> values(count);
  std::vector<int> expected(256);
  unsigned seed = 12345;
  for (unsigned& v : values) {
    seed = seed * 1664525 + 1013904223;
    v = seed >> 8;
    ++expected[v % 256];
  }
  Device<unsigned> given(count);
  FINE(cudaMemcpy(given.data, values.data(), count * 4, cudaMemcpyHostToDevice));
  Device<int> bins(256);
  histogram<<<8, 128, 64 * 4>>>(given.data, count, bins.data);
  CHECK(bins.host() == expected);

  Device<int> word(1);
  handshake<<<2, 64>>>(word.data);
  FINE(cudaDeviceSynchronize());
  CHECK(word.host()[0] == 8);

  Device<int> of_kinds(4 * 8);
  kinds<<<4, 40>>>(of_kinds.data);
  FINE(cudaDeviceSynchronize());
  for (unsigned b = 0; b < 4; ++b) {
    const std::vector<int> got = of_kinds.host();
    CHECK(got[b * 8 + 0] == 321 + 1000 * (4 + static_cast<int>(b % 2)));
    CHECK(got[b * 8 + 1] == 120);
    CHECK(got[b * 8 + 2] == 40);
    CHECK(got[b * 8 + 3] == (b % 2 == 0 ? 79 : 5) + 11);
    CHECK(got[b * 8 + 4] == 9);
    CHECK(got[b * 8 + 5] == static_cast<int>(b % 2 ^ 1));
    CHECK(got[b * 8 + 6] == 2 + 4);
  }

  Device<int> sent(8 * 64);
  for (const unsigned of : {1u, 2u, 4u}) {
    FINE(launch(messages, dim3(8), dim3(64), dim3(of), 0, sent.data));
    const std::vector<int> got = sent.host();
    for (unsigned b = 0; b < 8; ++b)
      for (unsigned t = 0; t < 64; ++t) {
        const unsigned from = b / of * of + (b % of + of - 1) % of;
        CHECK(got[b * 64 + t] == static_cast<int>(from * 100 + t + (100 + 2016) * 1000));
      }
  }

  Device<int> totals(2);
  gather<<<8, 48>>>(totals.data);
  CHECK(totals.host()[0] == 192 * 191 / 2);
  CHECK(totals.host()[1] == 192 * 191 / 2);

  Device<unsigned> elected(64);
  leaders<<<1, 64>>>(elected.data);
  for (unsigned t = 0; t < 64; ++t)
    CHECK(elected.host()[t] == (t % 32 < 3 ? 0u : t % 32 == 3 ? 7u : 6u));
  FINE(cudaDeviceSynchronize());
  return finish();
}
