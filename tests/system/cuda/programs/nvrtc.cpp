// Kernels that are compiled while the program runs: NVRTC's PTX and, where machine code is asked
// for, what stands for it; loaded as modules and as libraries.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nvrtc.h>

#include <string>
#include <vector>

#include "check.h"

#define GOOD(call)                                                                \
  do {                                                                            \
    const int result = static_cast<int>(call);                                    \
    if (result != 0) {                                                            \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, result); \
      ++failures;                                                                 \
    }                                                                             \
  } while (0)

static const char kSource[] = R"(
__constant__ float bias = 0.5f;
template <typename T> __device__ T twice(T x) { return x + x; }
template <typename T> __global__ void scale(const T* in, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = twice(in[i]) + static_cast<T>(bias);
}
extern "C" __global__ void fill(int* out, int value) { out[threadIdx.x] = value; }
)";

struct Compiled {
  std::string image, scale;  // what is loaded; the lowered name of scale<float>
};

// `wants_code`: machine code (nvrtcGetCUBIN).
static Compiled compile(const char* architecture, bool wants_code) {
  nvrtcProgram program;
  GOOD(nvrtcCreateProgram(&program, kSource, "kernels.cu", 0, nullptr, nullptr));
  GOOD(nvrtcAddNameExpression(program, "scale<float>"));
  const std::string option = std::string("--gpu-architecture=") + architecture;
  const char* options[] = {option.c_str(), "--std=c++17", "-lineinfo"};
  GOOD(nvrtcCompileProgram(program, 3, options));
  Compiled made;
  const char* lowered = nullptr;
  GOOD(nvrtcGetLoweredName(program, "scale<float>", &lowered));
  if (lowered != nullptr) made.scale = lowered;
  size_t size = 0;
  GOOD(wants_code ? nvrtcGetCUBINSize(program, &size) : nvrtcGetPTXSize(program, &size));
  CHECK(size > 1);
  made.image.resize(size);
  GOOD(wants_code ? nvrtcGetCUBIN(program, made.image.data())
                  : nvrtcGetPTX(program, made.image.data()));
  GOOD(nvrtcDestroyProgram(&program));
  return made;
}

constexpr int kCount = 1000;

static void check_scale(const float* out) {
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += out[i] != 2.0f * static_cast<float>(i) + 0.5f;
  CHECK(wrong == 0);
}

