#include "host/ptx/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>
#include <thread>

#include "device_sim/base/error.h"
#include "device_sim/base/nearest_name.h"
#include "device_sim/core/backend_traits.h"
#include "device_sim/core/cta.h"
#include "device_sim/core/devices.h"
#include "host/ptx/check.h"
#include "host/ptx/device_launches.h"
#include "host/ptx/kernel_machine.h"
#include "host/ptx/memory.h"
#include "host/ptx/texture.h"
#include "translator/ptx/memory_map.h"
#include "translator/ptx/program.h"
#include "translator/ptx/translate.h"

namespace gpusim::ptx {

class LoadedModule {
 public:
  std::string origin;
  Program program;
  Pages variables, constants;
  std::vector<uint64_t> ranges;  // of memory that is theirs
  Places places;
  std::map<std::string, DeviceVariable, std::less<>> addresses;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels;
  uint32_t const_bytes = 0;
};

constexpr uint64_t kMostParamBytes = 32764;

struct Engine::State {
  State() {
    memory.add(params.address(), params.size_bytes(), kRead, {"parameters"});
    memory.add(workspace.address(), workspace.size_bytes(), kRead | kWrite, {"the grid's barrier"});
    TextureObjects::instance().add_to(memory);
  }

  EngineOptions options;
  ProcessMemory memory;
  Findings findings;
  Pages params{kMostParamBytes};  // of the launch that runs
  // What the CTAs of a cooperative grid share: cooperative groups keep a barrier in the second
  // word.
  Pages workspace{64};
  std::unique_ptr<WarpCaches> caches;  // if they are simulated
  std::unique_ptr<DeviceHeap> heap;
  std::unique_ptr<DeviceLaunches> device;  // once a kernel launches others
  uint64_t clock = 0;                      // of the device: no thread ran longer until now
  std::mutex mutex;
  std::vector<std::unique_ptr<LoadedModule>> modules;
  // Of a backend on devices, one for each. They let go of memory before that goes.
  std::vector<std::unique_ptr<LinearSpace>> spaces;
  std::vector<const Kernel*> on_device;  // that have machines there, the latest last

