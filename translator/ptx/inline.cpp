#include "translator/ptx/inline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "device_sim/base/error.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

constexpr size_t kMostInstructions = 1 << 20;

class Inliner {
 public:
  Inliner(const Function& kernel, const Functions& functions)
      : functions_(functions), out_(kernel) {
    out_.body.clear();
    out_.labels.clear();
    out_.variables.clear();
  }

  Function run(const Function& kernel) {
    append(kernel, /*first_register=*/0, {}, /*end_label=*/{});
    return std::move(out_);
  }

 private:
  using Names = std::map<std::string, std::string>;

  // Copies a body. `names`: of its parameters, to the variables of the caller.
  void append(const Function& f, uint32_t first_register, Names names,
              const std::string& end_label) {
    if (!f.trouble.empty()) throw Error(f.trouble);
    if (std::find(stack_.begin(), stack_.end(), &f) != stack_.end())
      throw Error(fmt::format("'{}' calls itself, which is not supported", f.name));
    stack_.push_back(&f);
    const bool is_kernel = stack_.size() == 1;
    const std::string suffix = is_kernel ? "" : fmt::format("@{}", ++instances_);
    for (Variable v : f.variables) {
      const bool is_own = v.space == Space::kLocal || v.space == Space::kParam;
      const std::string name = is_own ? v.name + suffix : v.name;
      names[v.name] = name;
      if (v.space == Space::kParam) registers_of_[name] = {};
      v.name = name;
      if (v.space != Space::kParam && (is_own || shared_.insert(name).second))
        out_.variables.push_back(std::move(v));
    }
    std::multimap<uint32_t, std::string> labels;
    for (const auto& [label, at] : f.labels) {
      names[label] = label + suffix;
      labels.emplace(at, label + suffix);
    }
    auto next_label = labels.begin();
    const auto place_labels = [&](size_t at) {
      for (; next_label != labels.end() && next_label->first <= at; ++next_label)
        out_.labels[next_label->second] = static_cast<uint32_t>(out_.body.size());
    };
    for (size_t at = 0; at < f.body.size(); ++at) {
      place_labels(at);
      Instruction insn = f.body[at];
      if (insn.guard != kNoRegister) insn.guard += first_register;
      for (Operand& o : insn.operands) rename(o, first_register, names);
      if (insn.base == "call")
        call(std::move(insn));
      else if (!end_label.empty() && insn.base == "ret")
        push(jump(std::move(insn), end_label));
      else
        parameters(std::move(insn));
    }
    place_labels(f.body.size());
    stack_.pop_back();
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
    out_.body.push_back(std::move(insn));
  }

  static Instruction jump(Instruction insn, const std::string& label) {
    insn.row = rows_of("bra").front();
    insn.operands = {{.kind = Operand::Kind::kSymbol, .symbol = label}};
    return insn;
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

  void call(Instruction insn) {
    if (insn.guard != kNoRegister)
      throw Error(fmt::format("line {}: a call with a guard is not supported", insn.line));
    const std::string callee = insn.operands[1].symbol;
    const std::vector<Operand> returns = insn.operands[0].elements,
                               arguments = insn.operands[2].elements;
    if (callee == "vprintf" || callee == "__assertfail")
      return call_host(std::move(insn), callee, returns, arguments);
    const auto found = functions_.find(callee);
    if (found == functions_.end() || !found->second->has_body)
      throw Error(fmt::format("line {}: function '{}' is called, and nothing defines it", insn.line,
                              callee));
    const Function& f = *found->second;
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

  void call_host(Instruction insn, const std::string& callee, const std::vector<Operand>& returns,
                 const std::vector<Operand>& arguments) {
    insn.row = &kCallHost;
    insn.operands = {{.kind = Operand::Kind::kSymbol, .symbol = callee}};
    const Type b64{Kind::kBits, 64}, b32{Kind::kBits, 32};
    // vprintf(format, arguments); __assertfail(message, file, line, function, size of a character)
    const bool is_printf = callee == "vprintf";
    if (arguments.size() != (is_printf ? 2 : 5))
      throw Error(
          fmt::format("line {}: '{}' has {} arguments", insn.line, callee, arguments.size()));
    for (size_t k = 0; k < (is_printf ? 2 : 4); ++k)
      insn.operands.push_back(part(insn, variable_of(insn, arguments[k]), 0, k == 2 ? b32 : b64));
    if (!returns.empty())
      insn.operands.push_back(part(insn, variable_of(insn, returns[0]), 0, b32));
    push(std::move(insn));
  }

  const Functions& functions_;
  Function out_;
  std::vector<const Function*> stack_;
  int instances_ = 0, ends_ = 0;
  // Per variable of parameters: byte offset to register.
  std::map<std::string, std::map<uint64_t, uint32_t>> registers_of_;
  std::set<std::string> shared_;
};

}  // namespace

Function inline_calls(const Function& kernel, const Functions& functions) {
  return Inliner(kernel, functions).run(kernel);
}

}  // namespace gpusim::ptx
