#include "device_sim/cuda/cuda_backend.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <numeric>

#include "device_sim/core/check_ctas.h"
#include "device_sim/core/order.h"
#include "device_sim/core/sleepers.h"
#include "device_sim/cuda/contexts.cuh"
#include "device_sim/cuda/device_machine.h"
#include "device_sim/cuda/device_memory.cuh"
#include "device_sim/cuda/kernel.cuh"
#include "device_sim/cuda/launch.cuh"
#include "device_sim/cuda/meetings.h"
#include "device_sim/cuda/region_compiler.h"
#include "device_sim/cuda/regions.h"

namespace gpusim::cuda {
namespace {

// --- what Thrust and CUB call on the device

struct IsAwake {
  const CoreState* states;
  MemoryView memory;
  uint32_t slice;
  __device__ bool operator()(uint32_t core) const {
    const CoreState& s = states[core];
    return s.status == CoreStatus::kRunnable && !sleeps(memory, s, slice);
  }
};
// Whether a core looks for an event that has not come.
struct LooksInVain {
  const CoreState* states;
  MemoryView memory;
  uint8_t* out;
  __device__ void operator()(uint32_t core) const {
    const CoreState& s = states[core];
    out[core] = s.waits && !s.watch.has_event(memory);
  }
};
struct RowBegin {
  size_t length;
  __host__ __device__ size_t operator()(size_t row) const { return row * length; }
};
struct SumRow {
  const unsigned long long* values;
  size_t length;
  unsigned long long* sums;
  __device__ void operator()(size_t row) const {
    unsigned long long sum = 0;
    for (size_t i = row * length; i < (row + 1) * length; ++i) sum += values[i];
    sums[row] = sum;
  }
};
struct InstructionsOf {
  __host__ __device__ unsigned long long operator()(const CoreState& s) const {
    return s.instructions;
  }
};
// Where the cores of an order are, as a key that brings neighbours in the program together.
struct ReadPlace {
  const uint32_t* order;
  const CoreState* states;
  const uint32_t* rank;
  uint32_t* keys;
  __device__ void operator()(uint32_t i) const { keys[i] = rank[states[order[i]].pc]; }
};
// A change of a core's state that the host made between slices.
struct StateWrite {
  uint32_t core;
  uint32_t pc;
  CoreStatus status;
};
__device__ inline void set_state(CoreState& s, uint32_t pc, CoreStatus status) {
  s.pc = pc;
  s.status = status;
  s.waits = false;
  s.passed = 0;
}
struct ApplyStateWrite {
  const StateWrite* writes;
  CoreState* states;
  __device__ void operator()(uint32_t i) const {
    set_state(states[writes[i].core], writes[i].pc, writes[i].status);
  }
};
struct StartCore {
  CoreState* states;
  uint32_t pc;
  __device__ void operator()(uint32_t core) const {
    set_state(states[core], pc, CoreStatus::kRunnable);
  }
};
// Whether cores of an order stand where no region is entered.
struct NoteOutside {
  const uint32_t* order;
  const CoreState* states;
  const uint8_t* region_at;
  uint32_t* are_outside;
  __device__ void operator()(uint32_t i) const {
    if (region_at[states[order[i]].pc] == 0) atomicOr(are_outside, 1u);
  }
};
// What the host wants to know of a core that stopped.
struct Stop {
  CoreState state;
  StopRecord record;
};
struct GatherStop {
  const uint32_t* cores;
  const CoreState* states;
  const StopRecord* records;
  Stop* to;
  __device__ void operator()(uint32_t i) const { to[i] = {states[cores[i]], records[cores[i]]}; }
};

std::string hexadecimal(std::span<const char> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

template <class F>
void for_each(uint32_t count, F f) {
  thrust::for_each_n(thrust::device, thrust::counting_iterator<uint32_t>(0), count, f);
}

class CudaBackend final : public DeviceMachine, public Sleepers, private Meetings::Cores {
 public:
  explicit CudaBackend(uint32_t device) : device_(static_cast<int>(device)) {
    select();
    check(cudaGetDeviceProperties(&properties_, device_), "asking for the device's properties");
  }
  void select() override { check(cudaSetDevice(device_), "choosing a device"); }
  std::string name() const override { return "cuda"; }
  std::string device() const override { return properties_.name; }

  void compile_regions(CompiledRegions wanted) override { wanted_regions_ = wanted; }
  void use(LinearSpace& space) override { space_ = static_cast<CudaLinearSpace*>(&space); }
  void configure(const Module& module, const MachineConfig& config) override;
  void reset(uint64_t max_instructions) override;
  void module_changed() override;

  bool read_memory(uint32_t core, uint64_t address, std::span<uint8_t> out) override {
    return memory_.read(core, address, out);
  }
  bool write_memory(uint32_t core, uint64_t address, std::span<const uint8_t> in) override {
    return memory_.write(core, address, in);
  }
  bool write_memory_all(uint64_t address, std::span<const uint8_t> in) override {
    return memory_.write_all(address, in);
  }
  bool write_windows(uint64_t address, std::span<const CoreWord> words) override {
    return memory_.write_windows(address, words);
  }
  bool fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes) override {
    return memory_.fill_zero(core, address, size_bytes);
  }
  bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes,
                       uint8_t flags) override {
    return memory_.set_permissions(core, address, size_bytes, flags);
  }
  bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) override {
    return memory_.set_permissions_all(address, size_bytes, flags);
  }
  uint8_t permissions(uint32_t core, uint64_t address) override {
    return memory_.permissions(core, address);
  }

