// Streams, events, host functions, graphs, and several host threads at once.
#include <cuda_runtime.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

__global__ void add_to(int* values, int by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += by;
}
__global__ void double_all(int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= 2;
}

constexpr int kCount = 256;

int first_of(const int* device) {
  int value = 0;
  FINE(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

void test_order(int* values) {
  cudaStream_t a, b;
  cudaEvent_t event, timing[2];
  FINE(cudaStreamCreate(&a));
  FINE(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  FINE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (cudaEvent_t& e : timing) FINE(cudaEventCreate(&e));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, timing[0], timing[1]) ==
        cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  FINE(cudaMemsetAsync(values, 0, kCount * sizeof(int), a));
  FINE(cudaEventRecord(timing[0], a));
  for (int i = 0; i < 10; ++i) add_to<<<1, kCount, 0, a>>>(values, 1, kCount);
  FINE(cudaEventRecord(event, a));
  FINE(cudaStreamWaitEvent(b, event, 0));
  double_all<<<1, kCount, 0, b>>>(values, kCount);
  FINE(cudaEventRecord(timing[1], b));
  FINE(cudaEventSynchronize(timing[1]));
  FINE(cudaEventQuery(timing[1]));
  FINE(cudaStreamQuery(b));
  FINE(cudaEventElapsedTime(&milliseconds, timing[0], timing[1]));
  CHECK(milliseconds >= 0);
  CHECK(first_of(values) == 20);
  CHECK(cudaEventElapsedTime(&milliseconds, timing[0], event) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  FINE(cudaStreamDestroy(a));
  FINE(cudaStreamDestroy(b));
  FINE(cudaEventDestroy(event));
  for (cudaEvent_t e : timing) FINE(cudaEventDestroy(e));
}

struct Note {
  const int* values;
  int seen = -1;
  cudaError_t inside = cudaSuccess;
};

void test_host_functions(int* values) {
  cudaStream_t stream;
  FINE(cudaStreamCreate(&stream));
  Note note{values}, called{values};
  int* pinned = nullptr;
  FINE(cudaMallocHost(&pinned, sizeof(int)));
  note.values = called.values = pinned;
  FINE(cudaMemsetAsync(values, 0, kCount * sizeof(int), stream));
  add_to<<<1, kCount, 0, stream>>>(values, 3, kCount);
  FINE(cudaMemcpyAsync(pinned, values, sizeof(int), cudaMemcpyDeviceToHost, stream));
  FINE(cudaLaunchHostFunc(
      stream,
      [](void* p) {
        auto* n = static_cast<Note*>(p);
        n->seen = *n->values;
        n->inside = cudaDeviceSynchronize();  // must not wait for itself
      },
      &note));
  FINE(cudaStreamAddCallback(
      stream,
      [](cudaStream_t, cudaError_t status, void* p) {
        auto* n = static_cast<Note*>(p);
        n->seen = status == cudaSuccess ? *n->values + 1 : -2;
      },
      &called, 0));
  FINE(cudaStreamSynchronize(stream));
  CHECK(note.seen == 3);
  CHECK(note.inside == cudaErrorNotPermitted);
  CHECK(called.seen == 4);
  FINE(cudaFreeHost(pinned));
  FINE(cudaStreamDestroy(stream));
}

void test_threads() {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t, &wrong] {
      int* mine = nullptr;
      cudaStream_t stream;
      if (cudaMalloc(&mine, kCount * sizeof(int)) != cudaSuccess) ++wrong;
      if (cudaStreamCreate(&stream) != cudaSuccess) ++wrong;
      std::vector<int> host(kCount);
      for (int round = 0; round < 20; ++round) {
        cudaMemsetAsync(mine, 0, kCount * sizeof(int), stream);
        add_to<<<2, kCount / 2, 0, stream>>>(mine, t * 100 + round, kCount);
        cudaMemcpyAsync(host.data(), mine, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream);
        if (cudaStreamSynchronize(stream) != cudaSuccess) ++wrong;
        for (const int value : host) wrong += value != t * 100 + round;
      }
      // Each thread has an error of its own.
      if (t % 2 == 0 && cudaSetDevice(7) != cudaErrorInvalidDevice) ++wrong;
      if (cudaGetLastError() != (t % 2 == 0 ? cudaErrorInvalidDevice : cudaSuccess)) ++wrong;
      cudaStreamDestroy(stream);
      cudaFree(mine);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

void test_capture(int* values) {
  cudaStream_t a, b;
  cudaEvent_t fork, join;
  FINE(cudaStreamCreate(&a));
  FINE(cudaStreamCreate(&b));
  FINE(cudaEventCreate(&fork));
  FINE(cudaEventCreate(&join));
  int* other = nullptr;
  FINE(cudaMalloc(&other, kCount * sizeof(int)));
  FINE(cudaMemset(values, 0, kCount * sizeof(int)));
  FINE(cudaMemset(other, 0, kCount * sizeof(int)));
  FINE(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  add_to<<<1, kCount, 0, a>>>(values, 1, kCount);
  FINE(cudaEventRecord(fork, a));
  FINE(cudaStreamWaitEvent(b, fork, 0));
  add_to<<<1, kCount, 0, b>>>(other, 5, kCount);
  FINE(cudaEventRecord(join, b));
  double_all<<<1, kCount, 0, a>>>(values, kCount);
  FINE(cudaStreamWaitEvent(a, join, 0));
  add_to<<<1, kCount, 0, a>>>(values, 3, kCount);
  cudaGraph_t graph;
  FINE(cudaStreamEndCapture(a, &graph));
  FINE(cudaDeviceSynchronize());
  CHECK(first_of(values) == 0);  // nothing has run
  size_t count = 0;
  FINE(cudaGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 4);
  cudaGraphExec_t executable;
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) FINE(cudaGraphLaunch(executable, a));
  FINE(cudaStreamSynchronize(a));
  // ((0 + 1) * 2 + 3 + 1) * 2 + 3 ...
  CHECK(first_of(values) == 5 * 4 + 5 * 2 + 5);
  CHECK(first_of(other) == 15);
  FINE(cudaGraphExecDestroy(executable));
  FINE(cudaGraphDestroy(graph));
  // Who waits for a stream that captures spoils the graph.
  FINE(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  add_to<<<1, kCount, 0, a>>>(values, 1, kCount);
  CHECK(cudaStreamSynchronize(a) == cudaErrorStreamCaptureUnsupported);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  FINE(cudaStreamIsCapturing(a, &status));
  CHECK(status == cudaStreamCaptureStatusInvalidated);
  CHECK(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  cudaGetLastError();
  FINE(cudaStreamIsCapturing(a, &status));
  CHECK(status == cudaStreamCaptureStatusNone);
  FINE(cudaFree(other));
  FINE(cudaStreamDestroy(a));
  FINE(cudaStreamDestroy(b));
}

void test_explicit_graph(int* values) {
  cudaGraph_t graph;
  FINE(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t clear, kernel, back;
  cudaMemsetParams set{};
  set.dst = values;
  set.value = 4;
  set.elementSize = 4;
  set.width = kCount;
  set.height = 1;
  int by = 6, n = kCount, host = 0;
  void* arguments[] = {&values, &by, &n};
  cudaKernelNodeParams launch{};
  launch.func = reinterpret_cast<void*>(add_to);
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(kCount);
  launch.kernelParams = arguments;
  // Added against their order, which the edges say.
  FINE(cudaGraphAddMemcpyNode1D(&back, graph, nullptr, 0, &host, values, sizeof host,
                                cudaMemcpyDeviceToHost));
  FINE(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &launch));
  FINE(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &set));
  const cudaGraphNode_t from[] = {clear, kernel}, to[] = {kernel, back};
  FINE(cudaGraphAddDependencies(graph, from, to, nullptr, 2));
  by = 1000;  // the node has its own copy
  cudaGraphExec_t executable;
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  FINE(cudaGraphLaunch(executable, nullptr));
  FINE(cudaDeviceSynchronize());
  CHECK(host == 10);
  by = 8;
  FINE(cudaGraphExecKernelNodeSetParams(executable, kernel, &launch));
  FINE(cudaGraphLaunch(executable, nullptr));
  FINE(cudaDeviceSynchronize());
  CHECK(host == 12);
  cudaGraphNodeType type;
  FINE(cudaGraphNodeGetType(clear, &type));
  CHECK(type == cudaGraphNodeTypeMemset);
  FINE(cudaGraphExecDestroy(executable));
  // A circle.
  FINE(cudaGraphAddDependencies(graph, &back, &clear, nullptr, 1));
  CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaErrorInvalidValue);
  cudaGetLastError();
  FINE(cudaGraphDestroy(graph));
}

int main() {
  int* values = nullptr;
  FINE(cudaMalloc(&values, kCount * sizeof(int)));
  test_order(values);
  test_host_functions(values);
  test_threads();
  test_capture(values);
  test_explicit_graph(values);
  FINE(cudaFree(values));
  return finish();
}
