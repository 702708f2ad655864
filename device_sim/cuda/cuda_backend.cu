#include "device_sim/cuda/cuda_backend.h"

#include <thrust/iterator/counting_iterator.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <unordered_map>

#include "device_sim/core/machine_state.h"
#include "device_sim/cuda/device_memory.cuh"
#include "device_sim/cuda/kernel.cuh"
#include "device_sim/cuda/launch.cuh"

namespace gpusim::cuda {
namespace {

struct IsAwake {
  const CoreState* states;
  MemoryView memory;
  uint32_t slice;
  __host__ __device__ bool operator()(uint32_t core) const {
    const CoreState& s = states[core];
    return s.status == CoreStatus::kRunnable && !sleeps(memory, s, slice);
  }
};
struct TimesCopies {
  __host__ __device__ uint32_t operator()(uint32_t block) const { return block * kCounterCopies; }
};

uint32_t blocks_for(uint32_t count) { return (count + 255) / 256; }

class CudaBackend final : public Backend, public MachineState {
 public:
  CudaBackend() {
    check(cudaGetDevice(&device_), "choosing a device");
    check(cudaGetDeviceProperties(&properties_, device_), "asking for the device's properties");
  }
  std::string name() const override { return "cuda"; }
  std::string device() const override { return properties_.name; }

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

