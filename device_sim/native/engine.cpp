#include "device_sim/native/engine.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "device_sim/core/execute.h"
#include "device_sim/native/page_table.h"
#include "device_sim/native/strand.h"
#include "device_sim/native/traps.h"

namespace gpusim::native {

namespace {

class ErrorFlag : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error, const char*, asmjit::BaseEmitter*) override { failed = true; }
  bool failed = false;
};

// Memory for code, one piece after the other.
class CodeMemory {
 public:
  CodeMemory() {
    void* p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) data_ = static_cast<uint8_t*>(p);
  }
  ~CodeMemory() {
    if (data_ != nullptr) munmap(data_, kBytes);
  }
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  bool exists() const { return data_ != nullptr; }
  uint64_t base() const { return reinterpret_cast<uint64_t>(data_); }
  void clear() { used_ = 0; }
  // Where the code lies, or 0.
  uint64_t add(asmjit::CodeHolder& code) {
    if (code.flatten() != asmjit::kErrorOk || code.resolveUnresolvedLinks() != asmjit::kErrorOk)
      return 0;
    uint8_t* const to = data_ + used_;
    if (code.codeSize() + kAlignment > kBytes - used_) return 0;
    if (code.relocateToBase(reinterpret_cast<uint64_t>(to)) != asmjit::kErrorOk ||
        code.copyFlattenedData(to, kBytes - used_) != asmjit::kErrorOk)
      return 0;
    used_ += (code.codeSize() + kAlignment - 1) & ~(kAlignment - 1);
    return reinterpret_cast<uint64_t>(to);
  }
  // Replaces the instructions at `from` by a jump.
  static void link(uint64_t from, uint64_t to) {
    auto* const p = reinterpret_cast<uint8_t*>(from);
    const auto distance = static_cast<int32_t>(to - (from + 5));
    p[0] = 0xe9;
    std::memcpy(p + 1, &distance, sizeof distance);
  }

 private:
  static constexpr size_t kBytes = size_t{64} << 20, kAlignment = 64;
  uint8_t* data_ = nullptr;
  size_t used_ = 0;
};

struct FrameContext {
  Frame& frame;
  uint64_t get(Slot s) const { return frame.slots[s]; }
  void set(Slot s, uint64_t value) const { frame.slots[s] = value; }
  uint64_t clock(const MemoryView& m) const {
    const uint64_t here = clock_word(m.class_ticks, frame.tally);
    return ClockWord::pack(ClockWord::ticks(frame.clock) + ClockWord::ticks(here),
                           ClockWord::count(frame.clock) + ClockWord::count(here));
  }
};

// Called by generated code, with all slots in the frame.
bool compute(Frame* frame, uint32_t uop) {
  FrameContext context{*frame};
  StopInfo stop;
  return execute(frame->uops[uop], context, *frame->memory, frame->core, stop) == Outcome::kNext;
}

// Not every compiler lets one ask for it by name.
bool has_lzcnt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & bit_LZCNT) != 0;
}

bool is_available() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_lzcnt();
}

// Whether programs may set the base of GS themselves (CPUID.7.EBX.0, and Linux lets them).
bool can_write_gs() {
  constexpr unsigned long kFsGsBase = 2;  // HWCAP2_FSGSBASE
  return (getauxval(AT_HWCAP2) & kFsGsBase) != 0;
}

class NativeEngine final : public Engine {
 public:
  NativeEngine(const Module& module, const MemoryView& memory, uint64_t weight, Guard guard)
      : guard_(std::move(guard)), environment_(asmjit::Environment::host()) {
    around_.module = &module;
    around_.memory = memory;
    around_.counts_at_once = memory.class_ticks != nullptr;
    around_.weight = weight;
    around_.plain_windows = is_plain(memory);
    around_.fp_by_machine = module.abi.fp_state != kNoSlot;
  }