  uint64_t slot(uint32_t core, Slot slot) override { return contexts_.get(core, slot); }
  void set_slot(uint32_t core, Slot slot, uint64_t value) override {
    contexts_.set(core, slot, value);
  }
  void set_slots(Slot slot, CoreWord value) override { contexts_.fill(slot, value); }
  void start(uint32_t core, uint32_t uop) override {
    has_warps() ? meetings_.start(core, uop) : run_from(core, uop);
  }
  void start_all(uint32_t uop) override;
  void stop(uint32_t core) override { has_warps() ? meetings_.stop(core) : halt(core); }
  void start_cta(uint32_t place, uint32_t uop) override { meetings_.start_cta(place, uop); }
  void set_cta_slots(uint32_t place, Slot slot, CoreWord value) override {
    for (uint32_t thread = 0; thread < config_.cta_threads; ++thread)
      contexts_.set((place << meetings_.shift()) + thread, slot, value.of(thread));
  }
  std::span<uint8_t> cta_memory(uint32_t place) override { return memory_.cta_memory(place); }
  uint32_t place(uint32_t core) override { return host_states()[core].pc; }
  void begin_slice(uint64_t instructions) override;
  bool slice_is_done() override;
  std::span<const Event> end_slice() override;
  uint32_t runnable() const override { return runnable_; }
  void find_sleepers(std::span<uint8_t> out) override;
  std::vector<uint64_t> block_counts() override;
  CoreTally tally(uint32_t core) override;
  CoreTally tally_of_all() override;
  std::span<const uint64_t> journal(uint32_t core) override { return memory_.journal(core); }
  void clear_journals() override { memory_.clear_journals(); }

  // MachineState. Waiting cores look again; what a GPU's threads do meanwhile repeats in no run.
  uint64_t instructions() override;
  std::vector<CoreSnapshot> cores() override;
  std::vector<uint8_t> scheduling() override { return {}; }
  void set_cores(std::span<const CoreSnapshot> cores, std::span<const uint8_t>) override;
  void slots(Slot slot, std::span<uint64_t> values) override { contexts_.get_row(slot, values); }
  void set_all_slots(Slot slot, std::span<const uint64_t> values) override {
    contexts_.set_row(slot, values);
  }
  void set_block_counts(std::span<const uint64_t> counts, std::span<const uint64_t>) override {
    earlier_counts_.assign(counts.begin(), counts.end());
    block_counts_.zero();
  }
  void visit_linear(const Visitor& visit) override { memory_.visit_linear(visit); }
  void visit_windows(const Visitor& visit) override { memory_.visit_windows(visit); }
  bool put_linear(uint64_t number, std::span<const uint8_t> bytes) override {
    return memory_.put_linear(number, bytes);
  }
  bool put_windows(uint64_t number, std::span<const uint8_t> bytes) override {
    return memory_.put_windows(number, bytes);
  }
  uint32_t signalled_events() override { return memory_.signalled_events(); }
  void set_signalled_events(uint32_t count) override { memory_.set_signalled_events(count); }

