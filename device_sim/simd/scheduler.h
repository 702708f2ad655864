// Which groups run in a slice, for how long, and on which host threads.
//
// A slice gives every group that is awake so many instructions. Of the groups that are awake each
// host thread has a share, in which it runs one after the other for a turn, again and again; a
// thread that finds none to run there helps out elsewhere. Groups that only wait rest, for what they
// wait for or for ever more slices.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "device_sim/core/slice_clock.h"
#include "device_sim/core/state_bytes.h"
#include "device_sim/simd/block_counter.h"
#include "device_sim/simd/groups.h"
#include "device_sim/simd/pace.h"
#include "device_sim/simd/turn_by_steps.h"
#include "device_sim/simd/turn_of_many.h"

namespace gpusim::simd {

class Scheduler {
 public:
  // All three must stay where they are.
  Scheduler(Groups& groups, Machine& machine, SliceClock& clock)
      : groups_(groups), machine_(machine), clock_(clock) {}

  // A new run. Then comes reset().
  void configure(const MachineConfig& config);
  // After the groups were made anew: those with runnable cores are awake. Slices go on.
  void reset();
  void restart() { slices_ = 0; }
  // Others see guest memory, too.
  void share_memory() { is_memory_ours_ = false; }
  void set_blocks(size_t blocks);
  void wake(size_t group) { rests_[group].state = Rest::State::kAwake; }
  // After lanes changed their groups.
  void look_again();

  // A slice is of one round or several: each begins, so that awake() says which groups run in it,
  // and runs, which returns the instructions of these groups and adds the cores that stopped to
  // `events`.
  void begin_round();
  // Where one host thread runs them all, `after_turn` hears of each turn's instructions, if it is
  // set.
  using AfterTurn = std::function<void(uint64_t used)>;
  uint64_t run_round(uint64_t instructions, std::vector<Event>& events,
                     const AfterTurn& after_turn = {});
  void end_slice() { was_ended_ = clock_.is_over(); }

  uint64_t slices() const { return slices_; }  // rounds so far
  std::span<const uint32_t> awake() const { return awake_; }
  // Instructions of a group in the last slice that it ran in.
  uint64_t used(size_t group) const { return rests_[group].used; }
  // Of all host threads.
  BlockCounter& blocks();
  // Those that native code for one core has executed.
  uint64_t alone_instructions() const;

  // For checkpoints: when groups run, and the groups' own share in that. False: it is no such state.
  void save(StateWriter& out);
  bool load(StateReader& in);

 private:
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
    uint64_t synchronised = 0;  // instructions before it that synchronise, of a core alone
    Watch watch;          // kWord
    TurnBySteps turn;
  };
  // What a host thread writes.
  struct alignas(64) Worker {
    // Whether it ran a group when it last looked for one: others may yet get work from it. It is
    // seldom written: a count of turns would go to and fro between the threads' caches.
    std::atomic<bool> runs = false;
    BlockCounter blocks;
    std::vector<Event> events;
    bool missed = false;      // another thread had a group when this one looked last
    uint64_t since_look = 0;  // at the clock, instructions
    uint64_t turn_length = 0;
    Workspace workspace;
  };
  // The thread that runs a group for a turn has `taken` it.
  struct Turn {
    std::atomic<bool> taken = false;
    std::atomic<uint64_t> left = 0;  // instructions of the slice
    bool was_chosen = false;         // to run at least once, whether it is due or not
  };

  bool is_due(size_t group) const;
  // Whether lanes of the group wait for others of their warps or CTAs, who may let them go on.
  bool is_blocked(size_t group) const;
  // The flag of a team of groups that one thread runs at a time is its first one's.
  std::atomic<bool>& taken(size_t group);
  void choose_awake();
  bool is_worth_threads() const;
  uint64_t turn_length(uint64_t instructions) const;
  void rest(size_t group, bool in_vain);
  // After a round of cores alone, which executed so many instructions. Returns how many of them
  // synchronise.
  uint64_t note_shares(uint64_t used);
  void fetch_ahead(size_t group) const;
  void run_turns(size_t self);
  bool does_another_run(const Worker& self) const;
  bool run_turn(size_t group, Worker& worker);
  bool run_taken(size_t group, Worker& worker);
  // Each returns the instructions that it took off the slice.
  uint64_t run_in_slice(size_t group, uint64_t instructions, Worker& worker);
  uint64_t run_by_steps(size_t group, uint64_t most, Worker& worker);
  uint64_t run_apart(Group& group, uint64_t instructions, Worker& worker);
  uint64_t run_group(Group& group, uint64_t instructions, Worker& worker);
  template <class Archive>
  void describe_groups(Archive& archive);

  Groups& groups_;
  Machine& machine_;
  SliceClock& clock_;
  uint64_t seed_ = 0;
  uint32_t cores_ = 0;
  bool is_memory_ours_ = true;     // and nobody else sees it
  uint64_t slices_ = 0;
  std::vector<Rest> rests_;        // per group
  std::vector<uint32_t> awake_;    // groups that run in this round
  bool was_ended_ = false;         // the slice, before its groups had had their turns
  bool is_new_ = true;             // this round: not the rest of one that was ended
  bool is_worth_threads_ = false;  // in this slice
  std::vector<Worker> workers_;    // one of them also where only one is needed
  std::unique_ptr<Turn[]> turns_;  // per group
  size_t turn_count_ = 0;
  Pace pace_;
  TurnOfMany turn_of_many_;
  bool is_shared_ = true;         // memory, by all cores
  size_t workers_now_ = 1;        // in this round
  uint64_t turn_length_ = 0;      // likewise, of each group's first turn
  const AfterTurn* after_turn_ = nullptr;  // likewise
};

}  // namespace gpusim::simd
