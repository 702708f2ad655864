#include "translator/ptx/frames.h"

#include <fmt/format.h>

#include <algorithm>

#include "device_sim/base/error.h"
#include "translator/ptx/allocate.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/rows_internal.h"

namespace gpusim::ptx {
namespace {

// Of addresses behind the frame, whose size is known last.
constexpr const char* kBehind = "@behind";
constexpr uint64_t kWordBytes = 8, kFrameAlign = 16;

uint64_t align_up(uint64_t x, uint64_t to) { return (x + to - 1) / to * to; }

Operand number(uint64_t value) { return {.kind = Operand::Kind::kInteger, .value = value}; }

// Calls f(offset, index, is_result) for what a call hands over; returns where that ends.
template <class F>
uint64_t lay_out(const Prototype& p, F f) {
  uint64_t at = kWordBytes;  // behind the address to return to
  const auto place = [&](const std::vector<Variable>& list, bool is_result) {
    for (size_t k = 0; k < list.size(); ++k) {
      at = align_up(at, list[k].align);
      f(at, k, is_result);
      at += list[k].size;
    }
  };
  place(p.returns, true);
  place(p.params, false);
  return at;
}

}  // namespace

void Frames::begin(const Prototype& signature, const std::map<std::string, std::string>& names) {
  Frame frame{.begin = out_.body.size(), .calls = {}};
  if (!frames_.empty()) {
    frame.bytes = lay_out(signature, [&](uint64_t at, size_t k, bool is_result) {
      const Variable& v = is_result ? signature.returns[k] : signature.params[k];
      inside_[names.at(v.name)] = at;
    });
  }
  frames_.push_back(std::move(frame));
}

void Frames::add_local(const Variable& v, const std::string& name) {
  Frame& f = frames_.back();
  f.bytes = align_up(f.bytes, std::min<uint64_t>(v.align, kFrameAlign));
  inside_[name] = f.bytes;
  f.bytes += v.size;
}

void Frames::add_outgoing(const Instruction& call, const Prototype& signature,
                          const std::map<std::string, std::string>& names) {
  const std::vector<Operand>&results = call.operands[0].elements,
        &arguments = call.operands[2].elements;
  check(call, signature);
  lay_out(signature, [&](uint64_t at, size_t k, bool is_result) {
    const Operand& o = is_result ? results[k] : arguments[k];
    const auto name = names.find(o.symbol);
    if (!o.is(Operand::Kind::kSymbol) || name == names.end())
      throw Error(fmt::format("line {}: arguments that are no .param variables are not supported",
                              call.line));
    outgoing_[name->second] = at;
  });
}

bool Frames::is_alike(const Prototype& a, const Prototype& b) {
  const auto same = [](const std::vector<Variable>& x, const std::vector<Variable>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const Variable& v, const Variable& w) {
                        return v.size == w.size && v.align == w.align;
                      });
  };
  return same(a.returns, b.returns) && same(a.params, b.params);
}

void Frames::check(const Instruction& call, const Prototype& signature) {
  if (signature.params.size() != call.operands[2].elements.size() ||
      signature.returns.size() != call.operands[0].elements.size())
    throw Error(fmt::format("line {}: what is called takes {} arguments and gives {}", call.line,
                            signature.params.size(), signature.returns.size()));
}

Operand Frames::stack() {
  if (stack_ == kNoRegister) {
    stack_ = static_cast<uint32_t>(out_.registers.size());
    out_.registers.push_back({"@stack", {Kind::kBits, 64}});
  }
  return {.kind = Operand::Kind::kRegister, .reg = stack_};
}

void Frames::to_memory(Instruction& insn) {
  for (Operand& o : insn.operands) {
    const bool is_address = o.is(Operand::Kind::kAddress);
    const Operand& named = is_address ? o.elements[0] : o;
    if (!named.is(Operand::Kind::kSymbol)) continue;
    const auto inside = inside_.find(named.symbol), outgoing = outgoing_.find(named.symbol);
    if (is_address && outgoing != outgoing_.end()) {
      o.value += named.value + outgoing->second;
      o.elements[0] = stack();
      o.symbol = kBehind;
    } else if (is_address && inside != inside_.end()) {
      o.value += named.value + inside->second;
      o.elements[0] = stack();
    } else if (inside != inside_.end() && (insn.base == "mov" || insn.base == "cvta")) {
      const Operand offset = number(inside->second + named.value);
      insn.row = &kFrameAddress;
      insn.operands = {insn.operands[0], stack(), offset};
      return;
    }
  }
}