  void module_changed() override;
  void permissions_changed(uint64_t address, uint64_t size_bytes) override {
    if (page_table_)
      page_table_->update(address, size_bytes);
    else if (!has_begun())
      permitted_.push_back({address, size_bytes});
  }
  bool needs_guard() const override { return around_.direct.base != nullptr; }
  void lose_guard() override;
  std::span<const uint32_t> compile(std::span<const uint64_t> counts, uint64_t hot) override;
  bool wants_other_code() const override {
    return around_.fp_by_machine && misfits_.load(std::memory_order_relaxed) > kMostMisfits;
  }
  bool run(Frame& frame, uint32_t uop) override;
  void prepare(CountingFrame& counting) const override {
    counting.reserve(counted_.size());
    Frame& frame = counting.frame();
    frame.rights = page_table_ ? page_table_->rights() : nullptr;
    frame.limit = around_.direct.limit;
    frame.unit_entries = reinterpret_cast<void* const*>(unit_entries_.data());
    frame.text_units = around_.module->code.uop_at.size();
    frame.uops = around_.module->uops.data();
    frame.memory = &around_.memory;
  }
  void settle(CountingFrame& frame, uint64_t* block_counts, uint32_t* classes) const override;

 private:
  static constexpr uint32_t kMostMisfits = 10000;
  static constexpr int kMostMaps = 8;
  // Turns end at each call of the system, and all counts are looked at then: from here on that
  // takes longer than to count at once.
  static constexpr size_t kMostCounted = 8192;

  static bool is_plain(const MemoryView& m) {
    return m.lanes_shift == 0 && !m.is_private;
  }
  // What code needs is there from the first hot block on: most programs end before one is.
  bool has_begun() const { return has_begun_; }
  bool make_page_table();
  bool begin();
  void view_module();
  bool write_common();
  SlotMap::Uses uses_of(std::span<const uint32_t> blocks, std::span<const uint64_t> counts) const;
  bool choose_code(std::span<const uint32_t> blocks, std::span<const uint64_t> counts);
  bool write_blocks(std::span<const uint32_t> blocks);
  std::vector<uint32_t> strands_of(std::span<const uint32_t> blocks) const;
  void forget_code();
  void add_entry(uint32_t uop, uint64_t code);
  uint32_t count_of(uint32_t block);
  bool is_block(uint32_t uop) const { return block_at_[uop] != kNoBlock; }

  struct Range {
    uint64_t address, size_bytes;
  };
  Guard guard_;
  bool has_begun_ = false;
  std::vector<Range> permitted_;  // whose permissions changed before code was needed
  std::optional<CodeMemory> memory_;
  std::optional<PageTable> page_table_;  // none where the host looks after permissions
  Traps traps_;
  asmjit::Environment environment_;
  Surroundings around_;
  using Enter = void (*)(Frame*, uint64_t code);
  Enter enter_ = nullptr;
  std::vector<uint64_t> entries_;                      // code by micro-op, 0: none
  std::vector<uint32_t> block_at_;                     // that starts at a micro-op, or kNoBlock
  std::vector<uint64_t> unit_entries_;                 // code by guest address, in units of CodeMap
  std::unordered_multimap<uint32_t, uint64_t> exits_;  // that may become jumps, by micro-op
  std::vector<uint32_t> blocks_;                       // with code
  std::vector<uint32_t> first_uops_;                   // of these
  std::vector<bool> has_code_;                         // by block
  // Blocks that code counts, by count, and their classes.
  struct alignas(64) Classes {
    __m256i halves[2];
  };
  std::vector<uint32_t> counted_;
  std::vector<Classes> classes_;
  std::vector<uint32_t> count_of_;  // by block; kNoBlock: none
  int maps_ = 0;                                       // that slots had
  bool is_full_ = false;
  std::atomic<uint32_t> misfits_ = 0;  // cores that came in other modes
};

