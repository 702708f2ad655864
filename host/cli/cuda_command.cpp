// `gpusim cuda`: runs an unmodified CUDA program with the library preloaded that takes the place of
// CUDA's runtime and driver (host/cuda_api). Kernels run there, in the program's own process.
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "device_sim/base/child_process.h"
#include "device_sim/base/child_session.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/core/backend.h"
#include "device_sim/core/backend_traits.h"
#include "device_sim/cuda/library/device_library.h"
#include "host/backend_choice.h"
#include "host/caches/shape.h"
#include "host/cli/commands.h"
#include "host/cli/cuda_timeline.h"
#include "host/cli/strict_values.h"
#include "host/console.h"
#include "host/cuda_api/chips.h"
#include "host/cuda_api/settings.h"
#include "host/output_file.h"
#include "host/ptx/engine.h"

namespace gpusim::host {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
constexpr int kFindingsStatus = 66;  // with --check, of a program that ended with 0
// A million events of each process; Perfetto does not take many more, either.
constexpr uint64_t kMostTimelineBytes = uint64_t{256} << 20;
constexpr const char *kLibrary = "libgpusim_cuda.so", *kDriver = "libgpusim_cuda_driver.so";
constexpr const char* kDevice = "libgpusim_cuda_device.so";

struct Options {
  std::string backend = "auto", devices, chip, stats, library, check, profile, timeline, caches;
  unsigned threads = 0, sms = 0;
  bool has_list = false, is_quiet = false, has_digest = false, has_each_launch = false;
};

std::string preloads(const Options& o) {
  const std::string library = find_preload_library(o.library, kLibrary);
  const fs::path driver = fs::path(library).parent_path() / kDriver;
  std::error_code error;
  std::string value = preload_value(library);
  if (fs::exists(driver, error)) value.insert(library.size(), ":" + driver.string());
  return value;
}

// For a backend on a device, what the program's process needs to find. Throws Error if it cannot
// run here: the program would not say so before its first launch.
std::vector<std::string> device_variables(Options& o) {
  std::vector<uint32_t> devices;
  if (!o.devices.empty()) {
    // Blocks share memory, which is the host's.
    BackendChoice choice = choose_backend(
        {.backend = o.backend, .devices = o.devices, .memory_model = MemoryModel::kPrivate});
    o.backend = std::move(choice.backend);
    devices = std::move(choice.devices);
  }
  if (!traits_of(o.backend).is_on_device) return {};
  for (const auto& [is_there, name] :
       {std::pair(!o.check.empty(), "--check"), std::pair(!o.profile.empty(), "--profile"),
        std::pair(!o.caches.empty(), "--caches")})
    if (is_there)
      throw Error(fmt::format("{} is not for backend {}; use simd or scalar", name, o.backend));
  make_backend(o.backend, {.in_place = true, .warps = true});
  std::error_code error;
  fs::path library = fs::read_symlink("/proc/self/exe", error).parent_path() / kDevice;
  if (!fs::exists(library, error))
    library = fs::path(find_preload_library(o.library, kLibrary)).parent_path() / kDevice;
  if (!fs::exists(library, error))
    throw Error(fmt::format("{} is not there: gpusim was built without the CUDA toolkit",
                            library.string()));
  std::vector<std::string> variables = {
      fmt::format("{}={}", cuda::kDeviceLibraryVariable, library.string()),
      fmt::format("{}={}", cuda_api::kDevicesVariable, fmt::join(devices, ","))};
  // NVIDIA's driver, which this process has loaded now. In the program's another library answers to
  // that name.
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  link_map* file = nullptr;
  if (driver != nullptr && ::dlinfo(driver, RTLD_DI_LINKMAP, &file) == 0 && file->l_name[0] == '/')
    variables.push_back(fmt::format("{}={}", cuda::kDriverVariable, file->l_name));
  return variables;
}

// Where a program is that a shell would start.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = fmt::format("{}/{}", rest.substr(0, end), name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return name;
}

// A program without a dynamic linker preloads nothing.
void check_program(const std::string& name) {
  const std::string path = find_program(name);
  std::error_code unknown;
  if (!fs::exists(path, unknown) && !unknown)
    throw Error(fmt::format(
        "{}: {}; expected a CUDA program for x86-64: gpusim cuda [OPTIONS] -- "
        "PROGRAM [ARGUMENTS]",
        name,
        name.find('/') == name.npos ? "there is no such program in PATH"
                                    : "No such file or directory" + nearest_file(name)));
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return;  // a script, or nothing
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
    throw Error(fmt::format("{}: a program for x86-64 is expected", path));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * header.e_phentsize));
    if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) return;
    if (part.p_type == PT_INTERP) return;
  }
  throw Error(fmt::format(
      "{} is linked statically as a whole (-static), so nothing can be put before its CUDA: link "
      "it dynamically; CUDA's own runtime may be inside (nvcc's default)",
      path));
}