 private:
  bool has_warps() const { return module_->warp_size != 0; }
  // Meetings::Cores.
  void run_from(uint32_t core, uint32_t uop) override {
    set_status(core, uop, CoreStatus::kRunnable);
  }
  void halt(uint32_t core) override {
    if (is_runnable_[core]) set_status(core, 0, CoreStatus::kIdle);
  }
  // Sends the warps that run in the next slice. Returns how many.
  uint32_t choose_warps();
  void upload_code();
  // The kernel that has all micro-ops of the module, and the size of its blocks.
  void choose_kernel();
  void choose_block_sizes();
  // Threads per block so that most contexts are on the chip at once.
  uint32_t block_size(const Kernel& kernel, size_t context_bytes) const;
  bool has_vectors() const;
  // Compiled regions (regions.h): looks for some now and then, and takes those that are ready.
  static constexpr uint64_t kFirstLooks = 8;  // of which slices are short
  static constexpr uint64_t kShortSlice = 1 << 14;
  void look_for_regions();
  void try_regions();
  void use_compiled();
  void drop_regions();
  // A slice by regions_alone_. It must be followed by one of the interpreter if a core left its
  // region: that may have done nothing where it was entered.
  bool all_stand_in_regions(uint32_t count);
  void note_who_left(uint32_t late, uint32_t soon);
  void set_status(uint32_t core, uint32_t uop, CoreStatus status);
  // Sends what the host changed of cores' states since the last slice.
  void send_states();
  // Fills order_ with the cores that are awake, those at the same place together. Returns how many.
  uint32_t regroup();
  Launch describe_launch(uint32_t count, uint64_t instructions);
  uint32_t threads_for(uint32_t count, uint32_t most) const;
  void collect_events();
  const std::vector<CoreState>& host_states();
  const std::vector<unsigned long long>& host_classes();
  // Of each of so many rows, of equal length, that lie one after the other.
  std::vector<unsigned long long> sums_of_rows(const DeviceArray<unsigned long long>& array,
                                               size_t rows);
  template <class F>
  void with_scratch(F f) {  // CUB's two-step calls
    size_t bytes = 0;
    check(f(nullptr, bytes), "sizing scratch memory");
    scratch_.reserve(bytes, "scratch memory");
    check(f(scratch_.data(), bytes), "running a device algorithm");
  }

  int device_;
  cudaDeviceProp properties_{};
  const Module* module_ = nullptr;
  MachineConfig config_;
  CudaLinearSpace* space_ = nullptr;
  Kernel kernel_{};
  CompiledRegions wanted_regions_ = CompiledRegions::kAuto;
  std::unique_ptr<RegionCompiler> compiler_;
  std::vector<CodeRegion> regions_;     // that are in use or being compiled
  bool is_compiling_ = false;
  uint64_t looked_after_ = 0;       // slices since the module changed
  DeviceArray<uint8_t> region_at_;  // of those in use
  const void* region_code_ = nullptr;
  int32_t region_margin_ = 0;
  uint32_t most_threads_ = 0;  // per block of kernel_
  // The kernel of regions without the interpreter, or null; of its slices: the cores of the last
  // one, 0 if that was another; how many others come first; how many came before the one before.
  Kernel regions_alone_{};
  uint32_t most_threads_alone_ = 0;
  uint32_t ran_alone_ = 0, pause_ = 0, last_pause_ = 0;
  DeviceMemory memory_;
  Contexts contexts_;
  ReconvergenceOrder reconvergence_;
  // Of modules with warps.
  Meetings meetings_;
  DeviceArray<WarpStart> warps_;
  std::vector<Meetings::Came> came_;  // in the last slice
  DeviceArray<Uop> uops_;
  DeviceArray<uint32_t> uop_at_, rank_;
  DeviceArray<BlockInfo> blocks_;
  DeviceArray<CoreState> states_;
  DeviceArray<StopRecord> records_;
  DeviceArray<uint32_t> order_, order_sorted_, keys_, keys_sorted_, stopped_, stopped_sorted_;
  DeviceArray<uint32_t> counters_;
  DeviceArray<unsigned long long> block_counts_, core_classes_;  // core_classes_: [class][core]
  DeviceArray<unsigned long long> sums_;
  DeviceArray<Stop> stops_;
  DeviceArray<uint8_t> waits_;  // of find_sleepers()
  DeviceArray<StateWrite> sent_states_;
  DeviceArray<uint8_t> scratch_;
  std::vector<uint64_t> earlier_counts_;  // block counts from before the module changed

  std::vector<StateWrite> state_writes_;
  std::vector<bool> is_runnable_;
  uint32_t runnable_ = 0;
  uint32_t slice_ = 0;
  bool is_running_ = false;  // a slice
  std::vector<Event> events_;
  // Copies of what is on the device, if they are up to date.
  std::vector<CoreState> host_states_;
  std::vector<unsigned long long> host_classes_;
  bool states_are_here_ = false, classes_are_here_ = false;
};

BlockInfo make_block_info(const Module& module, const Block& block) {
  BlockInfo info{block.insn_count, 0, {}};
  for (uint32_t i = 0; i < block.uop_count; ++i) {
    const Shape shape = op_info(module.uops[block.first_uop + i].op).shape;
    info.polls += shape == Shape::kAmo || shape == Shape::kCas || shape == Shape::kCas128 ||
                  shape == Shape::kStx || shape == Shape::kStx128 || shape == Shape::kFence;
  }
  for (size_t c = 0; c < kInsnClassCount; ++c) info.classes[c] = block.classes[c];
  return info;
}

