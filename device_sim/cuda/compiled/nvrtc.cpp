#include "device_sim/cuda/compiled/nvrtc.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "device_sim/base/embedded_file.h"
#include "device_sim/cuda/regions.h"

namespace gpusim::cuda {

std::span<const EmbeddedFile> region_headers();

namespace {

// Headers of the standard library that device code includes: nvrtc_standard.h.
constexpr const char* kStandard[] = {"array",       "bit",     "cmath", "cstdint",
                                     "cstring",     "memory",  "span",  "string",
                                     "type_traits", "utility", "vector"};
constexpr char kInsteadOfStandard[] = "#include \"device_sim/cuda/compiled/nvrtc_standard.h\"\n";

// The library's functions, found when they are first needed: a machine may have a driver alone.
struct Nvrtc {
#define GPUSIM_NVRTC(name) \
  decltype(&::nvrtc##name) name = find<decltype(&::nvrtc##name)>("nvrtc" #name)
  GPUSIM_NVRTC(CompileProgram);
  GPUSIM_NVRTC(CreateProgram);
  GPUSIM_NVRTC(DestroyProgram);
  GPUSIM_NVRTC(GetCUBIN);
  GPUSIM_NVRTC(GetCUBINSize);
  GPUSIM_NVRTC(GetErrorString);
  GPUSIM_NVRTC(GetPTX);
  GPUSIM_NVRTC(GetPTXSize);
  GPUSIM_NVRTC(GetProgramLog);
  GPUSIM_NVRTC(GetProgramLogSize);
  GPUSIM_NVRTC(SetFlowCallback);
  GPUSIM_NVRTC(Version);
#undef GPUSIM_NVRTC

 private:
  static void* library() {
    // By the name that the loader knows, then where the toolkit lies. Stays loaded.
    const std::string name = fmt::format("libnvrtc.so.{}", CUDA_VERSION / 1000);
    std::vector<std::string> files = {name, "/usr/local/cuda/lib64/" + name};
    if (const char* const chosen = std::getenv("GPUSIM_NVRTC")) files = {chosen};
    std::string why;
    for (const std::string& file : files) {
      if (void* const found = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
      if (why.empty()) why = ::dlerror();
    }
    throw std::runtime_error(
        fmt::format("NVRTC cannot be loaded ({}); install that of CUDA {}, or "
                    "name the library in GPUSIM_NVRTC",
                    why, CUDA_VERSION / 1000));
  }
  template <class F>
  static F find(const char* name) {
    static void* const handle = library();
    void* const found = ::dlsym(handle, name);
    if (found == nullptr) throw std::runtime_error(fmt::format("NVRTC has no {}", name));
    return reinterpret_cast<F>(found);
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc functions;
  return functions;
}

void check(nvrtcResult result, const char* doing) {
  if (result != NVRTC_SUCCESS)
    throw std::runtime_error(fmt::format("NVRTC: {}: {}", doing, nvrtc().GetErrorString(result)));
}

class Program {
 public:
  explicit Program(const std::string& source) {
    std::vector<const char*> names, texts;
    for (const EmbeddedFile& file : region_headers()) {
      names.push_back(file.name);
      texts.push_back(file.text.c_str());
    }
    for (const char* const name : kStandard) {
      names.push_back(name);
      texts.push_back(kInsteadOfStandard);
    }
    check(nvrtc().CreateProgram(&program_, source.c_str(), "regions.cu",
                                static_cast<int>(names.size()), texts.data(), names.data()),
          "beginning a program");
  }
  ~Program() { nvrtc().DestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void compile(const std::string& architecture, const std::atomic<bool>* ends) {
    const auto asks = [](void* flag, void*) {
      return static_cast<int>(static_cast<const std::atomic<bool>*>(flag)->load());
    };
    if (ends)
      check(nvrtc().SetFlowCallback(program_, asks, const_cast<std::atomic<bool>*>(ends)),
            "asking to be asked");
    const std::string chip = "--gpu-architecture=" + architecture;
    const char* const options[] = {chip.c_str(), "--std=c++20", "--fmad=false", "--device-int128",
                                   // Functions of headers that say nothing, constexpr ones, say.
                                   "--device-as-default-execution-space", "--jump-table-density=50",
                                   "--ptxas-options=-v"};
    const nvrtcResult result =
        nvrtc().CompileProgram(program_, static_cast<int>(std::size(options)), options);
    if (result == NVRTC_SUCCESS) return;
    throw std::runtime_error(fmt::format("NVRTC does not compile for {}: {}: {}", architecture,
                                         nvrtc().GetErrorString(result), log().substr(0, 2000)));
  }
  uint32_t spilled_bytes() const {
    uint32_t bytes = 0;
    const std::string said = log();
    size_t at = said.find("Compiling entry function");
    for (const std::string_view word : {" bytes spill stores", " bytes spill loads"}) {
      at = said.find(word, at);
      if (at == std::string::npos) return bytes;
      bytes += static_cast<uint32_t>(std::atoi(said.c_str() + said.rfind(' ', at - 1) + 1));
    }
    return bytes;
  }
  std::string machine_code() const { return text(nvrtc().GetCUBINSize, nvrtc().GetCUBIN); }
  std::string ptx() const {
    std::string code = text(nvrtc().GetPTXSize, nvrtc().GetPTX);
    if (!code.empty() && code.back() == '\0') code.pop_back();
    return code;
  }

 private:
  std::string log() const {
    const std::string all = text(nvrtc().GetProgramLogSize, nvrtc().GetProgramLog);
    return all.c_str();  // up to its zero
  }
  std::string text(nvrtcResult (*size)(nvrtcProgram, size_t*),
                   nvrtcResult (*get)(nvrtcProgram, char*)) const {
    size_t bytes = 0;
    check(size(program_, &bytes), "asking for the size of a result");
    std::string all(bytes, '\0');
    if (bytes != 0) check(get(program_, all.data()), "fetching a result");
    return all;
  }
  nvrtcProgram program_ = nullptr;
};

}  // namespace

DeviceCode compile_by_nvrtc(const std::string& source, const std::string& architecture,
                            const std::atomic<bool>* ends) {
  Program program(source);
  program.compile(architecture, ends);
  if (architecture.starts_with("compute")) return {program.ptx()};
  return {program.machine_code(), program.spilled_bytes()};
}

std::string compile_regions(const std::string& source, const std::string& architecture,
                            const std::atomic<bool>* ends) {
  // So few lie outside of loops (scripts/gpu-regions).
  constexpr uint32_t kFewBytes = 1024;
  DeviceCode made = compile_by_nvrtc(source, architecture, ends);
  for (uint32_t blocks = kMostResidentBlocks / 2; made.spilled_bytes > kFewBytes && blocks != 0;
       blocks /= 2)
    made = compile_by_nvrtc(fmt::format("#define GPUSIM_RESIDENT_BLOCKS {}\n{}", blocks, source),
                            architecture, ends);
  return std::move(made.code);
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  check(nvrtc().Version(&major, &minor), "asking for its version");
  return fmt::format("{}.{}", major, minor);
}

}  // namespace gpusim::cuda
