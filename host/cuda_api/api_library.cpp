// Libraries of kernels, of the driver and of the runtime: modules that belong to no context. Their
// kernels are functions.
#include <algorithm>
#include <string>
#include <vector>

#include "host/cuda_api/driver.h"
#include "host/cuda_api/launches.h"

using namespace gpusim::cuda_api;

extern "C" {
int cuFuncGetAttribute(int*, int, void*);
}

namespace {

using Address = uint64_t;

Variable variable_of(void* library, const char* name) {
  require(name != nullptr);
  const std::optional<Variable> found = runtime().find_global(module_of(library), name);
  require(found.has_value(), kSymbolNotFound);
  return *found;
}

void list_kernels(void** kernels, unsigned count, void* library) {
  require(kernels != nullptr && count != 0);
  LoadedImage& image = module_of(library);
  const std::vector<std::string> names = runtime().kernel_names(image);
  for (size_t k = 0; k < count; ++k)
    kernels[k] = k < names.size() ? kernel_of(image, names[k].c_str()) : nullptr;
}

unsigned count_kernels(void* library) {
  return static_cast<unsigned>(runtime().kernel_names(module_of(library)).size());
}

void parameter_of(void* kernel, size_t index, size_t* offset, size_t* size) {
  require(offset != nullptr);
  Runtime& r = runtime();
  const KernelFacts& facts = r.facts_of(r.function(kernel));
  require(index < facts.params.size());
  *offset = facts.params[index].offset_bytes;
  if (size != nullptr) *size = facts.params[index].size_bytes;
}

}  // namespace

// Options are of the compiler and the loader that is not here: they change nothing.
GPUSIM_CUDA_API int cuLibraryLoadData(void** library, const void* code, int*, void**, unsigned,
                                      int*, void**, unsigned) {
  return driver_call("cuLibraryLoadData", [&] {
    require(library != nullptr);
    *library = load_module(code);
  });
}
GPUSIM_CUDA_API int cuLibraryLoadFromFile(void** library, const char* path, int*, void**, unsigned,
                                          int*, void**, unsigned) {
  return driver_call("cuLibraryLoadFromFile", [&] {
    require(library != nullptr);
    *library = load_module_file(path);
  });
}
GPUSIM_CUDA_API int cuLibraryUnload(void* library) {
  return driver_call("cuLibraryUnload", [&] { runtime().remove_image(&module_of(library)); });
}
GPUSIM_CUDA_API int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return driver_call("cuLibraryGetKernel", [&] {
    require(kernel != nullptr);
    *kernel = kernel_of(module_of(library), name);
  });
}
GPUSIM_CUDA_API int cuLibraryGetKernelCount(unsigned* count, void* library) {
  return driver_call("cuLibraryGetKernelCount", [&] {
    require(count != nullptr);
    *count = count_kernels(library);
  });
}
GPUSIM_CUDA_API int cuLibraryEnumerateKernels(void** kernels, unsigned count, void* library) {
  return driver_call("cuLibraryEnumerateKernels", [&] { list_kernels(kernels, count, library); });
}
GPUSIM_CUDA_API int cuLibraryGetModule(void** module, void* library) {
  return driver_call("cuLibraryGetModule", [&] {
    require(module != nullptr);
    *module = &module_of(library);
  });
}
GPUSIM_CUDA_API int cuLibraryGetGlobal(Address* address, size_t* size, void* library,
                                       const char* name) {
  return driver_call("cuLibraryGetGlobal", [&] {
    require(address != nullptr || size != nullptr);
    const Variable v = variable_of(library, name);
    if (address != nullptr) *address = reinterpret_cast<Address>(v.address);
    if (size != nullptr) *size = v.size_bytes;
  });
}
GPUSIM_CUDA_API int cuLibraryGetManaged(Address* address, size_t* size, void* library,
                                        const char* name) {
  return cuLibraryGetGlobal(address, size, library, name);
}
GPUSIM_CUDA_API int cuKernelGetFunction(void** function, void* kernel) {
  return driver_call("cuKernelGetFunction", [&] {
    require(function != nullptr);
    *function = &runtime().function(kernel);
  });
}
GPUSIM_CUDA_API int cuKernelGetLibrary(void** library, void* kernel) {
  return driver_call("cuKernelGetLibrary", [&] {
    require(library != nullptr);
    *library = runtime().function(kernel).image;
  });
}
GPUSIM_CUDA_API int cuFuncGetModule(void** module, void* function) {
  return driver_call("cuFuncGetModule", [&] {
    require(module != nullptr);
    *module = runtime().function(function).image;
  });
}
GPUSIM_CUDA_API int cuKernelGetName(const char** name, void* kernel) {
  return driver_call("cuKernelGetName", [&] {
    require(name != nullptr);
    *name = runtime().function(kernel).name.c_str();
  });
}
GPUSIM_CUDA_API int cuKernelGetParamInfo(void* kernel, size_t index, size_t* offset, size_t* size) {
  return driver_call("cuKernelGetParamInfo", [&] { parameter_of(kernel, index, offset, size); });
}
GPUSIM_CUDA_API int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* size) {
  return driver_call("cuFuncGetParamInfo", [&] { parameter_of(function, index, offset, size); });
}
GPUSIM_CUDA_API int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
GPUSIM_CUDA_API int cuKernelSetAttribute(int attribute, int value, void* kernel, int) {
  return driver_call("cuKernelSetAttribute",
                     [&] { set_attribute(runtime().function(kernel), attribute, value); });
}
GPUSIM_CUDA_API int cuKernelSetCacheConfig(void* kernel, int, int) {
  return driver_call("cuKernelSetCacheConfig", [&] { runtime().function(kernel); });
}