  LoadedModule& link(std::vector<Unit> units, std::string origin);
  void place_variables(LoadedModule& m);
  std::unique_ptr<Kernel> translate(LoadedModule& m, const Function& f) const;
  const Kernel* find(LoadedModule& m, std::string_view name);
  LaunchResult run(const Launch& launch);
  LaunchResult run_grid(const Launch& launch, uint32_t device_depth = 0);
  void run_device_work(const Launch& launch, LaunchResult& result);
  void launch_from_device(const Launch& first, LoadedModule& module, const DeviceWork& work,
                          LaunchResult& result);
  std::optional<Fault> move(const DeviceWork& work);
  void begin_devices();
  void enter_device(const Kernel& k);
  void leave_device();
  const char* why_one_device(const Launch& launch) const;
  DevicePlace place_of(size_t machine) const;
  void run_machines(const Kernel& k, size_t count, uint64_t most_clusters, Grid& grid) const;
};

namespace {

constexpr uint64_t kMostVariableBytes = uint64_t{1} << 36;
// Behind each variable of a program that is checked: who goes beyond one is not in the next.
constexpr uint64_t kVariableGap = 64;
constexpr uint64_t kStackFactor = 16, kMostStackBytes = uint64_t{1} << 22;
// As many as the largest of devices has; blocks take whole powers of two.
constexpr uint64_t kMostCooperativeThreads = uint64_t{1} << 19;
// Kernels whose machines stay on a device: each has registers and local memory of all threads that
// are resident there.
constexpr size_t kMostOnDevice = 8;

uint64_t align_up(uint64_t x, uint64_t to) { return (x + to - 1) / to * to; }

std::string text_of(const Dim3& d) { return fmt::format("{} x {} x {}", d.x, d.y, d.z); }

Dim3 cluster_of(const Launch& l) {
  const Kernel& k = *l.kernel;
  return l.cluster ? *l.cluster : k.info.cluster.value_or(Dim3{});
}

void check_cluster(const Launch& l) {
  const Kernel& k = *l.kernel;
  const auto& name = k.info.name;
  const Dim3 c = cluster_of(l);
  if (k.info.cluster && l.cluster && *l.cluster != *k.info.cluster)
    throw Error(
        fmt::format("kernel '{}' requires clusters of {} blocks (.reqnctapercluster), not "
                    "{}",
                    name, text_of(*k.info.cluster), text_of(*l.cluster)));
  if (k.info.needs_cluster && !l.cluster)
    throw Error(
        fmt::format("kernel '{}' is one of clusters (.explicitcluster): its launch has to "
                    "say their dimensions (cudaLaunchAttributeClusterDimension, --cluster)",
                    name));
  const uint32_t most = k.code.max_cluster_rank != 0
                            ? std::min(k.code.max_cluster_rank, kMostClusterCtas)
                            : kMostClusterCtas;
  if (c.count() == 0 || c.x > most || c.y > most || c.z > most || c.count() > most)
    throw Error(fmt::format("kernel '{}': clusters of {} blocks; at least 1, at most {}{}", name,
                            text_of(c), most,
                            k.code.max_cluster_rank != 0 ? " (.maxclusterrank)" : ""));
  if (l.grid.x % c.x != 0 || l.grid.y % c.y != 0 || l.grid.z % c.z != 0)
    throw Error(
        fmt::format("kernel '{}': a grid of {} blocks is not made of clusters of {}: each "
                    "dimension has to be a multiple",
                    name, text_of(l.grid), text_of(c)));
  if (c.count() > 1 &&
      k.code.dynamic_shared_offset + uint64_t{l.dynamic_shared_bytes} > kClusterCtaBytes)
    throw Error(
        fmt::format("kernel '{}': a block of a cluster has at most {} bytes of shared "
                    "memory",
                    name, kClusterCtaBytes));
}

void check_launch(const Launch& l) {
  if (l.kernel == nullptr) throw Error("launch: no kernel");
  const Kernel& k = *l.kernel;
  const auto& name = k.info.name;
  const uint64_t threads = l.block.count();
  if (threads == 0 || l.block.x > 1024 || l.block.y > 1024 || l.block.z > 64 || threads > 1024)
    throw Error(
        fmt::format("kernel '{}': a block of {} x {} x {} threads; at most 1024 in all, and "
                    "64 in z",
                    name, l.block.x, l.block.y, l.block.z));
  if (l.grid.x == 0 || l.grid.y == 0 || l.grid.z == 0 || l.grid.x > 0x7fffffff ||
      l.grid.y > 65535 || l.grid.z > 65535)
    throw Error(
        fmt::format("kernel '{}': a grid of {} x {} x {} blocks; at least 1, at most "
                    "2^31 - 1 in x and 65535 in y and z",
                    name, l.grid.x, l.grid.y, l.grid.z));
  if (threads > k.info.max_threads)
    throw Error(fmt::format("kernel '{}': {} threads per block; its .maxntid allows {}", name,
                            threads, k.info.max_threads));
  const uint32_t* wanted = k.code.required_threads;
  if (wanted[0] != 0 &&
      (wanted[0] != l.block.x || wanted[1] != l.block.y || wanted[2] != l.block.z))
    throw Error(fmt::format("kernel '{}' requires blocks of {} x {} x {} threads (.reqntid)", name,
                            wanted[0], wanted[1], wanted[2]));
  if (l.params.size() != k.info.param_bytes)
    throw Error(fmt::format("kernel '{}' takes {} bytes of parameters, not {}", name,
                            k.info.param_bytes, l.params.size()));
  if (l.params.size() > kMostParamBytes)
    throw Error(
        fmt::format("kernel '{}': more than {} bytes of parameters", name, kMostParamBytes));
  if (l.dynamic_shared_bytes > kMostCtaBytes - k.code.dynamic_shared_offset)
    throw Error(fmt::format("kernel '{}': {} bytes of shared memory are too many", name,
                            l.dynamic_shared_bytes));
  check_cluster(l);
  if (l.cooperative &&
      (l.grid.count() << cta_shift_of(static_cast<uint32_t>(threads))) > kMostCooperativeThreads)
    throw Error(
        fmt::format("kernel '{}': a cooperative grid of {} blocks of {} threads; all have to be "
                    "resident, and at most {} threads can be",
                    name, l.grid.count(), threads, kMostCooperativeThreads));
}

// The process's one text of that spelling: launches tell their counts without copying names.
std::string_view one_of(const std::string& spelling) {
  static std::mutex mutex;
  static auto* const all = new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  return *all->insert(spelling).first;
}

void add_counts(const Kernel& k, const std::vector<uint64_t>& counts, LaunchResult& result) {
  std::vector<uint64_t> sums(k.opcodes.size());
  for (size_t b = 0; b < counts.size(); ++b) {
    if (counts[b] == 0) continue;
    for (const Kernel::InBlock& i : k.in_block[b]) sums[i.opcode] += counts[b] * i.count;
    result.thread_instructions += counts[b] * k.code.instructions[b].size();
    for (size_t c = 0; c < kInsnClassCount; ++c)
      result.classes[c] += counts[b] * k.code.module.blocks[b].classes[c];
  }
  result.opcodes.reserve(sums.size());
  for (size_t o = 0; o < sums.size(); ++o)
    if (sums[o] != 0) result.opcodes.push_back({k.opcodes[o], sums[o]});
}

}  // namespace

const KernelInfo& info(const Kernel& kernel) { return kernel.info; }

void Kernel::count_opcodes() {
  std::map<std::string_view, uint32_t> numbers;
  for (const auto& block : code.instructions)
    for (const StaticInstruction& i : block) numbers.emplace(one_of(i.opcode), 0);
  for (auto& [opcode, number] : numbers) {
    number = static_cast<uint32_t>(opcodes.size());
    opcodes.push_back(opcode);
  }
  for (const auto& block : code.instructions) {
    std::map<uint32_t, uint32_t> here;
    for (const StaticInstruction& i : block) ++here[numbers.at(i.opcode)];
    std::vector<InBlock>& list = in_block.emplace_back();
    for (const auto& [opcode, count] : here) list.push_back({opcode, count});
  }
}

Engine::Engine(EngineOptions options) : state_(std::make_unique<State>()) {
  // What the backend lacks is told now, not at the first launch.
  options.backend =
      options.devices.empty()
          ? make_backend(options.backend, {.in_place = true, .warps = true})->name()
          : make_backend_on(options.backend, std::span(options.devices).first(1))->name();
  // Journals of several threads would need an order among them.
  if (options.checks.any() && options.has_profile)
    throw Error("--check and --profile do not go together: run twice");
  if (options.checks.any() || options.has_profile) options.threads = 1;
  if (options.caches && options.has_profile)
    state_->caches = std::make_unique<WarpCaches>(*options.caches);
  if (options.threads == 0) options.threads = std::max(1u, std::thread::hardware_concurrency());
  if (traits_of(options.backend).is_on_device) {
    if (options.checks.any() || options.has_profile)
      throw Error(fmt::format(
          "--check, --profile and --caches of kernels are not for backend {}; use simd or scalar",
          options.backend));
    options.threads = 1;  // of the host: a machine has a whole device
    state_->options = std::move(options);
    state_->begin_devices();
    return;
  }
  state_->options = std::move(options);
}
Engine::~Engine() { state_->leave_device(); }
const std::string& Engine::backend() const { return state_->options.backend; }

LoadedModule& Engine::load(std::string_view ptx, std::string_view origin) {
  return load(parse(ptx, std::string(origin)));
}

LoadedModule& Engine::load(Unit unit) {
  const std::lock_guard lock(state_->mutex);
  std::string origin = unit.origin;
  std::vector<Unit> units;
  units.push_back(std::move(unit));
  return state_->link(std::move(units), std::move(origin));
}

LoadedModule& Engine::link(std::vector<NamedText> texts) {
  const std::lock_guard lock(state_->mutex);
  std::vector<Unit> units;
  for (const NamedText& t : texts) units.push_back(parse(t.text, t.name));
  return state_->link(std::move(units), texts.empty() ? std::string() : texts.front().name);
}

LoadedModule& Engine::State::link(std::vector<Unit> units, std::string origin) {
  auto m = std::make_unique<LoadedModule>();
  m->origin = std::move(origin);
  m->program = link_units(std::move(units));
  for (const Function* k : m->program.kernels) m->kernels[k->name] = nullptr;
  place_variables(*m);
  modules.push_back(std::move(m));
  return *modules.back();
}

// Constants on pages of their own, which kernels cannot write.
void Engine::State::place_variables(LoadedModule& m) {
  uint64_t sizes[2] = {0, 0};
  std::map<std::string, uint64_t> offsets;
  for (const Variable& v : m.program.variables) {
    uint64_t& at = sizes[v.space == Space::kConst];
    at = align_up(at, std::max(v.align, 16u));
    offsets[v.name] = at;
    at += v.size + (options.checks.memory ? kVariableGap : 0);
    if (at > kMostVariableBytes)
      throw Error(fmt::format("{}: variables of more than 64 GiB", m.origin));
  }
  m.variables = Pages(sizes[0]);
  m.constants = Pages(sizes[1]);
  m.const_bytes = static_cast<uint32_t>(sizes[1]);
  if (sizes[1] != 0) m.places[kConstWindow] = {Space::kConst, m.constants.address(), sizes[1]};
  for (size_t k = 0; k < m.program.addressed.size(); ++k)
    m.places[m.program.addressed[k]] = {Space::kGlobal, kCodeBase + kCodeUnit * k};
  for (size_t k = 0; k < m.program.kernels.size(); ++k)
    m.places[m.program.kernels[k]->name] = {Space::kGlobal, kKernelBase + kKernelUnit * k};
  const auto pages_of = [&](const Variable& v) -> Pages& {
    return v.space == Space::kConst ? m.constants : m.variables;
  };
  for (const Variable& v : m.program.variables) {
    const uint64_t offset = offsets[v.name];
    m.places[v.name] = {v.space, pages_of(v).address() + offset};
    m.addresses[v.name] = {pages_of(v).data() + offset, v.size};
  }
  for (const Variable& v : m.program.variables) {
    uint8_t* const to = pages_of(v).data() + offsets[v.name];
    if (!v.bytes.empty()) std::memcpy(to, v.bytes.data(), v.bytes.size());
    for (const AddressPart& a : v.addresses) {
      const auto found = m.places.find(a.symbol);
      if (found == m.places.end())
        throw Error(
            fmt::format("{}:{}: '{}' is initialised with the address of '{}', which is no "
                        "variable or function of the module",
                        m.origin, v.line, v.name, a.symbol));
      const uint64_t address = found->second.address + static_cast<uint64_t>(a.addend);
      std::memcpy(to + a.offset, &address, sizeof address);
    }
  }
  if (!options.checks.memory) {
    memory.add(m.variables.address(), m.variables.size_bytes(), kRead | kWrite,
               {"variables of " + m.origin});
    memory.add(m.constants.address(), m.constants.size_bytes(), kRead,
               {"constants of " + m.origin});
    m.ranges = {m.variables.address(), m.constants.address()};
    return;
  }
  for (const Variable& v : m.program.variables) {
    const uint64_t address = pages_of(v).address() + offsets[v.name];
    memory.add(address, v.size, v.space == Space::kConst ? kRead : kRead | kWrite,
               {fmt::format("variable '{}'", readable(v.name)), "of " + m.origin});
    m.ranges.push_back(address);
  }
}

void Engine::unload(LoadedModule& module) {
  const std::lock_guard lock(state_->mutex);
  auto& list = state_->modules;
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& m) { return m.get() == &module; });
  if (found == list.end()) return;
  for (const uint64_t address : module.ranges) state_->memory.remove(address);
  for (const auto& [name, kernel] : module.kernels) std::erase(state_->on_device, kernel.get());
  list.erase(found);
}

