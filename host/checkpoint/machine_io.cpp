#include "host/checkpoint/machine_io.h"

#include <algorithm>
#include <cstring>

namespace gpusim::host {
namespace {

constexpr uint32_t kCores = section_name("CORE"), kRights = section_name("RGHT"),
                   kLinear = section_name("LINE"), kWindows = section_name("WIND");
constexpr uint64_t kMostScheduling = uint64_t{1} << 36;

// A column of all cores' values as differences: most are the same everywhere, or grow evenly.
void to_differences(std::vector<uint64_t>& values) {
  for (size_t i = values.size(); i-- > 1;) values[i] -= values[i - 1];
}
void from_differences(std::vector<uint64_t>& values) {
  for (size_t i = 1; i < values.size(); ++i) values[i] += values[i - 1];
}

template <class A, class Get>
void describe_column(A& a, std::vector<CoreSnapshot>& cores, Get get) {
  std::vector<uint64_t> column(cores.size());
  if constexpr (!A::kReading) {
    for (size_t i = 0; i < cores.size(); ++i) column[i] = get(cores[i]);
    to_differences(column);
  }
  a.plain_array(column, cores.size());
  if constexpr (A::kReading) {
    a.require(column.size() == cores.size(), "a table of cores");
    from_differences(column);
    for (size_t i = 0; i < cores.size(); ++i) {
      auto& field = get(cores[i]);
      field = static_cast<std::remove_reference_t<decltype(field)>>(column[i]);
    }
  }
}

template <class A>
void describe_cores(A& a, std::vector<CoreSnapshot>& cores) {
  describe_column(a, cores, [](CoreSnapshot& c) -> bool& { return c.runnable; });
  describe_column(a, cores, [](CoreSnapshot& c) -> uint32_t& { return c.place; });
  describe_column(a, cores, [](CoreSnapshot& c) -> uint32_t& { return c.depth; });
  describe_column(a, cores, [](CoreSnapshot& c) -> uint64_t& { return c.instructions; });
  for (size_t i = 0; i < kInsnClassCount; ++i)
    describe_column(a, cores, [i](CoreSnapshot& c) -> auto& { return c.classes[i]; });
}

std::vector<bool> runnable_cores(const std::vector<CoreSnapshot>& cores) {
  std::vector<bool> runnable;
  for (const CoreSnapshot& c : cores) runnable.push_back(c.runnable);
  return runnable;
}

bool is_zero(std::span<const uint8_t> bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Pieces that follow each other share a head: number of the first, how many, bytes of each.
struct RunHead {
  uint64_t first = 0;
  uint32_t count = 0, bytes = 0;
};

class PieceWriter {
 public:
  explicit PieceWriter(ChunkWriter& file) : file_(file) {}
  void add(uint64_t number, std::span<const uint8_t> bytes) {
    if (is_zero(bytes)) return;
    if (head_.count != 0 && (number != head_.first + head_.count || bytes.size() != head_.bytes ||
                             head_.count == kMost))
      flush();
    if (head_.count == 0) head_ = {number, 0, static_cast<uint32_t>(bytes.size())};
    run_.insert(run_.end(), bytes.begin(), bytes.end());
    ++head_.count;
  }
  // The end: a head without pieces.
  void finish() {
    if (head_.count != 0) flush();
    flush();
  }

 private:
  void flush() {
    Saving a(file_);
    a.value(head_.first);
    a.value(head_.count);
    a.value(head_.bytes);
    file_.write(run_.data(), run_.size());
    run_.clear();
    head_ = {};
  }
  static constexpr uint32_t kMost = 256;
  ChunkWriter& file_;
  RunHead head_;
  std::vector<uint8_t> run_;
};

template <class Put>
void load_pieces(ChunkReader& file, Put put) {
  Loading a(file);
  std::vector<uint8_t> bytes;
  for (;;) {
    RunHead head;
    a.value(head.first);
    a.value(head.count);
    a.value(head.bytes);
    if (head.count == 0) return;
    a.require(head.bytes <= kPageSize, "a piece of memory");
    bytes.resize(head.bytes);
    for (uint32_t i = 0; i < head.count; ++i) {
      file.read(bytes.data(), bytes.size());
      a.require(put(head.first + i, std::span<const uint8_t>(bytes)), "a piece of memory");
    }
  }
}

// The pages of a machine one after the other, as (core, address): the linear zone's, then each
// window's.
struct PageOrder {
  explicit PageOrder(const MemoryPlan& plan)
      : config(plan.config),
        linear(config.linear_size >> kPageShift),
        per_window((uint64_t{1} << config.window_shift) >> kPageShift),
        count(linear + per_window * config.cores) {}
  uint32_t core(uint64_t page) const {
    return page < linear ? 0 : static_cast<uint32_t>((page - linear) / per_window);
  }
  uint64_t address(uint64_t page) const {
    if (page < linear) return config.linear_base + (page << kPageShift);
    const uint64_t offset = (page - linear) % per_window << kPageShift;
    if (config.memory_model == MemoryModel::kShared)
      return config.window_base + (uint64_t{core(page)} << config.window_shift) + offset;
    const uint64_t own = (uint64_t{1} << config.window_shift) - config.stack_size;
    return offset < own ? config.window_base + offset : config.stack_base + (offset - own);
  }
  // How many of the pages from this one on, at most `most`, have addresses one after the other.
  uint64_t together(uint64_t page, uint64_t most) const {
    if (page < linear) return std::min(most, linear - page);
    const uint64_t at = (page - linear) % per_window;
    const uint64_t own = per_window - (config.memory_model == MemoryModel::kPrivate
                                           ? config.stack_size >> kPageShift
                                           : 0);
    return std::min(most, (at < own ? own : per_window) - at);
  }
  const MachineConfig& config;
  uint64_t linear, per_window, count;
};

}  // namespace

std::vector<bool> save_cores(ChunkWriter& file, const Module& module, Backend& backend,
                             MachineState& state) {
  file.begin(kCores);
  Saving a(file);
  std::vector<CoreSnapshot> cores = state.cores();
  describe_cores(a, cores);
  std::vector<uint8_t> scheduling = state.scheduling();
  a.plain_array(scheduling, kMostScheduling);
  std::vector<uint64_t> column(cores.size());
  for (uint32_t s = 0; s < module.slot_count; ++s) {
    state.slots(static_cast<Slot>(s), column);
    to_differences(column);
    a.plain_array(column, column.size());
  }
  std::vector<uint64_t> counts = backend.block_counts();
  a.plain_array(counts, counts.size());
  std::vector<uint64_t> lanes = backend.block_lanes();
  a.plain_array(lanes, lanes.size());
  return runnable_cores(cores);
}

std::vector<bool> load_cores(ChunkReader& file, const Module& module, const MemoryPlan& plan,
                             MachineState& state, bool same_machine) {
  file.begin(kCores);
  Loading a(file);
  std::vector<CoreSnapshot> cores(plan.config.cores);
  describe_cores(a, cores);
  for (CoreSnapshot& c : cores) {
    a.require(c.place < module.uops.size() || !c.runnable, "the place of a core");
    if (c.place >= module.uops.size()) c.place = 0;
  }
  std::vector<uint8_t> scheduling;
  a.plain_array(scheduling, kMostScheduling);
  state.set_cores(cores, same_machine ? std::span<const uint8_t>(scheduling)
                                      : std::span<const uint8_t>());
  std::vector<uint64_t> column;
  for (uint32_t s = 0; s < module.slot_count; ++s) {
    a.plain_array(column, cores.size());
    a.require(column.size() == cores.size(), "a table of registers");
    from_differences(column);
    state.set_all_slots(static_cast<Slot>(s), column);
  }
  std::vector<uint64_t> counts;
  a.plain_array(counts, module.blocks.size());
  a.require(counts.size() == module.blocks.size(), "a table of blocks");
  std::vector<uint64_t> lanes;
  a.plain_array(lanes, module.blocks.size());
  state.set_block_counts(counts, lanes);
  return runnable_cores(cores);
}

void save_rights(ChunkWriter& file, const MemoryPlan& plan, Backend& backend) {
  file.begin(kRights);
  Saving a(file);
  const PageOrder order(plan);
  uint64_t begin = 0;
  uint8_t flags = 0;
  const auto flush = [&](uint64_t end) {
    a.value(end - begin);
    a.value(flags);
    begin = end;
  };
  for (uint64_t page = 0; page < order.count; ++page) {
    const uint8_t here = backend.permissions(order.core(page), order.address(page));
    if (here == flags) continue;
    if (page != begin) flush(page);
    flags = here;
  }
  if (order.count != begin) flush(order.count);
}

void load_rights(ChunkReader& file, const MemoryPlan& plan, Backend& backend) {
  file.begin(kRights);
  Loading a(file);
  const PageOrder order(plan);
  for (uint64_t page = 0; page < order.count;) {
    uint64_t run = 0;
    uint8_t flags = 0;
    a.value(run);
    a.value(flags);
    a.require(run != 0 && run <= order.count - page && flags <= (kRead | kWrite | kExecute),
              "rights of pages");
    if (flags == 0) {
      page += run;
      continue;
    }
    while (run != 0) {
      const uint64_t part = order.together(page, run);
      a.require(backend.set_permissions(order.core(page), order.address(page), part << kPageShift,
                                        flags),
                "rights of pages");
      page += part;
      run -= part;
    }
  }
}

void save_memory(ChunkWriter& file, MachineState& state) {
  file.begin(kLinear);
  Saving a(file);
  a.value(state.signalled_events());
  PieceWriter linear(file);
  state.visit_linear([&](uint64_t number, auto bytes) { linear.add(number, bytes); });
  linear.finish();
  file.begin(kWindows);
  PieceWriter windows(file);
  state.visit_windows([&](uint64_t number, auto bytes) { windows.add(number, bytes); });
  windows.finish();
}

void load_memory(ChunkReader& file, MachineState& state) {
  file.begin(kLinear);
  Loading a(file);
  uint32_t events = 0;
  a.value(events);
  state.set_signalled_events(events);
  load_pieces(file, [&](uint64_t number, auto bytes) { return state.put_linear(number, bytes); });
  file.begin(kWindows);
  load_pieces(file, [&](uint64_t number, auto bytes) { return state.put_windows(number, bytes); });
}

}  // namespace gpusim::host
