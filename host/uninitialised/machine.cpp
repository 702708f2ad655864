#include "host/uninitialised/machine.h"

#include <algorithm>

#include "device_sim/uir/access.h"
#include "host/uninitialised/names.h"
#include "translator/common/isa_list.h"

namespace gpusim::host::uninitialised {
namespace {

// Which fields of a row name a slot that is read; not the floating-point state.
enum Reads : uint8_t { kReadsA = 1, kReadsB = 2, kReadsC = 4, kReadsE = 8 };
constexpr std::array<uint8_t, kOpCount> kReads = [] {
  std::array<uint8_t, kOpCount> reads{};
  for (size_t op = 0; op < reads.size(); ++op) {
    const ShapeInfo shape = shape_info(kOpInfo[op].shape);
    reads[op] = static_cast<uint8_t>((shape.a.reads ? kReadsA : 0) | (shape.b.reads ? kReadsB : 0) |
                                     (shape.c.reads ? kReadsC : 0) | (shape.e.reads ? kReadsE : 0));
  }
  return reads;
}();

}  // namespace

void CheckedMachine::configure(const Module& module, const MachineConfig& config) {
  states_.assign(config.cores, CoreState{});
  has_stack_pointer_ = module.abi.stack_pointer != kNoSlot;
  if (has_stack_pointer_) stack_pointer_ = static_cast<Slot>(module.abi.stack_pointer);
  for (const SlotName& n : module.slot_names)
    if (n.name.starts_with("v")) is_vector_[n.slot] = true;
  ScalarBackend::configure(module, config);
  mark_blocks();
}

void CheckedMachine::module_changed() {
  ScalarBackend::module_changed();
  mark_blocks();
}

// Blocks that came, or all if names did.
void CheckedMachine::mark_blocks() {
  const Module& m = *module_;
  if (marked_symbols_ != m.symbols.size()) {
    marked_symbols_ = m.symbols.size();
    marked_blocks_ = 0;
    marks_.clear();
    heap_functions_.clear();
    for (const Symbol& symbol : m.symbols)
      if (symbol.is_function)
        if (const auto call = heap_call_of(symbol.name))
          heap_functions_.try_emplace(symbol.address, *call);
  }
  marks_.resize(m.uops.size());
  for (; marked_blocks_ < m.blocks.size(); ++marked_blocks_) {
    const Block& block = m.blocks[marked_blocks_];
    if (block.uop_count == 0) continue;
    if (heap_functions_.contains(block.pc)) marks_[block.first_uop] |= kFunctionOfHeap;
    const bool is_string = is_in_string_function(m, block.pc);
    if (!is_string && !is_in_unnamed_function(m, block.pc)) continue;
    for (uint32_t i = block.first_uop; i < block.first_uop + block.uop_count; ++i)
      if (is_string || (is_plain_access(op_info(m.uops[i].op).shape) && is_vector_[m.uops[i].d]))
        marks_[i] |= kInStringFunction;
  }
}

uint64_t CheckedMachine::pc_of(uint32_t uop) const {
  const Block& block = module_->blocks[module_->uop_block[uop]];
  return insn_pc(*module_, block, module_->uop_insn[uop]);
}

// --- what the host does

void CheckedMachine::set_slot(uint32_t core, Slot slot, uint64_t value) {
  ScalarBackend::set_slot(core, slot, value);
  CoreState& s = states_[core];
  set(s, slot, 0, 0);
  if (has_stack_pointer_ && slot == stack_pointer_) {
    s.stack_pointer = s.lowest = value;
    s.below_count = 0;
  }
}

bool CheckedMachine::write_memory(uint32_t core, uint64_t address, std::span<const uint8_t> in) {
  shadow_.define(space_of(core), address, in.size());
  return ScalarBackend::write_memory(core, address, in);
}

bool CheckedMachine::write_windows(uint64_t address, std::span<const CoreWord> words) {
  for (uint32_t core = 0; core < config_.cores; ++core)
    shadow_.define(0, address + (uint64_t{core} << config_.window_shift), words.size() * 8);
  return ScalarBackend::write_windows(address, words);
}

bool CheckedMachine::fill_zero(uint32_t core, uint64_t address, uint64_t size_bytes) {
  shadow_.define(space_of(core), address, size_bytes);
  return ScalarBackend::fill_zero(core, address, size_bytes);
}

// --- micro-ops

Outcome CheckedMachine::execute_one(const Uop& u, uint32_t number, StopInfo& stop) {
  CoreState& s = states_[number];
  at_ = static_cast<uint32_t>(&u - code_.uops);
  if (s.pending.is_active) {
    const Block& block = module_->blocks[module_->uop_block[at_]];
    if (block.first_uop == at_ && block.pc == s.pending.return_pc &&
        s.stack_pointer == s.pending.stack_pointer)
      heap_call_ends(number);
  }
  if (marks_[at_] & kFunctionOfHeap) heap_call_begins(number, at_);
  switch (op_info(u.op).shape) {
    case Shape::kDI:
    case Shape::kDA:
    case Shape::kDAI:
    case Shape::kDAB:
    case Shape::kDABI:
    case Shape::kDABC:
    case Shape::kDABCI:
    case Shape::kSel:
    case Shape::kSelCmp:
    case Shape::kSelCmpI:
    case Shape::kFA:
    case Shape::kFAB:
    case Shape::kFABC:
    case Shape::kGA:
    case Shape::kGAB:
    case Shape::kGABC:
      return execute_value(u, number, stop);
    case Shape::kLdI:
    case Shape::kLdX:
    case Shape::kLdW:
      return execute_load(u, number, stop);
    case Shape::kStI:
    case Shape::kStX:
    case Shape::kStW:
      return execute_store(u, number, stop);
    case Shape::kAmo:
    case Shape::kCas:
    case Shape::kStx:
      return execute_atomic(u, number, stop);
    case Shape::kCas128:
    case Shape::kStx128:
      return execute_pair(u, number, stop);
    case Shape::kVector:
      return execute_vector(u, number, stop);
    case Shape::kBrAB:
    case Shape::kBrAI: {
      const uint64_t any =
          s.undefined[u.a] | (op_info(u.op).shape == Shape::kBrAB ? s.undefined[u.b] : 0);
      if (any != 0 && branch_of(u, {cores_[number].slots.data(), s.undefined.data()}).undefined)
        found(number, Use::kBranch, origin_of(s, u));
      break;
    }
    case Shape::kJmp:
      if (static_cast<JumpHint>(u.aux) == JumpHint::kCall) call_begins(number);
      break;
    case Shape::kJmpReg:
      check_slots(number, Use::kJump, {u.a});
      if (static_cast<JumpHint>(u.aux) == JumpHint::kCall) call_begins(number);
      if (static_cast<JumpHint>(u.aux) == JumpHint::kReturn)
        call_ends(number, cores_[number].slots[u.a]);
      break;
    case Shape::kService:
      s.service = at_;
      break;
    default:
      break;
  }
  return execute_plain(u, number, stop);
}

// Of the first operand that has undefined bits.
OriginId CheckedMachine::origin_of(const CoreState& s, const Uop& u) const {
  const uint8_t reads = kReads[static_cast<size_t>(u.op)];
  if (reads & kReadsA && s.undefined[u.a]) return s.origin[u.a];
  if (reads & kReadsB && s.undefined[u.b]) return s.origin[u.b];
  if (reads & kReadsC && s.undefined[u.c]) return s.origin[u.c];
  if (reads & kReadsE && s.undefined[u.e]) return s.origin[u.e];
  return 0;
}

Outcome CheckedMachine::execute_value(const Uop& u, uint32_t number, StopInfo& stop) {
  CoreState& s = states_[number];
  const uint8_t reads = kReads[static_cast<size_t>(u.op)];
  const uint64_t any =
      (reads & kReadsA ? s.undefined[u.a] : 0) | (reads & kReadsB ? s.undefined[u.b] : 0) |
      (reads & kReadsC ? s.undefined[u.c] : 0) | (reads & kReadsE ? s.undefined[u.e] : 0);
  uint64_t undefined = 0;
  OriginId origin = 0;
  if (any != 0 && !is_constant_idiom(u)) {
    undefined = value_of(u, {cores_[number].slots.data(), s.undefined.data()}).undefined;
    if (undefined != 0) origin = origin_of(s, u);
  }
  const Outcome outcome = execute_plain(u, number, stop);
  set(s, u.d, undefined, origin);
  if (u.d == stack_pointer_ && has_stack_pointer_) stack_pointer_moved(u, number);
  return outcome;
}

namespace {

uint64_t address_of(const Uop& u, AccessInfo info, const std::vector<uint64_t>& slots) {
  switch (info.mode) {
    case AddressMode::kImmediate:
      return access_address<AddressMode::kImmediate>(slots[u.a], 0, u.imm);
    case AddressMode::kIndex:
      return access_address<AddressMode::kIndex>(slots[u.a], slots[u.b], u.imm);
    default:
      return access_address<AddressMode::kIndex32>(slots[u.a], slots[u.b], u.imm);
  }
}

// A loaded mask as its slot holds it: what is undefined of a sign is undefined of all its copies.
uint64_t extended(uint64_t undefined, AccessInfo info) {
  const int up = 64 - 8 * info.size;
  if (info.extend == Extend::kZero || up == 0) return undefined;
  const auto wide = static_cast<uint64_t>(static_cast<int64_t>(undefined << up) >> up);
  return info.extend == Extend::kSign64 ? wide : wide & 0xffffffff;
}

}  // namespace

// In the 32 bytes that are looked at together.
bool CheckedMachine::has_defined_byte(uint32_t number, uint64_t address) {
  constexpr uint64_t kUnit = 32;
  std::array<uint8_t, kUnit> undefined;
  shadow_.read(space_of(number), address & ~(kUnit - 1), undefined);
  return std::find(undefined.begin(), undefined.end(), 0) != undefined.end();
}

uint64_t CheckedMachine::loaded(uint32_t number, uint64_t address, uint32_t size_bytes,
                                OriginId* origin) {
  *origin = 0;
  const uint64_t undefined = shadow_.load(space_of(number), address, size_bytes, origin);
  if (undefined == 0) return 0;
  // What the heap does with its own lists is its own affair.
  if (states_[number].pending.is_active) return 0;
  // These look at strings by aligned words or vectors: where one byte is defined, undefined ones
  // are before the string or beyond it.
  if ((marks_[at_] & kInStringFunction) && has_defined_byte(number, address)) return 0;
  if (*origin == 0) *origin = new_origin(number, address, size_bytes);
  return undefined;
}

uint64_t CheckedMachine::checked_address(const Uop& u, const AccessInfo& info, uint32_t number) {
  if (info.mode == AddressMode::kImmediate)
    check_slots(number, Use::kAddress, {u.a});
  else
    check_slots(number, Use::kAddress, {u.a, u.b});
  return address_of(u, info, cores_[number].slots);
}

Outcome CheckedMachine::execute_load(const Uop& u, uint32_t number, StopInfo& stop) {
  CoreState& s = states_[number];
  const AccessInfo info = access_info(u.op);
  const uint64_t address = checked_address(u, info, number);
  const Outcome outcome = execute_plain(u, number, stop);
  if (outcome == Outcome::kFault) return outcome;
  OriginId origin = 0;
  const uint64_t undefined = loaded(number, address, static_cast<uint32_t>(info.size), &origin);
  set(s, u.d, extended(undefined, info), origin);
  if (u.d == stack_pointer_ && has_stack_pointer_) stack_pointer_moved(u, number);
  return outcome;
}

Outcome CheckedMachine::execute_store(const Uop& u, uint32_t number, StopInfo& stop) {
  CoreState& s = states_[number];
  const AccessInfo info = access_info(u.op);
  const uint64_t address = checked_address(u, info, number);
  const Outcome outcome = execute_plain(u, number, stop);
  if (outcome == Outcome::kFault) return outcome;
  const auto size = static_cast<uint32_t>(info.size);
  shadow_.store(space_of(number), address, size, s.undefined[u.d], s.origin[u.d]);
  stored_below(s, address, size);
  return outcome;
}

// One word: atomic operations, compare-and-swap and exclusive stores.
Outcome CheckedMachine::execute_atomic(const Uop& u, uint32_t number, StopInfo& stop) {
  CoreState& s = states_[number];
  const std::vector<uint64_t>& slots = cores_[number].slots;
  check_slots(number, Use::kAddress, {u.a});
  const Shape shape = op_info(u.op).shape;
  const uint32_t log2_size = u.aux & 3;
  const auto size = uint32_t{1} << log2_size;
  const uint64_t mask = size_mask(log2_size), address = slots[u.a];
  const uint64_t expected = slots[u.c] & mask;
  const Bits operand{slots[u.b] & mask, s.undefined[u.b] & mask};
  const OriginId operand_origin = s.origin[u.b];
  const Outcome outcome = execute_plain(u, number, stop);
  if (outcome == Outcome::kFault) return outcome;
  OriginId origin = 0;
  const uint64_t undefined = shape == Shape::kStx ? 0 : loaded(number, address, size, &origin);
  const Bits old{slots[u.d] & mask, undefined};
  bool is_stored = true;
  Bits stored = operand;
  if (shape == Shape::kAmo) {
    stored = stored_by_atomic(u, old, operand);
    set(s, u.d, undefined, origin);
  } else if (shape == Shape::kCas) {
    is_stored = old.value == expected;
    set(s, u.d, undefined, origin);
  } else {
    is_stored = slots[u.d] == 0;
    set(s, u.d, 0, 0);
    set(s, u.c, 0, 0);
  }
  if (is_stored)
    shadow_.store(space_of(number), address, size, stored.undefined & mask,
                  operand.undefined != 0 ? operand_origin : origin);
  return outcome;
}

// 16 bytes: compare-and-swap and exclusive stores.
Outcome CheckedMachine::execute_pair(const Uop& u, uint32_t number, StopInfo& stop) {
  CoreState& s = states_[number];
  const std::vector<uint64_t>& slots = cores_[number].slots;
  check_slots(number, Use::kAddress, {u.a});
  const bool is_cas = u.op == Op::cas128;
  const uint64_t address = slots[u.a];
  const std::array<uint64_t, 2> expected{slots[u.d], slots[static_cast<Slot>(u.d + 1)]};
  const Outcome outcome = execute_plain(u, number, stop);
  if (outcome == Outcome::kFault) return outcome;
  std::array<uint64_t, 2> undefined{};
  std::array<OriginId, 2> origin{};
  bool is_stored = slots[u.d] == 0;
  if (is_cas) {
    is_stored = slots[u.d] == expected[0] && slots[static_cast<Slot>(u.d + 1)] == expected[1];
    for (uint32_t i = 0; i < 2; ++i)
      undefined[i] = loaded(number, address + uint64_t{8} * i, 8, &origin[i]);
  }
  for (uint32_t i = 0; is_stored && i < 2; ++i) {
    const auto b = static_cast<Slot>(u.b + i);
    shadow_.store(space_of(number), address + uint64_t{8} * i, 8, s.undefined[b], s.origin[b]);
  }
  set(s, u.d, undefined[0], origin[0]);
  if (is_cas)
    set(s, static_cast<Slot>(u.d + 1), undefined[1], origin[1]);
  else
    set(s, u.c, 0, 0);
  return outcome;
}

// --- calls

void CheckedMachine::call_begins(uint32_t number) {
  constexpr size_t kMostCalls = 65536;
  CoreState& s = states_[number];
  // Those that were left by jumps.
  while (!s.calls.empty() && s.calls.back().stack_pointer < s.stack_pointer) s.calls.pop_back();
  if (s.calls.size() == kMostCalls) s.calls.clear();
  const Block& block = module_->blocks[module_->uop_block[at_]];
  s.calls.push_back({end_pc(*module_, block), s.stack_pointer});
}

void CheckedMachine::call_ends(uint32_t number, uint64_t return_pc) {
  std::vector<OpenCall>& calls = states_[number].calls;
  for (size_t i = calls.size(); i != 0; --i)
    if (calls[i - 1].return_pc == return_pc) return calls.resize(i - 1);
}

CallStack CheckedMachine::calls_of(uint32_t number, uint64_t pc) const {
  constexpr size_t kMostPlaces = 64;
  CallStack stack{.places = {{.pc = pc}}, .bad_return = {}};
  const std::vector<OpenCall>& calls = states_[number].calls;
  for (size_t i = calls.size(); i != 0 && stack.places.size() < kMostPlaces; --i)
    if (calls[i - 1].stack_pointer >= states_[number].stack_pointer)
      stack.places.push_back({.pc = calls[i - 1].return_pc, .is_return = true});
  return stack;
}

// --- the stack

bool CheckedMachine::is_own_window(uint32_t number, uint64_t address) const {
  if (config_.memory_model == MemoryModel::kPrivate)
    return address - config_.stack_base <= config_.stack_size;
  const uint64_t bottom = config_.window_base + (uint64_t{number} << config_.window_shift);
  return address - bottom <= uint64_t{1} << config_.window_shift;
}

void CheckedMachine::stored_below(CoreState& s, uint64_t address, uint32_t size_bytes) {
  constexpr uint64_t kFarthest = 65536;
  if (s.stack_pointer - address - 1 >= kFarthest) return;
  if (s.below_count == kStoresBelow) {
    std::move(s.below.begin() + 1, s.below.end(), s.below.begin());
    --s.below_count;
  }
  s.below[s.below_count++] = {address, size_bytes};
}

// What lies below the stack pointer is undefined. It is marked where the stack shrinks, and where
// it first grows so far.
void CheckedMachine::stack_pointer_moved(const Uop& u, uint32_t number) {
  constexpr uint64_t kMostAtOnce = uint64_t{1} << 20;
  CoreState& s = states_[number];
  const uint64_t from = s.stack_pointer, to = cores_[number].slots[stack_pointer_];
  s.stack_pointer = to;
  const size_t below_count = std::exchange(s.below_count, 0);
  if (to == from) return;
  const uint64_t distance = to > from ? to - from : from - to;
  // Other values than those next to it may be another stack's.
  const Shape shape = op_info(u.op).shape;
  const bool is_step =
      shape_info(shape).a.reads && u.a == stack_pointer_ && !is_plain_access(shape);
  const bool is_same_stack = is_step ? distance <= (uint64_t{1} << 30)
                                     : distance <= kMostAtOnce && is_own_window(number, from) &&
                                           is_own_window(number, to) &&
                                           !changes_stacks(*module_, pc_of(at_));
  const uint32_t space = space_of(number);
  if (!is_same_stack) {
    s.lowest = to;
  } else if (to > from) {
    shadow_.undefine(space, from, to - from);
  } else if (to < s.lowest) {
    struct Kept {
      uint64_t undefined;
      OriginId origin;
    };
    std::array<Kept, kStoresBelow> kept{};
    for (size_t i = 0; i < below_count; ++i)
      kept[i].undefined =
          shadow_.load(space, s.below[i].address, s.below[i].size_bytes, &kept[i].origin);
    shadow_.undefine(space, to, s.lowest - to);
    s.lowest = to;
    for (size_t i = 0; i < below_count; ++i)
      shadow_.store(space, s.below[i].address, s.below[i].size_bytes, kept[i].undefined,
                    kept[i].origin);
  }
}

// --- the heap

void CheckedMachine::heap_call_begins(uint32_t number, uint32_t uop) {
  CoreState& s = states_[number];
  PendingCall& p = s.pending;
  // Of functions that call each other, the outermost; but not one that was left by a jump.
  if (p.is_active && s.stack_pointer <= p.stack_pointer) return;
  const AbiSlots& abi = module_->abi;
  const auto argument = [&](int i) { return slot_value(number, abi.call_args[i]); };
  const uint64_t pc = module_->blocks[module_->uop_block[uop]].pc;
  p = {.is_active = true,
       .call = heap_functions_.at(pc),
       .return_pc = slot_value(number, abi.link),
       .stack_pointer = s.stack_pointer,
       .old_undefined = {}};
  switch (p.call) {
    case HeapCall::kAllocate:
      p.size_bytes = argument(0);
      break;
    case HeapCall::kAllocateZero:
      p.size_bytes = argument(0) * argument(1);
      break;
    case HeapCall::kReallocate:
      p.address = argument(0);
      p.size_bytes = argument(1);
      break;
    case HeapCall::kReallocateArray:
      p.address = argument(0);
      p.size_bytes = argument(1) * argument(2);
      break;
    case HeapCall::kAllocateAligned:
      p.size_bytes = argument(1);
      break;
    case HeapCall::kAllocateTo:
      p.address = argument(0);
      p.size_bytes = argument(2);
      break;
    case HeapCall::kFree:
      p.address = argument(0);
      return;
  }
  if (HeapBlock* const old = p.address != 0 ? heap_.find(space_of(number), p.address) : nullptr;
      old && p.call != HeapCall::kAllocateTo) {
    p.old_undefined.resize(std::min(old->size_bytes, p.size_bytes));
    shadow_.read(space_of(number), old->begin, p.old_undefined);
  }
  p.site = heap_.site_at(p.return_pc, [&] {
    CallStack stack = calls_of(number, pc);
    // From the caller on.
    if (stack.places.size() > 1) stack.places.erase(stack.places.begin());
    return stack;
  });
}

// Freed memory may have been given back to the kernel, and be mapped again later.
void CheckedMachine::undefine_mapped(uint32_t number, uint64_t address, uint64_t size_bytes) {
  const uint64_t end = address + size_bytes;
  while (address < end) {
    const uint64_t next = std::min(end, (address | (kPageSize - 1)) + 1);
    if (permissions(number, address) & kWrite)
      shadow_.undefine(space_of(number), address, next - address);
    address = next;
  }
}

void CheckedMachine::heap_call_ends(uint32_t number) {
  CoreState& s = states_[number];
  const PendingCall p = std::exchange(s.pending, {});
  const uint32_t space = space_of(number);
  uint64_t begin = slot_value(number, module_->abi.call_args[0]);
  if (p.call == HeapCall::kFree) {
    HeapBlock* const block = heap_.find(space, p.address);
    if (!block) return;
    block->is_freed = true;
    return undefine_mapped(number, block->begin, block->size_bytes);
  }
  if (p.call == HeapCall::kAllocateTo) {
    uint64_t stored = 0;
    if (begin != 0 || !memory_.view().load(number, p.address, &stored)) return;
    begin = stored;
  }
  if (begin == 0) return;
  const HeapBlock block{.begin = begin, .size_bytes = p.size_bytes, .site = p.site, .core = number};
  if (p.call == HeapCall::kReallocate || p.call == HeapCall::kReallocateArray) {
    // What was copied is as it was. Of blocks that nothing is known of, all counts as set.
    HeapBlock* const old = heap_.find(space, p.address);
    if (old) {
      old->is_freed = true;
      if (old->begin != begin) undefine_mapped(number, old->begin, old->size_bytes);
    }
    if (old || p.address == 0) shadow_.undefine(space, begin, block.size_bytes);
    shadow_.write(space, begin, p.old_undefined);
  } else if (p.call == HeapCall::kAllocateZero) {
    shadow_.define(space, begin, block.size_bytes);
  } else {
    shadow_.undefine(space, begin, block.size_bytes);
  }
  heap_.add(space, block);
}

// --- findings

OriginId CheckedMachine::new_origin(uint32_t number, uint64_t address, uint32_t size_bytes) {
  constexpr size_t kMostOrigins = 1 << 16;
  const uint64_t pc = pc_of(at_), link = slot_value(number, module_->abi.link);
  const HeapBlock* const block = heap_.at(space_of(number), address);
  const uint64_t object = block ? (uint64_t{1} << 32 | block->site) << 1 | block->is_freed : number;
  const auto [place, is_new] =
      origin_at_.try_emplace({pc, link, object}, static_cast<OriginId>(origins_.size() + 1));
  if (!is_new) return place->second;
  if (origins_.size() == kMostOrigins) return place->second = kMostOrigins;
  Origin origin{.pc = pc,
                .core = number,
                .calls = calls_of(number, pc),
                .address = address,
                .size_bytes = size_bytes,
                .is_heap = block != nullptr,
                .block = {}};
  if (block) origin.block = *block;
  origins_.push_back(std::move(origin));
  return place->second;
}

Finding* CheckedMachine::found(uint32_t number, Use use, OriginId origin, const char* call) {
  if (states_[number].pending.is_active) return nullptr;
  const bool is_call = use == Use::kSystemCall || use == Use::kBytesOfSystemCall;
  const uint64_t pc = pc_of(is_call ? states_[number].service : at_);
  const auto [place, is_new] = number_of_finding_.try_emplace({pc, use, origin}, findings_.size());
  if (is_new)
    findings_.push_back({.use = use,
                         .core = number,
                         .pc = pc,
                         .calls = calls_of(number, pc),
                         .origin = origin,
                         .call = call});
  Finding& finding = findings_[place->second];
  ++finding.count;
  return &finding;
}

void CheckedMachine::check_slots(uint32_t number, Use use, std::initializer_list<Slot> slots) {
  const CoreState& s = states_[number];
  for (const Slot slot : slots)
    if (s.undefined[slot] != 0) {
      found(number, use, s.origin[slot]);
      return;
    }
}

void CheckedMachine::check_bytes(uint32_t number, const char* name, uint64_t address,
                                 uint64_t size_bytes) {
  const uint64_t end = address + size_bytes;
  if (end < address || !(permissions(number, address) & kRead)) return;
  const uint64_t first = shadow_.find_undefined(space_of(number), address, size_bytes);
  if (first == end) return;
  at_ = states_[number].service;
  OriginId origin = 0;
  shadow_.load(space_of(number), first, 1, &origin);
  if (origin == 0) origin = new_origin(number, first, 1);
  Finding* const finding = found(number, Use::kBytesOfSystemCall, origin, name);
  if (!finding || finding->count != 1) return;
  finding->size_bytes = size_bytes;
  finding->first_offset = first - address;
}

void CheckedMachine::called(uint32_t core, std::string_view name) {
  const SystemCall* const call = checked_call(name);
  if (!call) return;
  const AbiSlots& abi = module_->abi;
  const CoreState& s = states_[core];
  for (int i = 0; i < call->arguments; ++i) {
    const int slot = abi.syscall_args[i];
    if (slot == kNoSlot || s.undefined[static_cast<Slot>(slot)] == 0) continue;
    found(core, Use::kSystemCall, s.origin[static_cast<Slot>(slot)], call->name);
    return;
  }
  if (call->bytes == SystemCall::Bytes::kNone) return;
  const uint64_t address = slot_value(core, abi.syscall_args[1]);
  const uint64_t count = slot_value(core, abi.syscall_args[2]);
  constexpr uint64_t kMostBytes = uint64_t{1} << 30, kMostPieces = 1024;
  if (call->bytes == SystemCall::Bytes::kBuffer)
    return check_bytes(core, call->name, address, std::min(count, kMostBytes));
  if (find_isa(module_->isa)->register_bits != 64) return;
  for (uint64_t i = 0; i < std::min(count, kMostPieces); ++i) {
    std::array<uint64_t, 2> piece{};  // address, bytes
    if (!memory_.view().load(core, address + 16 * i, &piece[0]) ||
        !memory_.view().load(core, address + 16 * i + 8, &piece[1]))
      return;
    check_bytes(core, call->name, piece[0], std::min(piece[1], kMostBytes));
  }
}

}  // namespace gpusim::host::uninitialised