std::vector<std::string> Engine::kernel_names(const LoadedModule& module) const {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : module.kernels) names.push_back(name);
  return names;
}

std::unique_ptr<Kernel> Engine::State::translate(LoadedModule& m, const Function& f) const {
  auto k = std::make_unique<Kernel>();
  k->module = &m;
  k->origin = m.origin;
  for (const Unit& u : m.program.units)
    if (std::any_of(u.functions.begin(), u.functions.end(),
                    [&](const Function& g) { return &g == &f; })) {
      k->files = u.files;
      k->origin = u.origin;
    }
  try {
    k->code = translate_kernel(f, m.program.functions, m.places, m.program.shared,
                               options.checks.any()  ? Notes::kChecks
                               : options.has_profile ? Notes::kSteps
                                                     : Notes::kNone);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: kernel '{}' cannot be run: {}", k->origin, f.name, e.what()));
  }
  k->count_opcodes();
  KernelInfo& i = k->info;
  i.name = f.name;
  i.params = k->code.params;
  i.param_bytes = k->code.param_bytes;
  i.static_shared_bytes = k->code.static_shared_bytes;
  i.local_bytes = k->code.local_bytes;
  i.const_bytes = m.const_bytes;
  i.registers = k->code.registers;
  const uint32_t* const cluster = k->code.cluster;
  if (cluster[0] != 0) i.cluster = Dim3{cluster[0], cluster[1], cluster[2]};
  i.needs_cluster = k->code.is_explicit_cluster && cluster[0] == 0;
  const uint32_t* most =
      k->code.max_threads[0] != 0 ? k->code.max_threads : k->code.required_threads;
  if (most[0] != 0) i.max_threads = std::min<uint32_t>(1024, most[0] * most[1] * most[2]);
  return k;
}

