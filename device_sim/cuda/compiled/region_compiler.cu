// Regions are compiled where the user asks for it: docs/gpu.md.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "device_sim/base/user_cache.h"
#include "device_sim/cuda/compiled/cubin_maker.h"
#include "device_sim/cuda/device_array.cuh"
#include "device_sim/cuda/region_compiler.h"
#include "device_sim/cuda/regions.h"

namespace gpusim::cuda {
namespace {

// A kernel that is being compiled, or that is loaded.
class Loader {
 public:
  Loader(const std::filesystem::path& folder, CubinMaker::By compiler, const char* name)
      : maker_(folder, compiler), name_(name) {}
  ~Loader() { unload(); }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  void begin(const std::string& source, const std::string& architecture, bool waits) {
    why_not_.clear();
    is_done_ = false;
    kernel_ = {};  // what is loaded may still be in use
    attempt([&] {
      maker_.begin(source, architecture);
      if (waits) maker_.wait();
    });
  }
  bool is_done() const { return is_done_; }
  const std::string& why_not() const { return why_not_; }
  Kernel kernel() const { return kernel_; }
  // True once: what it is about is done, or failed.
  bool look() {
    if (is_done_) return false;
    attempt([&] {
      const auto cubin = maker_.take();
      if (!cubin) return;
      unload();
      check(cudaLibraryLoadFromFile(&library_, cubin->c_str(), nullptr, nullptr, 0, nullptr,
                                    nullptr, 0),
            "loading compiled code");
      cudaKernel_t kernel{};
      check(cudaLibraryGetKernel(&kernel, library_, name_), "finding the compiled kernel");
      // The runtime takes a kernel's handle where it takes the address of a host function.
      kernel_ = {reinterpret_cast<void (*)(Launch)>(kernel), kMaxCompiledThreads};
      is_done_ = true;
    });
    return is_done_;
  }

 private:
  template <class F>
  void attempt(F f) {
    try {
      f();
    } catch (const std::runtime_error& error) {
      why_not_ = error.what();
      is_done_ = true;
    }
  }
  void unload() {
    if (library_) cudaLibraryUnload(std::exchange(library_, nullptr));
  }

  CubinMaker maker_;
  const char* const name_;
  cudaLibrary_t library_ = nullptr;
  Kernel kernel_{};
  std::string why_not_;
  bool is_done_ = true;
};

// The regions alone by NVRTC, in a second; with the interpreter by nvcc, if there is one.
class DeviceCompiler final : public RegionCompiler {
 public:
  DeviceCompiler(const std::filesystem::path& folder, bool as_ptx, bool waits)
      : alone_(folder, CubinMaker::By::kNvrtc, kRegionsKernel),
        beside_(folder, CubinMaker::By::kNvcc, kCompiledKernel),
        as_ptx_(as_ptx),
        waits_(waits) {
    cudaDeviceProp properties{};
    int device = 0;
    check(cudaGetDevice(&device), "asking for the device");
    check(cudaGetDeviceProperties(&properties, device), "asking for the device's properties");
    architecture_ =
        (as_ptx ? "compute_" : "sm_") + std::to_string(10 * properties.major + properties.minor);
  }

  void begin(const std::string& text, bool has_vectors, bool in_place) override {
    alone_.begin(regions_source(text, in_place), architecture_, waits_);
    beside_.begin(kernel_source(text, has_vectors, in_place), architecture_, waits_);
  }
  RegionExtent extent() const override {
    return as_ptx_ ? RegionExtent::kLoops : RegionExtent::kHot;
  }

  std::optional<Code> take() override {
    const bool alone = alone_.look(), beside = beside_.look();
    if (!alone && !beside) return {};
    const bool is_all = alone_.is_done() && beside_.is_done();
    if (is_all && !alone_.kernel().entry && !beside_.kernel().entry)
      throw std::runtime_error(alone_.why_not() + "; " + beside_.why_not());
    return Code{.beside = beside_.kernel(), .alone = alone_.kernel(), .is_all = is_all};
  }

 private:
  Loader alone_, beside_;
  const bool as_ptx_, waits_;
  std::string architecture_;
};

}  // namespace

std::unique_ptr<RegionCompiler> make_region_compiler(CompiledRegions wanted) {
  if (wanted == CompiledRegions::kOff) return nullptr;
  bool as_ptx = false;
  if (wanted == CompiledRegions::kAuto) {
    const char* const value = std::getenv("GPUSIM_COMPILED_REGIONS");
    const std::string word = value ? value : "";
    // For tests without a GPU (tests/cuda_on_ptx): as PTX, all code, before the first slice.
    as_ptx = word == "ptx";
    wanted = word == "1" ? CompiledRegions::kOn
                         : compiled_regions_of(word).value_or(CompiledRegions::kOff);
    if (wanted == CompiledRegions::kOff && !as_ptx) return nullptr;
  }
  const std::filesystem::path cache = user_cache_folder();
  if (cache.empty()) {
    std::fputs(
        "gpusim: hot code is interpreted, not compiled: there is no folder to keep it in, as "
        "neither HOME nor XDG_CACHE_HOME is an absolute path\n",
        stderr);
    return nullptr;
  }
  return std::make_unique<DeviceCompiler>(cache / "regions", as_ptx,
                                          as_ptx || wanted == CompiledRegions::kWait);
}

}  // namespace gpusim::cuda
