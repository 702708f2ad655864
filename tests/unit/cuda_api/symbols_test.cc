// Symbol tables of programs: this test's own file, and spoiled copies of it.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "host/cuda_api/redirect.h"

// What a program has that carries CUDA's runtime: a function of that name, and fat binaries.
extern "C" __attribute__((used)) int __cudaRegisterFatBinary(int value) { return value * 3; }
extern "C" __attribute__((used)) int cudaOurs(int value) { return value * 5; }
__attribute__((section(".nv_fatbin"), used)) static const char fat_binary[16] = {};

namespace gpusim::cuda_api {
namespace {

std::string own_file() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

TEST_CASE("functions of a runtime inside a program are found by name") {
  const RuntimeInside found = find_runtime(bytes_of(own_file()));
  CHECK(found.has_kernels);
  CHECK_FALSE(found.imports_runtime);
  REQUIRE(found.functions.size() == 2);
  for (const NamedFunction& f : found.functions) {
    CHECK((f.name == "cudaOurs" || f.name == "__cudaRegisterFatBinary"));
    CHECK(f.size_bytes > 0);
  }
}

TEST_CASE("spoiled files of programs give what could be read") {
  const std::string file = own_file();
  CHECK(find_runtime(bytes_of(file.substr(0, 40))).functions.empty());
  CHECK(find_runtime({}).functions.empty());
  std::mt19937 random(7);
  std::string spoiled = file;
  // Headers of the file, then those of the sections, which stand at its end.
  for (int round = 0; round < 60; ++round) {
    const size_t end = file.size();
    const size_t at = round % 2 == 0 ? random() % 64 : end - 1 - random() % 2600;
    const char before = spoiled[at];
    spoiled[at] = static_cast<char>(random());
    for (const NamedFunction& f : find_runtime(bytes_of(spoiled)).functions)
      CHECK(f.name.find("cuda") != std::string::npos);
    spoiled[at] = before;
  }
}

}  // namespace gpusim::cuda_api
