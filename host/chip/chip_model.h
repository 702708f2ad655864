// A chip beside the program: what cores did, from their journals, put in the order of simulated
// time.
//
// Time goes on in windows ("bound and weave", Sanchez and Kozyrakis, ZSim, ISCA 2013). In a window
// each core first runs freely, on its own caches alone; then all requests that left the cores are
// served in the order in which they were issued, and what they cost is charged to the cores. A
// window ends early where a core has no request left, so that none is issued in the past. What
// others did to a core's lines it learns when it runs freely again.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/chip/core_model.h"
#include "host/chip/core_queue.h"
#include "host/chip/line_map.h"
#include "host/chip/lock_calendar.h"
#include "host/chip/memory_system.h"
#include "host/chip/program_model.h"
#include "host/chip/sampling.h"
#include "host/chip/side_thread.h"
#include "host/chip/sync_objects.h"
#include "host/chip/timeline.h"
#include "host/chip/totals.h"
#include "host/journal/journals.h"

namespace gpusim::host::chip {

struct ChipResult {
  Totals totals;  // of the region of interest, or of the run
  Ticks begin = 0;
  bool has_region = false;  // the program came to it
  bool region_has_ended = false;
  std::vector<Ticks> clocks, waited;  // of cores at the end of the run
  std::vector<Sample> samples;
  // Instructions that accessed memory and were not served on the chip: per word of the code map,
  // and per core, over the whole run.
  std::vector<uint64_t> off_chip_at, off_chip_of;
  std::shared_ptr<const ChipTimeline> timeline;  // of the whole run, if one was asked for
  std::optional<SampledCycles> sampled;
  Ticks in_detail = 0;  // of the run, if it was sampled
  // Waits whose end no simulated write explains, and how often memory for the cores' streams ran
  // out: where these are not 0, time depends on how the run was made.
  uint64_t unexplained_waits = 0, forced = 0;
};

class ChipModel final : public JournalReader, private SyncObjects::Cores {
 public:
  ChipModel(const ChipShape& shape, const Module& module, const MachineConfig& config,
            uint32_t pointer_bytes, const std::string& region);
  ~ChipModel() override;
  // Before the run: look at pieces of it in detail. Between them links, ports and channels are
  // taken to be free.
  void sample_pieces(const SamplingPlan& plan);
  // Before the run: note what cores did when.
  // Before the run, with MachineConfig::notes_clocks: what a core has executed, as a ClockWord.
  void read_clocks(std::function<uint64_t(uint32_t core)> clock_of) {
    clock_of_ = std::move(clock_of);
  }
  void record_timeline() { timeline_ = std::make_shared<ChipTimeline>(config_.cores); }

  // --- As the run goes on. After a slice the model works beside the next one, if there is more
  // than one host thread; settle() waits until it is done, and comes before words are read.
  void settle() { beside_.settle(); }
  void read(uint32_t core, std::span<const uint64_t> words,
            std::span<const BlockSites> blocks) override;
  void started(uint32_t child, uint32_t parent) override { order(parent, child); }
  // A core of the same machine sleeps no longer in a system call.
  void woken(uint32_t core, uint32_t by) { order(by, core); }
  // A core waited for something in a system call until a time limit.
  void timed_out(uint32_t core);
  // A thread ended, and the kernel cleared that word.
  void left(uint32_t core, uint64_t word);
  // A signal's handler begins or ends.
  void handler_begins(uint32_t core);
  void handler_ends(uint32_t core);
  // gpusim_time_release() and _acquire().
  void release(uint32_t core, uint64_t address, uint64_t number);
  void acquire(uint32_t core, uint64_t address, uint64_t number);
  void ended(uint32_t core);
  // After a slice and all of its events. `blocks`: all, with their accesses. `sleepers`: per core,
  // as in device_sim/core/sleepers.h; empty: it is not known who sleeps.
  void after_slice(std::span<const BlockSites> blocks, std::span<const uint8_t> sleepers);

  // --- After the run.
  ChipResult finish(std::span<const BlockSites> blocks);
  const ChipShape& shape() const { return shape_; }
  const ProgramModel& program() const { return program_; }
  const MemorySystem& memory() const { return memory_; }

 private:
  struct Core;
  struct DestroyCore {
    void operator()(Core* core) const;
  };
  struct KeyState {
    uint64_t appended = 0, reached = 0;
    uint64_t least = ~uint64_t{0};  // that one who waits requires
    Ticks at = 0;
    uint32_t by = 0;
    bool is_forgotten = false;  // nobody will acquire it
    std::vector<uint32_t> waiting;
  };
  // A lock of code that the model does not know.
  struct OwnLock {
    LockCalendar held;
    Ticks handover = 0;  // how long an access to its word took, at most
    uint32_t last_holder = 0;
    size_t look_at = 1024;  // so many pieces: forget what lies before all that is under way
  };
  // Of one word of a condition variable: the two cores that signalled in the latest slices.
  struct Signals {
    struct Last {
      uint32_t core = ~uint32_t{0}, slice = 0;
    };
    Last first, second;
    void add(Last last);
    // Whether another core did in that slice or later.
    bool has_since(uint32_t slice, uint32_t core) const {
      const Last& last = first.core == core ? second : first;
      return last.core != ~uint32_t{0} && last.slice >= slice;
    }
  };
  // Cores that lost a line, and what others wrote to it since, and last where.
  struct Lost {
    struct Change {
      uint64_t written;
      uint32_t writer_unit;
    };
    std::vector<uint32_t> cores;
    std::vector<Change> changes;
  };

