#include "translator/ptx/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "device_sim/base/error.h"
#include "device_sim/uir/warp.h"
#include "translator/common/limits.h"
#include "translator/common/link.h"
#include "translator/ptx/allocate.h"
#include "translator/ptx/device_call.h"
#include "translator/ptx/finish.h"
#include "translator/ptx/matrix_op.h"
#include "translator/ptx/memory_map.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_internal.h"
#include "translator/ptx/spill.h"
#include "translator/ptx/tensor_op.h"
#include "translator/ptx/warpgroup_op.h"

namespace gpusim::ptx {
namespace {

constexpr uint64_t kStackAlign = 16;

uint64_t align_up(uint64_t x, uint64_t to) { return (x + to - 1) / to * to; }

void collect_symbols(const Operand& o, std::set<std::string>& out) {
  if (o.is(Operand::Kind::kSymbol)) out.insert(o.symbol);
  for (const Operand& e : o.elements) collect_symbols(e, out);
}

// Whether it may change global memory by an atomic operation. What stands in for operations on
// barriers (prelude.cpp) names no space, and reaches shared memory only.
bool is_global_atomic(const Instruction& i) {
  if (i.base != "atom" && i.base != "red" && i.base != "sured") return false;
  if (i.has("shared") || i.has("shared::cta") || i.has("shared::cluster")) return false;
  return i.counts || i.opcode != "atom.cas.b64";
}

// One instruction has one unit of code addresses; what only its guard lets through has another.
constexpr Slot kClock = special_slot(Special::kClock);

class KernelTranslator {
 public:
  KernelTranslator(const Function& kernel, const Functions& functions, const Places& places,
                   const std::vector<Variable>& shared)
      : whole_(inline_calls(kernel, functions, places)), f_(whole_.function), places_(places) {
    out_.name = kernel.name;
    for (const Instruction& i : f_.body) {
      out_.has_launches |= i.row == &kCallDevice;
      if (is_global_atomic(i)) {
        out_.has_global_atomics = true;
        out_.has_wide_global_atomics |= i.type().bits == 128;
      }
      out_.has_heap |= i.row == &kCallDevice
                           ? i.operands[0].value == static_cast<uint64_t>(DeviceCall::kMalloc) ||
                                 i.operands[0].value == static_cast<uint64_t>(DeviceCall::kFree)
                           : i.row == &kCallHost &&
                                 (i.operands[0].value == static_cast<uint64_t>(HostCall::kMalloc) ||
                                  i.operands[0].value == static_cast<uint64_t>(HostCall::kFree));
    }
    std::copy_n(kernel.max_threads, 3, out_.max_threads);
    std::copy_n(kernel.required_threads, 3, out_.required_threads);
    std::copy_n(kernel.cluster, 3, out_.cluster);
    out_.max_cluster_rank = kernel.max_cluster_rank;
    out_.is_explicit_cluster = kernel.is_explicit_cluster;
    lay_out(kernel, shared);
    for (const Instruction& i : f_.body)
      for (const Operand& o : i.operands)
        has_clock_ |= o.is(Operand::Kind::kSpecial) && is_clock(o.symbol);
  }

  KernelCode run(Notes notes) {
    const Allocation a = allocate();
    if (whole_.has_alloca) place_stack();
    out_.registers = static_cast<uint32_t>(a.count);
    if (a.count > kMostRegisters)
      throw Error(fmt::format("kernel '{}': {} values are live at once; at most {} are supported",
                              out_.name, a.count, kMostRegisters));
    Emitter e(f_, a.colours, a.count, places_);
    number_units(!a.live_at_entry.empty());
    std::map<std::string, uint64_t> pcs;
    for (const auto& [label, at] : f_.labels) pcs[label] = pc_of(at);
    e.set_label_pcs(std::move(pcs));
    for (const auto& [address, label] : whole_.addressed) {
      e.begin_block(address);
      e.b.jmp(e.label_pc(label));
      close(e, address + kCodeUnit);
    }
    const uint64_t entry = kCodeBase + kCodeUnit * whole_.addressed_units;
    if (!a.live_at_entry.empty()) {
      // What may be read before it is written is zero.
      e.begin_block(entry);
      for (const uint32_t r : a.live_at_entry) e.b.konst(e.reg(r), 0);
      close(e, pc_of(0));
    }
    for (size_t i = 0; i < f_.body.size(); ++i) instruction(e, i);
    if (is_open_) close(e, pc_of(f_.body.size()));
    e.begin_block(pc_of(f_.body.size()));
    e.end_thread();
    close(e, pc_of(f_.body.size()));
    finish(std::move(blocks_), e.constants(), unit_count_, entry, notes, out_);
    count_instructions();
    return std::move(out_);
  }