void add_counts(json& into, const json& opcodes) {
  for (const auto& [spelling, count] : opcodes.items()) {
    json& sum = into[spelling];
    sum = (sum.is_number() ? sum.get<uint64_t>() : 0) + count.get<uint64_t>();
  }
}

// Sums over the processes that used the device.
json collect(const std::string& folder, bool is_checked) {
  json all, findings = json::array(), leaks = json::array(), each_launch = json::array();
  std::vector<std::string> digests;  // of the processes, which end in any order
  std::map<std::string, json> kernels;
  uint64_t launches = 0, threads = 0, instructions = 0;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    const json one = json::parse(read_text(file.path()));
    all["device"] = one.at("device");
    all["backend"] = one.at("backend");
    if (one.contains("memory_digest")) digests.push_back(one.at("memory_digest"));
    for (const json& l : one.value("each_launch", json::array())) each_launch.push_back(l);
    for (const json& f : one.value("findings", json::array())) findings.push_back(f);
    for (const json& l : one.value("leaks", json::array())) leaks.push_back(l);
    for (const json& k : one.at("kernels")) {
      launches += k.at("launches").get<uint64_t>();
      threads += k.at("threads").get<uint64_t>();
      instructions += k.at("instructions").get<uint64_t>();
      const auto [at, is_new] = kernels.emplace(k.at("symbol"), k);
      if (is_new) continue;
      if (k.contains("gpus") && k.at("gpus") > at->second.at("gpus"))
        at->second["gpus"] = k.at("gpus");
      if (k.contains("why_one_gpu")) at->second["why_one_gpu"] = k.at("why_one_gpu");
      for (const char* field : {"launches", "threads", "instructions", "faults"})
        at->second[field] = at->second[field].get<uint64_t>() + k.at(field).get<uint64_t>();
      at->second["seconds"] = at->second["seconds"].get<double>() + k.at("seconds").get<double>();
      add_counts(at->second["opcodes"], k.at("opcodes"));
      if (!k.contains("profile")) continue;  // no launch of it came to its end there
      ptx::KernelProfile sum = ptx::profile_of_json(k.at("profile"));
      if (at->second.contains("profile")) sum += ptx::profile_of_json(at->second.at("profile"));
      at->second["profile"] = ptx::profile_json(sum);
    }
  }
  std::sort(digests.begin(), digests.end());
  if (!digests.empty()) all["memory_digest"] = fmt::format("{}", fmt::join(digests, "-"));
  if (is_checked) {
    all["findings"] = std::move(findings);
    all["leaks"] = std::move(leaks);
  }
  all["launches"] = launches;
  all["threads"] = threads;
  all["instructions"] = instructions;
  all["kernels"] = json::array();
  for (auto& [name, k] : kernels) all["kernels"].push_back(std::move(k));
  if (!each_launch.empty()) all["each_launch"] = std::move(each_launch);
  return all;
}

// A process may have ended without counts.
bool has_found(const std::string& folder) {
  for (const auto& file : fs::directory_iterator(folder))
    if (file.path().extension() == ".found") return true;
  return false;
}

void say_findings(const json& stats, bool was_found) {
  constexpr size_t kMostLeaks = 10;
  std::map<std::string, size_t> kinds;
  bool lacks_lines = false;
  for (const json& f : stats.at("findings")) {
    ++kinds[f.at("kind").get<std::string>()];
    lacks_lines |= f.at("launch") != 0 && f.at("source").get_ref<const std::string&>().empty();
  }
  std::string sums;
  for (const auto& [kind, count] : kinds)
    sums += fmt::format("{}{} {}", sums.empty() ? ": " : ", ", count, kind);
  const size_t count = stats.at("findings").size();
  uint64_t faults = 0;
  for (const json& k : stats.at("kernels")) faults += k.at("faults").get<uint64_t>();
  console::err("gpusim cuda --check: {} {}{}\n", count, count == 1 ? "finding" : "findings", sums);
  if (count == 0 && was_found)
    console::err("gpusim cuda --check: {}\n",
                 faults != 0 ? "a kernel ended with a fault"
                             : "a process ended before it could tell the sum of its findings");
  if (lacks_lines)
    console::err(
        "gpusim cuda --check: without lines of the source: build the program with nvcc "
        "-lineinfo\n");
  const json& leaks = stats.at("leaks");
  if (leaks.empty()) return;
  console::err(
      "gpusim cuda --check: note: {} not freed:\n",
      leaks.size() == 1 ? "1 allocation was" : fmt::format("{} allocations were", leaks.size()));
  for (size_t i = 0; i < std::min(leaks.size(), kMostLeaks); ++i)
    console::err("    {}\n", leaks[i].at("text").get<std::string>());
  if (leaks.size() > kMostLeaks) console::err("    {} more\n", leaks.size() - kMostLeaks);
}

