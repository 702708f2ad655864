// Our stand-in for CUDA's runtime library, as little of it as programs/runtime_program.cu needs
// after nvcc. Like NVIDIA's it is linked statically or as libcudart.so.13, opens libcuda.so.1 by
// itself and asks cuGetProcAddress for everything, and loads modules when a kernel is launched
// first. (NVIDIA's own takes no driver but NVIDIA's; test_attach.py shows that attach stands before
// it all the same.)
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "energy/power/microbench/cuda_types.h"

using namespace gpusim::power::cuda;

struct dim3 {
  unsigned x, y, z;
};

namespace {

struct Driver {
  Result (*init)(unsigned);
  Result (*retain)(Context*, Device);
  Result (*set)(Context);
  Result (*load)(void**, const void*, int*, void**, unsigned, int*, void**, unsigned);
  Result (*kernel)(void**, void*, const char*);
  Result (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Stream, void**, void**);
  Result (*allocate)(DevicePointer*, size_t);
  Result (*to_device)(DevicePointer, const void*, size_t);
  Result (*to_host)(void*, DevicePointer, size_t);
  Result (*wait)();
};

std::map<const void*, std::string>& names() {
  static auto* m = new std::map<const void*, std::string>;
  return *m;
}
std::map<const void*, void*>& kernels() {
  static auto* m = new std::map<const void*, void*>;
  return *m;
}
struct Configuration {
  dim3 grid, block;
  size_t shared;
  void* stream;
};
thread_local Configuration configuration;

const Driver& driver() {
  static const Driver* d = [] {
    auto* f = new Driver{};
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) std::exit(9);
    auto get = reinterpret_cast<Result (*)(const char*, void**, int, uint64_t, int*)>(
        ::dlsym(library, "cuGetProcAddress_v2"));
    const auto find = [&](auto& function, const char* name) {
      int status = 0;
      get(name, reinterpret_cast<void**>(&function), 13000, 0, &status);
    };
    find(f->init, "cuInit");
    find(f->retain, "cuDevicePrimaryCtxRetain");
    find(f->set, "cuCtxSetCurrent");
    find(f->load, "cuLibraryLoadData");
    find(f->kernel, "cuLibraryGetKernel");
    find(f->launch, "cuLaunchKernel");
    find(f->allocate, "cuMemAlloc");
    find(f->to_device, "cuMemcpyHtoD");
    find(f->to_host, "cuMemcpyDtoH");
    find(f->wait, "cuCtxSynchronize");
    f->init(0);
    Context context = nullptr;
    f->retain(&context, 0);
    f->set(context);
    return f;
  }();
  return *d;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default")))

API void** __cudaRegisterFatBinary(void* image) {
  static void* kept;
  kept = image;
  return &kept;
}
API void __cudaRegisterFatBinaryEnd(void**) {}
API void __cudaUnregisterFatBinary(void**) {}
API void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*,
                                void*, void*, void*, int*) {
  names()[host] = name;
}
API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
API int __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void** stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *stream = configuration.stream;
  return 0;
}
API int cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                         size_t shared, void* stream) {
  const Driver& d = driver();
  void*& kernel = kernels()[function];
  if (kernel == nullptr) {
    void* library = nullptr;
    if (d.load(&library, "image", nullptr, nullptr, 0, nullptr, nullptr, 0) != 0 ||
        d.kernel(&kernel, library, names()[function].c_str()) != 0)
      return 98;
  }
  return d.launch(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                  static_cast<unsigned>(shared), static_cast<Stream>(stream), arguments, nullptr);
}
// What newer versions of nvcc call in its place.
API int __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return 0;
}
API int __cudaLaunchKernel(void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                           void* stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
API char __cudaInitModule(void**) { return 1; }
API int cudaMalloc(void** memory, size_t bytes) {
  return driver().allocate(reinterpret_cast<DevicePointer*>(memory), bytes);
}
API int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return kind == 1 ? driver().to_device(reinterpret_cast<DevicePointer>(to), from, bytes)
                   : driver().to_host(to, reinterpret_cast<DevicePointer>(from), bytes);
}
API int cudaDeviceSynchronize() { return driver().wait(); }
API int cudaGetLastError() { return 0; }
API int cudaFree(void*) { return 0; }
API const char* cudaGetErrorString(int) { return "an error"; }
