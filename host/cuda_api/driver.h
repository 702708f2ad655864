// What the driver's functions share.
#pragma once
#include <string>
#include <vector>

#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {

using LinkedTexts = std::vector<NamedText>;

// The texts behind an image that cuLinkComplete gave out.
bool find_linked(const void* image, LinkedTexts& texts);

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

}  // namespace gpusim::cuda_api
