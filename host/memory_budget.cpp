#include "host/memory_budget.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>

#include "device_sim/base/error.h"
#include "device_sim/core/backend_traits.h"
#include "host/console.h"
#include "host/exit_status.h"
#include "host/linux/kernel.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kUnknown = ~uint64_t{0};
// Of what is available; the rest is for others, and for what is taken until a watch looks again.
constexpr double kShare = 0.8;

std::string size_text(uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

// A file that holds a number; "max" and what cannot be read is unknown.
uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : kUnknown;
}

// The number behind `key` in lines "key number" or "key: number kB".
uint64_t value_of(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, unit;
    uint64_t value = 0;
    if (!(words >> name >> value) || (name != key && name != key + ":")) continue;
    return words >> unit && unit == "kB" ? value * 1024 : value;
  }
  return kUnknown;
}

// What a group may still take. Pages of files that it does not use make room.
uint64_t left_in(const std::string& folder, const char* limit_file, const char* usage_file,
                 const char* reclaimable_key) {
  const uint64_t limit = number_in(folder + "/" + limit_file);
  const uint64_t usage = number_in(folder + "/" + usage_file);
  if (limit == kUnknown || usage == kUnknown) return kUnknown;
  const uint64_t reclaimable = value_of(folder + "/memory.stat", reclaimable_key);
  const uint64_t used = usage - std::min(usage, reclaimable == kUnknown ? 0 : reclaimable);
  return limit > used ? limit - used : 0;
}

// The group and all that it lies in. In a container the path may be one that only the host has.
template <class Left>
uint64_t least_left(const std::string& root, std::string path, Left left) {
  uint64_t least = left(root);
  for (; path.size() > 1; path.resize(path.rfind('/'))) least = std::min(least, left(root + path));
  return least;
}

uint64_t available_in_groups(const std::string& proc, const std::string& cgroups) {
  uint64_t least = kUnknown;
  std::ifstream file(proc + "/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // NUMBER:CONTROLLERS:PATH
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    if (controllers.empty())
      least = std::min(least, least_left(cgroups, path, [](const std::string& folder) {
                         return left_in(folder, "memory.max", "memory.current", "inactive_file");
                       }));
    else if (("," + controllers + ",").find(",memory,") != std::string::npos)
      least = std::min(least, least_left(cgroups + "/memory", path, [](const std::string& folder) {
                         return left_in(folder, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                        "total_inactive_file");
                       }));
  }
  return least;
}

}  // namespace

uint64_t available_memory(const std::string& proc, const std::string& cgroups) {
  uint64_t machine = value_of(proc + "/meminfo", "MemAvailable");
  if (machine == kUnknown)
    machine = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
              static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(machine, available_in_groups(proc, cgroups));
}

std::string MemoryBudget::text() const {
  return is_given ? fmt::format("--host-memory {}", size_text(bytes))
                  : fmt::format(
                        "{} ({:.0f} % of what this machine has free; --host-memory SIZE "
                        "says otherwise)",
                        size_text(bytes), kShare * 100);
}

MemoryBudget memory_budget(uint64_t asked_for, uint64_t used) {
  if (asked_for != 0) return {asked_for, true};
  return {static_cast<uint64_t>(static_cast<double>(available_memory() + used) * kShare), false};
}

std::vector<MemoryNeed> known_needs(const Module& module, const RunShape& shape) {
  // Vectors of pairs and their text, with some ten classes of instructions.
  constexpr uint64_t kStatisticsBytes = 2048;
  constexpr uint64_t kProcessBytes = sizeof(Process) + 1024;  // its tables have three files
  const MachineConfig& config = shape.plan->config;
  const uint64_t cores = config.cores;
  const bool is_private = config.memory_model == MemoryModel::kPrivate;
  uint64_t file_bytes = 0, own_file_bytes = 0, pages = 0, own_pages = 0;
  for (const Segment& s : module.segments) {
    const bool own = is_private && s.address + s.size_bytes > config.window_base;
    (own ? own_file_bytes : file_bytes) += s.bytes.size();
    (own ? own_pages : pages) += s.size_bytes / kPageSize + 1;
  }
  own_pages += shape.plan->stack_size_bytes / kPageSize;
  std::vector<MemoryNeed> needs{
      {"the guests' Linux", cores * (sizeof(Thread) + (is_private ? kProcessBytes : 0))},
      {"statistics per core", shape.per_core_statistics ? cores * kStatisticsBytes : 0}};
  const BackendTraits traits = traits_of(shape.backend);
  if (traits.is_on_device) return needs;
  // The storage of so many windows is interleaved, and what one touches is there for all.
  const uint64_t together = traits.cores_per_tile;
  const uint64_t windows = (cores + together - 1) / together * together;
  uint64_t scheduling = 0;
  for (const BackendInfo& info : all_backends())
    if (info.name == shape.backend) scheduling = info.scheduling_bytes;
  needs.push_back(
      {"registers and scheduling", cores * (scheduling + module.slot_count * sizeof(uint64_t))});
  needs.push_back({"stacks and their pages' rights",
                   windows * (own_pages + own_file_bytes + shape.start_bytes)});
  needs.push_back({"the program", file_bytes + pages});
  needs.push_back({"journals", cores * shape.journal_words * sizeof(uint64_t)});
  return needs;
}