// False: it goes without native code.
bool NativeEngine::begin() {
  has_begun_ = true;
  if (guard_ && can_write_gs()) around_.direct = guard_();
  if (needs_guard())
    handle_faults();
  else if (!make_page_table())
    return false;
  for (const Range& r : permitted_) permissions_changed(r.address, r.size_bytes);
  permitted_ = {};
  view_module();
  if (!memory_.emplace().exists()) return false;
  traps_.set_code(memory_->base());
  return true;
}

bool NativeEngine::make_page_table() {
  try {
    page_table_.emplace(around_.memory, around_.plain_windows);
  } catch (const std::runtime_error&) {  // no address space for page rights
    return false;
  }
  around_.pages = page_table_->pages();
  return true;
}

void NativeEngine::lose_guard() {
  around_.direct = {};
  forget_code();
  enter_ = nullptr;
  if (!make_page_table()) {
    is_full_ = true;
    return;
  }
  const MemoryView& m = around_.memory;
  page_table_->update(m.linear_base, m.linear_size);
  page_table_->update(m.window_base, m.windows_size);
}

bool NativeEngine::write_common() {
  ErrorFlag errors;
  asmjit::CodeHolder code;
  code.init(environment_);
  code.setErrorHandler(&errors);
  x86::Assembler a(&code);
  const auto field = [](size_t offset, uint32_t size) {
    return x86::ptr(x86::rbp, static_cast<int32_t>(offset), size);
  };
  const x86::Gp saved[] = {x86::rbx, x86::rbp, x86::r12, x86::r13, x86::r14, x86::r15};
  const auto tally = static_cast<int32_t>(offsetof(Frame, tally));
  const auto load_tally = [&] {
    if (!around_.counts_at_once) return;
    a.vmovdqu(x86::ymm14, x86::ptr(x86::rbp, tally));
    a.vmovdqu(x86::ymm15, x86::ptr(x86::rbp, tally + 32));
  };
  const auto store_tally = [&] {
    if (!around_.counts_at_once) return;
    a.vmovdqu(x86::ptr(x86::rbp, tally), x86::ymm14);
    a.vmovdqu(x86::ptr(x86::rbp, tally + 32), x86::ymm15);
    a.vzeroupper();
  };
  const Label leave = a.newLabel(), left = a.newLabel(), compute_label = a.newLabel(),
              failed = a.newLabel();
  // void enter(Frame*, code)
  for (const x86::Gp& r : saved) a.push(r);
  a.sub(x86::rsp, 8);
  a.mov(x86::rbp, x86::rdi);
  a.mov(x86::rax, x86::rsi);
  a.mov(x86::r15, field(offsetof(Frame, budget), 8));
  if (needs_guard()) {
    a.mov(x86::rdx, reinterpret_cast<uint64_t>(around_.direct.base));
    a.wrgsbase(x86::rdx);  // nobody else uses it
  }
  const x86::Mem mxcsr = field(offsetof(Frame, mxcsr), 4);
  const auto unless_inexact = [&](auto write) {
    if (!around_.fp_by_machine) return;
    const Label inexact = a.newLabel();
    jump_if_inexact(a, around_.module->abi.fp_state, inexact);
    write();
    a.bind(inexact);
  };
  const auto clear_exceptions = [&] { unless_inexact([&] { a.vldmxcsr(mxcsr); }); };
  const auto settle_exceptions = [&] {
    unless_inexact([&] { write_exceptions(a, around_.module->abi.fp_state); });
  };
  if (around_.fp_by_machine) {
    constexpr int kExceptions = 0x3f;
    a.vstmxcsr(mxcsr);
    a.and_(mxcsr, ~kExceptions);
    clear_exceptions();
  }
  load_tally();
  around_.slots.load_all(a);
  a.jmp(x86::rax);
  // Leaves for the micro-op in eax.
  a.bind(leave);
  around_.slots.store_all(a);
  store_tally();
  settle_exceptions();
  a.bind(left);
  a.mov(field(offsetof(Frame, next), 4), x86::eax);
  a.mov(field(offsetof(Frame, budget), 8), x86::r15);
  a.add(x86::rsp, 8);
  for (size_t i = std::size(saved); i-- > 0;) a.pop(saved[i]);
  a.ret();
  // Computes the micro-op in eax by the interpreter's function, or leaves for it.
  a.bind(compute_label);
  around_.slots.store_all(a);
  store_tally();
  settle_exceptions();
  a.mov(field(offsetof(Frame, called), 8), x86::rax);
  a.mov(x86::rdi, x86::rbp);
  a.mov(x86::esi, x86::eax);
  a.mov(x86::rax, reinterpret_cast<uint64_t>(&compute));
  a.sub(x86::rsp, 8);
  a.call(x86::rax);
  a.add(x86::rsp, 8);
  a.test(x86::al, x86::al);
  a.jz(failed);
  clear_exceptions();  // the function may have raised anything
  around_.slots.load_all(a);
  load_tally();
  a.ret();
  a.bind(failed);
  a.add(x86::rsp, 8);
  a.mov(x86::rax, field(offsetof(Frame, called), 8));
  a.jmp(left);

  const uint64_t base = errors.failed ? 0 : memory_->add(code);
  if (base == 0) return false;
  enter_ = reinterpret_cast<Enter>(base);
  around_.leave = base + code.labelOffset(leave);
  around_.compute = base + code.labelOffset(compute_label);
  return true;
}