const Kernel* Engine::find_kernel(LoadedModule& module, std::string_view name) {
  const std::lock_guard lock(state_->mutex);
  return state_->find(module, name);
}

const Kernel* Engine::State::find(LoadedModule& m, std::string_view name) {
  const auto found = m.kernels.find(name);
  if (found == m.kernels.end()) return nullptr;
  if (!found->second)
    for (const Function* f : m.program.kernels)
      if (f->name == name) found->second = translate(m, *f);
  return found->second.get();
}

DeviceVariable Engine::find_variable(LoadedModule& module, std::string_view name) {
  const auto found = module.addresses.find(name);
  return found == module.addresses.end() ? DeviceVariable{} : found->second;
}

void Engine::add_memory(const void* address, uint64_t size_bytes, std::string name,
                        std::string origin, bool is_blank) {
  const std::lock_guard lock(state_->mutex);
  state_->memory.add(reinterpret_cast<uintptr_t>(address), size_bytes, kRead | kWrite,
                     {std::move(name), std::move(origin)},
                     is_blank && state_->options.checks.uninitialised);
}

void Engine::mark_written(const void* address, uint64_t size_bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->memory.mark_written(reinterpret_cast<uintptr_t>(address), size_bytes);
}

void Engine::copy_written(const void* to, const void* from, uint64_t size_bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->memory.copy_written(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from),
                              size_bytes);
}

