#include "host/cuda_api/runtime.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "host/cuda_api/arrays.h"

namespace gpusim::cuda_api {
namespace {

std::atomic<bool> is_made{false};

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

Status status_of(const ptx::Fault& fault) {
  switch (fault.reason) {
    case ptx::Fault::Reason::kAddress:
      return kIllegalAddress;
    case ptx::Fault::Reason::kMisaligned:
      return kMisalignedAddress;
    case ptx::Fault::Reason::kAssert:
      return kAssert;
    case ptx::Fault::Reason::kStack:
      return kHardwareStackError;
    default:
      return kLaunchFailure;
  }
}

// Of a launch that had several GPUs: how many it took.
std::string devices_text(const LaunchOutcome& outcome) {
  if (outcome.why_one_device) return fmt::format(", on one GPU: {}", outcome.why_one_device);
  return outcome.devices > 1 ? fmt::format(", on {} GPUs", outcome.devices) : "";
}

std::string dimensions(const Dim3& d) { return fmt::format("{}x{}x{}", d.x, d.y, d.z); }

unsigned number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 0;
}

std::string text_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? text : "";
}

std::vector<uint32_t> numbers_in(const char* variable) {
  const std::string text = text_in(variable);
  std::vector<uint32_t> numbers;
  for (const char* at = text.c_str(); *at != 0;) {
    char* end = nullptr;
    numbers.push_back(static_cast<uint32_t>(std::strtoul(at, &end, 10)));
    if (end == at) return {};
    at = *end == ',' ? end + 1 : end;
  }
  return numbers;
}

// Beside it, then renamed: a reader never sees half a file.
void write_whole(const std::string& path, const std::string& text) {
  const std::string unfinished = path + ".part";
  FILE* file = std::fopen(unfinished.c_str(), "we");
  if (file == nullptr) return say(fmt::format("{}: {}", unfinished, std::strerror(errno)));
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = std::fclose(file) == 0;
  if (!is_written || !is_closed || std::rename(unfinished.c_str(), path.c_str()) != 0)
    say(fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace

Settings settings_from_environment() {
  return {.backend = text_in(kBackendVariable),
          .chip = text_in(kChipVariable),
          .folder = text_in(kFolderVariable),
          .check = text_in(kCheckVariable),
          .caches = text_in(kCachesVariable),
          .devices = numbers_in(kDevicesVariable),
          .threads = number_in(kThreadsVariable),
          .sms = number_in(kSmsVariable),
          .timeline_bytes = number_in(kTimelineVariable),
          .has_list = number_in(kListVariable) != 0,
          .is_quiet = number_in(kQuietVariable) != 0,
          .has_profile = number_in(kProfileVariable) != 0,
          .has_digest = number_in(kDigestVariable) != 0,
          .has_each_launch = number_in(kEachLaunchVariable) != 0};
}

Runtime& runtime() {
  // Never destroyed: calls come from destructors of the program.
  static Runtime* const only = [] {
    auto* made = new Runtime;
    is_made = true;
    return made;
  }();
  return *only;
}

void say(const std::string& text) {
  const std::string line = "gpusim cuda: " + text + "\n";
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

const char*& called_function() {
  thread_local const char* name = "";
  return name;
}

std::string numbered_call() {
  static std::mutex mutex;
  static auto* const counts = new std::map<std::string_view, uint64_t>;
  const std::lock_guard lock(mutex);
  return fmt::format("{} number {}", called_function(), ++(*counts)[called_function()]);
}

int& last_error() {
  thread_local int error = 0;
  return error;
}

int keep_error(int status) {
  if (status != kSuccess) last_error() = status;
  return status;
}

int status_of_exception(const char* function) noexcept {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return refusal.status;
  } catch (const std::bad_alloc&) {
    return kMemoryAllocation;
  } catch (const std::exception& error) {
    try {
      say(fmt::format("{}: {}", function, error.what()));
    } catch (...) {
    }
    return kUnknown;
  } catch (...) {
    return kUnknown;
  }
}

Runtime::Runtime() : settings(settings_from_environment()), process_(::getpid()) {
  if (!settings.check.empty()) {
    checks = ptx::parse_checks("--check", settings.check);
    report.begin(settings.folder, process_);
    memory.remember_freed();
  }
  if (settings.has_digest) memory.begin_digest();
  if (settings.has_each_launch) statistics.keep_launches();
  if (settings.timeline_bytes != 0 && !settings.folder.empty())
    timeline.begin(settings.folder, process_, settings.timeline_bytes);
  limits = {{0, 1024}, {1, 1 << 20}, {2, 8 << 20}, {3, 2}, {4, 2048}, {5, 64}, {6, 0}};
}

bool Runtime::is_forked() const { return ::getpid() != process_; }

const Chip& Runtime::chip() {
  const std::lock_guard lock(mutex);
  if (!chip_) {
    uint32_t architecture = 0;
    for (const LoadedImage* image : images)
      architecture = std::max(architecture, image->architecture);
    chip_ = !settings.chip.empty()
                ? chip_named(settings.chip)
                : (architecture != 0 ? chip_for(architecture) : chip_named("h100"));
    if (settings.sms != 0) chip_->sms = settings.sms;
    memory.limit(std::min(chip_->memory_mib << 20, available_bytes()));
  }
  return *chip_;
}

KernelEngine& Runtime::engine() {
  std::call_once(engine_once_, [this] {
    engine_ = make_engine({.backend = settings.backend,
                           .threads = settings.threads,
                           .devices = settings.devices,
                           .chip = &chip(),
                           .checks = checks,
                           .has_profile = settings.has_profile,
                           .caches = settings.caches});
    // Behind the handlers of the device's driver, so before them.
    if (engine_->is_on_device()) std::atexit([] { runtime().leave_device(); });
  });
  return *engine_;
}

KernelEngine& Runtime::engine_for_memory() { return engine(); }

Stream& Runtime::stream(void* handle) {
  // 1: the legacy default stream; 2: that of the thread. One queue serves both.
  Stream* found = &default_stream;
  if (reinterpret_cast<uintptr_t>(handle) > 2) {
    const auto at = streams.find(static_cast<Stream*>(handle));
    require(at != streams.end(), kInvalidResourceHandle);
    found = *at;
  }
  timeline.note_stream(found->id);
  return *found;
}

Event& Runtime::event(void* handle) {
  const auto at = events.find(static_cast<Event*>(handle));
  require(at != events.end(), kInvalidResourceHandle);
  timeline.note_event((*at)->id);
  return **at;
}

void Runtime::submit(void* handle, Node node) {
  require(!queue.is_own_thread(), kNotPermitted);
  require(!is_forked(), kInitializationError);
  const std::lock_guard lock(mutex);
  Stream& s = stream(handle);
  if (s.capture != nullptr) {
    require(!s.capture->graph->is_invalidated, kStreamCaptureInvalidated);
    node.dependencies = s.capture->last;
    s.capture->last = {s.capture->graph->add(std::move(node))};
    return;
  }
  s.last = queue.submit(
      [this, work = std::move(node), origin = timeline.origin(s.id)] { run(work, origin); });
}

void Runtime::wait_for(uint64_t number) {
  require(!queue.is_own_thread(), kNotPermitted);
  queue.wait(number);
}

void Runtime::require_no_capture(const Stream& s) {
  if (s.capture == nullptr) return;
  s.capture->graph->is_invalidated = true;
  require(false, kStreamCaptureUnsupported);
}

void Runtime::synchronize(void* handle) {
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex);
    const Stream& s = stream(handle);
    require_no_capture(s);
    number = s.last;
  }
  wait_for(number);
}

