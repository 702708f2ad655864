// What a machine is made of between two slices, for checkpoints: every backend gives and takes it in the
// same form, whatever its own layout. All backends that all_backends() lists implement it beside
// Backend; state_of() finds it.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device_sim/core/backend.h"
#include "device_sim/core/memory_view.h"
#include "device_sim/core/slice_clock.h"

namespace gpusim {

struct CoreSnapshot {
  bool runnable = false;      // or waits for an event; else idle
  uint32_t place = 0;         // of a runnable core: the micro-op where it goes on
  uint32_t depth = 0;         // of calls; a hint
  uint64_t instructions = 0;  // executed so far, as max_instructions counts them
  ClassCounts classes{};      // its tally
};

class MachineState {
 public:
  virtual ~MachineState() = default;

  // Of whole blocks, by all cores; cheap enough to ask after each slice.
  virtual uint64_t instructions() = 0;

  // Of all cores, by number. `scheduling`, of which only its own kind of machine knows the meaning, adds
  // what decides how cores interleave; a machine that cannot use it, of another kind or width,
  // schedules from the start: waiting cores look again, which they may at any time. Every number in it
  // is checked.
  virtual std::vector<CoreSnapshot> cores() = 0;
  virtual std::vector<uint8_t> scheduling() = 0;
  // After configure(), once; registers after that. Places are micro-ops of the module.
  virtual void set_cores(std::span<const CoreSnapshot> cores, std::span<const uint8_t> scheduling) = 0;

  virtual void slots(Slot slot, std::span<uint64_t> values) = 0;  // of all cores
  virtual void set_all_slots(Slot slot, std::span<const uint64_t> values) = 0;
  // Backend::block_counts() and block_lanes(), the latter if the machine that was saved knew them and
  // this one counts them, too; otherwise what was executed so far counts as not diverged.
  virtual void set_block_counts(std::span<const uint64_t> counts,
                                std::span<const uint64_t> lanes) = 0;

  // Memory as pieces by number. In the linear zone: its pages. In the windows: tiles of
  // kTileBytes from the same offset of kTileCores neighbouring windows, word by word: a tile holds 8
  // rows with a word of each of its cores. Tile t is that at offset
  // t / tile_groups * kTileBytes of the cores from t % tile_groups * kTileCores on.
  // Pieces that are not visited hold zeros; zeros may be visited, too.
  using Visitor = std::function<void(uint64_t number, std::span<const uint8_t> bytes)>;
  virtual void visit_linear(const Visitor& visit) = 0;
  virtual void visit_windows(const Visitor& visit) = 0;
  // False: no such piece, or of another size.
  virtual bool put_linear(uint64_t number, std::span<const uint8_t> bytes) = 0;
  virtual bool put_windows(uint64_t number, std::span<const uint8_t> bytes) = 0;
  // MemoryView::events.
  virtual uint32_t signalled_events() = 0;
  virtual void set_signalled_events(uint32_t count) = 0;

  static constexpr uint32_t kTileCores = 64;
  static constexpr uint64_t kTileBytes = 64;
};

// Null if this backend has none.
inline MachineState* state_of(Backend& backend) { return dynamic_cast<MachineState*>(&backend); }

// How windows divide into tiles.
struct Tiles {
  Tiles(const MemoryView& view, uint32_t core_count)
      : cores(core_count),
        groups((uint64_t{core_count} + MachineState::kTileCores - 1) / MachineState::kTileCores),
        count((uint64_t{1} << view.window_shift) / MachineState::kTileBytes * groups) {}
  uint32_t first_core(uint64_t tile) const {
    return static_cast<uint32_t>(tile % groups * MachineState::kTileCores);
  }
  uint32_t cores_of(uint64_t tile) const {
    const uint32_t rest = cores - first_core(tile);
    return rest < MachineState::kTileCores ? rest : MachineState::kTileCores;
  }
  uint64_t offset(uint64_t tile) const { return tile / groups * MachineState::kTileBytes; }
  uint64_t bytes(uint64_t tile) const { return cores_of(tile) * MachineState::kTileBytes; }

  uint32_t cores;
  uint64_t groups, count;
};

// The memory of machines that have it in this process.
class CpuMachineState : public MachineState {
 public:
  void visit_linear(const Visitor& visit) override;
  void visit_windows(const Visitor& visit) override;
  bool put_linear(uint64_t number, std::span<const uint8_t> bytes) override;
  bool put_windows(uint64_t number, std::span<const uint8_t> bytes) override;
  uint32_t signalled_events() override { return *machine_memory().view.events; }
  void set_signalled_events(uint32_t count) override { *machine_memory().view.events = count; }

  // The linear zone as it lies in this process: reserved, and taken page by page.
  std::span<uint8_t> linear_storage();
  // From any thread, when guests touched more memory than they may: the slice that runs, and each
  // one after it, ends soon.
  void end_slices() { clock_.end_all(); }
  // The same, but all of guest memory is given back at once and reads as zero: nothing but tallies
  // and places of cores is worth anything afterwards.
  void drop_memory();
  // Slices end soon after so much time, and the next one first runs the cores that had no turn. For
  // hosts that have to look around in time, however many cores there are: which cores a slice runs
  // then depends on the host's speed. Zero, as it begins: they last as long as they take.
  void limit_slices(std::chrono::nanoseconds longest) { clock_.limit(longest); }

 protected:
  struct Memory {
    const MemoryView& view;
    uint32_t cores;
    std::array<std::span<uint8_t>, 3> storage;  // GuestMemory::storage()
  };
  virtual Memory machine_memory() = 0;
  // All of its storage may be accessed until the next slice, whatever the guest's permissions.
  virtual void open_memory() {}

  SliceClock clock_;
};

// Null if the memory of this backend's guests is not in this process.
inline CpuMachineState* memory_of(Backend& backend) {
  return dynamic_cast<CpuMachineState*>(&backend);
}

}  // namespace gpusim
