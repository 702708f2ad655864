// One machine of private cores on several devices. Each device has a copy of the linear zone, which
// holds what no core writes.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "device_sim/core/sleepers.h"
#include "device_sim/cuda/device_machine.h"

namespace gpusim::cuda {
namespace {

// The cores [first, first + count) of the machine, whose numbers here begin with 0.
struct Part {
  std::unique_ptr<DeviceMachine> machine;
  uint32_t first = 0, count = 0;
};

class SplitMachine final : public Backend,
                           public MachineState,
                           public CompilesRegions,
                           public Sleepers {
 public:
  explicit SplitMachine(std::vector<std::unique_ptr<DeviceMachine>> machines) {
    for (auto& machine : machines) parts_.push_back({.machine = std::move(machine)});
  }
  std::string name() const override { return parts_.front().machine->name(); }
  std::string device() const override {
    std::string names;
    for (const Part& p : parts_) names += (names.empty() ? "" : " + ") + p.machine->device();
    return names;
  }

  void compile_regions(CompiledRegions wanted) override {
    for (const Part& p : parts_) p.machine->compile_regions(wanted);
  }
  void configure(const Module& module, const MachineConfig& config) override;
  void reset(uint64_t max_instructions) override {
    for (const Part& p : parts_) on(p).reset(max_instructions);
  }
  void module_changed() override {
    for (const Part& p : parts_) on(p).module_changed();
  }

  bool read_memory(uint32_t core, uint64_t address, std::span<uint8_t> out) override {
    const Part& p = part_of(core);
    return on(p).read_memory(core - p.first, address, out);
  }
  bool write_memory(uint32_t core, uint64_t address, std::span<const uint8_t> in) override {
    return change(core, address, in.size(),
                  [&](DeviceMachine& m, uint32_t c, uint64_t at, uint64_t done, uint64_t size) {
                    return m.write_memory(c, at, in.subspan(done, size));
                  });
  }
  bool write_memory_all(uint64_t address, std::span<const uint8_t> in) override {
    return each([&](DeviceMachine& m) { return m.write_memory_all(address, in); });
  }
  bool write_windows(uint64_t, std::span<const CoreWord>) override {
    throw std::logic_error("windows of all cores are written where memory is shared");
  }
  bool fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes) override {
    return change(core, address, size_bytes,
                  [](DeviceMachine& m, uint32_t c, uint64_t at, uint64_t, uint64_t size) {
                    return m.fill_zero(c, at, size);
                  });
  }
  bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes,
                       uint8_t flags) override {
    return change(core, address, size_bytes,
                  [=](DeviceMachine& m, uint32_t c, uint64_t at, uint64_t, uint64_t size) {
                    return m.set_permissions(c, at, size, flags);
                  });
  }
  bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) override {
    return each(
        [=](DeviceMachine& m) { return m.set_permissions_all(address, size_bytes, flags); });
  }
  uint8_t permissions(uint32_t core, uint64_t address) override {
    const Part& p = part_of(core);
    return on(p).permissions(core - p.first, address);
  }

  uint64_t slot(uint32_t core, Slot slot) override {
    const Part& p = part_of(core);
    return on(p).slot(core - p.first, slot);
  }
  void set_slot(uint32_t core, Slot slot, uint64_t value) override {
    const Part& p = part_of(core);
    on(p).set_slot(core - p.first, slot, value);
  }
  void set_slots(Slot slot, CoreWord value) override {
    for (const Part& p : parts_) on(p).set_slots(slot, {value.of(p.first), value.step});
  }
  void start(uint32_t core, uint32_t uop) override {
    const Part& p = part_of(core);
    on(p).start(core - p.first, uop);
  }
  void start_all(uint32_t uop) override {
    for (const Part& p : parts_) on(p).start_all(uop);
  }
  void stop(uint32_t core) override {
    const Part& p = part_of(core);
    on(p).stop(core - p.first);
  }
  uint32_t place(uint32_t core) override {
    const Part& p = part_of(core);
    return on(p).place(core - p.first);
  }
  std::span<const Event> run_slice(uint64_t instructions) override;
  uint32_t runnable() const override {
    return sum<uint32_t>([](DeviceMachine& m) { return m.runnable(); });
  }

  void find_sleepers(std::span<uint8_t> out) override {
    for (const Part& p : parts_)
      if (Sleepers* const sleepers = sleepers_of(on(p)))
        sleepers->find_sleepers(out.subspan(p.first, p.count));
  }

  std::span<const uint64_t> journal(uint32_t core) override {
    const Part& p = part_of(core);
    return p.machine->journal(core - p.first);  // lies on the host
  }
  void clear_journals() override {
    for (const Part& p : parts_) on(p).clear_journals();
  }
  std::vector<uint64_t> block_counts() override;
  CoreTally tally(uint32_t core) override {
    const Part& p = part_of(core);
    return on(p).tally(core - p.first);
  }
  CoreTally tally_of_all() override {
    return sum<CoreTally>([](DeviceMachine& m) { return m.tally_of_all(); });
  }

  // MachineState
  uint64_t instructions() override {
    return sum<uint64_t>([](DeviceMachine& m) { return m.instructions(); });
  }
  std::vector<CoreSnapshot> cores() override;
  std::vector<uint8_t> scheduling() override { return {}; }
  void set_cores(std::span<const CoreSnapshot> cores, std::span<const uint8_t>) override {
    for (const Part& p : parts_) on(p).set_cores(cores.subspan(p.first, p.count), {});
  }
  void slots(Slot slot, std::span<uint64_t> values) override {
    for (const Part& p : parts_) on(p).slots(slot, values.subspan(p.first, p.count));
  }
  void set_all_slots(Slot slot, std::span<const uint64_t> values) override {
    for (const Part& p : parts_) on(p).set_all_slots(slot, values.subspan(p.first, p.count));
  }
  void set_block_counts(std::span<const uint64_t> counts, std::span<const uint64_t>) override;
  void visit_linear(const Visitor& visit) override { on(parts_.front()).visit_linear(visit); }
  void visit_windows(const Visitor& visit) override;
  bool put_linear(uint64_t number, std::span<const uint8_t> bytes) override {
    return each([=](DeviceMachine& m) { return m.put_linear(number, bytes); });
  }
  bool put_windows(uint64_t number, std::span<const uint8_t> bytes) override;
  // Devices do not wake each other's cores: a core that waits looks again of its own after a while.
  uint32_t signalled_events() override { return on(parts_.front()).signalled_events(); }
  void set_signalled_events(uint32_t count) override {
    for (const Part& p : parts_) on(p).set_signalled_events(count);
  }

 private:
  static DeviceMachine& on(const Part& p) {
    p.machine->select();
    return *p.machine;
  }
  const Part& part_of(uint32_t core) const {
    return *std::prev(std::upper_bound(parts_.begin(), parts_.end(), core,
                                       [](uint32_t c, const Part& p) { return c < p.first; }));
  }
  template <class F>
  bool each(F f) const {
    return std::all_of(parts_.begin(), parts_.end(), [&](const Part& p) { return f(on(p)); });
  }
  template <class T, class F>
  T sum(F f) const {
    T all{};
    for (const Part& p : parts_) all += f(on(p));
    return all;
  }
  // Calls change(machine, its core, address, bytes done, bytes) for the core's machine, and for
  // what lies in the linear zone for the others, too.
  template <class F>
  bool change(uint32_t core, uint64_t address, uint64_t size_bytes, F change) {
    const Part& own = part_of(core);
    if (!change(on(own), core - own.first, address, uint64_t{0}, size_bytes)) return false;
    const uint64_t begin = std::max(address, linear_base_);
    const uint64_t end = std::min(address + size_bytes, linear_base_ + linear_size_);
    if (begin >= end) return true;
    for (const Part& p : parts_)
      if (&p != &own) change(on(p), 0, begin, begin - address, end - begin);
    return true;
  }

  uint64_t linear_base_ = 0, linear_size_ = 0;
  uint32_t cores_ = 0;
  std::vector<Part> parts_;  // none without cores
  std::vector<Event> events_;
};

