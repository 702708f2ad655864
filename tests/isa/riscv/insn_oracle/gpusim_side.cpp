#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "device_sim/core/backend.h"
#include "tests/isa/oracle/backend_window.h"
#include "tests/isa/riscv/insn_oracle/oracle.h"
#include "translator/common/draft.h"
#include "translator/common/link.h"
#include "translator/common/translator.h"
#include "translator/passes/optimise.h"
#include "translator/riscv/float_state.h"
#include "translator/riscv/isa.h"
#include "translator/riscv/registers.h"

namespace gpusim::riscv::oracle {
namespace {

constexpr uint32_t kBatchCores = 64;
const GuestIsa& kGuest = kXlen == 32 ? kIsa32 : kIsa;

// Guest code as the oracle's guest program lays it out.
std::vector<uint8_t> lay_out(std::span<const Case> cases) {
  std::vector<uint8_t> code(ORACLE_CODE_BYTES);
  for (const Case& c : cases) {
    uint8_t* const at = &code[c.pc - ORACLE_CODE];
    std::copy(c.code.begin(), c.code.end(), at);
    const uint32_t ebreaks[] = {ORACLE_EBREAK, ORACLE_EBREAK};
    std::memcpy(at + c.code.size(), ebreaks, sizeof ebreaks);
  }
  return code;
}

void form_blocks(const Case& c, const CodeAt& code_at, std::vector<CodeBlock>& blocks) {
  const uint64_t exit = c.pc + c.code.size();
  std::vector<uint64_t> starts = {c.pc, exit, exit + 4};
  for (uint64_t at = c.pc; at < exit;) {
    const GuestInsn insn = kGuest.first_insn(at, code_at(at));
    const ControlFlow flow = kGuest.control_flow(insn, 0);
    at += insn.bytes.size();
    if (flow.ends_block) starts.push_back(at);
    if (flow.target && *flow.target >= c.pc && *flow.target <= exit + 4)
      starts.push_back(*flow.target);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  for (const uint64_t at : starts)
    blocks.push_back(form_block(kGuest, at, code_at, [&](uint64_t pc) {
      return std::binary_search(starts.begin(), starts.end(), pc);
    }));
}

Module translate(std::span<const Case> cases, bool optimise) {
  Module m;
  m.isa = kGuest.name;
  m.slot_count = static_cast<uint32_t>(kGuest.slot_count);
  m.initial_values.assign(kGuest.initial_values.begin(), kGuest.initial_values.end());
  m.abi = kGuest.abi;
  m.code.text_base = ORACLE_CODE;
  m.code.pc_shift = kGuest.pc_shift();
  m.code.uop_at.assign(ORACLE_CODE_BYTES >> m.code.pc_shift, kNoUop);
  m.code.insn_class.assign(m.code.uop_at.size(), 0);
  const std::vector<uint8_t> code = lay_out(cases);
  const CodeAt code_at = [&](uint64_t pc) { return std::span(code).subspan(pc - ORACLE_CODE); };
  std::vector<CodeBlock> blocks;
  std::vector<uint64_t> entries;
  for (const Case& c : cases) {
    form_blocks(c, code_at, blocks);
    entries.push_back(c.pc);
  }
  const OptimiseScope scope{
      .whole_program = true,
      .is_function =
          [&](uint64_t pc) { return std::binary_search(entries.begin(), entries.end(), pc); },
      .exact_flags = false};
  if (optimise) optimise_blocks(kGuest, scope, blocks);
  link_blocks(std::move(blocks), m);
  return m;
}

void load_state(Backend& backend, uint32_t core, const State& s) {
  for (uint32_t i = 1; i < 32; ++i) backend.set_slot(core, x_src(i), s.x[i]);
  for (uint32_t i = 0; i < 32; ++i) backend.set_slot(core, f_reg(i), s.f[i]);
  const uint32_t fcsr = static_cast<uint32_t>(s.fcsr);
  backend.set_slot(core, kFpState, fp_state_of(fcsr));
  backend.set_slot(core, kFrm, fcsr >> 5 & 7);
  backend.set_slot(core, kMonitor, kNoMonitor);
  backend.set_slot(core, vector_slot(vector::kVl), s.vl);
  backend.set_slot(core, vector_slot(vector::kVtype), s.vtype);
  backend.set_slot(core, vector_slot(vector::kVstart), s.vstart);
  backend.set_slot(core, vector_slot(vector::kVcsr), s.vcsr);
  for (size_t i = 0; i < std::size(s.v); ++i)
    backend.set_slot(core, static_cast<Slot>(vector_slot(vector::kFirstRegister) + i), s.v[i]);
}

State read_state(Backend& backend, uint32_t core) {
  State s{};
  for (uint32_t i = 1; i < 32; ++i) s.x[i] = backend.slot(core, x_src(i));
  for (uint32_t i = 0; i < 32; ++i) s.f[i] = backend.slot(core, f_reg(i));
  s.fcsr = fflags_of(backend.slot(core, kFpState)) | backend.slot(core, kFrm) << 5;
  s.vl = backend.slot(core, vector_slot(vector::kVl));
  s.vtype = backend.slot(core, vector_slot(vector::kVtype));
  s.vstart = backend.slot(core, vector_slot(vector::kVstart));
  s.vcsr = backend.slot(core, vector_slot(vector::kVcsr));
  for (size_t i = 0; i < std::size(s.v); ++i)
    s.v[i] = backend.slot(core, static_cast<Slot>(vector_slot(vector::kFirstRegister) + i));
  return s;
}

Result make_result(const Module& m, const Event& event) {
  Result r;
  if (event.status == CoreStatus::kFault) {
    r.signal = fault_signal(event.fault);
    r.pc = uop_pc(m, event.uop);
  } else if (event.status == CoreStatus::kJump) {
    r.signal = fault_signal(Fault::kFetchAccess);
    r.pc = event.address;
  } else {
    throw std::runtime_error("oracle: odd event");
  }
  return r;
}

}  // namespace

std::vector<Result> run_gpusim(std::span<const Case> cases, const std::string& name, bool optimise) {
  const Module m = translate(cases, optimise);
  const auto backend = make_backend(name);
  MachineConfig config;
  config.cores = kBatchCores;
  config.memory_model = MemoryModel::kPrivate;
  config.linear_base = ORACLE_CODE;
  config.linear_size = ORACLE_CODE_BYTES;  // no permissions: the code is not data here
  config.window_base = ORACLE_WINDOW;
  config.window_shift = 15;
  static_assert(ORACLE_WINDOW_BYTES == 1 << 15);
  backend->configure(m, config);
  gpusim::oracle::Window window(*backend, config.cores);
  std::vector<Result> results(cases.size());
  // The cores run different cases at a time.
  for (size_t first = 0; first < cases.size(); first += kBatchCores) {
    const auto count = static_cast<uint32_t>(std::min<size_t>(kBatchCores, cases.size() - first));
    for (uint32_t core = 0; core < count; ++core) {
      load_state(*backend, core, cases[first + core].state);
      backend->start(core, find_block(m.code, cases[first + core].pc));
    }
    for (int slices = 0; backend->runnable() != 0; ++slices) {
      if (slices == 100) throw std::runtime_error("oracle: a case does not end in our backend");
      for_each_core(backend->run_slice(1000), [&](const Event& event) {
        results[first + event.core] = make_result(m, event);
        backend->stop(event.core);
      });
    }
    for (uint32_t core = 0; core < count; ++core) {
      results[first + core].state = read_state(*backend, core);
      results[first + core].changes = window.take_changes(core);
    }
  }
  return results;
}

}  // namespace gpusim::riscv::oracle
