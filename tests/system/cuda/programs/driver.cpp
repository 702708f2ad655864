// The driver API: a module of PTX text, a fat binary from a file, launches both ways.
// usage: driver KERNELS.ptx KERNELS.fatbin
#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "check.h"

#define GOOD(call)                                                                \
  do {                                                                            \
    const CUresult result = (call);                                               \
    if (result != CUDA_SUCCESS) {                                                 \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, result); \
      ++failures;                                                                 \
    }                                                                             \
  } while (0)

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CUdevice device;
  CUcontext context;
  CUmodule module, fat;
  CUfunction add;
  GOOD(cuInit(0));
  int count = 0;
  GOOD(cuDeviceGetCount(&count));
  CHECK(count == 1);
  CHECK(cuDeviceGet(&device, 3) == CUDA_ERROR_INVALID_DEVICE);
  GOOD(cuDeviceGet(&device, 0));
  char name[64];
  GOOD(cuDeviceGetName(name, sizeof name, device));
  CHECK(std::strlen(name) > 0);
  GOOD(cuCtxCreate(&context, nullptr, 0, device));
  CHECK(cuModuleLoadData(&module, ".version 9.0\n.target sm_80\n.address_size 64\nnonsense") ==
        CUDA_ERROR_INVALID_PTX);
  CHECK(cuModuleLoad(&module, "/") == CUDA_ERROR_FILE_NOT_FOUND);
  GOOD(cuModuleLoadData(&module, text.c_str()));
  GOOD(cuModuleLoad(&fat, argv[2]));
  CUlibrary library;
  CUkernel kernel;
  GOOD(cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cuLibraryGetKernel(&kernel, library, "missing") == CUDA_ERROR_NOT_FOUND);
  GOOD(cuLibraryUnload(library));
  GOOD(cuLibraryLoadFromFile(&library, argv[2], nullptr, nullptr, 0, nullptr, nullptr, 0));
  GOOD(cuLibraryGetKernel(&kernel, library, "add_bias"));
  GOOD(cuKernelGetFunction(&add, kernel));
  CUmodule of_library;
  GOOD(cuLibraryGetModule(&of_library, library));
  CHECK(cuModuleGetFunction(&add, module, "missing") == CUDA_ERROR_NOT_FOUND);
  CUdeviceptr values, bias;
  size_t size = 0;
  const int n = 100;
  int host[n];
  for (CUmodule m : {module, fat, of_library}) {
    GOOD(cuModuleGetFunction(&add, m, "add_bias"));
    GOOD(cuModuleGetGlobal(&bias, &size, m, "bias"));
    CHECK(size == sizeof(int));
    GOOD(cuMemAlloc(&values, sizeof host));
    GOOD(cuMemsetD32(values, 5, n));
    GOOD(cuMemsetD32(bias, 30, 1));
    int length = n;
    void* arguments[] = {&values, &length};
    GOOD(cuLaunchKernel(add, 4, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
    struct {
      CUdeviceptr values;
      int n;
    } buffer{values, 50};
    size_t buffer_size = 12;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &buffer_size, CU_LAUNCH_PARAM_END};
    GOOD(cuLaunchKernel(add, 4, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
    GOOD(cuCtxSynchronize());
    GOOD(cuMemcpyDtoH(host, values, sizeof host));
    for (int i = 0; i < n; ++i) CHECK(host[i] == 5 + 30 + (i < 50 ? 30 : 0));
    CHECK(cuMemcpyDtoH(host, values + 8, sizeof host) == CUDA_ERROR_INVALID_VALUE);
    GOOD(cuMemFree(values));
  }
  GOOD(cuModuleUnload(module));
  CHECK(cuModuleUnload(module) == CUDA_ERROR_INVALID_HANDLE);
  GOOD(cuCtxDestroy(context));
  std::puts(failures == 0 ? "all fine" : "FAILED");
  return failures == 0 ? 0 : 1;
}
