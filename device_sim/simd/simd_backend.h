// Cores in lockstep groups on SIMD lanes, groups spread over host threads.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "device_sim/core/cpu_backend.h"
#include "device_sim/core/machine_state.h"
#include "device_sim/core/order.h"
#include "device_sim/simd/gear.h"
#include "device_sim/simd/group.h"
#include "device_sim/simd/jit/code_cache.h"
#include "device_sim/simd/regroup.h"

namespace gpusim {

class SimdBackend final : public CpuBackend, public CpuMachineState {
 public:
  // False, with a reason, on processors below the baseline.
  static bool available(std::string* why_not);
  std::string name() const override { return "simd"; }
  std::string device() const override;
  void configure(const Module& module, const MachineConfig& config) override;
  void reset(uint64_t max_instructions) override;
  void module_changed() override;
  uint64_t slot(uint32_t core, Slot slot) override;
  void set_slot(uint32_t core, Slot slot, uint64_t value) override;
  void set_slots(Slot slot, CoreWord value) override;
  bool set_permissions(uint32_t core, uint64_t address, uint64_t size_bytes,
                       uint8_t flags) override {
    forget_reach(address);
    const bool done = CpuBackend::set_permissions(core, address, size_bytes, flags);
    note_permissions(address, size_bytes);
    return done;
  }
  bool set_permissions_all(uint64_t address, uint64_t size_bytes, uint8_t flags) override {
    forget_reach(address);
    const bool done = CpuBackend::set_permissions_all(address, size_bytes, flags);
    note_permissions(address, size_bytes);
    return done;
  }
  void start(uint32_t core, uint32_t uop) override;
  void start_all(uint32_t uop) override;
  void stop(uint32_t core) override;
  uint32_t place(uint32_t core) override;
  std::span<const Event> run_slice(uint64_t instructions) override;
  std::vector<uint64_t> block_counts() override;
  CoreTally tally(uint32_t core) override;
  CoreTally tally_of_all() override;
  std::vector<uint64_t> block_lanes() override;
  std::vector<GroupUse> group_use() override;

  // MachineState (simd_state.cpp).
  uint64_t instructions() override;
  std::vector<CoreSnapshot> cores() override;
  std::vector<uint8_t> scheduling() override;
  void set_cores(std::span<const CoreSnapshot> cores, std::span<const uint8_t> scheduling) override;
  void slots(Slot slot, std::span<uint64_t> values) override;
  void set_all_slots(Slot slot, std::span<const uint64_t> values) override;
  void set_block_counts(std::span<const uint64_t> counts, std::span<const uint64_t> lanes) override;

  uint32_t runnable() const override { return runnable_; }
  // A core's share of its group.
  static constexpr size_t kSchedulingBytes =
      sizeof(simd::Group) / simd::kMaxLanes + sizeof(Watch) + sizeof(ClassCounts);
  // Pieces of native code made so far.
  size_t native_variants() const {
    return (native_ ? native_->variants() : 0) + (other_native_ ? other_native_->variants() : 0);
  }
  // Instructions of cores alone in their groups that native code ran.
  uint64_t native_instructions() const { return engine() ? engine()->instructions() : 0; }
  // Times that cores which ran in lockstep went on alone, or the other way round.
  size_t rearrangements() const { return rearrangements_; }
  // Times that cores were moved between groups.
  size_t regroupings() const { return regroupings_; }

 private:
  Memory machine_memory() override { return {memory_.view(), config_.cores, memory_.storage()}; }
  struct LaneUse {
    uint64_t instructions = 0, steps = 0;
  };
  template <class Archive>
  void describe_group(Archive& a, size_t group);
  template <class Archive>
  void describe_scheduling(Archive& a);
  bool restore_scheduling(std::span<const uint8_t> bytes);
  // Permissions of pages from `address` on change: what groups know of them is no longer true.
  void forget_reach(uint64_t address);
  void note_permissions(uint64_t address, uint64_t size_bytes) {
    if (engine()) engine()->permissions_changed(address, size_bytes);
  }
  size_t group_number(uint32_t core) const {
    return regrouper_.position(core) / width_;
  }
  simd::Group& group_of(uint32_t core) { return groups_[group_number(core)]; }
  uint32_t lane_of(uint32_t core) const { return regrouper_.position(core) % width_; }
  void lay_out();
  void make_groups(bool is_new);
  void put_cores(std::span<const CoreSnapshot> cores, bool scheduled);
  void view_machine();
  void connect();
  std::unique_ptr<native::Engine> make_engine() const;
  void make_code_caches();
  bool may_part() const;
  simd::Gear new_gear() const;
  void arrange(bool alone);
  bool change_gear(uint64_t used, const LaneUse& before);
  // Of cores alone, whether they are now or not; null: none.
  native::Engine* engine() const {
    if (native_ && native_->alone()) return native_->alone();
    return other_native_ ? other_native_->alone() : nullptr;
  }
  void mark_hot_blocks(uint64_t used);
  void mark_hot_blocks_of_one(uint64_t used);
  // Whether every group has one core.
  bool is_of_one() const { return width_ == 1 || config_.cores == 1; }
  // When a group is to run next, kept apart from the group: most may wait while few work.
  struct Rest {
    enum class State : uint8_t {
      kIdle,  // nobody is runnable
      kAwake,
      kWord,     // all lanes wait for a change of one word
      kEvents,   // all lanes wait for several words, or for signalled events
      kPolling,  // all lanes gave way, to look again later
    };
    State state = State::kIdle;
    uint32_t rounds = 0;  // in vain since the last success
    uint64_t until = 0;   // the slice in which it runs in any case
    uint64_t used = 0;    // instructions of its last slice
    Watch watch;          // kWord
  };
  bool is_due(size_t group) const;
  void choose_awake();
  bool is_worth_threads() const;
  bool begin_round();
  void run_awake(uint64_t instructions);
  // What groups count per block, summed up by one host thread. Where lanes are counted, one word
  // has both sums (Group::weight), and is taken apart before either exceeds 32 bits.
  struct BlockCounter {
    std::vector<uint64_t> counts;
    std::vector<uint64_t> both, lanes;  // empty unless lanes are counted
    uint64_t steps = 0;                 // at most so many in `both`

