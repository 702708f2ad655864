#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "device_sim/core/backend.h"
#include "device_sim/simd/simd_backend.h"
#include "host/output_file.h"
#include "tests/isa/a64/insn_oracle/oracle.h"
#include "tests/isa/oracle/backend_window.h"
#include "translator/a64/registers.h"
#include "translator/common/draft.h"
#include "translator/common/isa_coverage.h"
#include "translator/common/isa_list.h"
#include "translator/common/link.h"
#include "translator/common/translator.h"
#include "translator/passes/optimise.h"

namespace gpusim::a64::oracle {
namespace {

constexpr uint32_t kStopWord = 0xd4000001;  // SVC: where a case ends, our backend stops

std::span<const uint8_t> bytes_of(const uint32_t& word) {
  return {reinterpret_cast<const uint8_t*>(&word), sizeof word};
}

// Guest code as the oracle's guest program lays it out, with a system call at both exits.
void form_blocks(const GuestIsa& isa, uint32_t cpu, const Case& c, std::vector<CodeBlock>& blocks) {
  const uint64_t exit = c.pc + 4 * c.words.size(), end = exit + 8;
  const auto code_at = [&](uint64_t at) {
    if (at >= end) return std::span<const uint8_t>();
    return bytes_of(at < exit ? c.words[(at - c.pc) / 4] : kStopWord);
  };
  std::vector<uint64_t> starts = c.entries;
  starts.insert(starts.end(), {c.pc, exit, exit + 4});
  for (uint64_t at = c.pc; at < exit; at += 4) {
    const ControlFlow flow = isa.control_flow({at, code_at(at)}, cpu);
    if (flow.ends_block) starts.push_back(at + 4);
    if (flow.target && *flow.target >= c.pc && *flow.target < end) starts.push_back(*flow.target);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  for (const uint64_t at : starts)
    blocks.push_back(form_block(
        isa, at, code_at,
        [&](uint64_t pc) { return std::binary_search(starts.begin(), starts.end(), pc); },
        {.cpu = cpu}));
}

void load_state(Backend& backend, uint32_t core, const State& s) {
  for (Slot i = 0; i < 31; ++i) backend.set_slot(core, i, s.x[i]);
  backend.set_slot(core, kSp, s.sp);
  backend.set_slot(core, kNzcv, s.nzcv >> 28);
  backend.set_slot(core, kFpState, s.fpcr << 32 | s.fpsr);
  backend.set_slot(core, kMonitor, ~uint64_t{0});
  for (Slot i = 0; i < 64; ++i) backend.set_slot(core, static_cast<Slot>(kV0 + i), s.v[i]);
}

State read_state(Backend& backend, uint32_t core) {
  State s{};
  for (Slot i = 0; i < 31; ++i) s.x[i] = backend.slot(core, i);
  s.sp = backend.slot(core, kSp);
  s.nzcv = backend.slot(core, kNzcv) << 28;
  s.fpcr = backend.slot(core, kFpState) >> 32;
  s.fpsr = backend.slot(core, kFpState) & 0xffffffff;
  for (Slot i = 0; i < 64; ++i) s.v[i] = backend.slot(core, static_cast<Slot>(kV0 + i));
  return s;
}

Result make_result(const Module& m, const Event& event, uint64_t exit) {
  Result r;
  switch (event.status) {
    case CoreStatus::kFault:
      r.signal = fault_signal(event.fault);
      r.pc = uop_pc(m, event.uop);
      break;
    case CoreStatus::kJump:
      r.signal =
          fault_signal(event.address % 4 == 0 ? Fault::kFetchAccess : Fault::kFetchAlignment);
      r.pc = event.address;
      break;
    case CoreStatus::kService:
      r.exit = m.blocks[m.uop_block[event.uop]].pc == exit + 4 ? 0 : 1;
      break;
    default:
      throw std::runtime_error("oracle: odd event");
  }
  return r;
}

// For docs/isa-support.md.
void record_coverage(std::span<const Case> cases, const Module& m, Backend& backend,
                     std::span<const Result> results) {
  const char* path = std::getenv("GPUSIM_ISA_COVERAGE");
  if (path == nullptr) return;
  std::vector<uint32_t> words(ORACLE_CODE_BYTES / 4, kStopWord);
  for (const Case& c : cases)
    std::copy(c.words.begin(), c.words.end(),
              words.begin() + static_cast<std::ptrdiff_t>((c.pc - ORACLE_CODE) / 4));
  const auto code_at = [&](uint64_t pc) {
    const uint64_t at = (pc - ORACLE_CODE) / 4;
    const bool is_cases_own = at < words.size() && words[at] != kStopWord;
    return is_cases_own ? bytes_of(words[at]) : std::span<const uint8_t>();
  };
  IsaCoverage coverage(*find_isa(m.isa));
  coverage.add_blocks(m, backend.block_counts(), code_at);
  for (const Result& r : results)
    if (r.signal != 0) coverage.add({r.pc, code_at(r.pc)});
  host::OutputFile("GPUSIM_ISA_COVERAGE", path).append(coverage.text());
}

}  // namespace

Program translate(std::span<const Case> cases, Passes passes, const std::string& cpu) {
  const GuestIsa& isa = *find_isa("aarch64");
  Program program;
  Module& m = program.module;
  m.isa = isa.name;
  m.slot_count = static_cast<uint32_t>(isa.slot_count);
  m.initial_values.assign(isa.initial_values.begin(), isa.initial_values.end());
  m.abi = isa.abi;
  m.code.text_base = ORACLE_CODE;
  m.code.pc_shift = isa.pc_shift();
  m.code.uop_at.assign(ORACLE_CODE_BYTES / 4, kNoUop);
  m.code.insn_class.assign(m.code.uop_at.size(), 0);
  std::vector<CodeBlock> blocks;
  std::vector<bool> is_entry(m.code.uop_at.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    program.exits.push_back(cases[i].pc + 4 * cases[i].words.size());
    if (i > 0 && cases[i].pc == cases[i - 1].pc) continue;
    form_blocks(isa, find_cpu(isa, cpu).value(), cases[i], blocks);
    is_entry[(cases[i].pc - ORACLE_CODE) / 4] = true;
    for (const uint64_t pc : cases[i].entries) is_entry[(pc - ORACLE_CODE) / 4] = true;
  }
  const OptimiseScope scope{
      .whole_program = true,
      .is_function = [&](uint64_t pc) { return is_entry[(pc - ORACLE_CODE) / 4]; },
      .exact_flags = passes == Passes::kExactFlags};
  if (passes != Passes::kNone) optimise_blocks(isa, scope, blocks);
  link_blocks(std::move(blocks), m);
  return program;
}

namespace {

bool same(const Result& a, const Result& b) {
  return a.signal == b.signal && a.pc == b.pc && a.exit == b.exit &&
         std::memcmp(&a.state, &b.state, sizeof(State)) == 0 &&
         std::equal(a.changes.begin(), a.changes.end(), b.changes.begin(), b.changes.end(),
                    [](const Change& x, const Change& y) {
                      return x.offset == y.offset && x.value == y.value;
                    });
}

// Runs one code on the first `lanes` cores, which start from the cases' states in turn.
std::vector<Result> run_code(Backend& backend, const Module& m, std::span<const Case> cases,
                             uint64_t exit, uint32_t lanes, gpusim::oracle::Window& window) {
  const uint32_t start = find_block(m.code, cases[0].pc);
  for (uint32_t core = 0; core < lanes; ++core) {
    load_state(backend, core, cases[core % cases.size()].state);
    backend.start(core, start);
  }
  std::vector<Result> results(lanes);
  for (int slices = 0; backend.runnable() != 0; ++slices) {
    if (slices == 100) throw std::runtime_error("oracle: a case does not end in our backend");
    for_each_core(backend.run_slice(1000), [&](const Event& event) {
      if (event.status == CoreStatus::kService && event.service != Service::kSyscall) {
        backend.set_slot(event.core, event.slot, 0);  // a counter
        backend.start(event.core, event.uop);
        return;
      }
      results[event.core] = make_result(m, event, exit);
      backend.stop(event.core);
    });
  }
  for (uint32_t core = 0; core < lanes; ++core) {
    results[core].state = read_state(backend, core);
    if (cases[0].uses_memory) results[core].changes = window.take_changes(core);
  }
  return results;
}

}  // namespace

std::vector<Result> run_gpusim(std::span<const Case> cases, const Program& program,
                               const Variant& variant, size_t* native_pieces) {
  const Module& m = program.module;
  const auto backend = make_backend(variant.backend);
  const bool is_simd = std::string_view(variant.backend) == "simd";
  const auto lanes_at = [&](size_t i) {
    size_t n = 1;
    while (i + n < cases.size() && cases[i + n].pc == cases[i].pc) ++n;
    return n;
  };
  size_t cores = is_simd ? Batch::kMaxLanes : 1;
  for (size_t i = 0; i < cases.size(); i += lanes_at(i)) cores = std::max(cores, lanes_at(i));
  MachineConfig config;
  config.cores = static_cast<uint32_t>(cores);
  config.memory_model = MemoryModel::kPrivate;
  config.linear_base = ORACLE_CODE;
  config.linear_size = ORACLE_CODE_BYTES;  // no permissions: the code is not data here
  config.window_base = ORACLE_WINDOW;
  config.window_shift = 15;
  static_assert(ORACLE_WINDOW_BYTES == 1 << 15);
  config.native_after = variant.native ? 0 : MachineConfig::kNeverNative;
  backend->configure(m, config);
  gpusim::oracle::Window window(*backend, config.cores);
  std::vector<Result> results(cases.size());
  size_t codes = 0;
  for (size_t i = 0, lanes = 0; i < cases.size(); i += lanes, ++codes) {
    lanes = lanes_at(i);
    // Looking at the memory of all lanes takes its time.
    const size_t one_in = cases[i].uses_memory ? 12 : 4;
    const uint32_t busy = static_cast<uint32_t>(is_simd && codes % one_in == 0 ? cores : lanes);
    for (int round = 0; round < (variant.native ? 2 : 1); ++round) {
      std::vector<Result> got =
          run_code(*backend, m, cases.subspan(i, lanes), program.exits[i], busy, window);
      for (size_t k = 0; k < busy; ++k) {
        Result& r = results[i + k % lanes];
        if (round == 0 && k < lanes)
          r = std::move(got[k]);
        else
          r.steady &= same(r, got[k]);
      }
    }
  }
  record_coverage(cases, m, *backend, results);
  if (const auto* simd = dynamic_cast<const SimdBackend*>(backend.get()); simd && native_pieces)
    *native_pieces += simd->native_variants();
  return results;
}

}  // namespace gpusim::a64::oracle
