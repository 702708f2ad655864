// Graphs that decide (conditional nodes) and that allocate.
#include <cuda_runtime.h>

#include <cstdint>

#include "check.h"

__global__ void add_to(int* values, int by) { values[threadIdx.x] += by; }
__global__ void decide(const int* value, int below, cudaGraphConditionalHandle handle) {
  cudaGraphSetConditional(handle, *value < below);
}
__global__ void choose(const int* value, cudaGraphConditionalHandle handle) {
  cudaGraphSetConditional(handle, static_cast<unsigned>(*value));
}
__global__ void copy_first(int* to, const int* from) { *to = *from; }

namespace {

cudaGraphNodeParams kernel_params(void (*kernel)(int*, int), void** arguments) {
  cudaGraphNodeParams p{cudaGraphNodeTypeKernel};
  p.kernel.func = reinterpret_cast<void*>(kernel);
  p.kernel.gridDim = p.kernel.blockDim = dim3(1);
  p.kernel.kernelParams = arguments;
  return p;
}

cudaGraphNodeParams condition(cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                              unsigned count) {
  cudaGraphNodeParams p{cudaGraphNodeTypeConditional};
  p.conditional.handle = handle;
  p.conditional.type = type;
  p.conditional.size = count;
  return p;
}

int launch(cudaGraphExec_t executable, int* value, int start) {
  *value = start;
  FINE(cudaGraphLaunch(executable, nullptr));
  FINE(cudaDeviceSynchronize());
  return *value;
}

// Captured: while (*value < 10) *value += 3, and 1000 at the end.
void test_while(int* value) {
  cudaStream_t stream;
  FINE(cudaStreamCreate(&stream));
  FINE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudaStreamCaptureStatus status;
  cudaGraph_t graph;
  const cudaGraphNode_t* last;
  size_t count = 0;
  FINE(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &last, nullptr, &count));
  CHECK(status == cudaStreamCaptureStatusActive && count == 0);
  cudaGraphConditionalHandle handle;
  FINE(cudaGraphConditionalHandleCreate(&handle, graph));
  decide<<<1, 1, 0, stream>>>(value, 10, handle);
  FINE(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &last, nullptr, &count));
  CHECK(count == 1);
  cudaGraphNodeParams loop = condition(handle, cudaGraphCondTypeWhile, 1);
  cudaGraphNode_t node;
  FINE(cudaGraphAddNode(&node, graph, last, nullptr, count, &loop));
  FINE(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1,
                                           cudaStreamSetCaptureDependencies));
  add_to<<<1, 1, 0, stream>>>(value, 1000);
  cudaGraph_t whole;
  FINE(cudaStreamEndCapture(stream, &whole));
  CHECK(whole == graph);
  FINE(cudaStreamBeginCaptureToGraph(stream, loop.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                     cudaStreamCaptureModeGlobal));
  add_to<<<1, 1, 0, stream>>>(value, 3);
  decide<<<1, 1, 0, stream>>>(value, 10, handle);
  FINE(cudaStreamEndCapture(stream, nullptr));
  CHECK(cudaGraphDestroy(loop.conditional.phGraph_out[0]) == cudaErrorInvalidValue);
  cudaGetLastError();
  cudaGraphExec_t executable;
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  FINE(cudaGraphDestroy(graph));
  CHECK(launch(executable, value, 0) == 1012);
  CHECK(launch(executable, value, 9) == 1012);
  CHECK(launch(executable, value, 50) == 1050);
  FINE(cudaGraphExecDestroy(executable));
  FINE(cudaStreamDestroy(stream));
}

// The condition has a value of its own at each launch; two bodies.
void test_if_else(int* value) {
  cudaGraph_t graph;
  FINE(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  FINE(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams branch = condition(handle, cudaGraphCondTypeIf, 2);
  cudaGraphNode_t node, inner;
  FINE(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &branch));
  int one = 1, two = 2;
  void *first[] = {&value, &one}, *second[] = {&value, &two};
  cudaGraphNodeParams add = kernel_params(add_to, first);
  FINE(cudaGraphAddNode(&inner, branch.conditional.phGraph_out[0], nullptr, nullptr, 0, &add));
  add = kernel_params(add_to, second);
  FINE(cudaGraphAddNode(&inner, branch.conditional.phGraph_out[1], nullptr, nullptr, 0, &add));
  cudaGraphExec_t executable;
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(launch(executable, value, 10) == 11);
  decide<<<1, 1>>>(value, 0, handle);  // no longer true, but for the next launch
  CHECK(launch(executable, value, 10) == 11);
  FINE(cudaGraphExecDestroy(executable));
  FINE(cudaGraphDestroy(graph));
}

void test_switch(int* value) {
  cudaGraph_t graph;
  FINE(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  FINE(cudaGraphConditionalHandleCreate(&handle, graph));
  void* arguments[] = {&value, &handle};
  cudaGraphNodeParams which = kernel_params(add_to, arguments);
  which.kernel.func = reinterpret_cast<void*>(choose);
  cudaGraphNode_t chooser, node, inner;
  FINE(cudaGraphAddNode(&chooser, graph, nullptr, nullptr, 0, &which));
  cudaGraphNodeParams branches = condition(handle, cudaGraphCondTypeSwitch, 3);
  FINE(cudaGraphAddNode(&node, graph, &chooser, nullptr, 1, &branches));
  for (int k = 0; k < 3; ++k) {
    int by = 100 * (k + 1);
    void* of_body[] = {&value, &by};
    cudaGraphNodeParams add = kernel_params(add_to, of_body);
    FINE(cudaGraphAddNode(&inner, branches.conditional.phGraph_out[k], nullptr, nullptr, 0, &add));
  }
  cudaGraphExec_t executable;
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  for (int k = 0; k < 4; ++k)
    CHECK(launch(executable, value, k) == (k < 3 ? 100 * (k + 1) + k : 3));
  branches.conditional.size = 0;
  CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &branches) == cudaErrorInvalidValue);
  cudaGetLastError();
  FINE(cudaGraphExecDestroy(executable));
  FINE(cudaGraphDestroy(graph));
}

