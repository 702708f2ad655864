// What a program with NVRTC inside (libnvrtc_static.a) looks like: those of its functions that are
// taken over, here with a text and what is no cubin.
#include <cuda.h>

#include <cstring>

#include "check.h"

static const char kText[] =
    ".version 9.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k() { ret; }\n";

// Long enough to be jumped over, and not to be folded into their callers.
extern "C" __attribute__((noinline)) int nvrtcGetPTXSize(void*, size_t* size) {
  *size = sizeof kText;
  return std::getenv("GPUSIM_TEST_NOTHING") != nullptr ? 1 : 0;
}
extern "C" __attribute__((noinline)) int nvrtcGetPTX(void*, char* text) {
  std::memcpy(text, kText, sizeof kText);
  return std::getenv("GPUSIM_TEST_NOTHING") != nullptr ? 1 : 0;
}
extern "C" __attribute__((noinline)) int nvrtcGetCUBINSize(void*, size_t* size) {
  *size = 4;
  return std::getenv("GPUSIM_TEST_NOTHING") != nullptr ? 1 : 0;
}
extern "C" __attribute__((noinline)) int nvrtcGetCUBIN(void*, char* code) {
  std::memcpy(code, "\177ELF", 4);
  return std::getenv("GPUSIM_TEST_NOTHING") != nullptr ? 1 : 0;
}

int main() {
  CHECK(cuInit(0) == CUDA_SUCCESS);
  size_t size = 0;
  static char image[4096];
  int (*volatile get_size)(void*, size_t*) = nvrtcGetCUBINSize;
  int (*volatile get)(void*, char*) = nvrtcGetCUBIN;
  CHECK(get_size(nullptr, &size) == 0);
  CHECK(size == sizeof kText);
  CHECK(get(nullptr, image) == 0);
  CHECK(std::strcmp(image, kText) == 0);
  CUmodule module;
  CUfunction kernel;
  CHECK(cuModuleLoadData(&module, image) == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&kernel, module, "k") == CUDA_SUCCESS);
  CHECK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  // Machine code itself is refused, with a sentence.
  CHECK(cuModuleLoadData(&module, "\177ELF") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  return finish();
}