 private:
  // Activations of a function would share what it spills, so kernels with a stack do not.
  Allocation allocate() {
    if (whole_.has_stack) return allocate_registers(f_);
    SpilledAllocation spilled = allocate_and_spill(whole_.function, kMostRegisters);
    if (spilled.spill_bytes != 0) {
      const uint64_t local = align_up(out_.local_bytes, 8);
      check_local(local + spilled.spill_bytes);
      places_[kSpillVariable] = {Space::kLocal, kLocalWindowBase + local};
      out_.local_bytes = static_cast<uint32_t>(local) + spilled.spill_bytes;
    }
    return std::move(spilled.allocation);
  }

  // Behind all other local memory that has a size yet.
  void place_stack() {
    const uint64_t local = align_up(out_.local_bytes, kStackAlign);
    check_local(local);
    places_[kStackBottom] = {Space::kLocal, kLocalWindowBase + local};
    out_.local_bytes = static_cast<uint32_t>(local);
    out_.has_alloca = true;
  }

  void lay_out(const Function& kernel, const std::vector<Variable>& all_shared) {
    uint64_t at = 0;
    for (const Variable& p : kernel.params) {
      at = align_up(at, p.align);
      places_[p.name] = {Space::kParam, at};
      out_.params.push_back(
          {static_cast<uint32_t>(at), static_cast<uint32_t>(p.size), p.align, p.type.is_float()});
      at += p.size;
    }
    out_.param_bytes = static_cast<uint32_t>(at);
    places_[kParamWindow] = {Space::kParam, 0, at};
    std::set<std::string> used;
    for (const Instruction& i : f_.body)
      for (const Operand& o : i.operands) collect_symbols(o, used);
    uint64_t shared = kReservedSharedBytes, local = 0;
    std::vector<const Variable*> dynamic;
    const auto place_shared = [&](const Variable& v) {
      if (!used.contains(v.name)) return;
      if (v.is_unsized || (v.linkage == Linkage::kExtern && v.size == 0)) {
        dynamic.push_back(&v);
        return;
      }
      shared = align_up(shared, v.align);
      places_[v.name] = {Space::kShared, kCtaBase + shared};
      out_.shared_variables.push_back(
          {v.name, static_cast<uint32_t>(shared), static_cast<uint32_t>(v.size)});
      shared += v.size;
    };
    for (const Variable& v : all_shared) place_shared(v);
    for (const Variable& v : f_.variables) {
      if (v.space == Space::kShared) place_shared(v);
      if (v.space != Space::kLocal) continue;
      local = align_up(local, v.align);
      places_[v.name] = {Space::kLocal, kLocalWindowBase + local};
      local += v.size;
    }
    const auto is_product = [](const Instruction& i) { return i.row == &kMatrixProduct; };
    if (std::any_of(f_.body.begin(), f_.body.end(), is_product)) {
      local = align_up(local, 16);
      places_["@matrix"] = {Space::kLocal, kLocalWindowBase + local};
      local += kMatrixBytes;
    }
    if (out_.has_launches) {
      local = align_up(local, 16);
      places_["@call"] = {Space::kLocal, kLocalWindowBase + local};
      local += kDeviceCallBytes;
    }
    const auto is_tensor = [](const Instruction& i) { return i.row == &kCallTensor; };
    if (std::any_of(f_.body.begin(), f_.body.end(), is_tensor)) {
      local = align_up(local, 16);
      places_["@tensor"] = {Space::kLocal, kLocalWindowBase + local};
      local += kTensorRoomBytes;
    }
    const auto is_of_group = [](const Instruction& i) { return i.row == &kWarpgroupProduct; };
    if (std::any_of(f_.body.begin(), f_.body.end(), is_of_group)) {
      local = align_up(local, 16);
      places_["@warpgroup"] = {Space::kLocal, kLocalWindowBase + local};
      local += kGroupRoomBytes;
    }
    if (whole_.has_stack) {
      out_.has_stack = true;
      local = align_up(local, 16);
      places_["@stack"] = {Space::kLocal, kLocalWindowBase + local};
    }
    out_.static_shared_bytes = static_cast<uint32_t>(shared - kReservedSharedBytes);
    uint32_t align = kDynamicSharedAlign;
    for (const Variable* v : dynamic) align = std::max(align, v->align);
    shared = align_up(shared, align);
    for (const Variable* v : dynamic) {
      places_[v->name] = {Space::kShared, kCtaBase + shared};
      out_.shared_variables.push_back({v->name, static_cast<uint32_t>(shared), 0});
    }
    out_.dynamic_shared_offset = static_cast<uint32_t>(shared);
    check_local(local);
    out_.local_bytes = static_cast<uint32_t>(local);
  }

