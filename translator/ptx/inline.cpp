#include "translator/ptx/inline.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <span>

#include "device_sim/base/error.h"
#include "translator/ptx/allocate.h"
#include "translator/ptx/device_call.h"
#include "translator/ptx/frames.h"
#include "translator/ptx/kernel.h"
#include "translator/ptx/memory_map.h"
#include "translator/ptx/prelude.h"
#include "translator/ptx/rows_internal.h"
#include "translator/ptx/tensor_op.h"

namespace gpusim::ptx {
namespace {

constexpr size_t kMostInstructions = 1 << 20;

// What the host does for a thread. Arguments that are left out come last; bits of arguments and of
// the result, 0: there is none.
struct HostFunction {
  std::string_view name;
  HostCall call;
  size_t parameters;
  std::vector<int> arguments;
  int result;
};
const HostFunction* host_function(std::string_view name) {
  static const HostFunction all[] = {
      // format, arguments
      {"vprintf", HostCall::kPrintf, 2, {64, 64}, 32},
      // message, file, line, function, size of a character
      {"__assertfail", HostCall::kAssertFail, 5, {64, 64, 32, 64}, 0},
      {"malloc", HostCall::kMalloc, 1, {64}, 64},
      {"free", HostCall::kFree, 1, {64}, 0},
      // Of the prelude.
      {"__gpusim_bulk_misaligned", HostCall::kMisalignedBulk, 0, {}, 0},
  };
  for (const HostFunction& f : all)
    if (f.name == name) return &f;
  return nullptr;
}

class Inliner {
 public:
  Inliner(const Function& kernel, const Functions& functions, const Places& places)
      : functions_(functions), places_(places), out_(kernel), frames_(out_) {
    out_.body.clear();
    out_.labels.clear();
    out_.variables.clear();
  }

  WholeKernel run(const Function& kernel) {
    WholeKernel whole;
    frames_.begin({});
    append(kernel, /*first_register=*/0, {}, /*end_label=*/{});
    if (frames_.has_stack()) {
      push(frames_.end_of_kernel());
      for (size_t k = 0; k < queue_.size(); ++k) separate(*queue_[k]);
      frames_.finish();
      whole.has_stack = true;
      if (has_alloca_) out_.body.front().row = &kSetStackAbove;
    }
    whole.has_alloca = has_alloca_;
    for (const std::string& name : by_address_)
      whole.addressed[places_.find(name)->second.address] = entry_label(name);
    if (!by_address_.empty())
      for (const auto& [name, f] : functions_) whole.addressed_units += places_.contains(name);
    whole.function = std::move(out_);
    return whole;
  }

 private:
  using Names = std::map<std::string, std::string>;

  // A function that stands apart.
  void separate(const Function& f) {
    const Prototype signature{f.returns, f.params};
    Names names;
    const auto name_all = [&](const std::vector<Variable>& variables) {
      for (const Variable& v : variables)
        names[v.name] = fmt::format("{}@frame{}", v.name, frames_.count());
    };
    name_all(f.returns);
    name_all(f.params);
    frames_.begin(signature, names);
    out_.labels[entry_label(f.name)] = static_cast<uint32_t>(out_.body.size());
    push(frames_.clear_registers());
    const auto first = static_cast<uint32_t>(out_.registers.size());
    out_.registers.insert(out_.registers.end(), f.registers.begin(), f.registers.end());
    append(f, first, std::move(names), {});
    push(frames_.end_of_function());
  }

  static std::string entry_label(const std::string& name) { return "@function:" + name; }

  void need(const Function& f) {
    if (needed_.insert(&f).second) queue_.push_back(&f);
  }

  // Whether a function may come back to itself by direct calls.
  bool is_recursive(const Function& f) {
    const auto known = recursive_.find(&f);
    if (known != recursive_.end()) return known->second;
    std::set<const Function*> seen;
    std::vector<const Function*> open{&f};
    bool found = false;
    while (!open.empty() && !found) {
      const Function* at = open.back();
      open.pop_back();
      for (const Instruction& i : at->body) {
        if (i.base != "call") continue;
        const auto callee = functions_.find(i.operands[1].symbol);
        if (callee == functions_.end()) continue;
        found |= callee->second == &f;
        if (seen.insert(callee->second).second) open.push_back(callee->second);
      }
    }
    return recursive_[&f] = found;
  }