void CudaBackend::configure(const Module& module, const MachineConfig& config) {
  check_ctas(module, config);
  if (config.linear_storage && !space_)
    throw std::logic_error("a caller's memory reaches a GPU by way of a LinearSpace");
  module_ = &module;
  config_ = config;
  memory_.configure(config, config.linear_storage ? space_ : nullptr);
  const uint32_t cores = config.cores;
  contexts_.configure(module.slot_count, cores);
  states_ = DeviceArray<CoreState>(cores, "core states");
  records_ = DeviceArray<StopRecord>(cores, "stop records");
  records_.zero();  // a core that stops writes what belongs to its reason; all is copied
  for (auto* array : {&order_, &order_sorted_, &keys_, &keys_sorted_, &stopped_, &stopped_sorted_})
    *array = DeviceArray<uint32_t>(cores, "scheduling");
  counters_ = DeviceArray<uint32_t>(3, "counters");  // cores that stopped; Launch::left_regions
  core_classes_ = {};
  if (config.per_core_tallies)
    core_classes_ = DeviceArray<unsigned long long>(size_t{kInsnClassCount} * cores, "tallies");
  earlier_counts_.assign(module.blocks.size(), 0);
  reconvergence_.compute(module);
  drop_regions();
  kernel_ = {};
  compiler_ = make_region_compiler(wanted_regions_);
  upload_code();
  choose_kernel();
  if (has_warps()) {
    meetings_.configure(module, config, *this);
    warps_ = DeviceArray<WarpStart>(cores / kWarpLanes, "warps");
  }
  reset(config.max_instructions);
}

void CudaBackend::reset(uint64_t max_instructions) {
  config_.max_instructions = max_instructions;
  contexts_.reset(module_->initial_values);
  states_.upload(std::vector<CoreState>(config_.cores));
  core_classes_.zero();
  is_runnable_.assign(config_.cores, false);
  runnable_ = 0;
  state_writes_.clear();
  states_are_here_ = classes_are_here_ = false;
  came_.clear();
  if (has_warps()) meetings_.reset();
}

void CudaBackend::upload_code() {
  std::vector<Uop> uops = module_->uops;
  uops.push_back(Uop{.op = Op::trap});  // a thread fetches one micro-op ahead
  uops_ = to_device(uops, "micro-ops");
  uop_at_ = to_device(module_->code.uop_at, "the code map");
  rank_ = to_device(reconvergence_.rank(), "the order of micro-ops");
  std::vector<BlockInfo> blocks;
  for (const Block& b : module_->blocks) blocks.push_back(make_block_info(*module_, b));
  blocks_ = to_device(blocks, "blocks");
  block_counts_ = DeviceArray<unsigned long long>(blocks.size() * kCounterCopies, "block counts");
  block_counts_.zero();
}

void CudaBackend::module_changed() {
  drop_regions();
  earlier_counts_ = block_counts();
  earlier_counts_.resize(module_->blocks.size());
  reconvergence_.extend(*module_);
  upload_code();
  choose_kernel();
}

bool CudaBackend::has_vectors() const {
  return std::ranges::any_of(
      module_->uops, [](const Uop& u) { return op_info(u.op).shape == Shape::kVector; });
}

void CudaBackend::choose_kernel() {
  if (has_warps())
    kernel_ = config_.linear_storage ? kernel_of_warps_in_place() : kernel_of_warps();
  else if (config_.linear_storage)
    kernel_ = has_vectors() ? kernel_in_place_with_vectors() : kernel_in_place_without_vectors();
  else
    kernel_ = has_vectors() ? kernel_with_vectors() : kernel_without_vectors();
  choose_block_sizes();
}

void CudaBackend::drop_regions() {
  regions_.clear();
  is_compiling_ = false;
  looked_after_ = 0;
  region_at_ = {};
  region_code_ = nullptr;
  regions_alone_ = {};
  pause_ = last_pause_ = 0;
}

// Regions know nothing of warps.
void CudaBackend::look_for_regions() {
  if (!compiler_ || has_warps()) return;
  try {
    try_regions();
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "gpusim: hot code is interpreted, not compiled: %s\n", error.what());
    drop_regions();
    choose_kernel();
    compiler_.reset();  // and with it what it compiled
  }
}

void CudaBackend::use_compiled() {
  if (!is_compiling_) return;
  const auto code = compiler_->take();
  if (!code) return;
  is_compiling_ = !code->is_all;
  region_at_ = to_device(region_entries(*module_, regions_), "places of regions");
  region_code_ = code->region_code;
  region_margin_ = static_cast<int32_t>(longest_way(*module_, regions_));
  regions_alone_ = code->alone;
  choose_kernel();
  if (code->beside.entry) kernel_ = code->beside;
  choose_block_sizes();
}