// A module of the driver API, through the linker where `links`.
static void run_module(const Compiled& made, bool links) {
  CUmodule module;
  CUfunction scale;
  CUlinkState state = nullptr;
  if (links) {
    void* image = nullptr;
    GOOD(cuLinkCreate(0, nullptr, nullptr, &state));
    GOOD(cuLinkAddData(state, CU_JIT_INPUT_CUBIN, const_cast<char*>(made.image.data()),
                       made.image.size(), "kernels", 0, nullptr, nullptr));
    GOOD(cuLinkComplete(state, &image, nullptr));
    GOOD(cuModuleLoadData(&module, image));
  } else {
    GOOD(cuModuleLoadDataEx(&module, made.image.c_str(), 0, nullptr, nullptr));
  }
  GOOD(cuModuleGetFunction(&scale, module, made.scale.c_str()));
  std::vector<float> host(kCount);
  for (int i = 0; i < kCount; ++i) host[static_cast<size_t>(i)] = static_cast<float>(i);
  CUdeviceptr in, out;
  GOOD(cuMemAlloc(&in, sizeof(float) * kCount));
  GOOD(cuMemAlloc(&out, sizeof(float) * kCount));
  GOOD(cuMemcpyHtoD(in, host.data(), sizeof(float) * kCount));
  int n = kCount;
  void* arguments[] = {&in, &out, &n};
  GOOD(cuLaunchKernel(scale, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
  GOOD(cuMemcpyDtoH(host.data(), out, sizeof(float) * kCount));
  check_scale(host.data());
  GOOD(cuMemFree(in));
  GOOD(cuMemFree(out));
  GOOD(cuModuleUnload(module));
  if (state != nullptr) GOOD(cuLinkDestroy(state));
}

static void run_driver_library(const Compiled& made) {
  CUlibrary library;
  CUkernel fill;
  GOOD(cuLibraryLoadData(&library, made.image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  GOOD(cuLibraryGetKernelCount(&count, library));
  CHECK(count == 2);
  CUkernel kernels[2] = {};
  GOOD(cuLibraryEnumerateKernels(kernels, 2, library));
  CHECK(cuLibraryGetKernel(&fill, library, "missing") == CUDA_ERROR_NOT_FOUND);
  GOOD(cuLibraryGetKernel(&fill, library, "fill"));
  CHECK(kernels[0] == fill || kernels[1] == fill);
  CUfunction function;
  GOOD(cuKernelGetFunction(&function, fill));
  size_t offset = 0, size = 0;
  GOOD(cuKernelGetParamInfo(fill, 1, &offset, &size));
  CHECK(offset == 8 && size == 4);
  CHECK(cuKernelGetParamInfo(fill, 2, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr out, bias;
  GOOD(cuLibraryGetGlobal(&bias, &size, library, "bias"));
  CHECK(size == sizeof(float));
  GOOD(cuMemAlloc(&out, sizeof(int) * 64));
  int value = 7, host[64] = {};
  void* arguments[] = {&out, &value};
  GOOD(cuLaunchKernel(reinterpret_cast<CUfunction>(fill), 1, 1, 1, 32, 1, 1, 0, nullptr, arguments,
                      nullptr));
  value = 8;
  CUdeviceptr rest = out + 32 * sizeof(int);
  void* others[] = {&rest, &value};
  GOOD(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, others, nullptr));
  GOOD(cuMemcpyDtoH(host, out, sizeof host));
  int wrong = 0;
  for (int i = 0; i < 64; ++i) wrong += host[i] != (i < 32 ? 7 : 8);
  CHECK(wrong == 0);
  GOOD(cuMemFree(out));
  GOOD(cuLibraryUnload(library));
}

static void run_runtime_library(const Compiled& made) {
  cudaLibrary_t library;
  cudaKernel_t scale;
  FINE(cudaLibraryLoadData(&library, made.image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  FINE(cudaLibraryGetKernel(&scale, library, made.scale.c_str()));
  CHECK(cudaLibraryGetKernel(&scale, library, "missing") == cudaErrorSymbolNotFound);
  FINE(cudaLibraryGetKernel(&scale, library, made.scale.c_str()));
  unsigned count = 0;
  FINE(cudaLibraryGetKernelCount(&count, library));
  CHECK(count == 2);
  float *in, *out;
  FINE(cudaMallocManaged(reinterpret_cast<void**>(&in), sizeof(float) * kCount,
                         cudaMemAttachGlobal));
  FINE(cudaMallocManaged(reinterpret_cast<void**>(&out), sizeof(float) * kCount,
                         cudaMemAttachGlobal));
  for (int i = 0; i < kCount; ++i) in[i] = static_cast<float>(i);
  int n = kCount;
  void* arguments[] = {&in, &out, &n};
  FINE(cudaLaunchKernel(reinterpret_cast<const void*>(scale), dim3(8), dim3(128), arguments, 0,
                        nullptr));
  FINE(cudaDeviceSynchronize());
  check_scale(out);
  // A graph outlives the library of its kernel.
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  FINE(cudaStreamCreate(&stream));
  FINE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  FINE(cudaLaunchKernel(reinterpret_cast<const void*>(scale), dim3(8), dim3(128), arguments, 0,
                        stream));
  FINE(cudaStreamEndCapture(stream, &graph));
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  FINE(cudaGraphLaunch(executable, stream));
  FINE(cudaLibraryUnload(library));
  FINE(cudaStreamSynchronize(stream));
  cudaGraphLaunch(executable, stream);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidDeviceFunction);
  FINE(cudaDeviceReset());
}

int main() {
  GOOD(cuInit(0));
  CUdevice device;
  CUcontext context;
  GOOD(cuDeviceGet(&device, 0));
  GOOD(cuDevicePrimaryCtxRetain(&context, device));
  GOOD(cuCtxSetCurrent(context));
  const Compiled text = compile("compute_80", false), code = compile("sm_80", true);
  run_module(text, false);
  run_module(code, false);
  run_module(code, true);
  run_driver_library(code);
  run_runtime_library(text);
  return finish();
}
