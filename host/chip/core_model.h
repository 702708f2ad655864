// One core of a chip: reads what it did from its journal and sends what its own caches do not serve
// as requests, with the cycles between them.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "device_sim/core/backend.h"
#include "host/chip/line_set.h"
#include "host/chip/memory_system.h"
#include "host/chip/private_cache.h"
#include "host/chip/program_model.h"

namespace gpusim::host::chip {

// What a request is, and of which kind.
enum KindTraits : uint8_t {
  kPlainKind = 0,
  kMayBlock = 1,  // the core may have to wait for another one
  kOfObject = 2,  // a lock, a semaphore or a barrier that is played again: `words` is where it is
};
#define GPUSIM_REQUEST_KINDS(KIND)                                                               \
  KIND(kLoad, kPlainKind)   /* the core waits for it */                                          \
  KIND(kStore, kPlainKind)  /* it does not */                                                    \
  KIND(kAtomic, kPlainKind) /* it waits, also for what came before */                            \
  KIND(kFetch, kPlainKind)                                                                       \
  KIND(kUse, kPlainKind)     /* of what a load brings that may be under way: it waits */         \
  KIND(kPut, kPlainKind)     /* nobody waits */                                                  \
  KIND(kNote, kPlainKind)    /* a write to a line that is contended: takes no time */            \
  KIND(kTail, kPlainKind)    /* cycles only: at the end */                                       \
  KIND(kWait, kMayBlock)     /* until a word of the line changes */                              \
  KIND(kRelease, kPlainKind) /* number: of the order */                                          \
  KIND(kAcquire, kMayBlock)                                                                      \
  KIND(kLock, kMayBlock | kOfObject)                                                             \
  KIND(kUnlock, kOfObject)                                                                       \
  KIND(kReadLock, kMayBlock | kOfObject)                                                         \
  KIND(kWriteLock, kMayBlock | kOfObject)                                                        \
  KIND(kLeave, kOfObject)                                                                        \
  KIND(kDown, kMayBlock | kOfObject)                                                             \
  KIND(kUp, kOfObject)                                                                           \
  KIND(kSetSemaphore, kOfObject) /* order: its value */                                          \
  KIND(kArrive, kMayBlock | kOfObject)                                                           \
  KIND(kSetBarrier, kOfObject) /* order: so many come to it */                                   \
  KIND(kOnceDone, kOfObject)                                                                     \
  KIND(kOnceSeen, kMayBlock | kOfObject)                                                         \
  KIND(kTake, kPlainKind)   /* words: a word by which the core may have taken a lock */          \
  KIND(kGive, kPlainKind)   /* the word by which it gives that lock */                           \
  KIND(kForget, kPlainKind) /* a wake-up in a function that takes a lock: no order, if known */  \
  KIND(kSignal, kPlainKind) /* words: a word of the condition variable; order: the slice */      \
  KIND(kAwait, kMayBlock)   /* the same, of a wait since that slice in which it did not sleep */ \
  KIND(kWrite, kPlainKind)  /* of a word that may be waited for, where memory takes no time */   \
  KIND(kBegin, kPlainKind)  /* of the region of interest */                                      \
  KIND(kEnd, kPlainKind)
enum class Kind : uint8_t {
#define GPUSIM_KIND(name, traits) name,
  GPUSIM_REQUEST_KINDS(GPUSIM_KIND)
#undef GPUSIM_KIND
};
inline constexpr uint8_t kKindTraits[] = {
#define GPUSIM_KIND(name, traits) traits,
    GPUSIM_REQUEST_KINDS(GPUSIM_KIND)
#undef GPUSIM_KIND
};
constexpr bool may_block(Kind k) { return (kKindTraits[static_cast<size_t>(k)] & kMayBlock) != 0; }
constexpr bool is_access(Kind k) {
  return k == Kind::kLoad || k == Kind::kStore || k == Kind::kAtomic || k == Kind::kFetch ||
         k == Kind::kPut;
}
constexpr bool is_of_object(Kind k) {
  return (kKindTraits[static_cast<size_t>(k)] & kOfObject) != 0;
}

// A line of the host's cache: thousands of cores' requests are looked at in turn.
struct alignas(64) Request {
  uint64_t line = 0;
  uint64_t words = 0;  // mask of the 8-byte words of the line
  Ticks gap = 0;       // since the request before
  Stalls stalls;       // of it: parts that are not instructions
  Ticks l2 = 0;        // likewise
  uint32_t unit = 0;
  uint32_t order = 0;   // kRelease, kAcquire: which; kSignal, kAwait: a slice; else bytes
  uint32_t number = 0;  // kLoad, kUse: of the core's loads that left it, if it keeps count
  Kind kind = Kind::kTail;
  Ask ask = Ask::kRead;
  bool counts = false;  // the first line of an access
  bool is_new = false;  // a line that the core never had
};
static_assert(sizeof(Request) == 64);

// One word of order between cores: what the releasing core did so far comes before what the
// acquiring one does next. Or the end of a wait in the kernel, at its time limit, which orders
// nothing.
struct Order {
  uint64_t key = 0;
  uint64_t required = 0;  // acquire: so many releases of the key must have been reached
  bool is_release = false;
  bool has_word = false;  // key is an address that both access
  bool stays = false;     // any number of cores acquire it
  bool is_time_out = false;
  // A signal's handler begins or ends here.
  bool begins_handler = false, ends_handler = false;
};

// Words that the kernel cleared since their threads had ended: after which slice, and the key by
// which that is released. Grows between slices.
struct Left {
  uint32_t core, slice;
  uint64_t key;
};
using LeftWords = std::unordered_map<uint64_t, std::vector<Left>>;

// Words of what C++ initialises once, and of the first time that it was: by which core, in which
// slice. Grows between slices.
struct Initialised {
  uint32_t core, slice;
};
using GuardWords = std::unordered_map<uint64_t, Initialised>;

// Words by which locks are given, of programs' own locks. Grows between two windows.
using LockWords = std::unordered_set<uint64_t>;

struct CoreContext {
  const ChipShape& shape;
  const ProgramModel& program;
  const LockWords& lock_words;
  const LeftWords& left_words;
  const GuardWords& guard_words;
  const MachineConfig& config;
  HugePool& pool;
  uint32_t line_shift, granule_shift;
  uint64_t stack_base, stack_end;  // of all cores
  Ticks least_miss;                // what a miss costs at least
};

struct CoreCounts {
  uint64_t instructions = 0;
  uint64_t l1_accesses = 0, l1_misses = 0;  // data; accesses as instructions make them
  uint64_t l2_accesses = 0, l2_misses = 0;  // a private one
  uint64_t fetches = 0, fetch_misses = 0;   // lines
  uint64_t skipped = 0;  // instructions of looks in vain, and of barriers and locks
};

// Where a core is inside a function that takes or gives a lock.
struct CallOfLock {
  bool in_lock_ = false, lock_has_word_ = false, was_inside_ = false;
  const BlockModel* lock_block_ = nullptr;
  bool lock_returns_ = false;                   // the block before returned from it
  uint64_t lock_tail_ = 0, lock_tail_end_ = 0;  // a function that it ended by a jump to
  uint64_t lock_return_ = 0, lock_word_ = 0;
  const SyncFunction* call_ = nullptr;  // that was called, which may have gone on in another one
  std::vector<uint64_t> values_;        // of it: noted arguments, and its result
  bool is_withdrawn_ = false;           // it is played at its end
  bool makes_name_ = false;             // the last attempt to give a file its name did
};

class CoreModel : private CallOfLock {
 public:
  CoreModel(const CoreContext& context, uint32_t number);