void CudaBackend::try_regions() {
  use_compiled();
  // After 2, 8, 32 ... slices: what is hot changes, and less and less often.
  ++looked_after_;
  const RegionExtent extent = compiler_->extent();
  const bool all = extent != RegionExtent::kHot;
  const bool is_time =
      std::has_single_bit(looked_after_) && std::countr_zero(looked_after_) % 2 != 0;
  if (all ? looked_after_ != 1 : !is_time) return;
  // All: as if some blocks were far more frequent, for tests.
  std::vector<uint64_t> counts(all ? module_->blocks.size() : 0);
  for (size_t b = 0; b < counts.size(); ++b) counts[b] = b % 3 == 0 ? 1 : 40;
  if (!all) counts = block_counts();
  RegionLimits limits;
  if (all) limits.hot_part = ~uint64_t{0};
  if (extent == RegionExtent::kAll) {
    limits.most_micro_ops = ~size_t{0};
    limits.with_straight_code = true;
  }
  std::vector<CodeRegion> regions = choose_regions(*module_, counts, limits);
  if (regions.empty() || regions == regions_) return;
  regions_ = std::move(regions);
  compiler_->begin(text_of(*module_, regions_), has_vectors(), config_.linear_storage != nullptr);
  is_compiling_ = true;
  if (all) use_compiled();
}

void CudaBackend::choose_block_sizes() {
  most_threads_ = block_size(kernel_, size_t{module_->slot_count} * sizeof(uint64_t));
  if (regions_alone_.entry) most_threads_alone_ = block_size(regions_alone_, 0);
}

uint32_t CudaBackend::block_size(const Kernel& kernel, size_t context_bytes) const {
  const size_t most_bytes = properties_.sharedMemPerBlockOptin;
  if (context_bytes * kWarpSize > most_bytes)
    throw std::runtime_error("a context of this program does not fit the GPU's shared memory");
  if (context_bytes != 0)
    check(cudaFuncSetAttribute(kernel.entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(most_bytes)),
          "reserving shared memory");
  uint32_t most_resident = 0, best = kWarpSize;
  for (uint32_t threads = kWarpSize; threads <= kernel.max_threads; threads += kWarpSize) {
    if (context_bytes * threads > most_bytes) break;
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.entry,
                                                        static_cast<int>(threads),
                                                        context_bytes * threads),
          "asking how many threads fit");
    const uint32_t resident = static_cast<uint32_t>(blocks) * threads;
    if (resident < most_resident) continue;
    most_resident = resident;
    best = threads;
  }
  return best;
}

void CudaBackend::set_status(uint32_t core, uint32_t uop, CoreStatus status) {
  state_writes_.push_back({core, uop, status});
  const bool now = status == CoreStatus::kRunnable;
  runnable_ += now;
  runnable_ -= is_runnable_[core];
  is_runnable_[core] = now;
}

void CudaBackend::start_all(uint32_t uop) {
  if (has_warps()) {
    for (uint32_t core = 0; core < config_.cores; ++core) start(core, uop);
    return;
  }
  state_writes_.clear();
  for_each(config_.cores, StartCore{states_.data(), uop});
  is_runnable_.assign(config_.cores, true);
  runnable_ = config_.cores;
  states_are_here_ = false;
}

void CudaBackend::send_states() {
  if (state_writes_.empty()) return;
  // The last write to a core counts.
  const auto by_core = [](const StateWrite& x, const StateWrite& y) { return x.core < y.core; };
  if (!std::is_sorted(state_writes_.begin(), state_writes_.end(), by_core))
    std::stable_sort(state_writes_.begin(), state_writes_.end(), by_core);
  size_t count = 0;
  for (const StateWrite& w : state_writes_) {
    count += count == 0 || state_writes_[count - 1].core != w.core;
    state_writes_[count - 1] = w;
  }
  state_writes_.resize(count);
  sent_states_.reserve(count, "core states on their way");
  sent_states_.upload(state_writes_);
  for_each(static_cast<uint32_t>(count), ApplyStateWrite{sent_states_.data(), states_.data()});
  state_writes_.clear();
  states_are_here_ = false;
}

const std::vector<CoreState>& CudaBackend::host_states() {
  send_states();
  if (!states_are_here_) {
    host_states_.resize(config_.cores);
    states_.download(host_states_);
    states_are_here_ = true;
  }
  return host_states_;
}

const std::vector<unsigned long long>& CudaBackend::host_classes() {
  if (!classes_are_here_) {
    host_classes_.resize(core_classes_.size());
    core_classes_.download(host_classes_);
    classes_are_here_ = true;
  }
  return host_classes_;
}

uint32_t CudaBackend::regroup() {
  const thrust::counting_iterator<uint32_t> all(0);
  const auto cores = static_cast<int>(config_.cores);
  const MemoryView& view = memory_.view();
  with_scratch([&](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::If(scratch, bytes, all, order_.data(), counters_.data(), cores,
                                 IsAwake{states_.data(), view, slice_});
  });
  uint32_t count = 0;
  counters_.download(std::span(&count, 1));
  if (count <= kWarpSize) return count;
  for_each(count, ReadPlace{order_.data(), states_.data(), rank_.data(), keys_.data()});
  with_scratch([&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys_.data(), keys_sorted_.data(),
                                           order_.data(), order_sorted_.data(),
                                           static_cast<int>(count));
  });
  std::swap(order_, order_sorted_);
  return count;
}

