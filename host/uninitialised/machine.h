// `gpusim run --check uninitialised`: a scalar machine that follows, beside each value of each core
// and in memory, which bits of it the program has not set, and sees where something depends on
// them. docs/uninitialised.md says what is reported, docs/adr/0052 how it works.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "device_sim/scalar/scalar_backend.h"
#include "host/run/unwinder.h"
#include "host/uninitialised/heap.h"
#include "host/uninitialised/rows.h"
#include "host/uninitialised/shadow.h"

namespace gpusim::host::uninitialised {

enum class Use : uint8_t { kBranch, kJump, kAddress, kSystemCall, kBytesOfSystemCall };

// Where an undefined value was loaded that nobody had loaded before.
struct Origin {
  uint64_t pc = 0;
  uint32_t core = 0;
  CallStack calls;
  uint64_t address = 0;
  uint32_t size_bytes = 0;
  bool is_heap = false;
  HeapBlock block;  // if it is
};

struct Finding {
  Use use{};
  uint32_t core = 0;  // that came first
  uint64_t pc = 0;
  CallStack calls;
  OriginId origin = 0;
  const char* call = "";      // a system call's name
  uint64_t size_bytes = 0;    // kBytesOfSystemCall: that it is passed
  uint64_t first_offset = 0;  // kBytesOfSystemCall: of the first undefined byte
  uint64_t count = 0;
};

class CheckedMachine final : public ScalarBackend {
 public:
  // The core is about to make this system call.
  void called(uint32_t core, std::string_view name);
  const std::vector<Finding>& findings() const { return findings_; }
  const Origin* origin(OriginId id) const { return id == 0 ? nullptr : &origins_[id - 1]; }
  const Heap& heap() const { return heap_; }

  void configure(const Module& module, const MachineConfig& config) override;
  void module_changed() override;
  void set_slot(uint32_t core, Slot slot, uint64_t value) override;
  bool write_memory(uint32_t core, uint64_t address, std::span<const uint8_t> in) override;
  bool write_windows(uint64_t address, std::span<const CoreWord> words) override;
  bool fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes) override;

 protected:
  Outcome execute_one(const Uop& u, uint32_t number, StopInfo& stop) override;

 private:
  static constexpr size_t kSlots = 256;
  static constexpr size_t kStoresBelow = 4;
  struct Access {
    uint64_t address = 0;
    uint32_t size_bytes = 0;
  };
  struct OpenCall {
    uint64_t return_pc = 0, stack_pointer = 0;
  };
  // A call of a function of the heap that has not returned.
  struct PendingCall {
    bool is_active = false;
    HeapCall call{};
    uint64_t return_pc = 0, stack_pointer = 0;
    uint64_t size_bytes = 0;  // of the new block
    uint64_t address = 0;     // of the old one, or where the new one's is stored
    uint32_t site = 0;
    std::vector<uint8_t> old_undefined;  // of what the new block keeps of the old one, per byte
  };
  struct CoreState {
    std::array<uint64_t, kSlots> undefined{};
    std::array<OriginId, kSlots> origin{};
    uint64_t stack_pointer = 0;
    // What lies between this and the stack pointer was marked when the stack shrank.
    uint64_t lowest = 0;
    // The latest stores below the stack pointer: of instructions that store first and move it then.
    std::array<Access, kStoresBelow> below{};
    size_t below_count = 0;
    uint32_t service = 0;  // the micro-op of the latest one
    PendingCall pending;
    std::vector<OpenCall> calls;  // that have not returned; the innermost last
  };
  // Of micro-ops. In C libraries without names for them, loads of vectors count as those of
  // functions of strings.
  enum Mark : uint8_t { kFunctionOfHeap = 1, kInStringFunction = 2 };

  uint32_t space_of(uint32_t core) const {
    return config_.memory_model == MemoryModel::kPrivate ? core : 0;
  }
  void mark_blocks();
  uint64_t pc_of(uint32_t uop) const;
  uint64_t slot_value(uint32_t core, int slot) const {
    return slot == kNoSlot ? 0 : cores_[core].slots[static_cast<Slot>(slot)];
  }

  // Micro-ops by what they do. Each executes the micro-op.
  Outcome execute_value(const Uop& u, uint32_t number, StopInfo& stop);
  // Of a load or store; reports it if it depends on undefined bits.
  uint64_t checked_address(const Uop& u, const AccessInfo& info, uint32_t number);
  Outcome execute_load(const Uop& u, uint32_t number, StopInfo& stop);
  Outcome execute_store(const Uop& u, uint32_t number, StopInfo& stop);
  Outcome execute_atomic(const Uop& u, uint32_t number, StopInfo& stop);
  Outcome execute_pair(const Uop& u, uint32_t number, StopInfo& stop);
  // machine_vector.cpp
  Outcome execute_vector(const Uop& u, uint32_t number, StopInfo& stop);
  struct VectorOperands;
  Outcome access_vector(const Uop& u, uint32_t number, StopInfo& stop, VectorOperands& v);
  void compute_vector(const Uop& u, uint32_t number, VectorOperands& v);
  Outcome execute_plain(const Uop& u, uint32_t number, StopInfo& stop) {
    return ScalarBackend::execute_one(u, number, stop);
  }

  // The undefined bits that a load finds.
  uint64_t loaded(uint32_t number, uint64_t address, uint32_t size_bytes, OriginId* origin);
  OriginId new_origin(uint32_t number, uint64_t address, uint32_t size_bytes);
  void set(CoreState& s, Slot slot, uint64_t undefined, OriginId origin) {
    s.undefined[slot] = undefined;
    s.origin[slot] = origin;
  }
  OriginId origin_of(const CoreState& s, const Uop& u) const;

  bool has_defined_byte(uint32_t number, uint64_t address);

  // Who called whom, by the instructions that call and return: C libraries need not tell more.
  void call_begins(uint32_t number);
  void call_ends(uint32_t number, uint64_t return_pc);
  CallStack calls_of(uint32_t number, uint64_t pc) const;

  void stack_pointer_moved(const Uop& u, uint32_t number);
  void stored_below(CoreState& s, uint64_t address, uint32_t size_bytes);
  bool is_own_window(uint32_t number, uint64_t address) const;

  void heap_call_begins(uint32_t number, uint32_t uop);
  void heap_call_ends(uint32_t number);
  void undefine_mapped(uint32_t number, uint64_t address, uint64_t size_bytes);

  void check_slots(uint32_t number, Use use, std::initializer_list<Slot> slots);
  void check_bytes(uint32_t number, const char* name, uint64_t address, uint64_t size_bytes);
  // Null: it is none, in a function of the heap.
  Finding* found(uint32_t number, Use use, OriginId origin, const char* call = "");

  std::vector<CoreState> states_;
  Shadow shadow_;
  Heap heap_;
  Slot stack_pointer_ = 0;
  bool has_stack_pointer_ = false;

  std::array<bool, kSlots> is_vector_{};
  std::vector<uint8_t> marks_;  // per micro-op
  size_t marked_blocks_ = 0, marked_symbols_ = 0;
  std::unordered_map<uint64_t, HeapCall> heap_functions_;  // by address
  uint32_t at_ = 0;                                        // the micro-op that is executed

  std::vector<Finding> findings_;
  std::map<std::tuple<uint64_t, Use, OriginId>, size_t> number_of_finding_;  // by pc
  std::vector<Origin> origins_;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, OriginId> origin_at_;  // by pc, link, object
};

}  // namespace gpusim::host::uninitialised