  uint64_t slot(uint32_t core, Slot slot) override;
  void set_slot(uint32_t core, Slot slot, uint64_t value) override;
  void set_slots(Slot slot, CoreWord value) override {
    for (uint32_t core = 0; core < config_.cores; ++core) set_slot(core, slot, value.of(core));
  }
  void start(uint32_t core, uint32_t uop) override {
    set_status(core, uop, CoreStatus::kRunnable);
  }
  void start_all(uint32_t uop) override {
    for (uint32_t core = 0; core < config_.cores; ++core) start(core, uop);
  }
  void stop(uint32_t core) override { set_status(core, 0, CoreStatus::kIdle); }
  uint32_t place(uint32_t core) override;
  std::span<const Event> run_slice(uint64_t instructions) override;
  uint32_t runnable() const override { return runnable_; }
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
  void slots(Slot slot, std::span<uint64_t> values) override;
  void set_all_slots(Slot slot, std::span<const uint64_t> values) override;
  void set_block_counts(std::span<const uint64_t> counts,
                        std::span<const uint64_t>) override {
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
  void upload_code();
  void set_status(uint32_t core, uint32_t uop, CoreStatus status);
  // Sends what the host changed since the last slice.
  void apply_writes();
  // Fills order_ with the runnable cores, those at the same micro-op together.
  uint32_t regroup();
  void collect_events();
  template <class F>
  void with_scratch(F f) {  // CUB's two-step calls
    size_t bytes = 0;
    check(f(nullptr, bytes), "sizing scratch memory");
    scratch_.reserve(bytes, "scratch memory");
    check(f(scratch_.data(), bytes), "running a device algorithm");
  }

  int device_ = 0;
  cudaDeviceProp properties_{};
  const Module* module_ = nullptr;
  MachineConfig config_;
  DeviceMemory memory_;
  DeviceArray<Uop> uops_;
  DeviceArray<uint32_t> uop_at_;
  DeviceArray<BlockInfo> blocks_;
  DeviceArray<uint64_t> slots_;
  DeviceArray<CoreState> states_;
  DeviceArray<StopRecord> records_;
  DeviceArray<uint32_t> order_, order_sorted_, keys_, keys_sorted_, stopped_, counters_;
  DeviceArray<unsigned long long> block_counts_, core_classes_;
  DeviceArray<uint8_t> scratch_;
  std::vector<uint64_t> earlier_counts_;  // block counts from before the module changed

  std::vector<SlotWrite> slot_writes_;
  std::vector<StateWrite> state_writes_;
  std::unordered_map<uint64_t, uint64_t> pending_slots_;  // core << 8 | slot
  std::vector<bool> is_runnable_;
  uint32_t runnable_ = 0;
  uint32_t slice_ = 0;
  std::vector<Event> events_;
  // Contexts of the cores of events_: [slot][event], and each core's place.
  std::vector<uint64_t> event_slots_;
  std::unordered_map<uint32_t, uint32_t> event_of_core_;
};

void CudaBackend::configure(const Module& module, const MachineConfig& config) {
  module_ = &module;
  config_ = config;
  memory_.configure(config);
  const uint32_t cores = config.cores;
  slots_ = DeviceArray<uint64_t>(size_t{module.slot_count} * cores, "contexts");
  records_ = DeviceArray<StopRecord>(cores, "stop records");
  for (auto* array : {&order_, &order_sorted_, &keys_, &keys_sorted_, &stopped_})
    *array = DeviceArray<uint32_t>(cores, "scheduling");
  counters_ = DeviceArray<uint32_t>(1, "counters");
  if (config.per_core_tallies)
    core_classes_ = DeviceArray<unsigned long long>(size_t{kInsnClassCount} * cores, "tallies");
  earlier_counts_.assign(module.blocks.size(), 0);
  upload_code();
  reset(config.max_instructions);
}

void CudaBackend::reset(uint64_t max_instructions) {
  config_.max_instructions = max_instructions;
  const uint32_t cores = config_.cores;
  slots_.zero();
  for (const InitialValue& v : module_->initial_values)
    launch(fill_slots, blocks_for(cores), 256, 0, "initialising contexts",
           slots_.data() + size_t{v.slot} * cores, cores, v.value);
  states_ = to_device(std::vector<CoreState>(cores), "core states");
  if (config_.per_core_tallies) core_classes_.zero();
  is_runnable_.assign(cores, false);
  runnable_ = 0;
  pending_slots_.clear();
  state_writes_.clear();
  event_of_core_.clear();
}

void CudaBackend::upload_code() {
  std::vector<Uop> uops = module_->uops;
  uops.push_back(Uop{.op = Op::trap});  // a thread fetches one micro-op ahead
  uops_ = to_device(uops, "micro-ops");
  uop_at_ = to_device(module_->code.uop_at, "the code map");
  std::vector<BlockInfo> blocks;
  for (const Block& b : module_->blocks) blocks.push_back(make_block_info(b));
  blocks_ = to_device(blocks, "blocks");
  block_counts_ = DeviceArray<unsigned long long>(blocks.size() * kCounterCopies, "block counts");
  block_counts_.zero();
}

void CudaBackend::module_changed() {
  earlier_counts_ = block_counts();
  earlier_counts_.resize(module_->blocks.size());
  upload_code();
}

uint64_t CudaBackend::slot(uint32_t core, Slot slot) {
  if (const auto it = pending_slots_.find(uint64_t{core} << 8 | slot); it != pending_slots_.end())
    return it->second;
  if (const auto it = event_of_core_.find(core); it != event_of_core_.end())
    return event_slots_[size_t{slot} * events_.size() + it->second];
  uint64_t value = 0;
  check(cudaMemcpy(&value, slots_.data() + size_t{slot} * config_.cores + core, sizeof value,
                   cudaMemcpyDeviceToHost),
        "reading a register");
  return value;
}

uint32_t CudaBackend::place(uint32_t core) {
  apply_writes();
  CoreState state;
  check(cudaMemcpy(&state, states_.data() + core, sizeof state, cudaMemcpyDeviceToHost),
        "reading a core's state");
  return state.pc;
}

void CudaBackend::set_slot(uint32_t core, Slot slot, uint64_t value) {
  pending_slots_[uint64_t{core} << 8 | slot] = value;
}

void CudaBackend::set_status(uint32_t core, uint32_t uop, CoreStatus status) {
  state_writes_.push_back({core, uop, status});
  const bool now = status == CoreStatus::kRunnable;
  runnable_ += now;
  runnable_ -= is_runnable_[core];
  is_runnable_[core] = now;
}

void CudaBackend::apply_writes() {
  if (!pending_slots_.empty()) {
    slot_writes_.clear();
    for (const auto& [where, value] : pending_slots_)
      slot_writes_.push_back({static_cast<uint32_t>(where >> 8), static_cast<uint32_t>(where & 255), value});
    const DeviceArray<SlotWrite> writes = to_device(slot_writes_, "register writes");
    const auto count = static_cast<uint32_t>(slot_writes_.size());
    launch(apply_slot_writes, blocks_for(count), 256, 0, "writing registers", writes.data(), count,
           slots_.data(), config_.cores);
    check(cudaDeviceSynchronize(), "writing registers");
    pending_slots_.clear();
  }
  if (!state_writes_.empty()) {
    // The last write to a core counts.
    std::stable_sort(state_writes_.begin(), state_writes_.end(),
                     [](const auto& x, const auto& y) { return x.core < y.core; });
    std::vector<StateWrite> last;
    for (const StateWrite& w : state_writes_) {
      if (!last.empty() && last.back().core == w.core) last.back() = w;
      else last.push_back(w);
    }
    const DeviceArray<StateWrite> writes = to_device(last, "core states");
    const auto count = static_cast<uint32_t>(last.size());
    launch(apply_state_writes, blocks_for(count), 256, 0, "starting cores", writes.data(), count,
           states_.data());
    check(cudaDeviceSynchronize(), "starting cores");
    state_writes_.clear();
  }
}

uint32_t CudaBackend::regroup() {
  const thrust::counting_iterator<uint32_t> all(0);
  const auto cores = static_cast<int>(config_.cores);
  with_scratch([&](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::If(scratch, bytes, all, order_.data(), counters_.data(), cores,
                                 IsAwake{states_.data(), memory_.view(), slice_});
  });
  uint32_t count = 0;
  counters_.download(std::span(&count, 1));
  if (count <= kWarpSize) return count;
  launch(read_pcs, blocks_for(count), 256, 0, "regrouping cores", order_.data(), count,
         states_.data(), keys_.data());
  with_scratch([&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys_.data(), keys_sorted_.data(),
                                           order_.data(), order_sorted_.data(),
                                           static_cast<int>(count));
  });
  std::swap(order_, order_sorted_);
  return count;
}

std::span<const Event> CudaBackend::run_slice(uint64_t instructions) {
  apply_writes();
  events_.clear();
  event_of_core_.clear();
  if (runnable_ == 0) return events_;
  ++slice_;
  uint32_t count = regroup();
  if (count == 0) {  // all sleep: now they look whether they can go on
    slice_ += kLongestSleep;
    count = regroup();
  }
  Launch slice;
  slice.machine = Machine{
      .code = CodeView{uops_.data(), uop_at_.data(), module_->code.text_base,
                       module_->code.uop_at.size(), module_->code.pc_shift},
      .memory = memory_.view(),
      .blocks = blocks_.data(),
      .max_instructions = config_.max_instructions,
      .seed = config_.seed};
  slice.slots = slots_.data();
  slice.slot_count = module_->slot_count;
  slice.core_count = config_.cores;
  slice.states = states_.data();
  slice.records = records_.data();
  slice.order = order_.data();
  slice.runnable = count;
  slice.instructions = instructions;
  slice.slice = slice_;
  slice.block_counts = block_counts_.data();
  slice.core_classes = core_classes_.data();
  slice.stopped = stopped_.data();
  counters_.zero();
  slice.stopped_count = counters_.data();

  // As many threads per block as contexts fit, but no more than spread the cores over the chip.
  const size_t context_bytes = size_t{module_->slot_count} * sizeof(uint64_t);
  const auto fit = static_cast<uint32_t>(properties_.sharedMemPerBlockOptin / context_bytes);
  if (fit < kWarpSize)
    throw std::runtime_error("a context of this program does not fit the GPU's shared memory");
  const auto processors = static_cast<uint32_t>(properties_.multiProcessorCount);
  const uint32_t spread = ((count + processors - 1) / processors + kWarpSize - 1) / kWarpSize * kWarpSize;
  const uint32_t threads = std::min({fit / kWarpSize * kWarpSize, spread, kMaxThreads});
  const size_t shared_bytes = threads * context_bytes;
  check(cudaFuncSetAttribute(simulate, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_bytes)),
        "reserving shared memory");
  launch(simulate, (count + threads - 1) / threads, threads, shared_bytes, "starting a slice",
         slice);
  check(cudaDeviceSynchronize(), "running a slice");
  if (config_.journal_words) memory_.fetch_journals();
  collect_events();
  return events_;
}

void CudaBackend::collect_events() {
  uint32_t count = 0;
  counters_.download(std::span(&count, 1));
  if (count == 0) return;
  DeviceArray<CoreState> states(count, "events");
  DeviceArray<StopRecord> records(count, "events");
  DeviceArray<uint64_t> slots(size_t{module_->slot_count} * count, "events");
  launch(gather_stops, blocks_for(count), 256, 0, "collecting events", stopped_.data(), count,
         states_.data(), records_.data(), states.data(), records.data());
  launch(gather_slots, blocks_for(count), 256, 0, "collecting events", stopped_.data(), count,
         slots_.data(), module_->slot_count, config_.cores, slots.data());
  std::vector<uint32_t> cores(count);
  std::vector<CoreState> host_states(count);
  std::vector<StopRecord> host_records(count);
  event_slots_.resize(slots.size());
  check(cudaMemcpy(cores.data(), stopped_.data(), count * sizeof(uint32_t), cudaMemcpyDeviceToHost),
        "collecting events");
  states.download(host_states);
  records.download(host_records);
  slots.download(event_slots_);
  for (uint32_t i = 0; i < count; ++i) {
    events_.push_back(make_event(cores[i], host_states[i], host_records[i]));
    event_of_core_[cores[i]] = i;
    runnable_ -= is_runnable_[cores[i]];
    is_runnable_[cores[i]] = false;
  }
  std::sort(events_.begin(), events_.end(),
            [](const Event& x, const Event& y) { return x.core < y.core; });
}

std::vector<uint64_t> CudaBackend::block_counts() {
  const auto blocks = static_cast<uint32_t>(blocks_.size());
  std::vector<uint64_t> counts(earlier_counts_);
  if (blocks == 0) return counts;
  DeviceArray<unsigned long long> sums(blocks, "tallies");
  const auto offsets = thrust::make_transform_iterator(thrust::counting_iterator<uint32_t>(0),
                                                       TimesCopies{});
  with_scratch([&](void* scratch, size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(scratch, bytes, block_counts_.data(), sums.data(),
                                           static_cast<int>(blocks), offsets, offsets + 1);
  });
  std::vector<unsigned long long> host(blocks);
  sums.download(host);
  for (uint32_t b = 0; b < blocks; ++b) counts[b] += host[b];
  return counts;
}

CoreTally CudaBackend::tally(uint32_t core) {
  CoreTally t;
  if (core_classes_.size() == 0) return t;
  unsigned long long host[kInsnClassCount];
  check(cudaMemcpy2D(host, sizeof host[0], core_classes_.data() + core,
                     config_.cores * sizeof host[0], sizeof host[0], kInsnClassCount,
                     cudaMemcpyDeviceToHost),
        "reading tallies");
  for (size_t c = 0; c < kInsnClassCount; ++c) t.classes[c] = host[c];
  return t;
}

CoreTally CudaBackend::tally_of_all() {
  CoreTally t;
  std::vector<unsigned long long> classes(core_classes_.size());  // [class][core]
  core_classes_.download(classes);
  for (size_t i = 0; i < classes.size(); ++i) t.classes[i / config_.cores] += classes[i];
  return t;
}

uint64_t CudaBackend::instructions() {
  std::vector<CoreState> states(config_.cores);
  states_.download(states);
  uint64_t sum = 0;
  for (const CoreState& s : states) sum += s.instructions;
  return sum;
}

std::vector<CoreSnapshot> CudaBackend::cores() {
  apply_writes();
  std::vector<CoreState> states(config_.cores);
  states_.download(states);
  std::vector<unsigned long long> classes(core_classes_.size());  // [class][core]
  core_classes_.download(classes);
  std::vector<CoreSnapshot> all(config_.cores);
  for (uint32_t core = 0; core < config_.cores; ++core) {
    all[core].runnable = is_runnable_[core];
    all[core].place = states[core].pc;
    all[core].depth = states[core].depth;
    all[core].instructions = states[core].instructions;
    for (size_t c = 0; c < kInsnClassCount && !classes.empty(); ++c)
      all[core].classes[c] = classes[c * config_.cores + core];
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
  event_of_core_.clear();
}

void CudaBackend::slots(Slot slot, std::span<uint64_t> values) {
  apply_writes();
  check(cudaMemcpy(values.data(), slots_.data() + size_t{slot} * config_.cores, values.size_bytes(),
                   cudaMemcpyDeviceToHost),
        "reading registers");
}

void CudaBackend::set_all_slots(Slot slot, std::span<const uint64_t> values) {
  apply_writes();
  event_of_core_.clear();
  check(cudaMemcpy(slots_.data() + size_t{slot} * config_.cores, values.data(), values.size_bytes(),
                   cudaMemcpyHostToDevice),
        "writing registers");
}

}  // namespace

bool available(std::string* why_not) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return true;
  cudaGetLastError();
  *why_not = status == cudaSuccess ? "no GPU in this machine"
                                   : std::string("no usable GPU: ") + cudaGetErrorString(status);
  return false;
}

std::string device_name() { return CudaBackend().device(); }
std::unique_ptr<Backend> create() { return std::make_unique<CudaBackend>(); }

}  // namespace gpusim::cuda