// Devices get whole tiles of a checkpoint (MachineState); those for which none are left, nothing.
void SplitMachine::configure(const Module& module, const MachineConfig& config) {
  if (config.memory_model != MemoryModel::kPrivate)
    throw std::runtime_error(
        "cores that share memory stay on one GPU; several are for --memory private");
  if (module.warp_size != 0)
    throw std::runtime_error(
        "programs with warps and CTAs run on one GPU; leave out all but one of --devices");
  linear_base_ = config.linear_base;
  linear_size_ = config.linear_size;
  cores_ = config.cores;
  constexpr uint32_t kTile = MachineState::kTileCores;
  const uint32_t tiles = (config.cores + kTile - 1) / kTile;
  parts_.resize(std::min<size_t>(parts_.size(), tiles));
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& p = parts_[i];
    p.first = static_cast<uint32_t>(tiles * i / parts_.size()) * kTile;
    const auto next = static_cast<uint32_t>(tiles * (i + 1) / parts_.size()) * kTile;
    p.count = std::min(next, config.cores) - p.first;
    MachineConfig own = config;
    own.cores = p.count;
    on(p).configure(module, own);
  }
}

std::span<const Event> SplitMachine::run_slice(uint64_t instructions) {
  for (const Part& p : parts_) on(p).begin_slice(instructions);
  events_.clear();
  for (const Part& p : parts_)
    for (Event e : on(p).end_slice()) {
      e.core += p.first;
      events_.push_back(e);
    }
  return events_;
}