  static void prefetch(const Core& c);
  bool note_clock(uint32_t core);
  void order(uint32_t before, uint32_t after);
  void go_on_after_slice();
  uint64_t key_of(uint64_t address, uint64_t number) const { return address << 1 | (number & 1); }
  bool advance(bool is_final);
  bool begin_window();
  bool run_freely(bool is_final);
  void note_sleepers(std::span<const uint8_t> sleepers);
  bool may_say_more(const Core& c) const;
  void find_woken();
  Ticks time_of(const Core& c) const;
  void go_on_from_free_run();
  void go_on(uint32_t core);
  void serve_until(Ticks end);
  void serve(uint32_t core);
  void serve_access(Core& c, uint32_t core, const Request& r);
  void wait_until(Core& c, Ticks done, const Stack& of, uint32_t unit);
  void wait_for_load(Core& c, uint32_t number);
  void drain(Core& c);
  void wait_for_slot(Core& c, size_t most, bool loads, uint32_t unit);
  void note_time(uint32_t core, Phase phase, Ticks time) {
    if (timeline_) timeline_->add(core, phase, time);
  }
  void charge(Core& c, Part part, Ticks time, uint32_t unit);
  void charge(Core& c, const Stack& parts, uint32_t unit);
  void block(uint32_t core, uint8_t why);
  void unblock(uint32_t core, Ticks at, uint32_t by, Phase waited_for) override;
  Ticks clock_of(uint32_t core) const override;
  void wait_for_lock(uint32_t core) override;
  void wait_for_others(uint32_t core) override;
  void wait(uint32_t core, const Request& r);
  void reach(uint32_t core, const Request& r);
  void acquire_now(uint32_t core, const Request& r);
  void access_lock(uint32_t core, const Request& r) override;
  void hand_over(uint32_t next, uint32_t core, const Request& r) override;
  void forget(uint32_t core, const Request& r);
  void signal(uint32_t core, const Request& r);
  void await_signal(uint32_t core, const Request& r);
  void take_own_lock(uint32_t core, const Request& r);
  void give_own_lock(uint32_t core, const Request& r);
  void forget_pieces(uint64_t word, OwnLock& lock);
  bool let_one_go();
  void classify(uint32_t core, const Request& r);
  void note_written(uint32_t core, const Request& r);
  void lost(uint32_t core, uint64_t line, bool stays_shared);
  Totals totals_at(Ticks time);
  void end_region();
  uint64_t executed() const;
  void look_at_range();
  bool is_of_interest() const;
  void look_at_plan();
  void sample(Ticks end, bool is_last = false);
  void end_last_sample(Ticks end);

  const ChipShape shape_;
  const MachineConfig config_;
  ProgramModel program_;
  LockWords lock_words_;
  LeftWords left_words_;
  GuardWords guard_words_;
  HugePool pool_;  // of the cores and their caches
  CoreContext context_;
  std::function<uint64_t(uint32_t core)> clock_of_;
  MemorySystem memory_;
  SyncObjects objects_;
  std::vector<std::unique_ptr<Core, DestroyCore>> cores_;  // the pool's
  std::vector<std::vector<uint64_t>> executions_;          // per host thread

  // A window: cores run freely to until_; requests are served up to weave_until_.
  Ticks from_ = 0, until_ = 0, weave_until_ = 0;
  bool in_window_ = false;
  // Cores that are not blocked are in one of these: with a request, or parked; without; and running
  // freely now.
  CoreQueue queue_, ready_;
  std::vector<uint32_t> running_;
  std::unordered_map<uint64_t, KeyState> keys_;
  std::unordered_map<uint64_t, OwnLock> own_locks_;
  std::map<uint64_t, Signals> signals_;
  std::map<uint64_t, std::vector<uint32_t>> awaiting_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> watchers_;
  LineMap<Lost> lost_;
  uint64_t next_key_ = uint64_t{1} << 63;
  uint32_t slice_ = 0;  // of the words that come next
  const Request* serving_ = nullptr;
  uint32_t serving_core_ = 0;

  Totals now_;
  std::unique_ptr<Totals> begin_, end_;
  Ticks region_end_ = 0;
  bool region_ends_ = false;  // end_ has to be taken before anything else happens
  std::vector<uint64_t> off_chip_at_, off_chip_of_;
  uint64_t unexplained_waits_ = 0, forced_ = 0;
  bool is_forced_ = false;  // now: the order is given up

  // Of a sampled run. A piece begins in kWarming, until queues are as long as they get.
  enum class Detail : uint8_t { kNo, kWarming, kYes } detail_ = Detail::kYes;
  std::optional<SamplingPlan> plan_;
  std::vector<DetailPiece> pieces_;
  bool region_has_begun_ = false;
  uint64_t piece_from_ = 0;  // instructions
  Ticks piece_begin_ = 0, looked_at_ = 0, in_detail_ = 0;

  std::shared_ptr<ChipTimeline> timeline_;
  std::vector<Sample> samples_;
  Ticks sample_length_ = 0, sampled_until_ = 0;
  Totals sampled_;  // links by place
  struct Workers;
  std::unique_ptr<Workers> workers_;  // for cores that run freely
  SideThread beside_;                 // the last: it works on all of the above
};

}  // namespace gpusim::host::chip