void NativeEngine::module_changed() {
  if (has_begun()) view_module();
}

void NativeEngine::view_module() {
  const Module& m = *around_.module;
  size_t b = has_code_.size();
  entries_.resize(m.uops.size());
  has_code_.resize(m.blocks.size());
  block_at_.resize(m.uops.size(), kNoBlock);
  unit_entries_.resize(m.code.uop_at.size());
  for (; b < m.blocks.size(); ++b) {
    block_at_[m.blocks[b].first_uop] = static_cast<uint32_t>(b);
    // Of a block that was retired from the code map another stands there now.
    const uint64_t unit = m.code.unit_of(m.blocks[b].pc);
    if (unit < m.code.uop_at.size() && m.code.uop_at[unit] != kNoUop)
      unit_entries_[unit] = entries_[m.code.uop_at[unit]];
  }
  // Of one that was retired there may be none yet.
  for (const uint32_t block : blocks_) {
    const uint64_t unit = m.code.unit_of(m.blocks[block].pc);
    if (unit < m.code.uop_at.size() && m.code.uop_at[unit] == kNoUop) unit_entries_[unit] = 0;
  }
}

void NativeEngine::add_entry(uint32_t uop, uint64_t code) {
  entries_[uop] = code;
  const Module& m = *around_.module;
  if (is_block(uop)) {
    const uint64_t unit = (m.blocks[block_at_[uop]].pc - m.code.text_base) >> m.code.pc_shift;
    if (unit < m.code.uop_at.size() && m.code.uop_at[unit] == uop) unit_entries_[unit] = code;
  }
  const auto [begin, end] = exits_.equal_range(uop);
  for (auto it = begin; it != end; ++it) CodeMemory::link(it->second, code);
  exits_.erase(begin, end);
}

uint32_t NativeEngine::count_of(uint32_t block) {
  if (count_of_.size() <= block) count_of_.resize(around_.module->blocks.size(), kNoBlock);
  uint32_t& count = count_of_[block];
  if (count != kNoBlock) return count;
  count = static_cast<uint32_t>(counted_.size());
  counted_.push_back(block);
  BlockClassCounts classes = around_.module->blocks[block].classes;
  std::fill(classes.begin() + kInsnClassCount, classes.end(), 0);
  std::memcpy(&classes_.emplace_back(), classes.data(), sizeof(Classes));
  return count;
}

