#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "device_sim/base/digits.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"
#include "device_sim/base/user_cache.h"
#include "device_sim/core/backend_traits.h"
#include "device_sim/core/devices.h"
#include "energy/power/source.h"
#include "host/cli/commands.h"
#include "host/doctor/doctor.h"
#include "host/memory_budget.h"
#include "host/memory_plan.h"
#include "host/processor.h"
#include "host/self_test.h"
#include "translator/common/isa_list.h"

namespace gpusim::host::doctor {
namespace {

namespace fs = std::filesystem;

std::string size_text(uint64_t bytes) {
  const auto in = [&](int shift) {
    return static_cast<double>(bytes) / static_cast<double>(uint64_t{1} << shift);
  };
  if (bytes >= uint64_t{1} << 30) return fmt::format("{:.1f} GiB", in(30));
  if (bytes >= uint64_t{1} << 20) return fmt::format("{:.0f} MiB", in(20));
  return fmt::format("{:.0f} KiB", in(10));
}

std::optional<uint64_t> number_in(const std::string& path) {
  const std::string line = first_line(path);
  if (!is_number(line)) return std::nullopt;
  return std::strtoull(line.c_str(), nullptr, 10);
}

// --- programs

// Where a shell would find it.
std::string find_program(const std::string& name) {
  const char* const folders = std::getenv("PATH");
  std::istringstream in(folders ? folders : "");
  for (std::string folder; std::getline(in, folder, ':');) {
    const fs::path path = fs::path(folder.empty() ? "." : folder) / name;
    std::error_code error;
    if (fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0) return path.string();
  }
  return {};
}

Check program_check(const std::string& area, const std::string& what,
                    const std::vector<std::string>& names, const std::string& advice) {
  Check check{area, what, State::kGood, {}, {}};
  for (const std::string& name : names)
    if (const std::string path = find_program(name); !path.empty())
      check.value += (check.value.empty() ? "" : ", ") + path;
  if (!check.value.empty()) return check;
  return {area, what, State::kAbsent, fmt::format("no {} in PATH", fmt::join(names, ", ")), advice};
}

// --- the GPU's driver

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ..."
std::string driver_version(const Machine& machine) {
  std::istringstream words(first_line(machine.path("/proc/driver/nvidia/version")));
  for (std::string word; words >> word;)
    if (std::count(word.begin(), word.end(), '.') >= 1 &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return {};
}

const BackendInfo* find_backend(std::string_view name) {
  for (const BackendInfo& backend : all_backends())
    if (name == backend.name) return &backend;
  return nullptr;
}

// --- memory

// Whether so many cores of a small program may begin.
bool fits(const Module& module, MemoryModel model, uint32_t cores, uint64_t bytes) {
  try {
    const MemoryPlan plan = plan_memory(module, {.model = model, .cores = cores});
    const std::string backend = find_backend("simd") ? "simd" : all_backends().back().name;
    uint64_t sum = 0;
    for (const MemoryNeed& need : known_needs(module, {.plan = &plan, .backend = backend}))
      sum += need.bytes;
    return sum <= bytes;
  } catch (const Error&) {
    return false;
  }
}

uint32_t most_cores(MemoryModel model, uint64_t bytes) {
  Module module;
  module.isa = all_isas().front()->name;
  module.slot_count = 100;
  module.segments.push_back({.address = 0x400000,
                             .size_bytes = 1 << 20,
                             .flags = kRead | kWrite | kExecute,
                             .bytes = {}});
  uint32_t fitting = 0;
  for (uint32_t step = kMostCores; step != 0; step /= 2)
    if (fitting + step <= kMostCores && fits(module, model, fitting + step, bytes)) fitting += step;
  return fitting;
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<Check> check_processor(const Machine& machine) {
  const std::string area = "Processor";
  std::vector<Check> checks;
  const uint32_t usable = host_threads(), all = std::thread::hardware_concurrency();
  checks.push_back({area,
                    "processor",
                    State::kGood,
                    fmt::format("{}, {} of {} hardware threads", processor_name(), usable, all),
                    {}});
  if (usable < all) {
    checks.back().state = State::kLimited;
    checks.back().advice =
        "this process may not use all of them: see taskset -p $$, or the container";
  }
  std::set<std::string> flags;
  std::ifstream cpuinfo(machine.path("/proc/cpuinfo"));
  for (std::string line; flags.empty() && std::getline(cpuinfo, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(std::min(line.find(':'), line.size() - 1) + 1));
    for (std::string word; words >> word;) flags.insert(word);
  }
  std::string known;
  for (const char* flag :
       {"avx2", "fma", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "asimd", "sve"})
    if (flags.contains(flag)) known += (known.empty() ? "" : " ") + std::string(flag);
  checks.push_back({area, "vectors", known.empty() ? State::kLimited : State::kGood,
                    known.empty() ? "none that gpusim knows" : known,
                    known.empty() ? "a processor with AVX2 or AVX-512 is many times faster" : ""});
  if (const BackendInfo* const simd = find_backend("simd")) {
    std::string why_not;
    const bool available = simd->available(&why_not);
    checks.push_back({area, "backend simd", available ? State::kGood : State::kLimited,
                      available ? simd->device() : why_not,
                      available ? "" : "runs use --backend scalar here, the slow reference"});
    const bool wide = flags.contains("avx512f"), native = flags.contains("avx2");
#ifdef GPUSIM_HAVE_NATIVE
    const bool is_built = true;
#else
    const bool is_built = false;
#endif
    if (available)
      checks.push_back(
          {area, "native code", is_built && native ? State::kGood : State::kLimited,
           !is_built ? "not in this build"
           : !native ? "none for this processor"
                     : fmt::format("for groups of cores ({}) and for single ones (AVX2)",
                                   wide ? "AVX-512" : "AVX2"),
           !is_built
               ? "build where asmjit can be built (x86-64): interpreting is several times slower"
           : !native ? "needs x86-64 with AVX2; gpusim interprets here"
                     : ""});
  }
  bool any = false;
  for (const BackendInfo& backend : all_backends()) {
    std::string why_not;
    any |= backend.available(&why_not);
  }
  if (!any)
    checks.push_back({area, "backends", State::kBroken, "none works here",
                      "see the reasons above, and gpusim info"});
  return checks;
}

std::vector<Check> check_memory(const Machine& machine) {
  const std::string area = "Memory";
  std::vector<Check> checks;
  uint64_t total = 0;
  std::ifstream meminfo(machine.path("/proc/meminfo"));
  for (std::string word; meminfo >> word;)
    if (word == "MemTotal:") {
      meminfo >> total;
      total <<= 10;
      break;
    }
  const uint64_t available =
      available_memory(machine.path("/proc"), machine.path("/sys/fs/cgroup"));
  const uint64_t usual = available / 5 * 4;  // as memory_budget() has it
  checks.push_back({area,
                    "memory",
                    State::kGood,
                    fmt::format("{}, {} available; a run takes up to {}", size_text(total),
                                size_text(available), size_text(usual)),
                    {}});
  if (total == 0) {
    checks.back().state = State::kLimited;
    checks.back().value = "unknown: no /proc/meminfo";
    checks.back().advice = "mount /proc, or give each run --host-memory";
  } else if (available < total / 4) {
    checks.back().state = State::kLimited;
    checks.back().advice =
        "others, or the limit of a control group, have most of it: see free -h, or the container's "
        "limit; --host-memory says what a run may take";
  }
  const uint32_t shared = most_cores(MemoryModel::kShared, usual),
                 own = most_cores(MemoryModel::kPrivate, usual);
  Check cores{area,
              "cores that fit",
              State::kGood,
              fmt::format("{} with default stacks (shared), {} with memory of their own (private), "
                          "before they touch any",
                          grouped(shared), grouped(own)),
              {}};
  if (total != 0 && shared == 0) {
    cores.state = State::kBroken;
    cores.advice = "free memory, or raise the container's limit";
  } else if (shared < 4096) {
    cores.state = State::kLimited;
    cores.advice = "free memory, or give --stack-size 16K for more cores";
  }
  checks.push_back(cores);

  const std::string huge = first_line(machine.path("/sys/kernel/mm/transparent_hugepage/enabled"));
  const size_t begin = huge.find('['), end = huge.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    checks.push_back({area, "huge pages", State::kLimited, "this kernel has no transparent ones",
                      "guests with much memory run slower: use a kernel with THP"});
  } else {
    const std::string mode = huge.substr(begin + 1, end - begin - 1);
    checks.push_back({area, "huge pages", mode == "never" ? State::kLimited : State::kGood,
                      "transparent: " + mode,
                      mode == "never" ? "echo madvise | sudo tee "
                                        "/sys/kernel/mm/transparent_hugepage/enabled"
                                      : ""});
  }
  return checks;
}

std::vector<Check> check_limits(const Machine& machine) {
  const std::string area = "Limits";
  std::vector<Check> checks;
  const auto text = [](rlim_t limit) {
    return limit == RLIM_INFINITY ? std::string("no limit") : grouped(limit);
  };
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const bool few_files = files.rlim_max != RLIM_INFINITY && files.rlim_max < 4096;
  checks.push_back({area, "open files", few_files ? State::kLimited : State::kGood,
                    fmt::format("{} (ulimit -Hn; runs raise theirs to it)", text(files.rlim_max)),
                    few_files
                        ? "thousands of private cores may each open files: raise the hard limit "
                          "in /etc/security/limits.conf"
                        : ""});
  for (const auto& [resource, name, option] :
       {std::tuple(RLIMIT_AS, "address space", "-v"), std::tuple(RLIMIT_DATA, "data", "-d")}) {
    rlimit limit{};
    ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
    const bool is_limited = limit.rlim_cur != RLIM_INFINITY;
    checks.push_back(
        {area, name, is_limited ? State::kLimited : State::kGood,
         is_limited ? size_text(limit.rlim_cur) : text(limit.rlim_cur),
         is_limited
             ? fmt::format("stacks are reserved before they are used: ulimit {} unlimited", option)
             : ""});
  }
  const std::string map_count = "/proc/sys/vm/max_map_count";
  if (const auto maps = number_in(machine.path(map_count))) {
    const bool are_few = *maps < 65530;
    checks.push_back({area, "vm.max_map_count", are_few ? State::kLimited : State::kGood,
                      grouped(*maps),
                      are_few ? "guests with many mappings lose quick memory checks: sudo sysctl "
                                "vm.max_map_count=65530"
                              : ""});
  }
  const std::string overcommit = "/proc/sys/vm/overcommit_memory";
  if (const auto mode = number_in(machine.path(overcommit))) {
    const bool is_strict = *mode == 2;
    checks.push_back({area, "vm.overcommit_memory", is_strict ? State::kLimited : State::kGood,
                      is_strict ? "2: reserved memory counts as used" : grouped(*mode),
                      is_strict
                          ? "runs reserve more than they use: sudo sysctl "
                            "vm.overcommit_memory=0, or fewer cores and a smaller --memory-size"
                          : ""});
  }
  return checks;
}

std::vector<Check> check_gpus(const Machine& machine) {
  const std::string area = "GPU";
  std::vector<Check> checks;
  const std::string driver = driver_version(machine);
  std::error_code error;
  const bool has_node = fs::exists(machine.path("/dev/nvidiactl"), error);
  if (driver.empty() && !has_node)
    checks.push_back({area, "driver", State::kAbsent, "no driver of NVIDIA",
                      "for backend cuda: an NVIDIA GPU and its driver"});
  else if (!has_node)
    checks.push_back({area, "driver", State::kLimited, driver + ", but no /dev/nvidiactl",
                      "load it (nvidia-modprobe), or give the container the GPU (--gpus all)"});
  else
    checks.push_back({area, "driver", State::kGood, driver.empty() ? "loaded" : driver, {}});
  const BackendInfo& backend = backend_with_devices();
  const std::string name = fmt::format("backend {}", backend.name);
  std::string why_not;
  if (backend.available(&why_not))
    checks.push_back({area, name, State::kGood, backend.device(), {}});
  else
    checks.push_back({area, name, State::kAbsent, why_not,
                      "processors run up to some thousands of cores as fast; see docs/gpu.md"});
  checks.push_back(program_check(area, "CUDA toolkit", {"nvcc"},
                                 "only to build backend cuda, or programs for `gpusim cuda`: "
                                 "NVIDIA's CUDA toolkit, its bin in PATH"));
  const std::vector<DeviceInfo> devices = devices_of(backend.name);
  for (size_t i = 0; i < devices.size(); ++i) {
    Check check{area, fmt::format("device {}", i), State::kGood, devices[i].identity, {}};
    if (check.value.empty()) check.value = devices[i].name;
    if (!devices[i].why_not.empty()) {
      check.state = State::kLimited;
      check.value += ": " + devices[i].why_not;
      check.advice = "gpusim info lists the devices that can be used";
    } else if (const std::optional<SelfTest> test = known_self_test(devices[i]); !test) {
      check.value += "; self-test not run yet";
      check.advice = "gpusim self-test, so that the first run need not do it";
    } else if (!test->passed) {
      check.state = State::kLimited;
      check.value += "; self-test failed: " + test->why_not;
      check.advice =
          "gpusim self-test runs it again; until it passes --backend auto leaves it alone";
    } else {
      check.value += "; self-test passed";
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

std::vector<Check> check_sensors(const Machine& machine) {
  const std::string area = "Power sensors";
  std::vector<Check> checks;
  const auto add = [&](const std::string& name, const std::string& spec,
                       const std::string& advice) {
    try {
      const power::SourceOptions options{.sysfs_root = machine.path("/sys"),
                                         .nvml_library = machine.nvml_library};
      const std::unique_ptr<power::PowerSource> source = power::open_source(spec, options);
      source->poll();
      checks.push_back({area, name, State::kGood, source->name(), {}});
    } catch (const std::exception& why) {
      checks.push_back({area, name, State::kAbsent, why.what(), advice});
    }
  };
  add("RAPL", "rapl",
      "sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj, where there are any");
  std::error_code error;
  std::string drivers;
  for (const auto& entry : fs::directory_iterator(machine.path("/sys/class/hwmon"), error)) {
    bool has_power = false;
    std::error_code inner;
    for (const auto& file : fs::directory_iterator(entry.path(), inner)) {
      const std::string name = file.path().filename().string();
      has_power |=
          name.starts_with("power") && (name.ends_with("_input") || name.ends_with("_average"));
    }
    if (has_power) drivers += (drivers.empty() ? "" : ", ") + first_line(entry.path() / "name");
  }
  if (drivers.empty())
    checks.push_back({area, "hwmon", State::kAbsent, "no sensor of power in /sys/class/hwmon",
                      "a power supply or board with such a sensor, and its driver"});
  else
    checks.push_back({area, "hwmon", State::kGood, drivers, {}});
  add("NVML", "nvml:0", "for power of a GPU: the driver's libnvidia-ml.so.1");

  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  attr.exclude_kernel = 1;
  const FileDescriptor fd(
      static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  const int why = fd ? 0 : errno;
  const std::string paranoid = first_line(machine.path("/proc/sys/kernel/perf_event_paranoid"));
  checks.push_back(
      {"Counters", "perf", fd ? State::kGood : State::kAbsent,
       fd ? "the processor's counters can be read"
          : fmt::format("{}{}", std::strerror(why),
                        paranoid.empty() ? "" : "; perf_event_paranoid is " + paranoid),
       fd                              ? ""
       : why == EACCES || why == EPERM ? "to measure gpusim itself: sudo sysctl "
                                         "kernel.perf_event_paranoid=1 (in a container: "
                                         "--cap-add PERFMON)"
                                       : "to measure gpusim itself: a machine that shows its "
                                         "counters (virtual ones often do not)"});
  return checks;
}

std::vector<Check> check_programs() {
  std::vector<Check> checks;
  std::vector<std::string> systems;
  for (const GuestIsa* isa : all_isas()) {
    const std::string name = isa->name;
    systems.push_back("qemu-system-" + name);
    // Compilers for a 64-bit processor know its 32-bit kin.
    std::string kin = name;
    if (const size_t at = kin.find("32"); at != std::string::npos) kin.replace(at, 2, "64");
    checks.push_back(program_check(
        "Compilers", name,
        isa->register_bits == 32 ? std::vector{kin + "-unknown-elf-gcc"}
                                 : std::vector{name + "-linux-gnu-gcc", name + "-unknown-elf-gcc",
                                               name + "-none-elf-gcc"},
        fmt::format("apt-get install gcc-{}-{}, or any compiler for it", kin,
                    isa->register_bits == 32 ? "unknown-elf" : "linux-gnu")));
  }
  checks.push_back(program_check("Other programs", "QEMU", systems,
                                 "for guests with a Linux of their own (docs/full-system.md): "
                                 "apt-get install qemu-system"));
  checks.push_back(program_check("Other programs", "debugger", {"gdb-multiarch"},
                                 "for --gdb and --core-file: apt-get install gdb-multiarch"));
  return checks;
}

std::vector<Check> check_folders() {
  const std::string area = "Folders";
  const fs::path cache = user_cache_folder();
  if (cache.empty())
    return {{area, "cache", State::kLimited, "this user has no home",
             "set HOME or XDG_CACHE_HOME: GPUs are tested anew in each run"}};
  std::error_code error;
  fs::path at = cache;  // may not be there yet
  while (!at.empty() && !fs::exists(at, error) && at != at.parent_path()) at = at.parent_path();
  if (fs::is_directory(at, error) && ::access(at.c_str(), W_OK | X_OK) == 0)
    return {{area, "cache", State::kGood, cache.string(), {}}};
  return {{area, "cache", State::kLimited, fmt::format("{} cannot be written", cache.string()),
           "make it writable, or set XDG_CACHE_HOME: GPUs are tested anew in each run"}};
}

std::vector<Check> all_checks(const Machine& machine) {
  std::vector<Check> all;
  for (const std::vector<Check>& checks :
       {check_processor(machine), check_memory(machine), check_limits(machine), check_gpus(machine),
        check_sensors(machine), check_programs(), check_folders()})
    all.insert(all.end(), checks.begin(), checks.end());
  return all;
}

}  // namespace gpusim::host::doctor
