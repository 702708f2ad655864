// Libraries of kernels that a program loads while it runs: those of the runtime, and of the driver,
// whose kernels are functions, too. Options, which concern how machine code is made, are ignored.
#include <optional>

#include "host/cuda_api/driver.h"

using namespace gpusim::cuda_api;

namespace {

void load_library(void** library, const void* code) {
  require(library != nullptr && code != nullptr);
  *library = runtime().add_module(code);
}
void load_library_file(void** library, const char* path) {
  require(library != nullptr && path != nullptr);
  *library = runtime().add_module_file(path);
}
void unload_library(void* library) { runtime().remove_image(&runtime().image_of(library)); }
void find_kernel(void** kernel, void* library, const char* name) {
  require(kernel != nullptr && name != nullptr);
  *kernel = runtime().kernel_named(runtime().image_of(library), name);
}
void find_variable(void** address, size_t* size_bytes, void* library, const char* name) {
  require(name != nullptr);
  const std::optional<Variable> found = runtime().find_global(runtime().image_of(library), name);
  require(found.has_value(), kSymbolNotFound);
  if (address != nullptr) *address = found->address;
  if (size_bytes != nullptr) *size_bytes = found->size_bytes;
}

}  // namespace

GPUSIM_CUDA_API int cudaLibraryLoadData(void** library, const void* code, void*, void**, unsigned,
                                        void*, void**, unsigned) {
  return call("cudaLibraryLoadData", [&] { load_library(library, code); });
}
GPUSIM_CUDA_API int cudaLibraryLoadFromFile(void** library, const char* path, void*, void**,
                                            unsigned, void*, void**, unsigned) {
  return call("cudaLibraryLoadFromFile", [&] { load_library_file(library, path); });
}
GPUSIM_CUDA_API int cudaLibraryUnload(void* library) {
  return call("cudaLibraryUnload", [&] { unload_library(library); });
}
GPUSIM_CUDA_API int cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  return call("cudaLibraryGetKernel", [&] { find_kernel(kernel, library, name); });
}
GPUSIM_CUDA_API int cudaLibraryGetGlobal(void** address, size_t* size_bytes, void* library,
                                         const char* name) {
  return call("cudaLibraryGetGlobal", [&] { find_variable(address, size_bytes, library, name); });
}

GPUSIM_CUDA_API int cuLibraryLoadData(void** library, const void* code, void*, void**, unsigned,
                                      void*, void**, unsigned) {
  return driver_call("cuLibraryLoadData", [&] { load_library(library, code); });
}
GPUSIM_CUDA_API int cuLibraryLoadFromFile(void** library, const char* path, void*, void**, unsigned,
                                          void*, void**, unsigned) {
  return driver_call("cuLibraryLoadFromFile", [&] { load_library_file(library, path); });
}
GPUSIM_CUDA_API int cuLibraryUnload(void* library) {
  return driver_call("cuLibraryUnload", [&] { unload_library(library); });
}
GPUSIM_CUDA_API int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return driver_call("cuLibraryGetKernel", [&] { find_kernel(kernel, library, name); });
}
GPUSIM_CUDA_API int cuLibraryGetGlobal(void** address, size_t* size_bytes, void* library,
                                       const char* name) {
  return driver_call("cuLibraryGetGlobal",
                     [&] { find_variable(address, size_bytes, library, name); });
}
GPUSIM_CUDA_API int cuLibraryGetModule(void** module, void* library) {
  return driver_call("cuLibraryGetModule", [&] {
    require(module != nullptr);
    *module = &runtime().image_of(library);
  });
}
GPUSIM_CUDA_API int cuKernelGetFunction(void** function, void* kernel) {
  return driver_call("cuKernelGetFunction", [&] {
    require(function != nullptr);
    *function = &runtime().function(kernel);
  });
}