std::vector<uint64_t> SplitMachine::block_counts() {
  std::vector<uint64_t> all = on(parts_.front()).block_counts();
  for (size_t i = 1; i < parts_.size(); ++i) {
    const std::vector<uint64_t> counts = on(parts_[i]).block_counts();
    std::transform(all.begin(), all.end(), counts.begin(), all.begin(), std::plus<>());
  }
  return all;
}

void SplitMachine::set_block_counts(std::span<const uint64_t> counts, std::span<const uint64_t>) {
  const std::vector<uint64_t> none(counts.size());
  for (const Part& p : parts_) on(p).set_block_counts(p.first == 0 ? counts : none, {});
}

std::vector<CoreSnapshot> SplitMachine::cores() {
  std::vector<CoreSnapshot> all;
  for (const Part& p : parts_) {
    const std::vector<CoreSnapshot> some = on(p).cores();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

uint64_t groups_of(uint32_t cores) {
  return (uint64_t{cores} + MachineState::kTileCores - 1) / MachineState::kTileCores;
}

void SplitMachine::visit_windows(const Visitor& visit) {
  const uint64_t groups = groups_of(cores_);
  for (const Part& p : parts_) {
    const uint64_t own = groups_of(p.count), before = groups_of(p.first);
    on(p).visit_windows([&](uint64_t number, std::span<const uint8_t> bytes) {
      visit(number / own * groups + before + number % own, bytes);
    });
  }
}

bool SplitMachine::put_windows(uint64_t number, std::span<const uint8_t> bytes) {
  const uint64_t groups = groups_of(cores_);
  const auto core = static_cast<uint32_t>(number % groups * MachineState::kTileCores);
  const Part& p = part_of(core);
  const uint64_t own = groups_of(p.count), in_part = number % groups - groups_of(p.first);
  return on(p).put_windows(number / groups * own + in_part, bytes);
}

}  // namespace

std::unique_ptr<Backend> make_split_machine(std::vector<std::unique_ptr<DeviceMachine>> machines) {
  return std::make_unique<SplitMachine>(std::move(machines));
}

}  // namespace gpusim::cuda