void tell_profile(const Options& o, const json& stats) {
  std::vector<const json*> kernels;
  for (const json& k : stats.at("kernels")) kernels.push_back(&k);
  std::stable_sort(kernels.begin(), kernels.end(), [](const json* a, const json* b) {
    return a->at("instructions") > b->at("instructions");
  });
  json all = {{"kernels", json::array()}};
  for (const json* k : kernels) {
    if (!k->contains("profile")) continue;
    if (o.profile == "-") {
      const uint64_t launches = k->at("launches").get<uint64_t>();
      console::err("{}",
                   ptx::profile_text(ptx::profile_of_json(k->at("profile")),
                                     fmt::format("{}: {} {}", k->at("name").get<std::string>(),
                                                 launches, launches == 1 ? "launch" : "launches")));
      continue;
    }
    json one;
    for (const char* field : {"name", "symbol", "launches", "profile"}) one[field] = k->at(field);
    all["kernels"].push_back(std::move(one));
  }
  if (o.profile != "-") write_output_file("--profile", o.profile, all.dump(1) + "\n");
}

int run(Options o, const std::vector<std::string>& command) {
  namespace api = gpusim::cuda_api;
  if (command.empty())
    throw Error("name a program: gpusim cuda [OPTIONS] -- PROGRAM [ARGUMENT]...");
  std::vector<std::string> on_device = device_variables(o);
  if (!o.chip.empty()) api::chip_named(o.chip);
  if (!o.stats.empty()) check_output_file("--stats", o.stats);
  if (o.check == "true") o.check = "all";  // flags without values
  if (o.profile == "true") o.profile = "-";
  const bool is_checked = !o.check.empty();
  if (is_checked) ptx::parse_checks("--check", o.check);
  if (is_checked && !o.profile.empty())
    throw Error("--check and --profile do not go together: run twice");
  if (!o.profile.empty() && o.profile != "-") check_output_file("--profile", o.profile);
  if (!o.caches.empty()) {
    if (o.profile.empty() && o.stats.empty())
      throw Error("--caches needs --profile or --stats, which tell of them");
    if (is_checked) throw Error("--check and --caches do not go together: run twice");
    const ptx::WarpCaches is_good(load_hierarchy(o.caches));
    o.caches = fs::absolute(o.caches);  // the program may change its folder
  }
  if (!o.timeline.empty()) check_output_file("--timeline", o.timeline);
  if (o.has_each_launch && o.stats.empty())
    throw Error("--each-launch needs --stats, which has them");
  if (o.has_digest && o.stats.empty()) throw Error("--memory-digest needs --stats, which has it");
  check_program(command.front());
  const SessionFolder folder("gpusim-cuda");
  std::vector<std::string> variables = {
      "LD_PRELOAD=" + preloads(o),
      fmt::format("{}={}", api::kBackendVariable, o.backend == "auto" ? "" : o.backend),
      fmt::format("{}={}", api::kThreadsVariable, o.threads),
      fmt::format("{}={}", api::kChipVariable, o.chip),
      fmt::format("{}={}", api::kSmsVariable, o.sms),
      fmt::format("{}={}", api::kFolderVariable, folder.path()),
      fmt::format("{}={}", api::kCheckVariable, o.check),
      fmt::format("{}={}", api::kProfileVariable, o.profile.empty() && o.caches.empty() ? 0 : 1),
      fmt::format("{}={}", api::kCachesVariable, o.caches),
      fmt::format("{}={}", api::kDigestVariable, o.has_digest ? 1 : 0),
      fmt::format("{}={}", api::kEachLaunchVariable, o.has_each_launch ? 1 : 0),
      fmt::format("{}={}", api::kTimelineVariable, o.timeline.empty() ? 0 : kMostTimelineBytes),
      fmt::format("{}={}", api::kListVariable, o.has_list ? 1 : 0)};
  for (std::string& v : on_device) variables.push_back(std::move(v));
  int status = 0;
  {
    const IgnoreInterrupts guard;
    ChildProcess program(command, {.variables = std::move(variables)});
    status = program.wait();
  }
  json stats = collect(folder.path(), is_checked);
  const bool was_found = is_checked && has_found(folder.path());
  if (was_found && status == 0) status = kFindingsStatus;
  const bool has_run = stats.at("launches") != 0;
  if (!has_run && !o.is_quiet)
    console::err(
        "gpusim cuda: no kernel was launched (or the process that launched was killed, or is "
        "statically linked or set-user-ID)\n");
  if (has_run && !o.is_quiet)
    console::err("gpusim cuda: {} launches of {} kernels, {} threads, {} instructions\n",
                 stats.at("launches").get<uint64_t>(), stats.at("kernels").size(),
                 stats.at("threads").get<uint64_t>(), stats.at("instructions").get<uint64_t>());
  for (const json& k : stats.at("kernels"))
    if (k.contains("why_one_gpu") && !o.is_quiet)
      console::err("gpusim cuda: {} had one GPU: {}\n", k.at("name").get<std::string>(),
                   k.at("why_one_gpu").get<std::string>());
  if (!o.profile.empty() && (has_run || o.profile != "-")) tell_profile(o, stats);
  if (is_checked && !o.is_quiet) say_findings(stats, was_found);
  if (!o.stats.empty()) {
    stats["exit_status"] = status;
    json whole;
    whole["isa"] = "ptx";
    whole.update(stats);
    write_output_file("--stats", o.stats, whole.dump(1) + "\n");
  }
  if (!o.timeline.empty())
    write_output_file("--timeline", o.timeline, cuda_timeline_json(folder.path(), command.front()));
  return status;
}

}  // namespace

