#include "device_sim/base/user_cache.h"

#include <cstdlib>

namespace gpusim {

std::filesystem::path user_cache_folder() {
  const auto folder = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return text && *text == '/' ? std::filesystem::path(text) : std::filesystem::path();
  };
  std::filesystem::path cache = folder("XDG_CACHE_HOME");
  if (cache.empty() && !folder("HOME").empty()) cache = folder("HOME") / ".cache";
  return cache.empty() ? cache : cache / "gpusim";
}

}  // namespace gpusim