// A warp of the guest is one of the device, whatever runs beside it.
uint32_t CudaBackend::choose_warps() {
  std::vector<WarpStart> warps;
  for (uint32_t first = 0; first < config_.cores; first += kWarpLanes) {
    WarpStart warp{.first_core = first, .alive = meetings_.alive(first)};
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
      warp.runnable |= uint32_t{is_runnable_[first + lane]} << lane;
    if (warp.runnable != 0) warps.push_back(warp);
  }
  warps_.upload(warps);
  return static_cast<uint32_t>(warps.size());
}

// No more than spread the cores over the chip.
uint32_t CudaBackend::threads_for(uint32_t count, uint32_t most) const {
  const auto processors = static_cast<uint32_t>(properties_.multiProcessorCount);
  const uint32_t spread = (count + processors - 1) / processors;
  return std::min((spread + kWarpSize - 1) / kWarpSize * kWarpSize, most);
}

Launch CudaBackend::describe_launch(uint32_t count, uint64_t instructions) {
  Launch launch;
  launch.machine = Machine{
      .code = CodeView{uops_.data(), uop_at_.data(), module_->code.text_base,
                       module_->code.uop_at.size(), module_->code.pc_shift},
      .memory = memory_.view(),
      .blocks = blocks_.data(),
      .rank = rank_.data(),
      .max_instructions = config_.max_instructions,
      .seed = config_.seed,
      .region_at = region_at_.data(),
      .region_code = region_code_,
      .one_warp_each = config_.cta_threads <= kWarpLanes,
      .region_margin = config_.max_instructions ? region_margin_ : 0};
  launch.slots = contexts_.data();
  launch.slot_count = module_->slot_count;
  launch.core_count = config_.cores;
  launch.states = states_.data();
  launch.records = records_.data();
  launch.order = order_.data();
  launch.runnable = count;
  launch.warps = warps_.data();
  launch.instructions = instructions;
  launch.slice = slice_;
  launch.block_counts = block_counts_.data();
  launch.core_classes = core_classes_.data();
  launch.stopped = stopped_.data();
  launch.stopped_count = counters_.data();
  launch.left_regions = counters_.data() + 1;
  return launch;
}

void CudaBackend::begin_slice(uint64_t instructions) {
  send_states();
  events_.clear();
  if (runnable_ == 0) return;
  look_for_regions();
  // What is hot shows soon, and regions want to be found before most of the work is done.
  if (compiler_ && !has_warps() && looked_after_ < kFirstLooks)
    instructions = std::min(instructions, kShortSlice);
  ++slice_;
  uint32_t count = has_warps() ? choose_warps() : regroup();
  if (count == 0) {  // all sleep: now they look whether they can go on
    slice_ += kLongestSleep;
    count = regroup();
  }
  const bool alone = all_stand_in_regions(count);
  const Launch slice = describe_launch(count, instructions);
  memory_.slice_begins();
  counters_.zero();
  const uint32_t lanes = has_warps() ? count * kWarpLanes : count;
  const uint32_t threads = threads_for(lanes, alone ? most_threads_alone_ : most_threads_);
  launch((alone ? regions_alone_ : kernel_).entry, (lanes + threads - 1) / threads, threads,
         alone ? 0 : size_t{threads} * module_->slot_count * sizeof(uint64_t), "starting a slice",
         slice);
  ran_alone_ = alone ? count : 0;
  is_running_ = true;
}

// With a limit of instructions, or a seed, the interpreter says who runs how far.
bool CudaBackend::all_stand_in_regions(uint32_t count) {
  if (!regions_alone_.entry || config_.max_instructions != 0 || config_.seed != 0) return false;
  if (pause_ != 0) {
    --pause_;
    return false;
  }
  counters_.zero();
  for_each(count, NoteOutside{order_.data(), states_.data(), region_at_.data(), counters_.data()});
  uint32_t are_outside = 0;
  counters_.download(std::span(&are_outside, 1));
  return are_outside == 0;
}

// Cores that leave early wait for the others. Where most do, such slices become rare.
void CudaBackend::note_who_left(uint32_t late, uint32_t soon) {
  constexpr uint32_t kLongestPause = 64;
  const uint32_t cores = std::exchange(ran_alone_, 0);
  if (cores == 0) return;
  last_pause_ = soon > cores / 2 ? std::clamp(2 * last_pause_, 1u, kLongestPause) : 0;
  pause_ = std::max(last_pause_, late + soon != 0 ? 1u : 0u);
}

bool CudaBackend::slice_is_done() {
  if (!is_running_) return true;
  const cudaError_t status = cudaStreamQuery(nullptr);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(status, "running a slice");
  return true;
}