  void check_local(uint64_t bytes) const {
    if (bytes > kMostLocalBytes)
      throw Error(fmt::format("kernel '{}' has {} bytes of local memory; at most {} are supported",
                              out_.name, bytes, kMostLocalBytes));
  }

  // --- places in the code

  static bool ends_block(const Instruction& insn) {
    return is_branch(insn) || insn.base == "ret" || insn.base == "exit" || insn.base == "trap" ||
           insn.base == "nanosleep" || insn.has("try_wait") || insn.row == &kCallHost ||
           insn.row == &kCallDevice || insn.row == &kCallTensor || insn.row == &kCallOut ||
           insn.row == &kMatrixProduct || insn.row == &kWarpgroupProduct || insn.more_units != 0;
  }
  // What a false guard keeps from happening needs a branch around it. Other instructions choose
  // between their result and what was there.
  static bool is_branched_around(const Instruction& insn) {
    if (insn.guard == kNoRegister || is_branch(insn)) return false;
    if (insn.type().bits == 128) return true;  // two slots
    const bool is_value = !insn.has("cc") && insn.row->kind != RowClass::kMemory &&
                          insn.row->kind != RowClass::kParallel &&
                          insn.row->kind != RowClass::kControl && !insn.operands.empty() &&
                          insn.operands[0].is(Operand::Kind::kRegister) && is_destination(insn, 0);
    return !is_value;
  }

  void number_units(bool has_prologue) {
    const size_t size = f_.body.size();
    starts_.assign(size + 1, false);
    for (const auto& [label, at] : f_.labels) starts_[at] = true;
    unit_of_.resize(size + 1);
    uint32_t unit = whole_.addressed_units + (has_prologue ? 1 : 0);
    for (size_t i = 0; i < size; ++i) {
      const Instruction& insn = f_.body[i];
      unit_of_[i] = unit;
      unit += (insn.counts ? 1u : 0u) + (is_branched_around(insn) ? 1u : 0u) + insn.more_units;
      if (is_branched_around(insn) || ends_block(insn)) starts_[i + 1] = true;
    }
    unit_of_[size] = unit;
    unit_count_ = unit + 1;
  }
  uint64_t pc_of(size_t i) const { return kCodeBase + kCodeUnit * unit_of_[i]; }

  void close(Emitter& e, uint64_t next_pc) {
    CodeBlock block;
    block.draft = e.b.take();
    if (has_clock_) set_clock(block.draft);
    if (e.ends_thread()) block.draft.end.present = true;
    block.next_pc = next_pc;
    blocks_.push_back(std::move(block));
    is_open_ = false;
  }