void Engine::remove_memory(const void* address, const std::string& by) {
  const std::lock_guard lock(state_->mutex);
  state_->memory.remove(reinterpret_cast<uintptr_t>(address), by);
}

LaunchResult Engine::launch(const Launch& launch) {
  const std::lock_guard lock(state_->mutex);
  check_launch(launch);
  return state_->run(launch);
}

LaunchResult Engine::State::run(const Launch& launch) {
  if (device) device->begin();
  LaunchResult result = run_grid(launch);
  if (launch.kernel->code.has_launches && !result.fault) run_device_work(launch, result);
  return result;
}

// What grids left, and what that leaves, the next one on top.
void Engine::State::run_device_work(const Launch& launch, LaunchResult& result) {
  LoadedModule& module = *launch.kernel->module;
  std::vector<DeviceWork> open;
  const auto add = [&] {
    const std::vector<DeviceWork> more = device->take();
    open.insert(open.end(), more.rbegin(), more.rend());
  };
  add();
  while (!open.empty() && !result.fault) {
    const DeviceWork work = open.back();
    open.pop_back();
    if (work.kind == DeviceWork::Kind::kLaunch)
      launch_from_device(launch, module, work, result);
    else
      result.fault = move(work);
    add();
  }
}

// A kernel that launches itself again and again has the same counts most of the time: they are kept
// once.
static void share(const std::vector<DeviceLaunch>& before, DeviceLaunch& done) {
  constexpr size_t kNear = 8;
  const LaunchResult& r = *done.result;
  if (r.fault || !r.findings.empty() || r.profile) return;
  const auto is_alike = [&](const DeviceLaunch& other) {
    const LaunchResult& o = *other.result;
    return other.kernel == done.kernel && o.threads == r.threads &&
           o.thread_instructions == r.thread_instructions && o.classes == r.classes &&
           o.opcodes == r.opcodes && o.findings.empty() && !o.profile;
  };
  const auto end = before.rbegin() + static_cast<ptrdiff_t>(std::min(kNear, before.size()));
  const auto found = std::find_if(before.rbegin(), end, is_alike);
  if (found != end) done.result = found->result;
}