void Runtime::synchronize_device() {
  require(!queue.is_own_thread(), kNotPermitted);
  require(!is_forked(), kInitializationError);
  queue.drain();
}

void Runtime::run(const Node& node, const Origin& origin) {
  // After an error nothing runs any more; events are still marked, so that nobody waits for ever.
  if (sticky != 0 && node.type != NodeType::kRecordEvent) return;
  uint64_t work = 0;
  try {
    if (node.child != nullptr) {
      for (const Node& n : node.child->nodes) run(n, origin);
      return;
    }
    if (node.condition != nullptr) return run_conditional(node, origin);
    if (node.call) check_loaded(*node.call->function);
    work = timeline.begin_work(node, origin);
    if (node.call) return run_kernel(*node.call, work);
    if (node.work) node.work();
    timeline.end_work(work);
  } catch (...) {
    sticky = status_of_exception("device");
    timeline.end_work(work);
  }
}

void Runtime::run_conditional(const Node& node, const Origin& origin) {
  const auto run_body = [&](size_t number) {
    if (number >= node.body_copies.size()) return;
    for (const Node& n : node.body_copies[number]->nodes) run(n, origin);
  };
  const auto value = [&] { return std::atomic_ref(*node.condition->value).load(); };
  switch (node.condition_kind) {
    case ConditionKind::kIf:
      return run_body(value() != 0 ? 0 : 1);
    case ConditionKind::kWhile:
      while (value() != 0 && sticky == 0) run_body(0);
      return;
    case ConditionKind::kSwitch:
      return run_body(value());
  }
}