  // --- The stream, between slices.
  void append(std::span<const uint64_t> words, uint32_t slice);
  void append(const Order& order);
  // With MachineConfig::notes_clocks: a ClockWord of the core, behind all that was appended. False:
  // it is the last one's.
  bool append_clock(uint64_t clock);
  // What was appended so far may be used; and whether that is all that there will be.
  void open(bool is_final) {
    is_fresh_ |= usable_ < words_.size() || is_final != is_final_;
    usable_ = words_.size();
    is_final_ = is_final;
  }
  size_t backlog() const { return words_.size() - at_; }
  bool has_words() const { return at_ < usable_; }
  bool has_more() const { return usable_ < words_.size(); }  // that may not be used yet

  // It waits for a word to change, and all that it did since, also what may not be used yet, was to
  // look at it in vain.
  bool only_looks() const;
  // What is left of its words is no more than a look, and its end.
  bool is_at_end() const;

  // It came to a function that takes a lock, and not to its end. If it sleeps there, in the run, it
  // is not known when it would go on in simulated time. Waits for a semaphore that end at some time
  // may be long, and what a semaphore was given keeps its time.
  bool is_taking_lock() const {
    if (!in_lock_) return false;
    const Role role = lock_block_->role;
    if (is_withdrawn_) return false;
    return role == Role::kLock || role == Role::kRead || role == Role::kWrite ||
           (!call_->may_fail && (role == Role::kDown || role == Role::kArrive));
  }

