// Regions are compiled by nvcc, where the user asks for it: no GPU has run them yet (docs/gpu.md).
#include <cstdlib>
#include <string>
#include <utility>

#include "device_sim/base/user_cache.h"
#include "device_sim/cuda/compiled/cubin_maker.h"
#include "device_sim/cuda/device_array.cuh"
#include "device_sim/cuda/region_compiler.h"
#include "device_sim/cuda/regions.h"

namespace gpusim::cuda {
namespace {

class NvccCompiler final : public RegionCompiler {
 public:
  NvccCompiler(const std::filesystem::path& folder, bool as_ptx, bool waits)
      : maker_(folder), as_ptx_(as_ptx), waits_(waits) {
    cudaDeviceProp properties{};
    int device = 0;
    check(cudaGetDevice(&device), "asking for the device");
    check(cudaGetDeviceProperties(&properties, device), "asking for the device's properties");
    architecture_ =
        (as_ptx ? "compute_" : "sm_") + std::to_string(10 * properties.major + properties.minor);
  }
  ~NvccCompiler() override { unload(); }

  void begin(const std::string& text, bool has_vectors, bool in_place) override {
    maker_.begin(kernel_source(text, has_vectors, in_place), architecture_);
    if (waits_) maker_.wait();
  }
  bool compiles_all() const override { return as_ptx_; }

  std::optional<Code> take() override {
    const auto cubin = maker_.take();
    if (!cubin) return {};
    unload();
    check(cudaLibraryLoadFromFile(&library_, cubin->c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                  0),
          "loading compiled code");
    cudaKernel_t kernel{};
    check(cudaLibraryGetKernel(&kernel, library_, kCompiledKernel), "finding the compiled kernel");
    // The runtime takes a kernel's handle where it takes the address of a host function.
    return Code{{reinterpret_cast<void (*)(Launch)>(kernel), kMaxCompiledThreads}, nullptr};
  }

 private:
  void unload() {
    if (library_) cudaLibraryUnload(std::exchange(library_, nullptr));
  }

  CubinMaker maker_;
  const bool as_ptx_, waits_;
  std::string architecture_;
  cudaLibrary_t library_ = nullptr;
};

}  // namespace

std::unique_ptr<RegionCompiler> make_region_compiler() {
  const char* const value = std::getenv("GPUSIM_COMPILED_REGIONS");
  const std::filesystem::path cache = user_cache_folder();
  if (!value || cache.empty()) return nullptr;
  const std::string wanted = value;
  // For tests without a GPU (tests/cuda_on_ptx): as PTX, all code, before the first slice.
  const bool as_ptx = wanted == "ptx", waits = wanted == "wait";
  if (!as_ptx && !waits && wanted != "1") return nullptr;
  return std::make_unique<NvccCompiler>(cache / "regions", as_ptx, as_ptx || waits);
}

}  // namespace gpusim::cuda