void add_cuda_command(CLI::App& app, const std::vector<std::string>& command, Action& action) {
  CLI::App* c = app.add_subcommand(
      "cuda", "Run a CUDA program as it is, without a GPU: cuda [OPTIONS] -- PROGRAM...");
  auto o = std::make_shared<Options>();
  c->add_option("--backend", o->backend, "auto (simd), scalar, simd or cuda")
      ->check(CLI::IsMember({"auto", "scalar", "simd", "cuda"}));
  c->add_option("--device,--devices", o->devices,
                "GPUs that execute kernels (backend cuda), which share a launch's blocks: numbers "
                "as `gpusim info` lists them, with commas between, or all")
      ->transform(list_value());
  c->add_option("--threads", o->threads, "Host threads for kernels (0: all processors)")
      ->check(CLI::Range(0, 4096));
  c->add_option(
      "--chip", o->chip,
      "The GPU that the program is told it has (by the program's PTX): t4, a100, h100...");
  c->add_option("--sms", o->sms, "Its multiprocessors (the chip's own number)")
      ->check(CLI::Range(1, 65536));
  c->add_option("--stats", o->stats, "Write counts of each kernel as JSON");
  c->add_flag("--check", o->check,
              "Report what kernels do wrong with memory, shared memory and barriers, and wrong "
              "frees and copies; --check=memory,races,barriers,uninitialised for some of it. The "
              "status is then 66 instead of 0");
  c->add_flag("--profile", o->profile,
              "Where instructions were executed: a table of source lines for each kernel, or with "
              "--profile=FILE.json a file");
  c->add_option("--caches", o->caches,
                "Simulate the caches that this JSON file describes: for --profile and --stats");
  c->add_flag("--each-launch", o->has_each_launch, "Counts of each launch, too, in --stats");
  c->add_flag("--memory-digest", o->has_digest,
              "A digest of what the device's memory held when it was freed and at the end: for "
              "--stats");
  c->add_option("--timeline", o->timeline,
                "Write what host threads called and streams did when, for ui.perfetto.dev");
  c->add_flag("--list-launches", o->has_list, "A line on standard error for each launch");
  c->add_flag("--quiet", o->is_quiet, "No summary at the end");
  c->add_option("--library", o->library, "libgpusim_cuda.so, where it is not beside gpusim");
  c->callback([o, &command, &action] { action = [o, &command] { return run(*o, command); }; });
}

}  // namespace gpusim::host