  // What a call that stays one hands over; nothing for a function that takes its caller's place.
  std::optional<Prototype> signature_of(const Function& caller, const Instruction& insn) {
    const Operand& callee = insn.operands[1];
    if (callee.is(Operand::Kind::kSymbol)) {
      const auto found = functions_.find(callee.symbol);
      if (found == functions_.end() || !is_recursive(*found->second)) return std::nullopt;
      return Prototype{found->second->returns, found->second->params};
    }
    const std::string& name = insn.operands[3].symbol;
    const auto prototype = caller.prototypes.find(name);
    if (prototype != caller.prototypes.end()) return prototype->second;
    const auto targets = caller.call_targets.find(name);
    if (targets != caller.call_targets.end())
      for (const std::string& target : targets->second) {
        const auto found = functions_.find(target);
        if (found != functions_.end())
          return Prototype{found->second->returns, found->second->params};
      }
    throw Error(fmt::format("line {}: an indirect call names '{}', which is no .callprototype",
                            insn.line, name));
  }

  // All functions that a call by address may mean.
  void need_addressed(const Prototype& signature) {
    for (const auto& [name, f] : functions_) {
      if (!places_.contains(name) || !Frames::is_alike(signature, {f->returns, f->params}))
        continue;
      need(*f);
      by_address_.insert(name);
    }
  }

  // Bytes of a variable that one access reads or writes: offset to size.
  using Pieces = std::set<std::pair<uint64_t, uint32_t>>;
  static void add_pieces(const Function& f, const std::string& variable, Pieces& pieces) {
    for (const Instruction& i : f.body) {
      if ((i.base != "ld" && i.base != "st") || i.operands.size() != 2) continue;
      const size_t at = i.base == "ld" ? 1 : 0;
      const Operand& address = i.operands[at];
      if (!address.is(Operand::Kind::kAddress) || address.elements[0].symbol != variable) continue;
      const size_t count = std::max<size_t>(1, i.operands[1 - at].elements.size());
      for (size_t k = 0; k < count; ++k)
        pieces.insert(
            {address.value + address.elements[0].value + k * i.type().bytes(), i.type().bytes()});
    }
  }

  // Variables for calls that caller and callee access in different pieces: those stay memory.
  std::set<std::string> mixed_parameters(const Function& f) {
    std::set<std::string> mixed;
    const auto look = [&](const Operand& o, const Function& callee, const std::string& name) {
      Pieces pieces;
      add_pieces(f, o.symbol, pieces);
      add_pieces(callee, name, pieces);
      uint64_t end = 0;
      for (const auto& [offset, size] : pieces) {
        if (offset < end) mixed.insert(o.symbol);
        end = std::max(end, offset + size);
      }
    };
    for (const Instruction& i : f.body) {
      if (i.base != "call" || !i.operands[1].is(Operand::Kind::kSymbol)) continue;
      const auto found = functions_.find(i.operands[1].symbol);
      if (found == functions_.end() || is_recursive(*found->second)) continue;
      const Function& callee = *found->second;
      const auto look_at_all = [&](const Operand& list, const std::vector<Variable>& variables) {
        for (size_t k = 0; k < std::min(list.elements.size(), variables.size()); ++k)
          look(list.elements[k], callee, variables[k].name);
      };
      look_at_all(i.operands[0], callee.returns);
      look_at_all(i.operands[2], callee.params);
    }
    return mixed;
  }