    void resize(size_t blocks, bool counts_lanes);
    uint64_t* data() { return both.empty() ? counts.data() : both.data(); }
    void take_apart();
    void take_over(BlockCounter& other);
  };
  void fetch_ahead(size_t group) const;
  // What a host thread writes.
  struct Worker {
    BlockCounter blocks;
    std::vector<Event> events;
    bool missed = false;  // a group was somebody else's when it looked last
    uint64_t since_look = 0;  // at the clock, instructions
    simd::Workspace workspace;
  };
  // Who runs a group for a turn, has `taken` it.
  struct Turn {
    std::atomic<bool> taken = false;
    std::atomic<uint64_t> left = 0;  // instructions of the slice
    bool was_chosen = false;         // to run at least once, whether it is due or not
  };
  // Whether threads are any use: cores that contend for a few words by atomic operations are faster
  // on one. While there are many of these, a slice now and then is run the other way.
  class Pace {
   public:
    bool together() const { return together_ == (wait_ != 0); }
    // Instructions and atomic operations: of groups, not of cores.
    void note(bool together, uint64_t instructions, uint64_t atomics,
              std::chrono::duration<double> time);

   private:
    static constexpr uint32_t kFirstWait = 16;
    bool together_ = true;
    double last_speed_ = 0;  // instructions per second of the last slice that was run so
    uint32_t wait_ = 1, next_wait_ = kFirstWait;  // slices until it is questioned
  };
  void run_turns(size_t self);
  bool run_turn(size_t group, Worker& worker);
  // Returns the instructions that it took off the slice.
  uint64_t run_in_slice(size_t group, uint64_t instructions, Worker& worker);
  LaneUse lane_use() const;
  void run_apart(simd::Group& group, uint64_t instructions, Worker& worker);
  void rest(size_t group, bool in_vain);
  uint64_t run_group(simd::Group& group, uint64_t instructions, Worker& worker);
  BlockCounter& all_blocks();

  simd::Machine machine_;
  uint32_t width_ = 64;  // of groups
  std::unique_ptr<simd::CodeCache> native_;  // null: the interpreter only
  // Where cores may run in lockstep or alone: what decides, and the code for what they do not do now.
  std::optional<simd::Gear> gear_;
  std::unique_ptr<simd::CodeCache> other_native_;
  size_t rearrangements_ = 0;
  uint64_t slices_ = 0, next_mark_ = 0;
  uint64_t natively_ = 0;       // instructions that Engine ran when it was looked at last
  int64_t interpreted_ = 0;     // and those that the interpreter ran since
  size_t regroupings_ = 0;
  std::vector<simd::BlockTally> block_tallies_;
  ReconvergenceOrder order_;
  struct Storage {
    LazyMemory slots;  // [group][slot][kMaxLanes]
    LazyMemory groups;
    LazyMemory watches;  // [group][lane]
    LazyMemory tallies;  // [group][lane]
  };
  Storage storages_[2];  // of cores in lockstep, and alone
  std::span<simd::Group> groups_;
  simd::Regrouper regrouper_;
  std::vector<Rest> rests_;        // per group
  std::vector<uint32_t> awake_;    // groups that run in this slice
  bool was_ended_ = false;         // the slice, before its groups had had their turns
  bool is_worth_threads_ = false;  // in this slice
  uint32_t runnable_ = 0;          // cores that are runnable or wait for an event
  std::vector<Worker> workers_;    // one of them also where only one is needed
  std::unique_ptr<Turn[]> turns_;  // per group
  Pace pace_;
  size_t workers_now_ = 1;        // in this slice
  uint64_t turn_length_ = 0;      // likewise
  std::atomic<int> running_ = 0;  // threads that run a group
};

}  // namespace gpusim
