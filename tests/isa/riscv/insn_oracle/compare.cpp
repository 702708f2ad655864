#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/isa/oracle/run_guest.h"
#include "tests/isa/riscv/insn_oracle/oracle.h"
#include "translator/riscv/text.h"
#include "translator/riscv/vector.h"

namespace gpusim::riscv::oracle {
namespace {

std::string format(const char* text, auto... values) {
  char line[200];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

// "c.addi", "fadd.s", by its first instruction.
uint32_t word_at(const Case& c, size_t at) {
  uint32_t word = 0;
  std::memcpy(&word, &c.code[at], std::min<size_t>(4, c.code.size() - at));
  return word;
}

std::string text_of(const Case& c) {
  std::string text;
  for (size_t at = 0; at < c.code.size();) {
    const Insn insn = decode_any(word_at(c, at), kXlen);
    text += (at ? "; " : "") + (insn ? instruction_text(insn) : "?");
    at += insn.bytes;
  }
  return text;
}

bool same_changes(const Result& a, const Result& b) {
  return std::equal(a.changes.begin(), a.changes.end(), b.changes.begin(), b.changes.end(),
                    [](const oracle_change& x, const oracle_change& y) {
                      return x.offset == y.offset && x.value == y.value;
                    });
}

}  // namespace

std::vector<Result> run_qemu(std::span<const Case> cases) {
  gpusim::oracle::File in, out;
  const oracle_header header{ORACLE_MAGIC, cases.size()};
  in.write(&header, 1);
  for (const Case& c : cases) {
    oracle_case record{};
    std::copy(c.code.begin(), c.code.end(), record.bytes);
    record.byte_count = static_cast<uint32_t>(c.code.size());
    record.code_offset = static_cast<uint32_t>(c.pc - ORACLE_CODE);
    record.state = c.state;
    in.write(&record, 1);
  }
  const std::string bits = std::to_string(kXlen);
  const char* const chosen = std::getenv(("GPUSIM_QEMU_RISCV" + bits).c_str());
  const std::string emulator = chosen ? chosen : "qemu-riscv" + bits;
  std::string cpu = "rv" + bits + ",zba=true,zbb=true,zbc=true,zbs=true,Zfh=true";
  if (kXlen == 64) cpu += ",v=true,vext_spec=v1.0,vlen=128";
  gpusim::oracle::run_guest({emulator.c_str(), "-cpu", cpu.c_str(), GPUSIM_RISCV_ORACLE_GUEST}, in,
                            out);
  std::vector<Result> results(cases.size());
  for (Result& r : results) {
    oracle_result record;
    out.read(&record, 1);
    r.signal = static_cast<int>(record.signal);
    r.pc = record.pc;
    r.state = record.state;
    r.changes.resize(record.change_count);
    out.read(r.changes.data(), r.changes.size());
  }
  return results;
}

std::string difference(const Case& c, const Result& qemu, const Result& ours) {
  std::string text;
  const auto check = [&](const std::string& what, uint64_t before, uint64_t theirs, uint64_t own) {
    if (theirs == own) return;
    text += format("  %-6s qemu %016" PRIx64 "  ours %016" PRIx64 "  before %016" PRIx64 "\n",
                   what.c_str(), theirs, own, before);
  };
  if (qemu.signal != ours.signal)
    text += format("  signal qemu %d  ours %d\n", qemu.signal, ours.signal);
  check("pc", c.pc, qemu.pc, ours.pc);
  for (uint32_t i = 1; i < 32; ++i)
    check(x_name(i), c.state.x[i], qemu.state.x[i], ours.state.x[i]);
  for (uint32_t i = 0; i < 32; ++i)
    check(f_name(i), c.state.f[i], qemu.state.f[i], ours.state.f[i]);
  check("fcsr", c.state.fcsr, qemu.state.fcsr, ours.state.fcsr);
  for (uint32_t i = 0; i < std::size(c.state.v); ++i)
    check(format("v%u.%u", i / ORACLE_VECTOR_WORDS, i % ORACLE_VECTOR_WORDS), c.state.v[i],
          qemu.state.v[i], ours.state.v[i]);
  check("vl", c.state.vl, qemu.state.vl, ours.state.vl);
  check("vtype", c.state.vtype, qemu.state.vtype, ours.state.vtype);
  check("vstart", c.state.vstart, qemu.state.vstart, ours.state.vstart);
  check("vcsr", c.state.vcsr, qemu.state.vcsr, ours.state.vcsr);
  if (!same_changes(qemu, ours)) {
    for (const auto& [who, r] : {std::pair{"qemu", &qemu}, std::pair{"ours", &ours}}) {
      text += format("  memory %s:", who);
      for (const oracle_change& change : r->changes)
        text += format(" [%" PRIx64 "]=%016" PRIx64, change.offset, change.value);
      text += "\n";
    }
  }
  if (text.empty()) return {};
  std::string head = text_of(c) + format("  fcsr %" PRIx64 "\n", c.state.fcsr);
  const Insn first = decode_any(word_at(c, 0), kXlen);
  if (first && is_vector(*first.row))
    head += format("  vl %" PRIu64 "  vtype %" PRIx64 "  vstart %" PRIu64, c.state.vl,
                   c.state.vtype, c.state.vstart) +
            format("  v0 %016" PRIx64 "%016" PRIx64 "\n", c.state.v[1], c.state.v[0]);
  for (const char letter : {'n', 'm', 'a'}) {
    if (!first || first.row->pattern.field(letter).width != 5) continue;
    const uint32_t r = first.field(letter);
    head += format("  x%u %016" PRIx64 "  f%u %016" PRIx64 "\n", r, c.state.x[r], r, c.state.f[r]);
  }
  return head + text;
}

void compare(const Batch& batch, const std::function<void(const std::string&)>& fail) {
  const std::span<const Case> cases = batch.cases();
  if (cases.empty()) return;
  const std::vector<Result> want = run_qemu(cases);
  for (const std::string& backend : gpusim::oracle::backends_under_test()) {
    for (const bool optimise : {false, true}) {
      const std::vector<Result> got = run_gpusim(cases, backend, optimise);
      std::map<std::string, int> failures;
      for (size_t i = 0; i < cases.size(); ++i) {
        const std::string text = difference(cases[i], want[i], got[i]);
        if (text.empty()) continue;
        const Insn first = decode_any(word_at(cases[i], 0), kXlen);
        const std::string kind = first ? mnemonic(*first.row, first.word) : "unallocated";
        if (failures[kind]++ == 0)
          fail(backend + (optimise ? ", optimised: " : ": ") + text);
      }
      for (const auto& [kind, count] : failures)
        if (count > 1) fail(kind + ": " + std::to_string(count) + " differ");
    }
  }
}

}  // namespace gpusim::riscv::oracle