  // Copies a body. `names`: of its parameters, to the variables of the caller.
  void append(const Function& f, uint32_t first_register, Names names,
              const std::string& end_label) {
    if (!f.trouble.empty()) throw Error(f.trouble);
    const bool is_kernel = f.is_entry;
    const std::string suffix = is_kernel ? "" : fmt::format("@{}", ++instances_);
    const std::set<std::string> mixed = mixed_parameters(f);
    for (Variable v : f.variables) {
      if (mixed.contains(v.name)) v.space = Space::kLocal;
      const bool is_own = v.space == Space::kLocal || v.space == Space::kParam;
      const std::string name = is_own ? v.name + suffix : v.name;
      names[v.name] = name;
      if (v.space == Space::kLocal && frames_.is_in_function()) {
        frames_.add_local(v, name);
        continue;
      }
      if (v.space == Space::kParam) registers_of_[name] = {};
      v.name = name;
      if (v.space != Space::kParam && (is_own || shared_.insert(name).second))
        out_.variables.push_back(std::move(v));
    }
    for (const Instruction& insn : f.body) {
      if (insn.base != "call") continue;
      const auto signature = signature_of(f, insn);
      if (signature) frames_.add_outgoing(insn, *signature, names);
    }
    std::multimap<uint32_t, std::string> labels;
    for (const auto& [label, at] : f.labels) {
      names[label] = label + suffix;
      labels.emplace(at, label + suffix);
    }
    // What a function allocated is free when it returns.
    const bool changes_top = has_instruction(f, "alloca", "stackrestore");
    const bool frees = changes_top && !is_kernel;
    has_alloca_ |= changes_top || has_instruction(f, "stacksave", "stacksave");
    Instruction with_top;  // saves, and restores
    if (frees) {
      with_top.line = f.body.front().line;
      with_top.location = f.body.front().location;
      with_top.types = {{Kind::kBits, 64}};
      with_top.operands = {new_register("@top")};
      with_top.counts = false;
      with_top.row = &kSaveStackTop;
      push(with_top);
      with_top.row = &kSetStackTop;
      with_top.more_units = 1;
    }
    auto next_label = labels.begin();
    const auto place_labels = [&](size_t at) {
      for (; next_label != labels.end() && next_label->first <= at; ++next_label)
        place_label(next_label->second);
    };
    for (size_t at = 0; at < f.body.size(); ++at) {
      place_labels(at);
      Instruction insn = f.body[at];
      if (insn.guard != kNoRegister) insn.guard += first_register;
      for (Operand& o : insn.operands) rename(o, first_register, names);
      frames_.to_memory(insn);
      if (frees && insn.base == "ret") {
        with_top.line = insn.line;
        with_top.location = insn.location;
        with_top.guard = insn.guard;
        with_top.guard_is_negated = insn.guard_is_negated;
        push(with_top);
      }
      if (insn.base == "call")
        call(f, std::move(insn));
      else if (insn.base == "brx")
        branch_by_index(f, std::move(insn), names);
      else if (insn.row->emit == nullptr)
        do_otherwise(std::move(insn));
      else if (!end_label.empty() && insn.base == "ret")
        push(jump(std::move(insn), end_label));
      else if (!is_kernel && insn.base == "ret")
        push(frames_.return_of(std::move(insn)));
      else
        parameters(std::move(insn));
    }
    place_labels(f.body.size());
    const bool may_end = f.body.empty() || f.body.back().base != "ret" ||
                         f.body.back().guard != kNoRegister || labels.contains(f.body.size());
    if (frees && may_end) {
      with_top.guard = kNoRegister;
      push(with_top);
    }
  }

  // What has a row, and is more than the row's own micro-ops.
  void do_otherwise(Instruction insn) {
    if (insn.has("tensor")) return copy_tensor(std::move(insn));
    if (insn.has("bulk")) return copy_in_bulk(std::move(insn));
    if (insn.base == "mma" || insn.base == "wmma") return multiply(std::move(insn));
    if (insn.base == "wgmma") return multiply_group(std::move(insn));
    if (insn.base == "st" || insn.base == "red") return access_and_signal(std::move(insn));
    if (insn.base == "alloca") return allocate_on_stack(std::move(insn));
    change_barrier(std::move(insn));  // mbarrier, cp.async.mbarrier
  }

  // alloca ptr, size{, alignment}
  void allocate_on_stack(Instruction insn) {
    constexpr uint64_t kLeast = 8, kMost = uint64_t{1} << 23;
    const uint64_t align = insn.operands.size() > 2 ? insn.operands[2].value : kLeast;
    if (!std::has_single_bit(align) || align > kMost)
      throw Error(
          fmt::format("line {}: the alignment of alloca is a power of two up to 2^23", insn.line));
    emulate(std::move(insn), [&](Instruction step) {
      const std::string fits = fmt::format("@fits{}", ++ends_);
      const Operand d = step.operands[0], size = new_register("@size"), at = new_register("@at");
      const auto next = [&](const Row& row, std::vector<Operand> operands) {
        step.row = &row;
        step.operands = std::move(operands);
        push(step);
      };
      step.types = {{Kind::kBits, 64}};
      next(kStoreParamRegister, {size, step.operands[1]});
      next(kStackRoom, {at, size, number(std::max(align, kLeast))});
      Instruction go_on = jump(step, fits);
      go_on.guard = at.reg;
      push(std::move(go_on));
      next(kCallHost, {number(static_cast<uint64_t>(HostCall::kStackOverflow)), size});
      place_label(fits);
      next(kSetStackTop, {at});
      next(kLoadParamRegister, {d, at});
    });
  }

