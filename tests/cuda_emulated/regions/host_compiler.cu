// Compiles regions with the host's compiler, into a shared library that stays in a folder of the
// build: a program that is run again finds it there. The run waits for it, so that runs repeat.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string_view>

#include "device_sim/cuda/region_compiler.h"
#include "device_sim/cuda/regions.h"
#include "regions/loaded_kernels.h"
#include "regions/loaded_regions.h"

namespace gpusim::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kOwn[] = R"(
#include "regions/loaded_regions.h"
#include "device_sim/cuda/device_view.cuh"
using CalledView = gpusim::cuda::DeviceView;
)";
constexpr char kInPlace[] = R"(
#define GPUSIM_MEMORY_IS_SHARED_WITH_HOST
#include "regions/loaded_regions.h"
#include "device_sim/cuda/in_place_view.cuh"
using CalledView = gpusim::cuda::InPlaceView;
)";
constexpr char kEnd[] = R"(
namespace gpusim::cuda {
struct CalledSlots {
  uint64_t* first;
  size_t pitch;
  uint64_t get(Slot s) const { return first[s * pitch]; }
  void set(Slot s, uint64_t value) { first[s * pitch] = value; }
  void find_again() {}
};
struct CalledWarp {
  const cuda_emulated::RegionCall& call;
  void count(uint32_t block, uint32_t times) { if (times) call.count(call.counter, block, times); }
};
extern "C" uint32_t gpusim_region_entry(const cuda_emulated::RegionCall& call) {
  CalledSlots slots{call.slots, call.pitch};
  CalledWarp warp{call};
  return Regions::run(call.region, call.at, slots, *static_cast<const CalledView*>(call.memory),
                      call.core, *call.left, *call.depth, warp);
}
}
)";

// What regions executed. A test may say how much that is at least: the process fails with less.
struct Ledger {
  uint64_t entered = 0, instructions = 0;
  uint64_t alone = 0;  // of the instructions: in kernels without the interpreter
  uint64_t moved = 0;  // entered, and left at another place
  ~Ledger() {
    require("GPUSIM_EMULATED_REGIONS_LEAST", instructions);
    if (const char* const file = std::getenv("GPUSIM_EMULATED_REGIONS_LEDGER"))
      std::ofstream(file, std::ios::app)
          << fmt::format("{} {} {} {}\n", entered, moved, instructions, alone);
    require("GPUSIM_EMULATED_REGIONS_ALONE_LEAST", alone);
  }

 private:
  void require(const char* variable, uint64_t executed) const {
    const char* const least = std::getenv(variable);
    if (!least || executed >= std::strtoull(least, nullptr, 10)) return;
    std::fprintf(stderr,
                 "regions were entered %llu times and executed %llu instructions, %llu of them "
                 "alone: %s is %s\n",
                 static_cast<unsigned long long>(entered),
                 static_cast<unsigned long long>(instructions),
                 static_cast<unsigned long long>(alone), variable, least);
    std::_Exit(1);
  }
};
Ledger ledger;

class HostCompiler final : public RegionCompiler {
 public:
  void begin(const std::string& text, bool has_vectors, bool in_place) override {
    kernel_ = in_place ? kernel_in_place_with_loaded_regions(has_vectors)
                       : kernel_with_loaded_regions(has_vectors);
    alone_ = in_place ? kernel_in_place_of_loaded_regions() : kernel_of_loaded_regions();
    // What a GPU would get, for who asks.
    if (const char* const file = std::getenv("GPUSIM_EMULATED_REGIONS_SOURCE")) {
      std::ofstream(file) << kernel_source(text, has_vectors, in_place);
      std::ofstream(std::string(file) + ".alone") << regions_source(text, in_place);
    }
    const std::string all = std::string(in_place ? kInPlace : kOwn) + text + kEnd;
    // The text includes headers that this program was built of.
    struct stat self {};
    ::stat("/proc/self/exe", &self);
    const std::string key =
        fmt::format("{} {}.{}\n{}", self.st_size, self.st_mtim.tv_sec, self.st_mtim.tv_nsec, all);
    const fs::path folder = EMULATED_REGIONS_FOLDER;
    const std::string name = fmt::format("{:016x}", std::hash<std::string>()(key));
    const fs::path library = folder / (name + ".so");
    if (!fs::exists(library)) compile(all, folder, name, library);
    void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!loaded) throw std::runtime_error(dlerror());
    entry_ = dlsym(loaded, cuda_emulated::kRegionEntry);
  }
  RegionExtent extent() const override {
    const char* const wanted = std::getenv("GPUSIM_EMULATED_REGIONS");
    if (!wanted || !*wanted) return RegionExtent::kHot;
    if (std::string_view(wanted) == "loops") return RegionExtent::kLoops;
    if (std::string_view(wanted) == "all") return RegionExtent::kAll;
    throw std::runtime_error("GPUSIM_EMULATED_REGIONS is loops or all");
  }
  std::optional<Code> take() override {
    return Code{.beside = kernel_, .alone = alone_, .region_code = entry_};
  }

 private:
  static void compile(const std::string& text, const fs::path& folder, const std::string& name,
                      const fs::path& library) {
    fs::create_directories(folder);
    const fs::path mine = folder / fmt::format("{}.{}", name, ::getpid());
    const fs::path source = mine.string() + ".cpp", made = mine.string() + ".so";
    std::ofstream(source) << text;
    const std::string command =
        fmt::format("{} {} -o {}", EMULATED_REGIONS_COMPILER, source.string(), made.string());
    if (std::system(command.c_str()) != 0)
      throw std::runtime_error("the host's compiler does not take the text of regions: " +
                               source.string());
    fs::rename(made, library);
    fs::rename(source, folder / (name + ".cpp"));
  }

  Kernel kernel_{}, alone_{};
  void* entry_ = nullptr;
};

}  // namespace

// Here they are on where nobody says anything else.
std::unique_ptr<RegionCompiler> make_region_compiler(CompiledRegions wanted) {
  if (wanted == CompiledRegions::kOff) return nullptr;
  return std::make_unique<HostCompiler>();
}

}  // namespace gpusim::cuda

void cuda_emulated::note_region(uint64_t instructions, bool has_moved, bool is_alone) {
  ++gpusim::cuda::ledger.entered;
  gpusim::cuda::ledger.moved += has_moved;
  gpusim::cuda::ledger.instructions += instructions;
  gpusim::cuda::ledger.alone += is_alone ? instructions : 0;
}