  // It waits for a semaphore, and a signal's handler comes before the end of that.
  bool is_interrupted() const;
  // What it waits for was not asked for yet: it is at its end.
  void withdraw() { is_withdrawn_ = true; }

  // Calls f(word) for what C++ initialised in the words that may not be used yet.
  template <class F>
  void for_each_initialised(F f) const {
    for (size_t at = usable_; at < words_.size(); ++at)
      if (const uint64_t word = initialised_at(at)) f(word);
  }

  // What may be used since it starved makes it do something.
  bool can_go() const {
    const bool has_tail = is_final_ && (block_ != nullptr || since_ != 0);
    return is_fresh_ && (has_words() || has_tail);
  }

  // --- Free running.
  // At `clock`, with no request left. `patience`: so long it keeps lines that others want.
  void begin(Ticks clock, Ticks patience);
  // Reads on until the core is at `until`, if its misses cost what they cost at least. It stops
  // where it may have to wait for another core, and, with no patience left, where it comes to a
  // line that others want. Counts executions of blocks.
  void run(Ticks until, std::vector<uint64_t>& executions);
  // Without more words it could not go on.
  bool is_starved() const { return starved_; }
  // Cycles up to what it does next.
  Ticks since_request() const {
    return since_ + (starved_ && block_ && !in_lock_ ? block_->cost - counted_ : 0);
  }

  // --- What others did to its lines, before it runs again.
  void lose(uint64_t line, bool stays_shared) { losses_.push_back({line, stays_shared}); }
  // It got the line after all.
  void keep(uint64_t line) {
    std::erase_if(losses_, [&](const Loss& l) { return l.line == line; });
  }
  void grant_exclusive(uint64_t line) { grants_.push_back(line); }

  std::vector<Request> requests;
  size_t next = 0;  // of them
  bool has_request() const { return next < requests.size(); }
  const Order& order(uint32_t number) const { return orders_[number]; }
  CoreCounts counts;
  // Words by which it gave locks that it had taken, since somebody cleared this.
  std::vector<uint64_t> lock_words;

