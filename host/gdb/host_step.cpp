#include "host/gdb/host_step.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>
#include <deque>
#include <vector>

#include "device_sim/core/execute.h"
#include "device_sim/core/machine_state.h"

namespace gpusim::host::gdb {
namespace {

// A core's registers: read when they are needed, written if the instruction comes to its end.
class Registers {
 public:
  Registers(Backend& backend, uint32_t core) : backend_(backend), core_(core) {}
  uint64_t get(Slot s) {
    if (!known_[s]) set_known(s, backend_.slot(core_, s));
    return values_[s];
  }
  void set(Slot s, uint64_t value) {
    set_known(s, value);
    written_[s] = true;
  }
  void commit() {
    for (size_t s = 0; s < values_.size(); ++s)
      if (written_[s]) backend_.set_slot(core_, static_cast<Slot>(s), values_[s]);
  }

 private:
  void set_known(Slot s, uint64_t value) {
    values_[s] = value;
    known_[s] = true;
  }
  Backend& backend_;
  uint32_t core_;
  std::array<uint64_t, 256> values_;
  std::bitset<256> known_, written_;
};

struct Access {
  uint64_t address, size_bytes;
  bool reads, writes;
};

// What one instruction does to memory, kept until it has come to its end.
class AccessLog {
 public:
  AccessLog(Backend& backend, uint32_t core) : backend_(backend), core_(core) {}

  bool read(uint64_t address, std::span<uint8_t> out) {
    return note(address, out.size(), kRead) && backend_.read_memory(core_, address, out);
  }
  bool write(uint64_t address, std::span<const uint8_t> in) {
    if (!note(address, in.size(), kWrite)) return false;
    writes_.push_back({address, {in.begin(), in.end()}});
    return true;
  }
  // A word that an atomic operation works on.
  uint8_t* word(uint64_t address, uint8_t need) {
    if (!note(address, atomic_bytes, need)) return nullptr;
    Word& word = words_.emplace_back();
    word.address = address & ~uint64_t{7};
    if (!backend_.read_memory(core_, word.address, word.bytes)) return nullptr;
    std::memcpy(word.before, word.bytes, sizeof word.before);
    return word.bytes + (address & 7);
  }
  void commit() {
    for (const Write& w : writes_) backend_.write_memory(core_, w.address, w.bytes);
    for (const Word& w : words_)
      if (std::memcmp(w.before, w.bytes, sizeof w.before) != 0)
        backend_.write_memory(core_, w.address, w.bytes);
  }
  const std::vector<Access>& accesses() const { return accesses_; }

  uint64_t atomic_bytes = 8;
  bool signals_event = false;
  uint32_t lock = 0;

 private:
  bool note(uint64_t address, uint64_t size_bytes, uint8_t need) {
    accesses_.push_back({address, size_bytes, (need & kRead) != 0, (need & kWrite) != 0});
    for (const uint64_t at : {address, address + size_bytes - 1})
      if ((backend_.permissions(core_, at) & need) != need) return false;
    return true;
  }

  struct Write {
    uint64_t address;
    std::vector<uint8_t> bytes;
  };
  struct Word {
    alignas(8) uint8_t bytes[8];
    uint8_t before[8];
    uint64_t address;
  };
  Backend& backend_;
  uint32_t core_;
  std::vector<Access> accesses_;
  std::vector<Write> writes_;
  std::deque<Word> words_;
};

// The memory that micro-ops see.
struct LoggedMemory {
  AccessLog* log;
  uint32_t* pair_lock;
  uint32_t journal_words = 0;

  template <class T>
  bool load(uint32_t, uint64_t address, T* out) const {
    return log->read(address, {reinterpret_cast<uint8_t*>(out), sizeof(T)});
  }
  template <class T>
  bool store(uint32_t, uint64_t address, T value) const {
    return log->write(address, {reinterpret_cast<const uint8_t*>(&value), sizeof(T)});
  }
  uint8_t* byte(uint32_t, uint64_t address, uint8_t need) const { return log->word(address, need); }
  void note(uint32_t, uint64_t) const {}
  uint64_t next_stamp() const { return 0; }
  void signal_event() const { log->signals_event = true; }
};

uint64_t atomic_bytes(const Uop& u) {
  switch (op_info(u.op).shape) {
    case Shape::kAmo:
    case Shape::kCas:
    case Shape::kStx:
      return uint64_t{1} << u.aux;
    default:
      return 8;  // pairs are two words
  }
}

const Watch* find_hit(std::span<const Watch> watches, const Access& access) {
  const auto hit = std::ranges::find_if(watches, [&](const Watch& w) {
    const bool kind = (w.kind != WatchKind::kRead && access.writes) ||
                      (w.kind != WatchKind::kWrite && access.reads);
    return kind && access.address < w.address + w.size_bytes &&
           w.address < access.address + access.size_bytes;
  });
  return hit == watches.end() ? nullptr : &*hit;
}

void signal_event(Backend& backend) {
  if (MachineState* const state = state_of(backend))
    state->set_signalled_events(state->signalled_events() + 1);
}

}  // namespace

const Translator::Single* HostStepper::instruction(uint64_t pc) {
  if (const auto found = known_.find(pc); found != known_.end()) return &found->second;
  std::optional<Translator::Single> single = translator_.instruction(pc);
  return single ? &known_.emplace(pc, std::move(*single)).first->second : nullptr;
}

StepResult HostStepper::step(uint32_t core, uint64_t pc, std::span<const Watch> watches) {
  const Translator::Single* const single = instruction(pc);
  if (!single) return {.kind = StepResult::Kind::kNoCode, .address = pc, .watch = {}};
  StepResult result{.next_pc = single->next_pc, .insn_class = single->insn_class, .watch = {}};
  Registers registers(backend_, core);
  AccessLog log(backend_, core);
  const LoggedMemory memory{.log = &log, .pair_lock = &log.lock};
  for (const Uop& u : single->uops) {
    StopInfo stop{};
    log.atomic_bytes = atomic_bytes(u);
    switch (execute(u, registers, memory, core, stop)) {
      case Outcome::kNext:
      case Outcome::kLink:
      case Outcome::kNotTaken:
        break;
      case Outcome::kTaken:
      case Outcome::kJump:
      case Outcome::kGiveWay:
      case Outcome::kSignalled:
        result.next_pc = single->taken_pc;
        break;
      case Outcome::kJumpReg:
        result.next_pc = registers.get(u.a);
        break;
      case Outcome::kService:
        result.kind = StepResult::Kind::kService;
        result.next_pc = single->taken_pc;
        result.service = static_cast<Service>(u.aux);
        result.slot = u.d;
        break;
      case Outcome::kMeets:  // never of a core that is alone
      case Outcome::kFault:
        result.kind = StepResult::Kind::kFault;
        result.fault = stop.fault;
        result.address = stop.address;
        break;
    }
    if (result.kind == StepResult::Kind::kFault) return result;
  }
  for (const Access& access : log.accesses())
    if (const Watch* const hit = find_hit(watches, access)) {
      result.kind = StepResult::Kind::kWatched;
      result.watch = *hit;
      result.address = std::max(access.address, hit->address);
      return result;
    }
  registers.commit();
  log.commit();
  if (log.signals_event) signal_event(backend_);
  return result;
}

}  // namespace gpusim::host::gdb
