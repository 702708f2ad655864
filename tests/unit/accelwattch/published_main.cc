#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "published_data.h"

const std::string& published_folder() {
  static const std::string folder = [] {
    const char* shared = std::getenv("GPUSIM_SHARED");
    return std::string(shared && *shared ? shared : GPUSIM_DEFAULT_SHARED) +
           "/energy-data/accelwattch/";
  }();
  return folder;
}

int main(int argc, char** argv) {
  if (!std::filesystem::is_directory(published_folder())) {
    std::printf(
        "skipped: there is no folder %s with the published data; GPUSIM_SHARED names the "
        "folder above energy-data\n",
        published_folder().c_str());
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