  Operand new_register(const char* name) {
    const auto number = static_cast<uint32_t>(out_.registers.size());
    out_.registers.push_back({name, {Kind::kBits, 64}});
    return {.kind = Operand::Kind::kRegister, .reg = number};
  }

  static bool has_instruction(const Function& f, std::string_view a, std::string_view b) {
    return std::any_of(f.body.begin(), f.body.end(),
                       [&](const Instruction& i) { return i.base == a || i.base == b; });
  }

  static void rename(Operand& o, uint32_t first_register, const Names& names) {
    if (o.is(Operand::Kind::kRegister)) o.reg += first_register;
    if (o.is(Operand::Kind::kSymbol)) {
      const auto found = names.find(o.symbol);
      if (found != names.end()) o.symbol = found->second;
    }
    for (Operand& e : o.elements) rename(e, first_register, names);
  }

  void push(Instruction insn) {
    if (out_.body.size() >= kMostInstructions)
      throw Error(fmt::format("'{}' has more than {} instructions with what it calls", out_.name,
                              kMostInstructions));
    if (is_quiet_) {
      insn.counts = false;
      if (is_branch(insn)) insn.more_units = 1;
    }
    out_.body.push_back(std::move(insn));
  }

  // What follows an instruction that does not count begins a block: it needs a code address.
  void place_label(const std::string& label) {
    if (!out_.body.empty() && !out_.body.back().counts) out_.body.back().more_units = 1;
    out_.labels[label] = static_cast<uint32_t>(out_.body.size());
  }

  static Instruction jump(Instruction insn, const std::string& label) {
    insn.row = rows_of("bra").front();
    insn.operands = {{.kind = Operand::Kind::kSymbol, .symbol = label}};
    return insn;
  }

  void multiply(Instruction insn) {
    const Operand result = insn.operands[0];
    insn.operands.erase(insn.operands.begin());
    insn.row = &kMatrixProduct;
    Instruction after = insn;
    push(std::move(insn));
    after.row = &kMatrixResult;
    after.operands = {result};
    after.counts = false;
    after.more_units = 1;
    push(std::move(after));
  }

  void multiply_group(Instruction insn) {
    insn.row = &kWarpgroupProduct;
    Instruction after = insn;
    push(std::move(insn));
    after.row = &kWarpgroupResult;
    after.operands.resize(1);
    after.counts = false;
    after.more_units = 1;
    push(std::move(after));
  }

  // A binary search. What is beyond the list goes where its last index does.
  void branch_by_index(const Function& f, Instruction insn, const Names& names) {
    const Operand index = insn.operands[0];
    if (insn.guard != kNoRegister)
      throw Error(
          fmt::format("line {}: '{}' with a guard is not supported", insn.line, insn.opcode));
    const auto list = f.branch_targets.find(insn.operands[1].symbol);
    constexpr size_t kMostTargets = 1 << 15;
    if (list == f.branch_targets.end() || list->second.size() > kMostTargets ||
        !index.is(Operand::Kind::kRegister))
      throw Error(fmt::format("line {}: '{}' needs a register and the label of .branchtargets",
                              insn.line, insn.opcode));
    const std::vector<std::string>& targets = list->second;
    Instruction counted = insn;
    counted.row = &kCallInPlace;
    counted.operands.clear();
    push(std::move(counted));
    insn.counts = false;
    insn.more_units = 1;
    std::vector<Range> ranges;
    for (size_t k = 0; k < targets.size(); ++k)
      if (k == 0 || targets[k] != targets[k - 1]) ranges.push_back({k, renamed(targets[k], names)});
    search(insn, index, ranges);
  }

