// Two streams with copies, kernels, events, a host function and a graph, for --timeline. The
// argument says how the program ends.
#include <cuda_runtime.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "check.h"

__global__ void scale(int* values, int by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= by;
}
__global__ void add(int* values, int by, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] += by;
}

constexpr int kCount = 1000, kRounds = 4, kPolls = 20;
constexpr size_t kBytes = kCount * sizeof(int);

int main(int, char** arguments) {
  const char* const how = arguments[1];
  cudaStream_t first, second;
  cudaEvent_t scaled, added;
  int *host, *device, *other;
  FINE(cudaStreamCreate(&first));
  FINE(cudaStreamCreate(&second));
  FINE(cudaEventCreate(&scaled));
  FINE(cudaEventCreate(&added));
  if (std::strcmp(how, "records_much") == 0) {
    for (int i = 0; i < 10000; ++i) FINE(cudaEventRecord(scaled, i % 2 == 0 ? first : second));
    return finish();
  }
  FINE(cudaMallocHost(&host, kBytes));
  FINE(cudaMalloc(&device, kBytes));
  FINE(cudaMalloc(&other, kBytes));
  for (int i = 0; i < kCount; ++i) host[i] = 1;
  for (int round = 0; round < kRounds; ++round) {
    FINE(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, first));
    scale<<<(kCount + 127) / 128, 128, 0, first>>>(device, round + 2, kCount);
    FINE(cudaEventRecord(scaled, first));
    FINE(cudaStreamWaitEvent(second, scaled, 0));
    add<<<1, dim3(16, 1, 1), 64, second>>>(device, 1, kCount - round);
    FINE(cudaEventRecord(added, second));
    FINE(cudaStreamWaitEvent(first, added, 0));
    FINE(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDefault, second));
    FINE(cudaStreamSynchronize(second));
  }
  CHECK(host[0] == (((1 * 2 + 1) * 3 + 1) * 4 + 1) * 5 + 1);
  FINE(cudaMemsetAsync(other, 0, kBytes / 2, second));
  std::atomic<int> polls{0};
  FINE(cudaLaunchHostFunc(
      second,
      [](void* p) {
        while (*static_cast<std::atomic<int>*>(p) < kPolls) usleep(100);
      },
      &polls));
  FINE(cudaEventRecord(added, second));
  while (cudaEventQuery(added) == cudaErrorNotReady) ++polls;
  CHECK(polls >= kPolls);
  // A graph of two kernels, twice.
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  FINE(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  add<<<1, 32, 0, first>>>(other, 1, kCount);
  scale<<<(kCount + 255) / 256, 256, 0, first>>>(other, 2, kCount);
  FINE(cudaStreamEndCapture(first, &graph));
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  FINE(cudaGraphLaunch(executable, first));
  FINE(cudaGraphLaunch(executable, first));
  std::thread([&] {
    FINE(cudaMemcpy(device, other, kBytes, cudaMemcpyDeviceToDevice));
    add<<<1, 16>>>(device, 1, 8);
    FINE(cudaDeviceSynchronize());
  }).join();
  CHECK(cudaSetDevice(7) == cudaErrorInvalidDevice);
  if (std::strcmp(how, "exits_at_once") == 0) _exit(5);
  if (std::strcmp(how, "is_killed") == 0) {
    add<<<1, 1>>>(device, 1, 1);
    FINE(cudaLaunchHostFunc(
        nullptr, [](void*) { kill(getpid(), SIGKILL); }, nullptr));
    add<<<1, 1>>>(device, 1, 1);
    FINE(cudaDeviceSynchronize());
  }
  if (std::strcmp(how, "faults") == 0) {
    add<<<1, 1>>>(nullptr, 1, 1);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    return finish();
  }
  FINE(cudaGraphExecDestroy(executable));
  FINE(cudaGraphDestroy(graph));
  for (int* p : {device, other}) FINE(cudaFree(p));
  FINE(cudaFreeHost(host));
  for (cudaEvent_t e : {scaled, added}) FINE(cudaEventDestroy(e));
  for (cudaStream_t s : {first, second}) FINE(cudaStreamDestroy(s));
  return finish();
}