GPUSIM_CUDA_API int cudaLibraryLoadData(void** library, const void* code, int*, void**, unsigned,
                                        int*, void**, unsigned) {
  return call("cudaLibraryLoadData", [&] {
    require(library != nullptr);
    *library = load_module(code);
  });
}
GPUSIM_CUDA_API int cudaLibraryLoadFromFile(void** library, const char* path, int*, void**,
                                            unsigned, int*, void**, unsigned) {
  return call("cudaLibraryLoadFromFile", [&] {
    require(library != nullptr);
    *library = load_module_file(path);
  });
}
GPUSIM_CUDA_API int cudaLibraryUnload(void* library) {
  return call("cudaLibraryUnload", [&] { runtime().remove_image(&module_of(library)); });
}
GPUSIM_CUDA_API int cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  return call("cudaLibraryGetKernel", [&] {
    require(kernel != nullptr);
    *kernel = kernel_of(module_of(library), name);
  });
}
GPUSIM_CUDA_API int cudaLibraryGetKernelCount(unsigned* count, void* library) {
  return call("cudaLibraryGetKernelCount", [&] {
    require(count != nullptr);
    *count = count_kernels(library);
  });
}
GPUSIM_CUDA_API int cudaLibraryEnumerateKernels(void** kernels, unsigned count, void* library) {
  return call("cudaLibraryEnumerateKernels", [&] { list_kernels(kernels, count, library); });
}
GPUSIM_CUDA_API int cudaLibraryGetGlobal(void** address, size_t* size, void* library,
                                         const char* name) {
  return call("cudaLibraryGetGlobal", [&] {
    require(address != nullptr || size != nullptr);
    const Variable v = variable_of(library, name);
    if (address != nullptr) *address = v.address;
    if (size != nullptr) *size = v.size_bytes;
  });
}
GPUSIM_CUDA_API int cudaLibraryGetManaged(void** address, size_t* size, void* library,
                                          const char* name) {
  return cudaLibraryGetGlobal(address, size, library, name);
}
GPUSIM_CUDA_API int cudaKernelSetAttributeForDevice(void* kernel, int attribute, int value, int) {
  return call("cudaKernelSetAttributeForDevice",
              [&] { set_attribute(runtime().function(kernel), attribute, value); });
}
