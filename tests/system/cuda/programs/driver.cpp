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

// Two memories behind each other in one range: kernels and copies see one block; mapped again, the
// second one has what was written. `add`: add_bias.
void test_virtual_memory(CUfunction add) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  size_t size = 0;
  GOOD(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr range = 0;
  CHECK(cuMemAddressReserve(&range, size + 1, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  GOOD(cuMemAddressReserve(&range, 3 * size, 16 << 20, 0, 0));
  CHECK(range % (16 << 20) == 0);
  CUmemGenericAllocationHandle memory[2];
  for (int k = 0; k < 2; ++k) {
    GOOD(cuMemCreate(&memory[k], size, &prop, 0));
    GOOD(cuMemMap(range + k * size, size, 0, memory[k], 0));
  }
  CHECK(cuMemMap(range, size, 0, memory[0], 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD32(range, 1, 1) == CUDA_ERROR_INVALID_VALUE);  // nobody may access it yet
  CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK(cuMemSetAccess(range, 3 * size, &access, 1) == CUDA_ERROR_INVALID_VALUE);
  GOOD(cuMemSetAccess(range, 2 * size, &access, 1));
  unsigned long long flags = 0;
  GOOD(cuMemGetAccess(&flags, &prop.location, range + size));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  int n = static_cast<int>(2 * size / sizeof(int));
  GOOD(cuMemsetD32(range, 5, n));
  void* arguments[] = {&range, &n};
  GOOD(cuLaunchKernel(add, (n + 1023) / 1024, 1, 1, 1024, 1, 1, 0, nullptr, arguments, nullptr));
  int ends[2];
  GOOD(cuMemcpyDtoH(ends, range + size - sizeof(int), sizeof ends));
  CHECK(ends[0] == 35 && ends[1] == 35);
  // Elsewhere, by a file descriptor.
  int file = -1;
  GOOD(cuMemExportToShareableHandle(&file, memory[1], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUmemGenericAllocationHandle imported;
  GOOD(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(intptr_t{file}),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  GOOD(cuMemsetD32(range + size, 77, 1));
  GOOD(cuMemUnmap(range, 2 * size));
  CHECK(cuMemcpyDtoH(ends, range, sizeof ends) == CUDA_ERROR_INVALID_VALUE);
  for (CUmemGenericAllocationHandle m : memory) GOOD(cuMemRelease(m));
  CHECK(cuMemRelease(memory[0]) == CUDA_ERROR_INVALID_VALUE);
  GOOD(cuMemMap(range + 2 * size, size, 0, imported, 0));
  GOOD(cuMemRelease(imported));  // its mapping keeps it
  GOOD(cuMemSetAccess(range + 2 * size, size, &access, 1));
  GOOD(cuMemcpyDtoH(ends, range + 2 * size, sizeof ends));
  CHECK(ends[0] == 77 && ends[1] == 35);
  GOOD(cuMemRetainAllocationHandle(&imported, reinterpret_cast<void*>(range + 2 * size)));
  CUmemAllocationProp found{};
  GOOD(cuMemGetAllocationPropertiesFromHandle(&found, imported));
  CHECK(found.type == CU_MEM_ALLOCATION_TYPE_PINNED);
  GOOD(cuMemRelease(imported));
  CHECK(cuMemAddressFree(range, 3 * size) == CUDA_ERROR_INVALID_VALUE);  // something is there
  GOOD(cuMemUnmap(range + 2 * size, size));
  GOOD(cuMemAddressFree(range, 3 * size));
}

// As before CUDA 4: shape and arguments first.
void test_launch_in_steps(CUfunction add) {
  CUdeviceptr values;
  int host[8];
  GOOD(cuMemAlloc(&values, sizeof host));
  GOOD(cuMemsetD8(values, 0, sizeof host));
  GOOD(cuFuncSetBlockShape(add, 4, 1, 1));
  GOOD(cuFuncSetSharedSize(add, 0));
  GOOD(cuParamSetv(add, 0, &values, sizeof values));
  GOOD(cuParamSeti(add, sizeof values, 7));
  GOOD(cuParamSetSize(add, sizeof values + sizeof(int)));
  GOOD(cuLaunchGrid(add, 2, 1));
  GOOD(cuMemcpyDtoH(host, values, sizeof host));
  for (int i = 0; i < 8; ++i) CHECK(host[i] == (i < 7 ? 30 : 0));
  CHECK(cuLaunchGrid(add, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuParamSetv(add, 32760, &values, sizeof values) == CUDA_ERROR_INVALID_VALUE);
  GOOD(cuMemFree(values));
  int grid = 0, block = 0, blocks = 0;
  GOOD(cuOccupancyMaxPotentialBlockSize(&grid, &block, add, nullptr, 0, 0));
  GOOD(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, block, 0));
  int sms = 0, most = 0;
  GOOD(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  GOOD(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
  CHECK(blocks * block == most && grid == blocks * sms);
  GOOD(cuOccupancyMaxPotentialBlockSize(&grid, &block, add, nullptr, 0, 200));
  CHECK(block > 0 && block <= 200);
  GOOD(cuMemHostRegister(host, sizeof host, 0));
  CHECK(cuMemHostRegister(host, sizeof host, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  GOOD(cuMemHostUnregister(host));
  CHECK(cuDeviceGetP2PAttribute(&grid, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1) ==
        CUDA_ERROR_INVALID_DEVICE);
}

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
  GOOD(cuModuleGetFunction(&add, fat, "add_bias"));
  GOOD(cuModuleGetGlobal(&bias, &size, fat, "bias"));
  GOOD(cuMemsetD32(bias, 30, 1));
  test_virtual_memory(add);
  test_launch_in_steps(add);
  GOOD(cuModuleUnload(module));
  CHECK(cuModuleUnload(module) == CUDA_ERROR_INVALID_HANDLE);
  GOOD(cuCtxDestroy(context));
  std::puts(failures == 0 ? "all fine" : "FAILED");
  return failures == 0 ? 0 : 1;
}