  // Indices from `first` to the next range's, and where they lead.
  struct Range {
    uint64_t first;
    std::string target;
  };
  void search(const Instruction& insn, const Operand& index, std::span<const Range> ranges) {
    if (ranges.size() == 1) return push(jump(insn, ranges[0].target));
    const size_t middle = ranges.size() / 2;
    const std::string below = fmt::format("@below{}", ++ends_);
    Instruction test = insn;
    test.row = &kBranchIfBelow;
    test.operands = {{.kind = Operand::Kind::kSymbol, .symbol = below},
                     index,
                     {.kind = Operand::Kind::kInteger, .value = ranges[middle].first}};
    push(std::move(test));
    search(insn, index, ranges.subspan(middle));
    place_label(below);
    search(insn, index, ranges.first(middle));
  }

  // What stands for an instruction: it counts, and what `body` adds to do its work does not.
  // `body` takes the instruction without its guard.
  template <class F>
  void emulate(Instruction insn, F body) {
    const std::string end = fmt::format("@end{}", ++ends_);
    Instruction step = insn;
    insn.row = insn.row->kind == RowClass::kMemory  ? &kMemoryInPlace
               : insn.row->kind == RowClass::kOther ? &kOtherInPlace
                                                    : &kParallelInPlace;
    insn.operands.clear();
    insn.guard = kNoRegister;
    push(std::move(insn));
    is_quiet_ = true;
    if (step.guard != kNoRegister) {
      Instruction skip = jump(step, end);
      skip.guard_is_negated = !step.guard_is_negated;
      push(std::move(skip));
    }
    step.guard = kNoRegister;
    step.guard_is_negated = false;
    body(step);
    is_quiet_ = false;
    place_label(end);
  }

  static Operand number(uint64_t n) { return {.kind = Operand::Kind::kInteger, .value = n}; }

  // A function of the prelude, with values, or with the addresses that operands name. `result`: of
  // 64 bits, or a sink.
  void call_prelude(Instruction step, std::string_view name, std::span<const Operand> arguments,
                    const Operand& result) {
    const Type b64{Kind::kBits, 64};
    const Function& f = prelude_function(name);
    const std::string stem = fmt::format("@emulated{}", ++ends_), done = stem + ".done";
    Names names;
    const auto variable = [&](const Variable& v) {
      const std::string of_call = stem + v.name;
      names[v.name] = of_call;
      registers_of_[of_call] = {};
      return part(step, of_call, 0, b64);
    };
    step.types = {b64};
    for (size_t k = 0; k < arguments.size(); ++k) {
      step.row = arguments[k].is(Operand::Kind::kAddress) ? &kAddressOf : &kStoreParamRegister;
      step.operands = {variable(f.params[k]), arguments[k]};
      push(step);
    }
    std::optional<Operand> given;
    if (!f.returns.empty()) given = variable(f.returns[0]);
    const auto first = static_cast<uint32_t>(out_.registers.size());
    out_.registers.insert(out_.registers.end(), f.registers.begin(), f.registers.end());
    append(f, first, std::move(names), done);
    place_label(done);
    if (!given || result.is(Operand::Kind::kSink)) return;
    step.row = &kLoadParamRegister;
    step.operands = {result, *given};
    push(step);
  }

  void bytes_came(const Instruction& step, const Operand& barrier, const Operand& bytes) {
    const Operand arguments[] = {barrier, number(0), number(0), number(0), bytes};
    call_prelude(step, "barrier_change", arguments, {.kind = Operand::Kind::kSink});
  }

  void change_barrier(Instruction insn) {
    const bool has_state = insn.row->operands[0] != 'm';
    const size_t at = has_state ? 1 : 0;
    const Operand value = insn.operands.size() > at + 1 ? insn.operands[at + 1] : number(1);
    const bool is_bytes = insn.has("expect_tx") || insn.has("complete_tx");
    const bool arrives = !is_bytes || has_state;
    const bool comes = insn.has("complete_tx");
    const Operand bytes = is_bytes && !comes ? value : number(0);
    const Operand came = comes ? value : number(0);
    const Operand arrivals = !arrives ? number(0) : is_bytes ? number(1) : value;
    const Operand fewer = insn.has("arrive_drop") ? arrivals : number(0);
    const Operand arguments[] = {insn.operands[at], arrivals, fewer, bytes, came};
    const Operand state = has_state ? insn.operands[0] : Operand{.kind = Operand::Kind::kSink};
    emulate(std::move(insn), [&](const Instruction& step) {
      call_prelude(step, "barrier_change", arguments, state);
    });
  }

