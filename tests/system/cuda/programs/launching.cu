// Kernels that launch kernels: nested, in streams, at the tail; what they hand over and leave.
// usage: launching [astray|readonly|local|large]
#include <cstring>

#include "check.h"

struct Log {
  int count;
  int entries[200];
};
__device__ void note(Log* log, int what) { log->entries[atomicAdd(&log->count, 1)] = what; }

struct Large {
  double d;
  int values[37];
  char c;
};

__global__ void leaf(Log* log, int what) {
  if (threadIdx.x == 0) note(log, what);
}
template <typename T>
__global__ void add(T* sum, T value, Large large) {
  for (int k = 0; k < 37; ++k) value += static_cast<T>(large.values[k]);
  atomicAdd(sum, value + static_cast<T>(large.c) + static_cast<T>(large.d));
}
// Its own launches come before those that were asked for behind it.
__global__ void nested(Log* log, int depth, int what) {
  note(log, what);
  if (depth == 0) return;
  nested<<<1, 1>>>(log, depth - 1, 10 * what + 1);
  nested<<<1, 1>>>(log, depth - 1, 10 * what + 2);
}
__global__ void in_order(Log* log) {
  cudaStream_t a, b;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  cudaEvent_t done;
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  leaf<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 90);
  leaf<<<1, 1, 0, a>>>(log, 1);
  leaf<<<1, 1, 0, cudaStreamFireAndForget>>>(log, 2);
  leaf<<<1, 32, 64, a>>>(log, 3);
  cudaEventRecord(done, a);
  cudaStreamWaitEvent(b, done, 0);
  leaf<<<1, 1, 0, b>>>(log, 4);
  leaf<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 91);
  note(log, 0);
  cudaEventDestroy(done);
  cudaStreamDestroy(a);
  cudaStreamDestroy(b);
}
// Launches itself again at its tail, until a value is reached.
__global__ void loop(int* value, int end) {
  if (++*value < end) loop<<<1, 1, 0, cudaStreamTailLaunch>>>(value, end);
}
__global__ void hand_over(int* ints, double* doubles) {
  Large large{};
  large.d = 0.5;
  large.c = 3;
  for (int k = 0; k < 37; ++k) large.values[k] = k;
  add<int><<<dim3(2, 3, 1), dim3(4, 2, 2)>>>(ints, 1, large);
  add<double><<<1, 7>>>(doubles, 0.25, large);
}
__global__ void sum(const int* values, int n, int* out) {
  int all = 0;
  for (int k = 0; k < n; ++k) all += values[k];
  *out = all;
}
__global__ void move_and_free(const int* values) { delete[] values; }
__global__ void memory(int* out) {
  const int n = 100;
  int* values = new int[n];
  int* copies = new int[n];
  cudaMemsetAsync(values, 1, n * sizeof(int), nullptr);
  cudaMemcpyAsync(copies, values, n * sizeof(int), cudaMemcpyDeviceToDevice, nullptr);
  sum<<<1, 1>>>(copies, n, out);
  move_and_free<<<1, 1>>>(values);
  int device = -1, count = 0;
  void* block = nullptr;
  out[1] = cudaGetDevice(&device) == cudaSuccess && device == 0;
  out[2] = cudaGetDeviceCount(&count) == cudaSuccess && count == 1;
  out[3] =
      cudaMalloc(&block, 256) == cudaSuccess && block != nullptr && cudaFree(block) == cudaSuccess;
  leaf<<<1, 2000>>>(nullptr, 0);  // too large: nothing is launched
  out[4] = cudaPeekAtLastError() == cudaErrorInvalidConfiguration &&
           cudaGetLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaSuccess;
}
// Threads have errors of their own.
__global__ void refused(int* errors) {
  if (threadIdx.x % 2 == 1) leaf<<<dim3(1, 70000), 1>>>(nullptr, 0);
  atomicAdd(errors + cudaGetLastError(), 1);
}
__global__ void endless(int* counts) {
  ++counts[0];
  endless<<<1, 1>>>(counts);
  if (cudaGetLastError() == cudaErrorLaunchMaxDepthExceeded) ++counts[1];
}
__global__ void everywhere(int* counts) {
  if (threadIdx.x % 8 == 0) add<int><<<1, 2>>>(counts + blockIdx.x, 1, Large{});
}
struct Texts {
  char name[64], text[128];
};
__global__ void describe(Texts* of, cudaError_t error) {
  const char* name = cudaGetErrorName(error);
  for (int k = 0; (of->name[k] = name[k]) != 0;) ++k;
  const char* text = cudaGetErrorString(error);
  for (int k = 0; (of->text[k] = text[k]) != 0;) ++k;
}
__global__ void astray(int* where) { where[100000000] = 1; }
__global__ void parent(int* where) { astray<<<1, 1>>>(where); }
__global__ void overwrite(cudaTextureObject_t texture, int* values) {
  cudaMemcpyAsync(reinterpret_cast<void*>(texture), values, 64, cudaMemcpyDeviceToDevice, nullptr);
}
__global__ void copy_local(int* values) {
  int own[4] = {values[0], 2, 3, 4};
  cudaMemcpyAsync(values, own, 16, cudaMemcpyDeviceToDevice, nullptr);
}
__global__ void copy_large(int* values) {
  cudaMemcpyAsync(values + 4, values, 68, cudaMemcpyDeviceToDevice, nullptr);
}