void judge_needs(const std::vector<MemoryNeed>& needs, const MemoryBudget& budget, uint32_t cores) {
  uint64_t sum = 0;
  std::string parts;
  for (const MemoryNeed& need : needs) {
    sum += need.bytes;
    if (need.bytes >= uint64_t{1} << 20)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", need.what, size_text(need.bytes));
  }
  if (sum <= budget.bytes) return;
  throw Error(fmt::format(
      "{} cores take {} of memory before they begin ({}), more than {}: use fewer cores or a "
      "smaller --stack-size, or allow more",
      cores, size_text(sum), parts, budget.text()));
}

// --- while it runs

MemoryWatch::MemoryWatch(const MemoryBudget& budget, CpuMachineState* memory, bool owns_process)
    : budget_(budget), memory_(memory), owns_process_(owns_process) {
  statm_ = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (statm_ < 0) return;  // no /proc: not watched
  if (!owns_process_) bytes_before_ = process_bytes();
  // Signals are for the thread that runs the guests.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

MemoryWatch::~MemoryWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    quits_ = true;
  }
  changed_.notify_one();
  thread_.join();
  ::close(statm_);
}

void MemoryWatch::begin_slice() {
  const std::lock_guard lock(mutex_);
  in_slice_ = true;
}

bool MemoryWatch::end_slice() {
  const std::lock_guard lock(mutex_);
  // What cores took since the last look is theirs only until here.
  if (is_near_) look();
  in_slice_ = false;
  return !is_exceeded_;
}

void MemoryWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!quits_) {
    // As long as what is left lasts a machine that takes new pages at this rate.
    constexpr uint64_t kBytesPerMs = uint64_t{16} << 20, kLongestMs = 20;
    const uint64_t used = look();
    const uint64_t left = budget_.bytes - std::min(budget_.bytes, used);
    is_near_ = left / kBytesPerMs < kLongestMs;
    const std::chrono::milliseconds pause(std::clamp<uint64_t>(left / kBytesPerMs, 1, kLongestMs));
    changed_.wait_for(lock, pause, [this] { return quits_; });
  }
}

// proc(5), statm: size, resident, and shared pages; what is not shared is this process's alone.
uint64_t MemoryWatch::process_bytes() const {
  std::array<char, 128> text{};
  if (::pread(statm_, text.data(), text.size() - 1, 0) <= 0) return 0;
  std::array<uint64_t, 3> pages{};
  const char* at = text.data();
  for (uint64_t& p : pages) at = std::from_chars(at, text.end(), p).ptr + 1;
  return (pages[1] - std::min(pages[1], pages[2])) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t MemoryWatch::look() {
  const uint64_t all = process_bytes();
  const uint64_t used = all - std::min(all, bytes_before_);
  if (!owns_process_ && !in_slice_) return used;
  if (used > budget_.bytes && !budget_.is_given)
    budget_.bytes = std::max(budget_.bytes, memory_budget(0, used).bytes);
  if (used <= budget_.bytes) return used;
  is_exceeded_ = true;
  if (memory_) memory_->end_slices();
  if (in_slice_ && memory_ && used - budget_.bytes > budget_.bytes / 8) memory_->drop_memory();
  if (in_slice_ || used - budget_.bytes <= budget_.bytes / 4) return used;
  console::err("gpusim: error: out of memory: gpusim itself took {}, more than {}\n",
               size_text(used), budget_.text());
  ::_exit(kExitUserError);
}

std::string describe_exhaustion(const MemoryBudget& budget, const Module& module,
                                const MemoryPlan& plan, Backend& backend) {
  const uint32_t cores = plan.config.cores;
  std::string stacks;
  if (const int slot = module.abi.stack_pointer; slot != kNoSlot) {
    uint64_t deepest = 0, sum = 0;
    uint32_t who = 0;
    for (uint32_t core = 0; core < cores; ++core) {
      const uint64_t depth = plan.stack_top(core) - backend.slot(core, static_cast<Slot>(slot));
      if (depth > plan.stack_size_bytes) continue;  // a stack of the program's own making
      sum += depth;
      if (depth > deepest) deepest = depth, who = core;
    }
    if (sum != 0)
      stacks = fmt::format(", stacks of {} cores {}, the deepest {} (core {})", cores,
                           size_text(sum), size_text(deepest), who);
  }
  return fmt::format(
      "out of memory: the guests' memory and gpusim's exceed {}{}; the run ends here: use fewer "
      "cores, give more, or limit what guests can take by --stack-size and --memory-size",
      budget.text(), stacks);
}

}  // namespace gpusim::host