  // cp.async.bulk, cp.reduce.async.bulk: [to], [from], bytes{, [barrier]{, mask}}{, cache policy}.
  // It is done at once.
  void copy_in_bulk(Instruction insn) {
    emulate(std::move(insn), [&](const Instruction& step) {
      const std::vector<Operand>& o = step.operands;
      const Operand nothing{.kind = Operand::Kind::kSink};
      if (step.has("multicast::cluster")) {
        const Operand arguments[] = {o[0], o[1], o[2], o[3], o[4]};
        return call_prelude(step, "bulk_multicast", arguments, nothing);
      }
      std::string name = "bulk_copy";
      if (step.has("reduce")) {
        name = "bulk";
        for (const char* part : {"add", "min", "max", "inc", "dec", "and", "or", "xor", "noftz"})
          if (step.has(part)) name += fmt::format("_{}", part);
        for (const char* type :
             {"f16", "bf16", "b32", "b64", "u32", "s32", "u64", "s64", "f32", "f64"})
          if (step.has(type)) name += fmt::format("_{}", type);
      }
      const Operand arguments[] = {o[0], o[1], o[2]};
      call_prelude(step, name, arguments, nothing);
      if (step.has("mbarrier::complete_tx::bytes")) bytes_came(step, o[3], o[2]);
    });
  }