uint64_t used_by_graphs() {
  uint64_t used = 1;
  FINE(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
  return used;
}

// A graph's memory: zeroed at each launch, freed by a node, by the program, or at the next launch.
void test_memory(int* value) {
  cudaGraph_t graph;
  FINE(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams memory{};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.bytesize = 64;
  cudaGraphNode_t allocation, add, copy, free_node;
  FINE(cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &memory));
  int* block = static_cast<int*>(memory.dptr);
  int by = 7;
  void *to_block[] = {&block, &by}, *from_block[] = {&value, &block};
  cudaKernelNodeParams launch_add{};
  launch_add.func = reinterpret_cast<void*>(add_to);
  launch_add.gridDim = launch_add.blockDim = dim3(1);
  launch_add.kernelParams = to_block;
  FINE(cudaGraphAddKernelNode(&add, graph, &allocation, 1, &launch_add));
  launch_add.func = reinterpret_cast<void*>(copy_first);
  launch_add.kernelParams = from_block;
  FINE(cudaGraphAddKernelNode(&copy, graph, &add, 1, &launch_add));
  cudaGraphExec_t keeps, frees, frees_first;
  FINE(cudaGraphInstantiate(&keeps, graph, 0));
  FINE(cudaGraphInstantiate(&frees_first, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  FINE(cudaGraphAddMemFreeNode(&free_node, graph, &copy, 1, block));
  FINE(cudaGraphInstantiate(&frees, graph, 0));
  CHECK(used_by_graphs() == 0);
  CHECK(launch(frees, value, 0) == 7);
  CHECK(launch(frees, value, 0) == 7);
  CHECK(used_by_graphs() == 0);
  uint64_t used = 0;
  FINE(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &used));
  CHECK(used == 64);
  CHECK(launch(keeps, value, 0) == 7);
  CHECK(cudaGraphLaunch(keeps, nullptr) == cudaErrorInvalidValue);  // it is still there
  cudaGetLastError();
  int host = 0;
  FINE(cudaMemcpy(&host, block, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(host == 7);
  CHECK(launch(frees_first, value, 0) == 7);
  CHECK(used_by_graphs() == 64);
  CHECK(cudaFree(block + 1) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(used_by_graphs() == 64);
  FINE(cudaFree(block));
  CHECK(used_by_graphs() == 0);
  CHECK(cudaFree(block) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(used_by_graphs() == 0);
  CHECK(launch(keeps, value, 0) == 7);
  CHECK(used_by_graphs() == 64);
  FINE(cudaFreeAsync(block, nullptr));
  CHECK(used_by_graphs() == 0);
  for (cudaGraphExec_t executable : {keeps, frees, frees_first})
    FINE(cudaGraphExecDestroy(executable));
  FINE(cudaGraphDestroy(graph));
}

void test_captured_memory(int* value) {
  cudaStream_t stream;
  FINE(cudaStreamCreate(&stream));
  FINE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int* block = nullptr;
  FINE(cudaMallocAsync(&block, 4, stream));
  static const int kTen = 10;
  FINE(cudaMemcpyAsync(block, &kTen, sizeof kTen, cudaMemcpyHostToDevice, stream));
  add_to<<<1, 1, 0, stream>>>(block, 5);
  copy_first<<<1, 1, 0, stream>>>(value, block);
  FINE(cudaFreeAsync(block, stream));
  cudaGraph_t graph;
  FINE(cudaStreamEndCapture(stream, &graph));
  size_t count = 0;
  FINE(cudaGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 5);
  cudaGraphExec_t executable;
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  for (int k = 0; k < 2; ++k) CHECK(launch(executable, value, 0) == 15);
  FINE(cudaGraphExecDestroy(executable));
  FINE(cudaGraphDestroy(graph));
  FINE(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  int* value = nullptr;
  FINE(cudaMallocManaged(&value, sizeof *value));
  test_while(value);
  test_if_else(value);
  test_switch(value);
  test_memory(value);
  test_captured_memory(value);
  FINE(cudaFree(value));
  return finish();
}
