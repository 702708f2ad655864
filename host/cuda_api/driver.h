// What the driver's functions share.
#pragma once
#include <string>
#include <vector>

#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {

using LinkedTexts = std::vector<NamedText>;

// The texts behind an image that cuLinkComplete gave out.
bool find_linked(const void* image, LinkedTexts& texts);

// What the driver calls a module or a library. Throws Refusal.
LoadedImage& module_of(void* handle);
// PTX text, a fat binary, or what cuLinkComplete gave out. Throw Refusal.
LoadedImage* load_module(const void* image);
LoadedImage* load_module_file(const char* path);
// Throws Refusal where the module has no kernel of that name.
Function* kernel_of(LoadedImage& image, const char* name);

// A handle of the library that this is, for dlsym.
void* own_library();

// The driver has fewer results than the runtime, and remembers none of them.
int driver_status(int status);

template <typename F>
int driver_call(const char* function, F&& body) noexcept {
  RecordedCall recorded(function);
  const int before = last_error();
  const int status = call(function, std::forward<F>(body));
  last_error() = before;
  return recorded.end(driver_status(status));
}

// A result of the runtime's function, which the driver's thread does not remember.
template <typename F>
int borrowed(const char* name, F&& function) {
  RecordedCall recorded(name);
  const int before = last_error();
  const int status = function();
  last_error() = before;
  return recorded.end(driver_status(status));
}

}  // namespace gpusim::cuda_api
