#include "translator/ptx/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "device_sim/base/error.h"
#include "device_sim/uir/warp.h"
#include "translator/common/limits.h"
#include "translator/common/link.h"
#include "translator/ptx/allocate.h"
#include "translator/ptx/finish.h"
#include "translator/ptx/memory_map.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

uint64_t align_up(uint64_t x, uint64_t to) { return (x + to - 1) / to * to; }

void collect_symbols(const Operand& o, std::set<std::string>& out) {
  if (o.is(Operand::Kind::kSymbol)) out.insert(o.symbol);
  for (const Operand& e : o.elements) collect_symbols(e, out);
}

// One instruction has one unit of code addresses; what only its guard lets through has another.
constexpr uint64_t kTextBase = 0x1000, kUnit = 4;

class KernelTranslator {
 public:
  KernelTranslator(const Function& kernel, const Functions& functions, const Places& places,
                   const std::vector<Variable>& shared)
      : f_(inline_calls(kernel, functions)), places_(places) {
    out_.name = kernel.name;
    std::copy_n(kernel.max_threads, 3, out_.max_threads);
    std::copy_n(kernel.required_threads, 3, out_.required_threads);
    lay_out(kernel, shared);
  }

  KernelCode run(Notes notes) {
    const Allocation a = allocate_registers(f_);
    out_.registers = static_cast<uint32_t>(a.count);
    if (a.count > kMostRegisters)
      throw Error(fmt::format("kernel '{}': {} values are live at once; at most {} are supported",
                              out_.name, a.count, kMostRegisters));
    Emitter e(f_, a.colours, a.count, places_);
    number_units(!a.live_at_entry.empty());
    std::map<std::string, uint64_t> pcs;
    for (const auto& [label, at] : f_.labels) pcs[label] = pc_of(at);
    e.set_label_pcs(std::move(pcs));
    if (!a.live_at_entry.empty()) {
      // What may be read before it is written is zero.
      e.begin_block(kTextBase);
      for (const uint32_t r : a.live_at_entry) e.b.konst(e.reg(r), 0);
      close(e, pc_of(0));
    }
    for (size_t i = 0; i < f_.body.size(); ++i) instruction(e, i);
    if (is_open_) close(e, pc_of(f_.body.size()));
    e.begin_block(pc_of(f_.body.size()));
    e.end_thread();
    close(e, pc_of(f_.body.size()));
    finish(std::move(blocks_), e.constants(), unit_count_, notes, out_);
    count_instructions();
    return std::move(out_);
  }

 private:
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
    out_.static_shared_bytes = static_cast<uint32_t>(shared - kReservedSharedBytes);
    shared = align_up(shared, kDynamicSharedAlign);
    for (const Variable* v : dynamic) {
      places_[v->name] = {Space::kShared, kCtaBase + shared};
      out_.shared_variables.push_back({v->name, static_cast<uint32_t>(shared), 0});
    }
    out_.dynamic_shared_offset = static_cast<uint32_t>(shared);
    if (local > kMostLocalBytes)
      throw Error(fmt::format("kernel '{}' has {} bytes of local memory; at most {} are supported",
                              out_.name, local, kMostLocalBytes));
    out_.local_bytes = static_cast<uint32_t>(local);
  }

  // --- places in the code

  static bool ends_block(const Instruction& insn) {
    return is_branch(insn) || insn.base == "ret" || insn.base == "exit" || insn.base == "trap" ||
           insn.row == &kCallHost;
  }
  // What a false guard keeps from happening needs a branch around it. Other instructions choose
  // between their result and what was there.
  static bool is_branched_around(const Instruction& insn) {
    if (insn.guard == kNoRegister || is_branch(insn)) return false;
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
    uint32_t unit = has_prologue ? 1 : 0;
    for (size_t i = 0; i < size; ++i) {
      const Instruction& insn = f_.body[i];
      unit_of_[i] = unit;
      unit += (insn.counts ? 1u : 0u) + (is_branched_around(insn) ? 1u : 0u);
      if (is_branched_around(insn) || ends_block(insn)) starts_[i + 1] = true;
    }
    unit_of_[size] = unit;
    unit_count_ = unit + 1;
  }
  uint64_t pc_of(size_t i) const { return kTextBase + kUnit * unit_of_[i]; }

  void close(Emitter& e, uint64_t next_pc) {
    CodeBlock block;
    block.draft = e.b.take();
    if (e.ends_thread()) block.draft.end.present = true;
    block.next_pc = next_pc;
    blocks_.push_back(std::move(block));
    is_open_ = false;
  }

  void open(Emitter& e, uint64_t pc) {
    e.begin_block(pc);
    is_open_ = true;
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
      close(e, pc_of(i) + kUnit);
      open(e, pc_of(i) + kUnit);
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
      for (uint32_t k = 0; k < b.insn_count; ++k) {
        const Instruction& insn = f_.body[insn_at[(b.pc - kTextBase) / kUnit + k]];
        list.push_back({insn.opcode, insn.line, insn.location});
      }
      out_.instructions.push_back(std::move(list));
    }
  }

  Function f_;
  Places places_;
  KernelCode out_;
  std::vector<bool> starts_;
  std::vector<uint32_t> unit_of_;
  uint32_t unit_count_ = 0;
  std::vector<CodeBlock> blocks_;
  bool is_open_ = false;
};

}  // namespace

KernelCode translate_kernel(const Function& kernel, const Functions& functions,
                            const Places& places, const std::vector<Variable>& shared,
                            Notes notes) {
  return KernelTranslator(kernel, functions, places, shared).run(notes);
}

}  // namespace gpusim::ptx