void Engine::State::launch_from_device(const Launch& first, LoadedModule& module,
                                       const DeviceWork& work, LaunchResult& result) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::byte> arguments(
      reinterpret_cast<const std::byte*>(work.params),
      reinterpret_cast<const std::byte*>(work.params) + work.param_bytes);
  const Launch launch{.kernel = find(module, work.kernel->name),
                      .grid = work.grid,
                      .block = work.block,
                      .dynamic_shared_bytes = work.shared_bytes,
                      .params = arguments,
                      .stack_bytes = first.stack_bytes,
                      .heap_bytes = first.heap_bytes};
  check_launch(launch);
  DeviceLaunch done{.kernel = work.kernel->name,
                    .grid = work.grid,
                    .block = work.block,
                    .dynamic_shared_bytes = work.shared_bytes,
                    .result = std::make_shared<LaunchResult>(run_grid(launch, work.depth))};
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.fault = done.result->fault;
  share(result.device_launches, done);
  result.device_launches.push_back(std::move(done));
}

std::optional<Fault> Engine::State::move(const DeviceWork& work) {
  const bool is_copy = work.kind == DeviceWork::Kind::kCopy;
  if (work.size_bytes == 0) return std::nullopt;
  // Empty: nothing is.
  const auto what_is_wrong = [&](uint64_t address, uint8_t right) -> std::string {
    const ProcessMemory::Found found = memory.find(address);
    if (address >= kLocalWindowBase || (address >= kCtaBase && address - kCtaBase < kMostCtaBytes))
      return "local and shared memory end with their threads";
    if (found.begin == found.end || (found.flags & right) == 0) return memory.describe(address);
    if (work.size_bytes <= found.end - address) return {};
    return fmt::format("only {} bytes are there, in {}", found.end - address, memory.name(address));
  };
  for (const bool is_target : {true, false}) {
    const uint64_t address = is_target || !is_copy ? work.to : work.from;
    const std::string why = what_is_wrong(address, is_target ? kWrite : kRead);
    if (why.empty()) continue;
    return Fault{.reason = Fault::Reason::kAddress,
                 .address = address,
                 .text = fmt::format("a kernel's {} of {} bytes at {:#x}: {}",
                                     is_copy ? "cudaMemcpyAsync" : "cudaMemsetAsync",
                                     work.size_bytes, address, why)};
  }
  auto* const to = reinterpret_cast<uint8_t*>(work.to);
  if (is_copy)
    std::memmove(to, reinterpret_cast<const uint8_t*>(work.from), work.size_bytes);
  else
    std::memset(to, static_cast<int>(work.from & 0xff), work.size_bytes);
  if (is_copy)
    memory.copy_written(work.to, work.from, work.size_bytes);
  else
    memory.mark_written(work.to, work.size_bytes);
  return std::nullopt;
}

void Engine::leave_device() {
  const std::lock_guard lock(state_->mutex);
  state_->leave_device();
}

void Engine::State::leave_device() {
  if (spaces.empty()) return;
  for (const auto& m : modules)
    for (const auto& [name, kernel] : m->kernels)
      if (kernel) kernel->machines.clear();
  on_device.clear();
  memory.leave_spaces();
  while (!spaces.empty()) spaces.pop_back();
}

