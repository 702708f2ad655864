#include <cstring>
#include <stdexcept>

#include "device_sim/core/backend.h"
#include "tests/isa/a64/insn_oracle/oracle.h"
#include "translator/a64/registers.h"
#include "translator/common/draft.h"
#include "translator/common/isa_list.h"
#include "translator/common/link.h"
#include "translator/passes/optimise.h"

namespace gpusim::a64::oracle {
namespace {

constexpr uint32_t kStopWord = 0xd4000001;  // SVC: where a case ends, our backend stops

// Guest code as the oracle's guest program lays it out, with a system call at both exits.
CodeBlock block_at(const GuestIsa& isa, uint64_t pc, std::span<const uint32_t> words,
                   uint64_t first_pc) {
  const auto word_at = [&](uint64_t at, uint32_t* word) {
    const uint64_t i = (at - first_pc) / 4;
    if (i >= words.size() + 2) return false;
    *word = i < words.size() ? words[i] : kStopWord;
    return true;
  };
  return form_block(isa, pc, word_at, [](uint64_t) { return false; });
}

struct Program {
  Module module;
  std::vector<uint64_t> exits;  // guest address of the fall-through exit, per case
};

Program translate(std::span<const Case> cases, bool optimise) {
  const GuestIsa& isa = *find_isa("aarch64");
  Program program;
  Module& m = program.module;
  m.isa = isa.name;
  m.slot_count = static_cast<uint32_t>(isa.slot_count);
  m.initial_values.assign(isa.initial_values.begin(), isa.initial_values.end());
  m.abi = isa.abi;
  m.code.text_base = ORACLE_CODE;
  m.code.pc_shift = isa.pc_shift;
  m.code.uop_at.assign(cases.size() * (ORACLE_CASE_BYTES / 4), kNoUop);
  m.code.insn_class.assign(m.code.uop_at.size(), 0);
  std::vector<CodeBlock> blocks;
  for (size_t i = 0; i < cases.size(); ++i) {
    const uint64_t pc = case_pc(i), exit = pc + 4 * cases[i].words.size();
    program.exits.push_back(exit);
    // An end of a block in the middle starts another one behind it.
    for (uint64_t at = pc; at < exit;) {
      blocks.push_back(block_at(isa, at, cases[i].words, pc));
      at = blocks.back().next_pc;
    }
    if (blocks.back().next_pc <= exit) blocks.push_back(block_at(isa, exit, cases[i].words, pc));
    blocks.push_back(block_at(isa, exit + 4, cases[i].words, pc));
  }
  if (optimise) optimise_blocks(isa, OptimiseScope{}, blocks);
  link_blocks(std::move(blocks), m);
  return program;
}

void load_state(Backend& backend, const State& s) {
  for (Slot i = 0; i < 31; ++i) backend.set_slot(0, i, s.x[i]);
  backend.set_slot(0, kSp, s.sp);
  backend.set_slot(0, kNzcv, s.nzcv >> 28);
  backend.set_slot(0, kFpState, s.fpcr << 32 | s.fpsr);
  backend.set_slot(0, kMonitor, ~uint64_t{0});
  for (Slot i = 0; i < 64; ++i) backend.set_slot(0, static_cast<Slot>(kV0 + i), s.v[i]);
}

State read_state(Backend& backend) {
  State s{};
  for (Slot i = 0; i < 31; ++i) s.x[i] = backend.slot(0, i);
  s.sp = backend.slot(0, kSp);
  s.nzcv = backend.slot(0, kNzcv) << 28;
  s.fpcr = backend.slot(0, kFpState) >> 32;
  s.fpsr = backend.slot(0, kFpState) & 0xffffffff;
  for (Slot i = 0; i < 64; ++i) s.v[i] = backend.slot(0, static_cast<Slot>(kV0 + i));
  return s;
}

class Window {
 public:
  explicit Window(Backend& backend) : backend_(backend) {
    for (size_t i = 0; i < pristine_.size(); ++i) pristine_[i] = oracle_window_word(i);
    put(0, pristine_);
    backend.set_permissions(0, ORACLE_WINDOW, ORACLE_WINDOW_BYTES, kRead | kWrite);
  }
  std::vector<Change> take_changes() {
    std::vector<Change> changes;
    backend_.read_memory(0, ORACLE_WINDOW, bytes(now_));
    if (now_ == pristine_) return changes;
    for (size_t i = 0; i < now_.size(); ++i) {
      if (now_[i] == pristine_[i]) continue;
      changes.push_back({i * 8, now_[i]});
      put(i, std::span(pristine_).subspan(i, 1));
    }
    return changes;
  }

 private:
  static std::span<uint8_t> bytes(std::span<uint64_t> words) {
    return {reinterpret_cast<uint8_t*>(words.data()), words.size_bytes()};
  }
  void put(size_t index, std::span<uint64_t> words) {
    backend_.write_memory(0, ORACLE_WINDOW + 8 * index, bytes(words));
  }
  Backend& backend_;
  std::vector<uint64_t> pristine_ = std::vector<uint64_t>(ORACLE_WINDOW_BYTES / 8),
                        now_ = pristine_;
};

Result run_one(Backend& backend, const Program& program, size_t index) {
  const Module& m = program.module;
  backend.start(0, find_block(m.code, case_pc(index)));
  for (int slices = 0; slices < 100; ++slices) {
    const std::span<const Event> events = backend.run_slice(1000);
    if (events.empty()) continue;
    const Event event = events[0];
    backend.stop(0);
    Result r;
    r.state = read_state(backend);
    if (event.status == CoreStatus::kFault)
      r.signal = fault_signal(event.fault);
    else if (event.status == CoreStatus::kJump)
      r.signal = fault_signal(Fault::kFetchAccess);
    else if (event.status != CoreStatus::kService)
      throw std::runtime_error("oracle: odd event");
    else
      r.exit = m.blocks[m.uop_block[event.uop]].pc == program.exits[index] + 4 ? 0 : 1;
    return r;
  }
  throw std::runtime_error("oracle: a case does not end in our backend");
}

}  // namespace

std::vector<Result> run_gpusim(std::span<const Case> cases, const std::string& backend_name,
                               bool optimise) {
  const Program program = translate(cases, optimise);
  const auto backend = make_backend(backend_name);
  MachineConfig config;
  config.linear_base = ORACLE_CODE;
  config.linear_size = ORACLE_WINDOW + ORACLE_WINDOW_BYTES - ORACLE_CODE;
  config.window_base = uint64_t{1} << 40;
  backend->configure(program.module, config);
  Window window(*backend);
  std::vector<Result> results;
  for (size_t i = 0; i < cases.size(); ++i) {
    load_state(*backend, cases[i].state);
    results.push_back(run_one(*backend, program, i));
    if (cases[i].uses_memory) results.back().changes = window.take_changes();
  }
  return results;
}

}  // namespace gpusim::a64::oracle