 private:
  // What a look at a lock's word, or another attempt to take it, undoes of the one before if there
  // was nothing else between the two: the core as it was when it came to the first.
  struct Look {
    uint32_t unit;
    size_t requests, blocks;
    Ticks since, estimate;
    Stalls stalls;
    Ticks since_l2;
    CoreCounts counts;
  };
  // The core will wait for that load: at a moment of its block, or, in a later one, where a
  // register is read.
  struct Use {
    uint32_t load;
    std::optional<Point> at;
    Slot slot;
    Ticks least;  // when the load is there, at the earliest
  };
  // A word that it looked at or changed with the order of an acquire.
  struct Taken {
    uint64_t word;
    bool is_ticket;  // a look beside the word of an atomic operation
  };
  struct Loss {
    uint64_t line;
    bool stays_shared;
  };
  enum class Scan { kFound, kNot, kUnknown };
  // What a word of a scan tells: that a block begins, and how many instructions without words came
  // before it.
  struct Step {
    const BlockModel* block = nullptr;
    uint64_t untold = 0;
    bool is_order = false;
    bool is_any() const { return block || untold != 0; }
    uint64_t instructions() const { return untold + (block ? block->insn_count : 0); }
  };

  template <bool kIdeal, bool kSchedules>
  void run_hits(Ticks until);
  // The core is at that moment of its block.
  void come_to(const Point& p) {
    since_ += p.at - counted_;
    counted_ = p.at;
    stalls_ += p.stalls - counted_stalls_;
    counted_stalls_ = p.stalls;
  }
  void use_before(Ticks at);
  void note_uses(const SiteModel& site, size_t first_request);
  void carry_uses();
  // What comes next does not come right behind the block before.
  void break_off() {
    before_ = nullptr;
    uses_.clear();
  }
  // Cores of a private machine have memory of their own at the same addresses.
  uint64_t line_of(uint64_t address, uint32_t shift) const {
    constexpr uint32_t kAddressBits = 48;
    const uint64_t line = (address & ((uint64_t{1} << kAddressBits) - 1)) >> shift;
    if (!is_private_ || address - c_.config.linear_base < c_.config.linear_size) return line;
    return line | (uint64_t{number_} + 1) << (kAddressBits - shift);
  }
  void apply_losses();
  void begin_block(uint32_t number);
  void end_block();
  void take_order(uint32_t index);
  bool access(const SiteModel& site, uint64_t address, uint32_t bytes);
  void access_line(const SiteModel& site, uint64_t line, uint64_t words, uint32_t bytes,
                   bool first);
  void miss(const SiteModel& site, uint64_t line, uint64_t words, bool write, bool first);
  void write_hit(const SiteModel& site, uint64_t line, uint64_t words, uint32_t bytes,
                 uint64_t* entry, bool first);
  void far(const SiteModel& site, uint64_t line, uint32_t bytes, bool first);
  void evict(const StateCache::Victim& victim, uint32_t unit);
  void fetch(const BlockModel& block);
  void emit(Kind kind, Ask ask, uint64_t line, uint64_t words, uint32_t order, uint32_t unit,
            bool first, Ticks least);
  bool is_hot(uint64_t line) const { return hot_[line % kHotLines] == line + 1; }
  bool skip_lock();
  void see_lock_word(const SiteModel& site, uint64_t address);
  void leave_lock();
  void see_value(uint64_t value);
  void play(Role role, uint32_t value);
  void see_value_of_once(uint64_t value);
  void see_left(uint64_t address);
  void see_guard(uint64_t address);
  uint64_t initialised_at(size_t at) const;
  void begin_handler();
  void end_handler();
  uint64_t word_of(uint64_t address) const { return line_of(address, 0); }
  void look(const SiteModel& site, uint64_t address);
  void look_again(const Look& first);
  void note_order(const SiteModel& site, uint64_t address);
  void take(uint64_t address, bool is_ticket);
  void give(uint64_t address);
  bool leaves_barrier();
  uint32_t slice_of(size_t at);
  void see_condition(const SiteModel& site, uint64_t address);
  void await_signal(const SyncFunction& lock);
  void meet_clock(uint64_t clock);
  void meet_block(const BlockModel& block, uint64_t clock);
  void forget_looks();
  bool skip_block_of_lock(const BlockModel& block, uint64_t clock);
  Step step_at(size_t at, uint64_t& expected) const;
  Scan scan_looks();
  Scan scan_barrier();
  bool resume_scan();
  void starve() {
    starved_ = true;
    is_fresh_ = false;
  }