// Work of streams is done before a module goes; graphs may be launched when it has gone.
void Runtime::check_loaded(const Function& function) {
  {
    const std::lock_guard lock(mutex);
    if (by_stub.contains(&function)) return;
  }
  say("a graph cannot run: the module or library of one of its kernels was unloaded");
  refuse(kInvalidDeviceFunction);
}

namespace {

// While kernels run: programs that were built with -ffast-math have threads that take subnormals
// for zeros.
class UsualFloats {
 public:
  UsualFloats() { _mm_setcsr(0x1f80); }
  ~UsualFloats() { _mm_setcsr(before_); }
  UsualFloats(const UsualFloats&) = delete;
  UsualFloats& operator=(const UsualFloats&) = delete;

 private:
  unsigned before_ = _mm_getcsr();
};

}  // namespace

void Runtime::run_kernel(const KernelCall& call, uint64_t work) {
  const KernelFacts& facts = *call.function->facts;
  const uint64_t begin = now_ns();
  LaunchOutcome outcome;
  try {
    const std::lock_guard lock(engine_mutex_);
    const UsualFloats usual;
    outcome = engine().launch({.kernel = &facts,
                               .grid = call.grid,
                               .block = call.block,
                               .dynamic_shared_bytes = call.shared_bytes,
                               .params = call.arguments,
                               .is_cooperative = call.modes.is_cooperative,
                               .cluster = call.modes.cluster,
                               .stack_bytes = call.stack_bytes,
                               .heap_bytes = call.heap_bytes});
  } catch (const std::exception& error) {
    outcome.fault.emplace();
    outcome.fault->text = fmt::format("kernel {}: {}", readable_name(facts.name), error.what());
  }
  double seconds = static_cast<double>(now_ns() - begin) * 1e-9;
  for (const ptx::DeviceLaunch& d : outcome.device_launches) seconds -= d.seconds;
  const uint64_t number =
      statistics.add(facts.name,
                     {.grid = {call.grid.x, call.grid.y, call.grid.z},
                      .block = {call.block.x, call.block.y, call.block.z},
                      .shared_bytes = uint64_t{facts.static_shared_bytes} + call.shared_bytes},
                     outcome, seconds);
  timeline.end_kernel(work, number, outcome);
  if (settings.has_list)
    say(fmt::format(
        "launch {}: {} grid {} block {} shared {}: {} threads, {} instructions, {:.3f} "
        "ms{}",
        number, readable_name(facts.name), dimensions(call.grid), dimensions(call.block),
        facts.static_shared_bytes + call.shared_bytes, outcome.threads, outcome.thread_instructions,
        seconds * 1e3, devices_text(outcome)));
  bool is_told = report.add(number, std::move(outcome.findings), outcome.fault);
  for (const ptx::DeviceLaunch& d : outcome.device_launches) {
    const uint64_t from_device = statistics.add(
        d.kernel, {.grid = d.grid, .block = d.block, .shared_bytes = d.dynamic_shared_bytes},
        *d.result, d.seconds);
    if (settings.has_list)
      say(
          fmt::format("launch {}: {} grid {}x{}x{} block {}x{}x{}, by a kernel of launch {}: {} "
                      "threads, {} instructions, {:.3f} ms{}",
                      from_device, readable_name(d.kernel), d.grid.x, d.grid.y, d.grid.z, d.block.x,
                      d.block.y, d.block.z, number, d.result->threads,
                      d.result->thread_instructions, d.seconds * 1e3, devices_text(*d.result)));
    is_told |= report.add(from_device, std::move(d.result->findings), outcome.fault);
  }
  if (outcome.fault) {
    report.note_fault();
    say(is_told ? ptx::brief_text(*outcome.fault) : outcome.fault->text);
    sticky = status_of(*outcome.fault);
  }
}

uint64_t largest_cluster_of(const Function& f) {
  return f.allows_large_clusters ? kMostClusterBlocks : kPortableClusterBlocks;
}