std::span<const Event> CudaBackend::end_slice() {
  if (std::exchange(is_running_, false)) {
    check(cudaDeviceSynchronize(), "running a slice");
    states_are_here_ = classes_are_here_ = false;
    contexts_.slice_has_run();
    if (config_.journal_words) memory_.fetch_journals();
    collect_events();
  }
  if (has_warps()) {
    meetings_.settle(came_, events_);
    came_.clear();
    std::ranges::stable_sort(events_, {}, &Event::core);
  }
  return events_;
}

void CudaBackend::find_sleepers(std::span<uint8_t> out) {
  waits_.reserve(config_.cores, "cores that wait");
  for_each(config_.cores, LooksInVain{states_.data(), memory_.view(), waits_.data()});
  waits_.download(out);
  for (uint32_t core = 0; core < config_.cores; ++core)
    out[core] = out[core] != 0 || !is_runnable_[core];
}

void CudaBackend::collect_events() {
  uint32_t counters[3] = {};
  counters_.download(counters);
  const uint32_t count = counters[0];
  note_who_left(counters[1], counters[2]);
  if (count == 0) return;
  with_scratch([&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, stopped_.data(), stopped_sorted_.data(),
                                          static_cast<int>(count));
  });
  std::vector<uint32_t> cores(count);
  stopped_sorted_.download(cores);
  if (stops_.size() < count) {
    stops_.reserve(count, "events");
    stops_.zero();  // nobody writes the bytes between members, and all are copied
  }
  for_each(count, GatherStop{stopped_sorted_.data(), states_.data(), records_.data(), stops_.data()});
  std::vector<Stop> stops(count);
  stops_.download(stops);
  for (uint32_t i = 0; i < count; ++i) {
    const CoreStatus status = stops[i].state.status;
    if (status == kAtRow || status == kEnded)
      came_.push_back({cores[i], stops[i].record.uop, status == kEnded});
    else
      events_.push_back(make_event(cores[i], stops[i].state, stops[i].record));
    is_runnable_[cores[i]] = false;
  }
  runnable_ -= count;
  contexts_.gather(std::move(cores), stopped_sorted_.data());
}

std::vector<unsigned long long> CudaBackend::sums_of_rows(
    const DeviceArray<unsigned long long>& array, size_t rows) {
  std::vector<unsigned long long> sums(rows);
  if (array.size() == 0) return sums;
  sums_.reserve(rows, "tallies");
  const size_t length = array.size() / rows;
  // cub gives each row a CTA: too much for the short rows of a module's many thousand blocks.
  constexpr size_t kWorthACta = 512;
  if (length < kWorthACta) {
    thrust::for_each_n(thrust::device, thrust::counting_iterator<size_t>(0), rows,
                       SumRow{array.data(), length, sums_.data()});
  } else {
    const auto begins = thrust::make_transform_iterator(thrust::counting_iterator<size_t>(0),
                                                        RowBegin{length});
    with_scratch([&](void* scratch, size_t& bytes) {
      return cub::DeviceSegmentedReduce::Sum(scratch, bytes, array.data(), sums_.data(),
                                             static_cast<int>(rows), begins, begins + 1);
    });
  }
  sums_.download(sums);
  return sums;
}

std::vector<uint64_t> CudaBackend::block_counts() {
  std::vector<uint64_t> counts(earlier_counts_);
  const std::vector<unsigned long long> sums = sums_of_rows(block_counts_, blocks_.size());
  std::transform(sums.begin(), sums.end(), counts.begin(), counts.begin(), std::plus<>());
  return counts;
}

CoreTally CudaBackend::tally(uint32_t core) {
  CoreTally t;
  if (core_classes_.size() == 0) return t;
  const std::vector<unsigned long long>& classes = host_classes();
  for (size_t c = 0; c < kInsnClassCount; ++c) t.classes[c] = classes[c * config_.cores + core];
  return t;
}

CoreTally CudaBackend::tally_of_all() {
  CoreTally sum;
  const std::vector<unsigned long long> sums = sums_of_rows(core_classes_, kInsnClassCount);
  std::copy(sums.begin(), sums.end(), sum.classes.begin());
  return sum;
}

uint64_t CudaBackend::instructions() {
  send_states();
  sums_.reserve(1, "tallies");
  with_scratch([&](void* scratch, size_t& bytes) {
    return cub::DeviceReduce::TransformReduce(scratch, bytes, states_.data(), sums_.data(),
                                              static_cast<int>(config_.cores),
                                              thrust::plus<unsigned long long>(),
                                              InstructionsOf{}, 0ull);
  });
  unsigned long long sum = 0;
  sums_.download(std::span(&sum, 1));
  return sum;
}

