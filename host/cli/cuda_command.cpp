// `gpusim cuda`: runs an unmodified CUDA program with the library preloaded that takes the place of
// CUDA's runtime and driver (host/cuda_api). Kernels run there, in the program's own process.
#include <elf.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "device_sim/base/child_process.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "host/cli/commands.h"
#include "host/console.h"
#include "host/cuda_api/chips.h"
#include "host/cuda_api/settings.h"
#include "host/output_file.h"

namespace gpusim::host {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
constexpr const char *kLibrary = "libgpusim_cuda.so", *kDriver = "libgpusim_cuda_driver.so";

struct Options {
  std::string backend = "auto", chip, stats, library;
  unsigned threads = 0, sms = 0;
  bool has_list = false, is_quiet = false;
};

// A program that the user interrupts ends itself; what was counted is wanted.
class IgnoreInterrupts {
 public:
  IgnoreInterrupts() { ::signal(SIGINT, SIG_IGN), ::signal(SIGQUIT, SIG_IGN); }
  ~IgnoreInterrupts() { ::signal(SIGINT, SIG_DFL), ::signal(SIGQUIT, SIG_DFL); }
};

class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr && *base != 0 ? base : "/tmp") + "/gpusim-cuda-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error(fmt::format("{}: {}", path_, std::strerror(errno)));
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

fs::path find_library(const std::string& given) {
  if (!given.empty()) {
    if (::access(given.c_str(), R_OK) != 0)
      throw Error(fmt::format("--library {}: {}", given, std::strerror(errno)));
    return fs::absolute(given);
  }
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place : {here / kLibrary, here / ".." / "lib" / "gpusim" / kLibrary})
    if (fs::exists(place, error)) return fs::weakly_canonical(place, error);
  throw Error(fmt::format(
      "{} is not beside the program, nor in ../lib/gpusim: name it with --library", kLibrary));
}

std::string preloads(const Options& o) {
  const fs::path library = find_library(o.library);
  std::string list = library;
  std::error_code error;
  if (const fs::path driver = library.parent_path() / kDriver; fs::exists(driver, error))
    list += ":" + driver.string();
  const auto is_bad = [](const std::string& path) {
    return path.find_first_of(": ") != std::string::npos;
  };
  if (is_bad(library))
    throw Error(
        fmt::format("{}: LD_PRELOAD takes no path with a colon or a space: copy the "
                    "library elsewhere",
                    library.string()));
  const char* const others = std::getenv("LD_PRELOAD");
  return others != nullptr && *others != 0 ? list + ":" + others : list;
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
json collect(const std::string& folder) {
  json all;
  std::map<std::string, json> kernels;
  uint64_t launches = 0, threads = 0, instructions = 0;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    const json one = json::parse(read_text(file.path()));
    all["device"] = one.at("device");
    all["backend"] = one.at("backend");
    for (const json& k : one.at("kernels")) {
      launches += k.at("launches").get<uint64_t>();
      threads += k.at("threads").get<uint64_t>();
      instructions += k.at("instructions").get<uint64_t>();
      const auto [at, is_new] = kernels.emplace(k.at("symbol"), k);
      if (is_new) continue;
      for (const char* field : {"launches", "threads", "instructions", "faults"})
        at->second[field] = at->second[field].get<uint64_t>() + k.at(field).get<uint64_t>();
      at->second["seconds"] = at->second["seconds"].get<double>() + k.at("seconds").get<double>();
      add_counts(at->second["opcodes"], k.at("opcodes"));
    }
  }
  all["launches"] = launches;
  all["threads"] = threads;
  all["instructions"] = instructions;
  all["kernels"] = json::array();
  for (auto& [name, k] : kernels) all["kernels"].push_back(std::move(k));
  return all;
}

int run(const Options& o, const std::vector<std::string>& command) {
  namespace api = gpusim::cuda_api;
  if (command.empty())
    throw Error("name a program: gpusim cuda [OPTIONS] -- PROGRAM [ARGUMENT]...");
  if (!o.chip.empty()) api::chip_named(o.chip);
  if (!o.stats.empty()) check_output_file("--stats", o.stats);
  check_program(command.front());
  const Folder folder;
  std::vector<std::string> variables = {
      "LD_PRELOAD=" + preloads(o),
      fmt::format("{}={}", api::kBackendVariable, o.backend == "auto" ? "" : o.backend),
      fmt::format("{}={}", api::kThreadsVariable, o.threads),
      fmt::format("{}={}", api::kChipVariable, o.chip),
      fmt::format("{}={}", api::kSmsVariable, o.sms),
      fmt::format("{}={}", api::kFolderVariable, folder.path()),
      fmt::format("{}={}", api::kListVariable, o.has_list ? 1 : 0)};
  int status = 0;
  {
    const IgnoreInterrupts guard;
    ChildProcess program(command, {.variables = std::move(variables)});
    status = program.wait();
  }
  json stats = collect(folder.path());
  const bool has_run = stats.at("launches") != 0;
  if (!has_run && !o.is_quiet)
    console::err(
        "gpusim cuda: no kernel was launched (or the process that launched was killed, or is "
        "statically linked or set-user-ID)\n");
  if (has_run && !o.is_quiet)
    console::err("gpusim cuda: {} launches of {} kernels, {} threads, {} instructions\n",
                 stats.at("launches").get<uint64_t>(), stats.at("kernels").size(),
                 stats.at("threads").get<uint64_t>(), stats.at("instructions").get<uint64_t>());
  if (!o.stats.empty()) {
    stats["exit_status"] = status;
    json whole;
    whole["isa"] = "ptx";
    whole.update(stats);
    write_output_file("--stats", o.stats, whole.dump(1) + "\n");
  }
  return status;
}

}  // namespace

void add_cuda_command(CLI::App& app, const std::vector<std::string>& command, Action& action) {
  CLI::App* c = app.add_subcommand(
      "cuda", "Run a CUDA program as it is, without a GPU: cuda [OPTIONS] -- PROGRAM...");
  auto o = std::make_shared<Options>();
  c->add_option("--backend", o->backend, "auto, scalar or simd")
      ->check(CLI::IsMember({"auto", "scalar", "simd"}));
  c->add_option("--threads", o->threads, "Host threads for kernels (0: all processors)")
      ->check(CLI::Range(0, 4096));
  c->add_option(
      "--chip", o->chip,
      "The GPU that the program is told it has (by the program's PTX): t4, a100, h100...");
  c->add_option("--sms", o->sms, "Its multiprocessors (the chip's own number)")
      ->check(CLI::Range(1, 65536));
  c->add_option("--stats", o->stats, "Write counts of each kernel as JSON");
  c->add_flag("--list-launches", o->has_list, "A line on standard error for each launch");
  c->add_flag("--quiet", o->is_quiet, "No summary at the end");
  c->add_option("--library", o->library, "libgpusim_cuda.so, where it is not beside gpusim");
  c->callback([o, &command, &action] { action = [o, &command] { return run(*o, command); }; });
}

}  // namespace gpusim::host