  void open(Emitter& e, uint64_t pc) {
    e.begin_block(pc);
    if (has_clock_) e.b.addi64(kClock, kClock, 0);
    is_open_ = true;
  }

  // A block adds its instructions to the clock when it begins; who reads it takes off those that
  // are still to come.
  static void set_clock(DraftBlock& block) {
    const uint64_t count = block.classes.size();
    for (size_t i = 0; i < block.uops.size(); ++i) {
      Uop& u = block.uops[i];
      if (u.op == Op::addi64 && u.a == kClock)
        u.imm = u.d == kClock ? count : block.uop_insn[i] - count;
    }
  }

  void instruction(Emitter& e, size_t i) {
    const Instruction& insn = f_.body[i];
    const bool is_full = is_open_ && insn.counts &&
                         (e.b.draft().classes.size() >= kMaxBlockInsns ||
                          e.b.draft().uops.size() > kMaxBlockUops - 200);
    if (is_open_ && (starts_[i] || is_full)) close(e, pc_of(i));
    if (!is_open_) open(e, pc_of(i));
    if (insn.counts) {
      e.b.begin_instruction();
      e.b.set_class(class_of(insn));
    }
    e.next_pc = pc_of(i + 1);
    if (is_branched_around(insn)) {
      const Operand otherwise{.kind = Operand::Kind::kRegister,
                              .is_negated = !insn.guard_is_negated,
                              .reg = insn.guard};
      e.branch(otherwise, pc_of(i + 1));
      close(e, pc_of(i) + kCodeUnit);
      open(e, pc_of(i) + kCodeUnit);
      emit(e, insn);
    } else if (insn.guard != kNoRegister && !is_branch(insn)) {
      const Slot result = e.temp();
      e.redirect(result);
      emit(e, insn);
      e.redirect(std::nullopt);
      const Operand guard{
          .kind = Operand::Kind::kRegister, .is_negated = insn.guard_is_negated, .reg = insn.guard};
      const Slot d = e.reg(insn.operands[0]);
      e.select(d, result, d, guard);
      e.dst(insn.operands[0]);
    } else {
      emit(e, insn);
    }
    if (e.b.ended() || e.ends_thread()) close(e, pc_of(i + 1));
  }

  void emit(Emitter& e, const Instruction& insn) {
    if (insn.row->emit == nullptr) e.unsupported(insn, "not supported");
    insn.row->emit(e, insn);
  }

  // Which instructions each block of the module has: its pc says from where on.
  void count_instructions() {
    std::vector<uint32_t> insn_at(unit_count_, ~0u);
    for (uint32_t i = 0; i < f_.body.size(); ++i)
      if (f_.body[i].counts) insn_at[unit_of_[i]] = i;
    for (const Block& b : out_.module.blocks) {
      std::vector<StaticInstruction> list;
      size_t unit = (b.pc - kCodeBase) / kCodeUnit;
      for (uint32_t k = 0; k < b.insn_count; ++k) {
        const Instruction& insn = f_.body[insn_at[unit + k]];
        list.push_back({insn.opcode, insn.line, insn.location});
      }
      out_.instructions.push_back(std::move(list));
      while (unit > 0 && insn_at[unit] == ~0u) --unit;
      out_.part_of.emplace_back();
      if (insn_at[unit] == ~0u) continue;
      const Instruction& insn = f_.body[insn_at[unit]];
      out_.part_of.back() = {insn.opcode, insn.line, insn.location};
    }
  }

  WholeKernel whole_;
  const Function& f_;
  Places places_;
  KernelCode out_;
  std::vector<bool> starts_;
  std::vector<uint32_t> unit_of_;
  uint32_t unit_count_ = 0;
  std::vector<CodeBlock> blocks_;
  bool is_open_ = false, has_clock_ = false;
};

}  // namespace

KernelCode translate_kernel(const Function& kernel, const Functions& functions,
                            const Places& places, const std::vector<Variable>& shared,
                            Notes notes) {
  return KernelTranslator(kernel, functions, places, shared).run(notes);
}

}  // namespace gpusim::ptx
