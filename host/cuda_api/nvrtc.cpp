// NVRTC compiles on the host and needs no GPU. Programs that want machine code of it (cubins) get
// the PTX of the same program, which all functions that load modules take.
#include "host/cuda_api/nvrtc.h"

#include <dlfcn.h>

#include <string_view>

#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {
namespace {

using GetSize = int (*)(void* program, size_t* size_bytes);
using GetText = int (*)(void* program, char* text);

constexpr int kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR

// In the program, where it carries NVRTC.
NvrtcInside& inside() {
  static NvrtcInside functions;
  return functions;
}

// Of the library that would have answered.
template <typename F>
F original(uintptr_t in_program, const char* name) {
  if (in_program != 0) return reinterpret_cast<F>(in_program);
  const auto found = reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
  if (found == nullptr) say(std::string(name) + ": there is no NVRTC in this program");
  return found;
}

bool is_of_nvrtc(const void* code) {
  Dl_info library{};
  return ::dladdr(code, &library) != 0 && library.dli_fname != nullptr &&
         std::string_view(library.dli_fname).find("libnvrtc") != std::string_view::npos;
}

}  // namespace

void use_nvrtc(const NvrtcInside& functions) { inside() = functions; }

}  // namespace gpusim::cuda_api

using namespace gpusim::cuda_api;

GPUSIM_CUDA_API int nvrtcGetCUBINSize(void* program, size_t* size_bytes) {
  const auto get = original<GetSize>(inside().get_ptx_size, "nvrtcGetPTXSize");
  return get == nullptr ? kInternalError : get(program, size_bytes);
}
GPUSIM_CUDA_API int nvrtcGetCUBIN(void* program, char* text) {
  const auto get = original<GetText>(inside().get_ptx, "nvrtcGetPTX");
  return get == nullptr ? kInternalError : get(program, text);
}

// A private way into NVIDIA's driver, which is not imitated (ADR 0018). NVRTC asks and does
// without.
GPUSIM_CUDA_API int cuGetExportTable(const void**, const void*) {
  static bool was_said = false;
  if (!was_said && !is_of_nvrtc(__builtin_return_address(0))) {
    was_said = true;
    say("cuGetExportTable is not supported");
  }
  return kNotSupported;
}