Instruction Frames::part(const Row& row, std::vector<Operand> operands) const {
  Instruction insn;
  if (!out_.body.empty()) {
    insn.line = out_.body.back().line;
    insn.location = out_.body.back().location;
  }
  insn.row = &row;
  insn.operands = std::move(operands);
  insn.counts = false;
  return insn;
}

std::vector<Instruction> Frames::call(Instruction insn) {
  const Operand none{.kind = Operand::Kind::kVector};
  const Operand target = insn.operands[1];
  insn.row = &kCallOut;
  insn.operands = {stack(), number(0), target, none, number(0)};
  Instruction after = part(kAfterCall, {none, stack(), number(0), number(0)});
  after.line = insn.line;
  after.location = insn.location;
  after.more_units = 1;
  frames_.back().calls.push_back(static_cast<uint32_t>(out_.body.size()));
  return {std::move(insn), std::move(after)};
}

Instruction Frames::return_of(Instruction insn) const {
  insn.row = &kReturn;
  insn.operands = {{.kind = Operand::Kind::kRegister, .reg = stack_}};
  return insn;
}

Instruction Frames::clear_registers() {
  entries_.push_back(static_cast<uint32_t>(out_.body.size()));
  Instruction insn = part(kClearRegisters, {{.kind = Operand::Kind::kVector}});
  insn.more_units = 1;
  return insn;
}

Instruction Frames::end_of_function() const {
  Instruction insn = part(kReturn, {{.kind = Operand::Kind::kRegister, .reg = stack_}});
  insn.base = insn.opcode = "ret";
  insn.more_units = 1;
  return insn;
}

Instruction Frames::end_of_kernel() const {
  Instruction insn = part(*rows_of("exit").front(), {});
  insn.base = insn.opcode = "exit";
  insn.more_units = 1;
  return insn;
}

void Frames::finish() {
  Instruction set =
      part(kSetStack, {stack(), {.kind = Operand::Kind::kSymbol, .symbol = "@stack"}});
  set.line = out_.body.front().line;
  set.more_units = 1;
  std::vector<uint32_t> places = entries_;
  for (const Frame& f : frames_)
    for (const uint32_t call : f.calls) places.push_back(call + 1);
  std::vector<std::vector<uint32_t>> live = live_before(out_, places);
  const auto registers = [&](size_t k) {
    Operand all{.kind = Operand::Kind::kVector};
    for (const uint32_t r : live[k])
      if (r != stack_) all.elements.push_back({.kind = Operand::Kind::kRegister, .reg = r});
    return all;
  };
  size_t k = 0;
  for (const uint32_t entry : entries_) out_.body[entry].operands[0] = registers(k++);
  for (size_t n = 0; n < frames_.size(); ++n) {
    const Frame& f = frames_[n];
    const uint64_t kept = align_up(f.bytes, kWordBytes);
    uint64_t most = 0;
    for (const uint32_t call : f.calls) {
      const Operand all = registers(k++);
      most = std::max<uint64_t>(most, all.elements.size());
      out_.body[call].operands[3] = out_.body[call + 1].operands[0] = all;
      out_.body[call].operands[4] = out_.body[call + 1].operands[3] = number(kept);
    }
    const uint64_t size = align_up(kept + kWordBytes * most, kFrameAlign);
    for (const uint32_t call : f.calls)
      out_.body[call].operands[1] = out_.body[call + 1].operands[2] = number(size);
    const size_t end = n + 1 < frames_.size() ? frames_[n + 1].begin : out_.body.size();
    for (size_t i = f.begin; i < end; ++i)
      for (Operand& o : out_.body[i].operands)
        if (o.is(Operand::Kind::kAddress) && o.symbol == kBehind) o.value += size;
  }
  out_.body.insert(out_.body.begin(), std::move(set));
  for (auto& [label, at] : out_.labels) ++at;
}

}  // namespace gpusim::ptx