  // cp.async.bulk.tensor, cp.reduce.async.bulk.tensor: [to], [map, {coordinates}], [barrier]{,
  // mask}, or [map, {coordinates}], [from]. The host does it, at once, and counts the bytes.
  void copy_tensor(Instruction insn) {
    emulate(std::move(insn), [&](Instruction step) {
      const std::vector<Operand> o = step.operands;
      const bool loads = step.has("mbarrier::complete_tx::bytes");
      TensorOp op{.copy = step.has("reduce") ? TensorCopy::kReduce
                          : loads            ? TensorCopy::kLoad
                                             : TensorCopy::kStore,
                  .is_multicast = step.has("multicast::cluster"),
                  .is_of_images = step.has("im2col") || step.has("im2col_no_offs")};
      constexpr const char* kReductions[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
      for (size_t k = 0; k < std::size(kReductions); ++k)
        if (step.has(kReductions[k])) op.reduce = static_cast<TensorReduce>(k);
      const Type b64{Kind::kBits, 64};
      step.types = {b64};
      const auto address_of = [&](const Operand& address) {
        const auto number = static_cast<uint32_t>(out_.registers.size());
        out_.registers.push_back({"@address", b64});
        const Operand made{.kind = Operand::Kind::kRegister, .reg = number};
        step.row = &kAddressOf;
        step.operands = {made, address};
        push(step);
        return made;
      };
      Operand map = o[loads ? 1 : 0];
      const std::vector<Operand> coordinates = map.elements[1].elements;
      map.elements.pop_back();
      op.rank = static_cast<uint8_t>(coordinates.size());
      std::vector<Operand> words = {number(op.pack()), address_of(map),
                                    address_of(o[loads ? 0 : 1])};
      words.push_back(loads ? address_of(o[2]) : number(0));
      const size_t more = step.has("im2col") ? 4 : 3;  // operands before the mask
      words.push_back(op.is_multicast ? o[more] : number(0));
      words.insert(words.end(), coordinates.begin(), coordinates.end());
      if (step.has("im2col")) {
        words.resize(1 + kTensorOffsets, number(0));
        words.insert(words.end(), o[3].elements.begin(), o[3].elements.end());
      }
      step.row = &kCallTensor;
      step.operands = std::move(words);
      step.more_units = 1;
      push(std::move(step));
    });
  }

  // st.async, red.async: [to], value, [barrier]. It is done at once.
  void access_and_signal(Instruction insn) {
    const uint32_t elements = insn.has("v2") ? 2 : insn.has("v4") ? 4 : 1;
    const uint32_t bytes = insn.type().bytes() * elements;
    emulate(std::move(insn), [&](const Instruction& original) {
      Instruction step = original;
      step.row = step.base == "st" ? &kStoreNow : &kReduceNow;
      step.operands.pop_back();
      push(std::move(step));
      bytes_came(original, original.operands[2], number(bytes));
    });
  }

  static const std::string& renamed(const std::string& name, const Names& names) {
    const auto found = names.find(name);
    return found == names.end() ? name : found->second;
  }

  // The register that stands for bytes of a parameter.
  Operand part(const Instruction& insn, const std::string& variable, uint64_t offset, Type t) {
    auto& parts = registers_of_[variable];
    const auto found = parts.find(offset);
    if (found == parts.end()) {
      const auto before = parts.lower_bound(offset);
      const bool overlaps =
          (before != parts.end() && before->first < offset + t.bytes()) ||
          (before != parts.begin() &&
           std::prev(before)->first + out_.registers[std::prev(before)->second].type.bytes() >
               offset);
      if (overlaps) mixed(insn);
      const auto number = static_cast<uint32_t>(out_.registers.size());
      out_.registers.push_back({variable, {Kind::kBits, t.bits}});
      parts[offset] = number;
      return {.kind = Operand::Kind::kRegister, .reg = number};
    }
    if (out_.registers[found->second].type.bits != t.bits) mixed(insn);
    return {.kind = Operand::Kind::kRegister, .reg = found->second};
  }

  [[noreturn]] static void mixed(const Instruction& insn) {
    throw Error(
        fmt::format("line {}: '{}': bytes of a parameter are written and read in different "
                    "pieces, which is not supported",
                    insn.line, insn.opcode));
  }

  // Accesses to parameters of functions become moves.
  void parameters(Instruction insn) {
    const bool loads = insn.base == "ld";
    const size_t at = loads ? 1 : 0;
    if ((!loads && insn.base != "st") || insn.operands.size() != 2) return push(std::move(insn));
    const Operand& address = insn.operands[at];
    const Operand& base = address.elements[0];
    if (!base.is(Operand::Kind::kSymbol) || !registers_of_.contains(base.symbol))
      return push(std::move(insn));
    const std::string variable = base.symbol;
    const uint64_t offset = address.value + base.value;
    const Type t = insn.type();
    const Operand value = insn.operands[1 - at];
    insn.row = loads ? &kLoadParamRegister : &kStoreParamRegister;
    const auto one = [&](const Operand& o, uint64_t where) {
      const Operand p = part(insn, variable, where, t);
      if (loads)
        insn.operands = {o, p};
      else
        insn.operands = {p, o};
      push(insn);
      insn.counts = false;
    };
    if (!value.is(Operand::Kind::kVector)) return one(value, offset);
    for (size_t k = 0; k < value.elements.size(); ++k)
      if (!value.elements[k].is(Operand::Kind::kSink))
        one(value.elements[k], offset + k * t.bytes());
  }

  static const std::string& variable_of(const Instruction& insn, const Operand& o) {
    if (o.is(Operand::Kind::kSymbol)) return o.symbol;
    throw Error(fmt::format("line {}: arguments that are no .param variables are not supported",
                            insn.line));
  }

  void call(const Function& caller, Instruction insn) {
    if (insn.guard != kNoRegister)
      throw Error(fmt::format("line {}: a call with a guard is not supported", insn.line));
    const std::string callee = insn.operands[1].symbol;
    if (const auto signature = signature_of(caller, insn)) {
      frames_.check(insn, *signature);
      if (callee.empty()) {
        need_addressed(*signature);
      } else {
        need(*functions_.find(callee)->second);
        insn.operands[1].symbol = entry_label(callee);
      }
      for (Instruction& part : frames_.call(std::move(insn))) push(std::move(part));
      return;
    }
    const std::vector<Operand> returns = insn.operands[0].elements,
                               arguments = insn.operands[2].elements;
    const auto found = functions_.find(callee);
    // Libraries have bodies of these, too, for a device.
    if (const DeviceFunction* device = device_function(callee); device != nullptr)
      return call_device(std::move(insn), *device, returns, arguments);
    constexpr std::string_view kOfDevice = "__cudaCDP2";
    if (callee.starts_with(kOfDevice))
      throw Error(
          fmt::format("line {}: kernels cannot call cuda{} here: it is not supported on the "
                      "device",
                      insn.line, callee.substr(kOfDevice.size())));
    const HostFunction* host = host_function(callee);
    if (host != nullptr && (found == functions_.end() || !found->second->has_body))
      return call_host(std::move(insn), *host, returns, arguments);
    const bool is_defined = found != functions_.end() && found->second->has_body;
    const bool is_condition = !is_defined && callee == "cudaGraphSetConditional";
    if (!is_defined && !is_condition)
      throw Error(fmt::format("line {}: function '{}' is called, and nothing defines it{}",
                              insn.line, callee,
                              callee.starts_with("__cuda_ptx_")
                                  ? ": this PTX is for another target. nvcc -arch=sm_90a puts PTX "
                                    "of compute_90 into programs; build with -gencode "
                                    "arch=compute_90a,code=compute_90a"
                                  : ""));
    const Function& f = is_condition ? prelude_function(callee) : *found->second;
    if (f.params.size() != arguments.size() || f.returns.size() != returns.size())
      throw Error(fmt::format("line {}: '{}' takes {} arguments and gives {}", insn.line, callee,
                              f.params.size(), f.returns.size()));
    Names names;
    for (size_t k = 0; k < arguments.size(); ++k)
      names[f.params[k].name] = variable_of(insn, arguments[k]);
    for (size_t k = 0; k < returns.size(); ++k)
      names[f.returns[k].name] = variable_of(insn, returns[k]);
    insn.row = &kCallInPlace;
    insn.operands.clear();
    push(std::move(insn));
    const auto first = static_cast<uint32_t>(out_.registers.size());
    out_.registers.insert(out_.registers.end(), f.registers.begin(), f.registers.end());
    const std::string end = fmt::format("@end{}", ++ends_);
    append(f, first, std::move(names), end);
    out_.labels[end] = static_cast<uint32_t>(out_.body.size());
  }

  void call_host(Instruction insn, const HostFunction& host, const std::vector<Operand>& returns,
                 const std::vector<Operand>& arguments) {
    insn.row = &kCallHost;
    insn.operands = {{.kind = Operand::Kind::kInteger, .value = static_cast<uint64_t>(host.call)}};
    const auto value = [&](const Operand& o, int bits) {
      return part(insn, variable_of(insn, o), 0, {Kind::kBits, static_cast<uint8_t>(bits)});
    };
    if (arguments.size() != host.parameters)
      throw Error(
          fmt::format("line {}: '{}' has {} arguments", insn.line, host.name, arguments.size()));
    for (size_t k = 0; k < host.arguments.size(); ++k)
      insn.operands.push_back(value(arguments[k], host.arguments[k]));
    Instruction after = insn;
    push(std::move(insn));
    if (returns.empty() || host.result == 0) return;
    // What the host left.
    after.row = &kHostResult;
    after.counts = false;
    after.more_units = 1;
    after.operands = {value(returns[0], host.result)};
    push(std::move(after));
  }

  void call_device(Instruction insn, const DeviceFunction& device,
                   const std::vector<Operand>& returns, const std::vector<Operand>& arguments) {
    if (arguments.size() != device.parameters)
      throw Error(
          fmt::format("line {}: '{}' has {} arguments", insn.line, device.name, arguments.size()));
    insn.row = &kCallDevice;
    insn.operands = {
        {.kind = Operand::Kind::kInteger, .value = static_cast<uint64_t>(device.call)}};
    for (const DeviceFunction::Piece& p : device.pieces)
      insn.operands.push_back(part(insn, variable_of(insn, arguments[p.argument]), p.offset_bytes,
                                   {Kind::kBits, p.bits}));
    Instruction after = insn;
    push(std::move(insn));
    if (returns.empty()) return;
    after.row = &kHostResult;
    after.counts = false;
    after.more_units = 1;
    after.operands = {
        part(after, variable_of(after, returns[0]), 0, {Kind::kBits, device.result_bits})};
    push(std::move(after));
  }

  const Functions& functions_;
  const Places& places_;
  Function out_;
  Frames frames_;
  std::vector<const Function*> queue_;  // that stand apart
  std::set<const Function*> needed_;
  std::set<std::string> by_address_;
  std::map<const Function*, bool> recursive_;
  int instances_ = 0, ends_ = 0;
  bool has_alloca_ = false;
  bool is_quiet_ = false;  // what is added does not count
  // Per variable of parameters: byte offset to register.
  std::map<std::string, std::map<uint64_t, uint32_t>> registers_of_;
  std::set<std::string> shared_;
};

}  // namespace

WholeKernel inline_calls(const Function& kernel, const Functions& functions, const Places& places) {
  return Inliner(kernel, functions, places).run(kernel);
}

}  // namespace gpusim::ptx