void Engine::State::begin_devices() {
  MachineConfig zone;
  memory.configure(zone);
  std::vector<LinearSpace*> all;
  for (size_t k = 0; k < std::max<size_t>(options.devices.size(), 1); ++k) {
    spaces.push_back(
        make_linear_space(options.backend, {.storage = zone.linear_storage,
                                            .base = zone.linear_base,
                                            .size_bytes = zone.linear_size,
                                            .way = k == 0 ? "auto" : name_of(spaces.front()->way()),
                                            .device = place_of(k).number,
                                            .asks_driver = k == 0,
                                            .textures = TextureObjects::instance().address()}));
    all.push_back(spaces.back().get());
  }
  memory.use(std::move(all));
}

DevicePlace Engine::State::place_of(size_t machine) const {
  DevicePlace place;
  if (machine < spaces.size()) place.space = spaces[machine].get();
  if (machine < options.devices.size()) place.number = options.devices[machine];
  return place;
}

// Blocks on several devices work on the same memory, the host's, so most kernels do not notice.
const char* Engine::State::why_one_device(const Launch& launch) const {
  if (spaces.size() < 2) return nullptr;
  const KernelCode& code = launch.kernel->code;
  if (launch.cooperative) return "it is cooperative: all of its blocks wait for each other";
  if (code.has_launches) return "it launches kernels";
  if (code.has_heap) return "it calls malloc or free";
  if (code.has_wide_global_atomics)
    return "it has atomic operations of 16 bytes on global memory, which a device makes for itself";
  if (code.has_global_atomics && !std::all_of(spaces.begin(), spaces.end(), [](const auto& s) {
        return s->has_shared_atomics();
      }))
    return "it has atomic operations on global memory, and the GPUs have none on the host's memory "
           "that are one for all of them";
  return nullptr;
}

void Engine::State::enter_device(const Kernel& k) {
  if (spaces.empty())
    throw Error(fmt::format("the program is ending, and so has backend {}", options.backend));
  // Calls of the host that kernels make work on its memory while they run.
  if (std::any_of(spaces.begin(), spaces.end(),
                  [](const auto& s) { return s->way() == LinearSpace::Way::kCopied; }))
    throw Error(
        fmt::format("backend {} runs kernels only where the driver lets the GPU reach the "
                    "host's memory; use simd or scalar",
                    options.backend));
  std::erase(on_device, &k);
  on_device.push_back(&k);
  if (on_device.size() <= kMostOnDevice) return;
  on_device.front()->machines.clear();
  on_device.erase(on_device.begin());
}