  const CoreContext& c_;
  uint32_t number_;
  bool is_coherent_, writes_back_, shares_, is_private_, has_clocks_;
  bool has_schedules_, counts_loads_;  // with latencies; and with several loads under way
  StateCache l1_, l2_, fetch_;
  LineSet had_;  // lines that it ever asked for
  uint64_t last_fetch_ = ~uint64_t{0};

  std::vector<uint64_t> words_;
  size_t at_ = 0, usable_ = 0;
  bool is_final_ = false, starved_ = true, is_fresh_ = false;
  bool must_wait_ = false;  // the last request may block the core
  std::vector<Order> orders_;
  // Of the words from at_ on: where those of a slice end, not counting those that were erased.
  struct SliceEnd {
    uint64_t words;
    uint32_t slice;
  };
  std::deque<SliceEnd> slices_;
  uint64_t erased_ = 0;

  const BlockModel* block_ = nullptr;
  size_t site_ = 0;
  const BlockModel* before_ = nullptr;  // with schedules: the one that ended last
  Ticks counted_ = 0;                   // of the block's cycles
  Stalls counted_stalls_;
  Ticks since_ = 0;  // since the last request
  Stalls stalls_;    // in it
  Ticks since_l2_ = 0;
  uint32_t loads_ = 0;     // that left the core
  std::vector<Use> uses_;  // of those that may be under way
  Ticks estimate_ = 0, hot_from_ = 0;
  uint64_t last_load_ = 0;  // its line
  uint64_t last_end_ = 0;   // where the block before ended

  // A scan ahead: after a wait, or after a release.
  enum class Scanning : uint8_t { kNo, kLooks, kBarrier } scanning_ = Scanning::kNo;
  size_t scan_at_ = 0;
  uint64_t scanned_ = 0, skipped_ = 0;
  uint32_t released_ = 0;      // its order
  uint64_t last_barrier_ = 0;  // of the block before the last order
  uint64_t leaves_ = 0;        // a barrier, up to its return: BlockModel::barrier
  const BlockModel* scan_block_ = nullptr;
  uint64_t scan_expected_ = 0;

  // With clocks words tell of some blocks alone. The clock where the latest of them ends, if
  // nothing else was executed since; and the last one that was appended.
  uint64_t expected_ = 0, last_clock_ = 0;

  std::vector<CallOfLock> interrupted_;  // by signals' handlers
  uint32_t handlers_ = 0;                // whose begin was appended and not met yet
  std::vector<uint64_t> held_;           // words of locks that it has
  std::unordered_set<uint64_t> guards_;  // words of what it knows to be initialised
  // In a function of a condition variable, up to the access that shows which: kSignal, kAwait.
  Role condition_ = Role::kNone;
  // Waits for that one, since a slice, and has not slept.
  uint64_t awaited_ = 0;
  uint32_t awaited_since_ = 0;
  // Inside pthread_once().
  struct Once {
    uint64_t word = 0, function = 0;
    uint32_t values = 0;  // so many were seen
    bool calls = false;   // the function
  };
  std::vector<Once> once_;
  // Locks that it takes by other code.
  std::vector<Taken> taken_;             // the latest last
  uint64_t changed_ = 0, acquired_ = 0;  // by its last atomic operation, by its last acquiring load
  uint64_t looked_at_ = 0;               // all since then were looks at this word
  std::vector<Look> looks_;
  std::vector<uint32_t> look_blocks_;  // begun since
  // Inside the function that is the region of interest.
  bool in_region_ = false;
  uint64_t region_return_ = 0;

  static constexpr size_t kHotLines = 16;
  std::array<uint64_t, kHotLines> hot_{};  // line + 1
  std::vector<Loss> losses_;
  std::vector<uint64_t> grants_;
  std::vector<uint64_t>* executions_ = nullptr;
};

}  // namespace gpusim::host::chip