template <typename T>
static T* managed(size_t count) {
  T* p = nullptr;
  FINE(cudaMallocManaged(&p, count * sizeof(T)));
  return p;
}

static void expect(Log* log, std::initializer_list<int> wanted) {
  FINE(cudaDeviceSynchronize());
  CHECK(log->count == static_cast<int>(wanted.size()));
  int k = 0;
  for (const int w : wanted) CHECK(log->entries[k++] == w);
  log->count = 0;
}

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "astray") == 0) {
    int* where = nullptr;
    FINE(cudaMalloc(&where, 64));
    parent<<<1, 1>>>(where);
    std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "readonly") == 0) {
    // What a handle means is the simulator's own.
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
    FINE(cudaMallocArray(&resource.res.array.array, &floats, 16));
    const cudaTextureDesc how{};
    cudaTextureObject_t texture = 0;
    FINE(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    overwrite<<<1, 1>>>(texture, managed<int>(16));
    std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
  }
  if (argc > 1) {
    int* values = managed<int>(16);
    if (std::strcmp(argv[1], "local") == 0)
      copy_local<<<1, 1>>>(values);
    else
      copy_large<<<1, 1>>>(values);
    std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
  }
  Log* log = managed<Log>(1);
  nested<<<1, 1>>>(log, 2, 1);
  expect(log, {1, 11, 111, 112, 12, 121, 122});
  in_order<<<1, 1>>>(log);
  expect(log, {0, 1, 2, 3, 4, 90, 91});
  // The host's stream goes on when all that was launched has ended.
  nested<<<1, 1>>>(log, 1, 5);
  leaf<<<1, 1>>>(log, 6);
  expect(log, {5, 51, 52, 6});
  int* ints = managed<int>(64);
  double* doubles = managed<double>(1);
  loop<<<1, 1>>>(ints, 500);
  FINE(cudaDeviceSynchronize());
  CHECK(ints[0] == 500);
  ints[0] = 0;
  hand_over<<<1, 1>>>(ints, doubles);
  FINE(cudaDeviceSynchronize());
  CHECK(ints[0] == 96 * (1 + 666 + 3));
  CHECK(doubles[0] == 7 * (0.25 + 666 + 3.5));
  memory<<<1, 1>>>(ints);
  FINE(cudaDeviceSynchronize());
  CHECK(ints[0] == 100 * 0x01010101);
  CHECK(ints[1] == 1 && ints[2] == 1 && ints[3] == 1 && ints[4] == 1);
  for (int k = 0; k < 64; ++k) ints[k] = 0;
  refused<<<3, 64>>>(ints);
  FINE(cudaDeviceSynchronize());
  CHECK(ints[cudaSuccess] == 96 && ints[cudaErrorInvalidConfiguration] == 96);
  ints[0] = ints[cudaErrorInvalidConfiguration] = 0;
  endless<<<1, 1>>>(ints);
  FINE(cudaDeviceSynchronize());
  CHECK(ints[0] == 1 + 1024 && ints[1] == 1);
  ints[0] = ints[1] = 0;
  everywhere<<<64, 64>>>(ints);
  FINE(cudaDeviceSynchronize());
  for (int k = 0; k < 64; ++k) CHECK(ints[k] == 16);
  Texts* texts = managed<Texts>(1);
  for (const int number : {0, 1, 65, 700, 999999}) {
    const auto error = static_cast<cudaError_t>(number);
    describe<<<1, 2>>>(texts, error);
    FINE(cudaDeviceSynchronize());
    CHECK(std::strcmp(texts->name, cudaGetErrorName(error)) == 0);
    CHECK(std::strcmp(texts->text, cudaGetErrorString(error)) == 0);
  }
  FINE(cudaFree(texts));
  FINE(cudaFree(log));
  FINE(cudaFree(ints));
  FINE(cudaFree(doubles));
  return finish();
}