// Those of devices on this thread: while the host serves what one of them did, the others run.
void Engine::State::run_machines(const Kernel& k, size_t count, uint64_t most_clusters,
                                 Grid& grid) const {
  const std::span all(k.machines.data(), count);
  if (!spaces.empty()) {
    try {
      for (const auto& m : all) m->begin(grid, most_clusters);
      for (;;) {
        std::vector<KernelMachine*> busy;
        for (const auto& m : all)
          if (m->is_busy(grid)) busy.push_back(m.get());
        if (busy.empty()) break;
        for (KernelMachine* const m : busy) m->begin_slice();
        for (KernelMachine* const m : busy) m->end_slice(grid);
      }
      for (const auto& m : all) m->end(grid);
    } catch (...) {
      k.machines.clear();  // some have a slice that nobody waited for
      throw;
    }
    return;
  }
  std::vector<std::exception_ptr> failures(count);
  const auto work = [&](size_t m) {
    try {
      all[m]->begin(grid, ~uint64_t{0} / grid.cluster.count());
      while (all[m]->is_busy(grid)) {
        all[m]->begin_slice();
        all[m]->end_slice(grid);
      }
      all[m]->end(grid);
    } catch (...) {
      failures[m] = std::current_exception();
      grid.stops = true;
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t m = 1; m < count; ++m) others.emplace_back(work, m);
    work(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

LaunchResult Engine::State::run_grid(const Launch& launch, uint32_t device_depth) {
  const Kernel& k = *launch.kernel;
  if (traits_of(options.backend).is_on_device) enter_device(k);
  if (k.code.has_launches && device == nullptr) device = std::make_unique<DeviceLaunches>(memory);
  if (!launch.params.empty())
    std::memcpy(params.data(), launch.params.data(), launch.params.size());
  if (k.code.has_heap && heap == nullptr) {
    heap = std::make_unique<DeviceHeap>(launch.heap_bytes);
    memory.add(heap->address(), heap->size_bytes(), kRead | kWrite, {kHeapName});
  }
  // Here frames keep whole registers of 64 bits, and all that are live.
  StackBytes stack;
  if (k.code.has_stack) stack.frames = std::min(launch.stack_bytes * kStackFactor, kMostStackBytes);
  if (k.code.has_alloca)
    stack.allocas = std::min(launch.stack_bytes, kMostStackBytes) & ~uint64_t{15};
  std::memset(workspace.data(), 0, workspace.size_bytes());
  Grid grid{.launch = launch,
            .param_address = params.address(),
            .cluster = cluster_of(launch),
            .has_clusters = launch.cluster || k.info.cluster,
            .heap = heap.get(),
            .clock = clock,
            .workspace_address = launch.cooperative ? workspace.address() : 0,
            .findings = &findings,
            .device = device.get(),
            .device_depth = device_depth,
            .kernels = k.module->program.kernels,
            .mutex = {},
            .fault = {},
            .printed = {}};
  const uint64_t ctas = launch.grid.count();
  const uint32_t shared = launch.dynamic_shared_bytes != 0
                              ? k.code.dynamic_shared_offset + launch.dynamic_shared_bytes
                              : k.code.static_shared_bytes + kReservedSharedBytes;
  const uint64_t clusters = ctas / grid.cluster.count();
  const char* const why_one = why_one_device(launch);
  const size_t most_machines = spaces.empty() ? options.threads : why_one ? 1 : spaces.size();
  const size_t machines = std::min<uint64_t>(most_machines, clusters);
  const uint64_t most_clusters = (clusters + machines - 1) / machines;
  const uint64_t share = most_clusters * grid.cluster.count();
  const auto fits = [&](const auto& m) {
    return m->fits(launch.block, grid.cluster, shared, share, launch.cooperative, stack);
  };
  if (!std::all_of(k.machines.begin(), k.machines.end(), fits)) k.machines.clear();
  while (k.machines.size() < machines)
    k.machines.push_back(std::make_unique<KernelMachine>(
        k.code, k.origin, k.files, memory, options, place_of(k.machines.size()), launch.block,
        grid.cluster, shared, share, launch.cooperative, stack, caches.get()));
  std::vector<std::vector<uint64_t>> before;
  for (size_t m = 0; m < machines; ++m) before.push_back(k.machines[m]->block_counts());
  run_machines(k, machines, most_clusters, grid);
  LaunchResult result;
  if (spaces.size() > 1) result.devices = static_cast<uint32_t>(machines);
  if (clusters > 1) result.why_one_device = why_one;
  result.threads = ctas * launch.block.count();
  std::vector<uint64_t> counts(k.code.module.blocks.size());
  for (size_t m = 0; m < machines; ++m) {
    const std::vector<uint64_t> after = k.machines[m]->block_counts();
    for (size_t b = 0; b < counts.size(); ++b) counts[b] += after[b] - before[m][b];
  }
  add_counts(k, counts, result);
  clock = std::max(clock + result.thread_instructions, grid.latest_clock);
  std::stable_sort(grid.printed.begin(), grid.printed.end(),
                   [](const Printed& x, const Printed& y) { return x.cta < y.cta; });
  for (const Printed& p : grid.printed) std::fwrite(p.text.data(), 1, p.text.size(), stdout);
  if (!grid.printed.empty()) std::fflush(stdout);
  result.fault = std::move(grid.fault);
  result.findings = findings.take();
  if (options.has_profile) result.profile = k.machines.front()->profile(counts);
  return result;
}

}  // namespace gpusim::ptx