__attribute__((target("avx2"))) void NativeEngine::settle(CountingFrame& frame,
                                                          uint64_t* block_counts,
                                                          uint32_t* classes) const {
  static_assert(CountingFrame::kAtOnce == 32);
  if (around_.counts_at_once) return;
  uint32_t* const counts = frame.counts();
  __m256i sums[2] = {};
  for (size_t i = 0; i < counted_.size(); i += CountingFrame::kAtOnce) {
    auto* const some = reinterpret_cast<__m256i*>(counts + i);
    const __m256i any = (some[0] | some[1]) | (some[2] | some[3]);
    if (_mm256_testz_si256(any, any)) continue;
    for (size_t vector = 0; vector < 4; ++vector) {
      const __m256i is_zero = _mm256_cmpeq_epi32(some[vector], __m256i{});
      auto bits = ~static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(is_zero))) & 0xff;
      for (; bits != 0; bits &= bits - 1) {
        const size_t k = i + 8 * vector + static_cast<size_t>(std::countr_zero(bits));
        block_counts[counted_[k]] += around_.weight * counts[k];
        const __m256i times = _mm256_set1_epi32(static_cast<int>(counts[k]));
        for (size_t half = 0; half < 2; ++half)
          sums[half] = _mm256_add_epi32(sums[half],
                                        _mm256_mullo_epi32(times, classes_[k].halves[half]));
      }
      some[vector] = __m256i{};
    }
  }
  alignas(32) std::array<uint32_t, 16> sum;
  std::memcpy(sum.data(), sums, sizeof sum);
  for (size_t c = 0; c < kInsnClassCount; ++c) classes[c] += sum[c];
}

void NativeEngine::forget_code() {
  memory_->clear();
  counted_.clear();
  classes_.clear();
  std::fill(count_of_.begin(), count_of_.end(), kNoBlock);
  traps_.clear();
  exits_.clear();
  std::fill(entries_.begin(), entries_.end(), 0);
  std::fill(unit_entries_.begin(), unit_entries_.end(), 0);
  std::fill(has_code_.begin(), has_code_.end(), false);
  blocks_.clear();
  first_uops_.clear();
}

SlotMap::Uses NativeEngine::uses_of(std::span<const uint32_t> blocks,
                                    std::span<const uint64_t> counts) const {
  SlotMap::Uses uses;
  const Module& m = *around_.module;
  for (const uint32_t b : blocks)
    for (uint32_t i = 0; i < m.blocks[b].uop_count; ++i)
      uses.add(m.uops[m.blocks[b].first_uop + i], 2 * (counts[b] + 1));
  return uses;
}