std::vector<CoreSnapshot> CudaBackend::cores() {
  const std::vector<CoreState>& states = host_states();
  std::vector<CoreSnapshot> all(config_.cores);
  for (uint32_t core = 0; core < config_.cores; ++core) {
    all[core].runnable = is_runnable_[core];
    all[core].place = states[core].pc;
    all[core].depth = states[core].depth;
    all[core].instructions = states[core].instructions;
    all[core].classes = tally(core).classes;
  }
  return all;
}

void CudaBackend::set_cores(std::span<const CoreSnapshot> cores, std::span<const uint8_t>) {
  std::vector<CoreState> states(config_.cores);
  std::vector<unsigned long long> classes(core_classes_.size());
  runnable_ = 0;
  for (uint32_t core = 0; core < config_.cores; ++core) {
    const CoreSnapshot& c = cores[core];
    states[core].pc = c.place;
    states[core].depth = c.depth;
    states[core].instructions = c.instructions;
    states[core].status = c.runnable ? CoreStatus::kRunnable : CoreStatus::kIdle;
    is_runnable_[core] = c.runnable;
    runnable_ += c.runnable;
    for (size_t i = 0; i < kInsnClassCount && !classes.empty(); ++i)
      classes[i * config_.cores + core] = c.classes[i];
  }
  states_.upload(states);
  core_classes_.upload(classes);
  state_writes_.clear();
  states_are_here_ = classes_are_here_ = false;
}

}  // namespace

namespace {

// Zero where CUDA fails; `why_not` says how.
int device_count(std::string* why_not) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count != 0) return count;
  cudaGetLastError();
  *why_not = status == cudaSuccess || status == cudaErrorNoDevice
                 ? "no GPU in this machine"
                 : std::string("no usable GPU: ") + cudaGetErrorString(status);
  return 0;
}

// Chooses the device for a moment, which makes the driver begin work with it.
DeviceInfo describe(int device) {
  DeviceInfo info;
  int driver = 0, caller = 0;
  cudaDeviceProp properties{};
  cudaFuncAttributes attributes{};
  cudaDriverGetVersion(&driver);
  cudaGetDevice(&caller);
  cudaError_t status = cudaGetDeviceProperties(&properties, device);
  if (status == cudaSuccess) {
    info.name = properties.name;
    info.identity = info.name + ", " + hexadecimal(properties.uuid.bytes) + ", CUDA driver " +
                    std::to_string(driver);
    status = cudaSetDevice(device);
  }
  if (status == cudaSuccess)
    status = cudaFuncGetAttributes(&attributes, kernel_without_vectors().entry);
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction)
    info.why_not = "this build has no machine code for it; see docs/gpu.md";
  else if (status != cudaSuccess)
    info.why_not = cudaGetErrorString(status);
  cudaGetLastError();
  cudaSetDevice(caller);
  return info;
}

// The first device that can be used; -1, with a reason: none.
int first_usable(std::string* why_not) {
  const int count = device_count(why_not);
  for (int i = 0; i < count; ++i) {
    const DeviceInfo info = describe(i);
    if (info.why_not.empty()) return i;
    *why_not = info.name + ": " + info.why_not;
  }
  return -1;
}

}  // namespace

std::vector<DeviceInfo> devices() {
  std::string why_not;
  const int count = device_count(&why_not);
  std::vector<DeviceInfo> all;
  for (int i = 0; i < count; ++i) all.push_back(describe(i));
  return all;
}

bool available(std::string* why_not) { return first_usable(why_not) >= 0; }

std::string device_name() {
  std::string why_not;
  const int first = first_usable(&why_not);
  return first < 0 ? "" : describe(first).name;
}

std::unique_ptr<Backend> create(std::span<const uint32_t> devices) {
  if (devices.size() > 1) {
    std::vector<std::unique_ptr<DeviceMachine>> machines;
    for (const uint32_t device : devices) machines.push_back(std::make_unique<CudaBackend>(device));
    return make_split_machine(std::move(machines));
  }
  if (!devices.empty()) return std::make_unique<CudaBackend>(devices.front());
  std::string why_not;
  const int first = first_usable(&why_not);
  if (first < 0) throw std::runtime_error(why_not);
  return std::make_unique<CudaBackend>(static_cast<uint32_t>(first));
}

std::unique_ptr<LinearSpace> create_space(const LinearSpaceRequest& request) {
  if (request.device)
    return std::make_unique<CudaLinearSpace>(static_cast<int>(*request.device), request);
  std::string why_not;
  const int first = first_usable(&why_not);
  if (first < 0) throw std::runtime_error(why_not);
  return std::make_unique<CudaLinearSpace>(first, request);
}

bool reset(std::string* why_not) {
  cudaError_t status = cudaDeviceReset();
  cudaGetLastError();
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  if (status != cudaSuccess) *why_not = cudaGetErrorString(status);
  return status == cudaSuccess && available(why_not);
}

}  // namespace gpusim::cuda