void Runtime::check_launch(const KernelCall& call) {
  const Chip& c = chip();
  const KernelFacts& facts = *call.function->facts;
  const DeviceProp p = properties_of(c);
  const auto fits = [](uint32_t value, int most) {
    return value >= 1 && value <= static_cast<uint32_t>(most);
  };
  const uint64_t threads = uint64_t{call.block.x} * call.block.y * call.block.z;
  require(fits(call.block.x, p.max_threads_dim[0]) && fits(call.block.y, p.max_threads_dim[1]) &&
              fits(call.block.z, p.max_threads_dim[2]) && threads <= kThreadsPerBlock &&
              fits(call.grid.x, p.max_grid_size[0]) && fits(call.grid.y, p.max_grid_size[1]) &&
              fits(call.grid.z, p.max_grid_size[2]),
          kInvalidConfiguration);
  require(threads <= facts.max_threads, kLaunchOutOfResources);
  const size_t shared = size_t{facts.static_shared_bytes} + call.shared_bytes;
  require(shared <=
              std::max<size_t>(kSharedPerBlock, size_t{facts.static_shared_bytes} +
                                                    call.function->most_dynamic_shared_bytes) &&
          shared <= p.shared_mem_per_block_optin);
  const uint64_t blocks = uint64_t{call.grid.x} * call.grid.y * call.grid.z;
  require(call.modes.cluster || !facts.needs_cluster, kInvalidClusterSize);
  if (const auto cluster = call.modes.cluster; cluster) {
    const uint64_t size = uint64_t{cluster->x} * cluster->y * cluster->z;
    require(size == 1 || c.compute_capability >= 90, kNotSupported);
    require(size >= 1 && size <= largest_cluster_of(*call.function), kInvalidClusterSize);
    if (const auto& wanted = facts.cluster)
      require(cluster->x == wanted->x && cluster->y == wanted->y && cluster->z == wanted->z,
              kInvalidClusterSize);
    require(call.grid.x % cluster->x == 0 && call.grid.y % cluster->y == 0 &&
                call.grid.z % cluster->z == 0,
            kInvalidConfiguration);
  }
  if (!call.modes.is_cooperative) return;
  const int resident = resident_blocks(c, static_cast<uint32_t>(threads), facts.registers, shared);
  require(blocks <= uint64_t{c.sms} * static_cast<uint64_t>(resident), kCooperativeLaunchTooLarge);
}

void Runtime::check_device(const void* address, size_t size_bytes) const {
  require(size_bytes == 0 || has_memory(address, size_bytes));
}

bool Runtime::has_memory(const void* address, size_t size_bytes) const {
  if (memory.has(address, size_bytes)) return true;
  const std::shared_ptr<GraphMemory> m = graph_memory(address);
  if (m == nullptr) return false;
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - m->address);
  return size_bytes <= m->size_bytes - offset;
}

std::shared_ptr<GraphMemory> Runtime::graph_memory(const void* address) const {
  const std::lock_guard lock(graph_memories_mutex);
  auto at = graph_memories.upper_bound(address);
  if (at == graph_memories.begin()) return nullptr;
  --at;
  const auto offset = static_cast<const char*>(address) - at->second->address;
  return static_cast<size_t>(offset) < at->second->size_bytes ? at->second : nullptr;
}

void Runtime::with_engine(const std::function<void(KernelEngine&)>& work) {
  const std::lock_guard lock(engine_mutex_);
  work(engine());
}

// After a fault the program could not free anything.
void Runtime::note_leaks() {
  if (checks.memory && sticky == 0)
    memory.for_each([this](const Block& block) { report.add_leak(block); });
}

void Runtime::finish() {
  if (is_forked()) return;
  queue.finish();
  note_leaks();
  if (settings.folder.empty() ||
      (statistics.launches() == 0 && engine_ == nullptr && report.is_empty()))
    return;
  nlohmann::ordered_json all = statistics.json(
      std::string(chip().name), engine_ != nullptr ? engine_->backend() : std::string("none"));
  if (checks.any()) report.add_to(all);
  if (settings.has_digest) all["memory_digest"] = fmt::format("{:016x}", memory.digest());
  write_whole(fmt::format("{}/{}.json", settings.folder, process_), all.dump(1) + "\n");
}

// What the program's destructors launch later does not run.
void Runtime::leave_device() {
  if (is_forked()) return;
  if (!queue.is_own_thread()) queue.drain();
  with_engine([](KernelEngine& engine) { engine.leave_device(); });
}

void Runtime::reset() {
  synchronize_device();
  std::vector<LoadedImage*> loaded;
  {
    const std::lock_guard lock(mutex);
    loaded.assign(images.begin(), images.end());
  }
  note_leaks();
  const std::lock_guard lock(engine_mutex_);
  for (LoadedImage* image : loaded) {
    if (image->module == nullptr) continue;
    for (auto& [host, v] : image->variables)
      if (v.address != nullptr) memory.remove(v.address), v.address = nullptr;
    for (auto& f : image->functions) f->is_ready = false, f->facts.reset();
    engine().unload(image->module);
    image->module = nullptr;
  }
  memory.for_each([this](const Block& block) {
    engine().remove_memory(block.address, "freed by cudaDeviceReset");
  });
  memory.clear();
  Arrays::instance().forget_all();
  sticky = 0;
  last_error() = 0;
}

// At the end, after the program's own destructors.
__attribute__((destructor)) static void finish_at_exit() {
  if (!is_made) return;
  try {
    runtime().finish();
  } catch (const std::exception& error) {
    say(fmt::format("at the end: {}", error.what()));
  }
}

}  // namespace gpusim::cuda_api