// The blocks' strands, and the ways out of them that no block starts.
std::vector<uint32_t> NativeEngine::strands_of(std::span<const uint32_t> blocks) const {
  const Module& m = *around_.module;
  std::vector<uint32_t> starts;
  std::unordered_set<uint32_t> seen;
  const auto add = [&](uint32_t uop) {
    if (entries_[uop] == 0 && seen.insert(uop).second) starts.push_back(uop);
  };
  for (const uint32_t b : blocks) add(m.blocks[b].first_uop);
  for (size_t k = 0; k < starts.size(); ++k) {
    uint32_t end = starts[k];
    while (!ends_strand(m.uops[end])) ++end;
    const ShapeInfo info = shape_info(op_info(m.uops[end].op).shape);
    if (info.has_target && !is_block(m.uops[end].target())) add(m.uops[end].target());
    if (info.falls_through && !is_block(end + 1)) add(end + 1);
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

bool NativeEngine::write_blocks(std::span<const uint32_t> blocks) {
  const std::vector<uint32_t> starts = strands_of(blocks);
  ErrorFlag errors;
  asmjit::CodeHolder code;
  code.init(environment_);
  code.setErrorHandler(&errors);
  StrandWriter writer(code, around_);
  writer.write(starts, [this](uint32_t uop) { return entries_[uop]; },
               [this](uint32_t block) { return count_of(block); });
  const uint64_t base = errors.failed || writer.failed() ? 0 : memory_->add(code);
  if (base == 0) return false;
  const auto place = [&](Label label) {
    return static_cast<uint32_t>(base - memory_->base() + code.labelOffset(label));
  };
  for (const StrandWriter::Access& access : writer.accesses())
    traps_.add({place(access.begin), place(access.end), place(access.slow)});
  for (const StrandWriter::Way& way : writer.exits())
    exits_.emplace(way.uop, base + code.labelOffset(way.label));
  for (const StrandWriter::Way& way : writer.entries())
    add_entry(way.uop, base + code.labelOffset(way.label));
  for (const uint32_t b : blocks) {
    has_code_[b] = true;
    blocks_.push_back(b);
    first_uops_.push_back(around_.module->blocks[b].first_uop);
  }
  return true;
}

// Decides for which state and for which places of slots code is generated. True: there is no code
// any more.
bool NativeEngine::choose_code(std::span<const uint32_t> blocks, std::span<const uint64_t> counts) {
  bool changes = enter_ == nullptr;
  if (wants_other_code()) {
    around_.fp_by_machine = false;
    changes = true;
  }
  if (blocks.size() > kMostCounted && !around_.counts_at_once) {
    around_.counts_at_once = true;
    changes = true;
  }
  const SlotMap::Uses uses = uses_of(blocks, counts);
  const SlotMap best = SlotMap::best(uses, around_.module->abi.fp_state);
  // Code for other places has to be much better to be worth writing.
  if (changes || (maps_ < kMostMaps && best.served(uses) / 5 * 4 > around_.slots.served(uses))) {
    around_.slots = best;
    ++maps_;
    changes = true;
  }
  if (!changes) return false;
  forget_code();
  if (!write_common()) is_full_ = true;
  return true;
}

std::span<const uint32_t> NativeEngine::compile(std::span<const uint64_t> counts, uint64_t hot) {
  if (is_full_) return {};
  // Blocks near hot ones will be needed, too.
  constexpr uint64_t kNearlyHot = 4;
  std::vector<uint32_t> chosen;
  bool any = wants_other_code();
  for (uint32_t b = 0; b < counts.size(); ++b) {
    if ((has_begun() && has_code_[b]) || counts[b] < hot / kNearlyHot) continue;
    if (counts[b] == 0 && hot != 0) continue;
    chosen.push_back(b);
    any |= counts[b] >= hot;
  }
  if (!any) return {};
  if (!has_begun() && !begin()) {
    is_full_ = true;
    return {};
  }
  std::vector<uint32_t> all = blocks_;
  all.insert(all.end(), chosen.begin(), chosen.end());
  if (choose_code(all, counts)) chosen = all;
  if (is_full_ || !write_blocks(chosen)) {
    is_full_ = true;
    return {};
  }
  return first_uops_;
}

bool NativeEngine::run(Frame& frame, uint32_t uop) {
  const uint64_t code = uop < entries_.size() ? entries_[uop] : 0;
  if (code == 0) return false;
  if (around_.fp_by_machine && (frame.slots[around_.module->abi.fp_state] & sem::kFpModes) != 0) {
    misfits_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const int64_t budget = frame.budget;
  if (needs_guard()) {
    const Trapping trapping(traps_);
    enter_(&frame, code);
  } else {
    enter_(&frame, code);
  }
  const auto used = static_cast<uint64_t>(budget - frame.budget);
  frame.tally[15] += static_cast<uint32_t>(used);
  return true;
}

}  // namespace

void CountingFrame::reserve(size_t counts) {
  if (counts <= room_ && storage_ != nullptr) return;
  room_ = (std::max(2 * counts, size_t{1024}) + kAtOnce - 1) / kAtOnce * kAtOnce;
  const size_t bytes = sizeof(Frame) + room_ * sizeof(uint32_t);
  storage_.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{alignof(Frame)})));
  new (storage_.get()) Frame;
  std::fill_n(this->counts(), room_, 0);
}

std::unique_ptr<Engine> Engine::make(const Module& module, const MemoryView& memory,
                                     uint64_t weight, Guard guard) {
  if (!is_available() || memory.is_private) return nullptr;
  return std::make_unique<NativeEngine>(module, memory, weight, std::move(guard));
}

}  // namespace gpusim::native
