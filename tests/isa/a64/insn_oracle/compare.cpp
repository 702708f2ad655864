#include <cinttypes>
#include <cstdio>

#include "tests/isa/a64/insn_oracle/oracle.h"

namespace gpusim::a64::oracle {
namespace {

std::string format(const char* text, auto... values) {
  char line[200];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

struct Comparison {
  std::string text;
  void check(const std::string& what, uint64_t before, uint64_t qemu, uint64_t ours) {
    if (qemu == ours) return;
    text += format("  %-6s qemu %016" PRIx64 "  ours %016" PRIx64 "  before %016" PRIx64 "\n",
                   what.c_str(), qemu, ours, before);
  }
};

std::string show_changes(const char* who, const Result& r) {
  std::string text = format("  memory %s:", who);
  for (const Change& c : r.changes) text += format(" [%" PRIx64 "]=%016" PRIx64, c.offset, c.value);
  return text + "\n";
}

}  // namespace

std::string difference(size_t index, const Case& c, const Result& qemu, const Result& ours,
                       uint64_t fpsr_ignore) {
  Comparison cmp;
  if (qemu.signal != ours.signal)
    cmp.text += format("  signal qemu %d  ours %d\n", qemu.signal, ours.signal);
  if (qemu.signal == 0) cmp.check("exit", 0, qemu.exit, ours.exit);
  const bool faulted = qemu.signal != 0;
  for (unsigned i = 0; i < 31; ++i) {
    if (faulted && (c.loaded >> i & 1)) continue;
    cmp.check("x" + std::to_string(i), c.state.x[i], qemu.state.x[i], ours.state.x[i]);
  }
  cmp.check("sp", c.state.sp, qemu.state.sp, ours.state.sp);
  cmp.check("nzcv", c.state.nzcv, qemu.state.nzcv, ours.state.nzcv);
  cmp.check("fpcr", c.state.fpcr, qemu.state.fpcr, ours.state.fpcr);
  cmp.check("fpsr", c.state.fpsr, qemu.state.fpsr & ~fpsr_ignore, ours.state.fpsr & ~fpsr_ignore);
  for (unsigned i = 0; i < 64 && !faulted; ++i)
    cmp.check("v" + std::to_string(i / 2) + (i % 2 ? ".hi" : ".lo"), c.state.v[i], qemu.state.v[i],
              ours.state.v[i]);
  const auto same = [](const Change& a, const Change& b) {
    return a.offset == b.offset && a.value == b.value;
  };
  if (!std::equal(qemu.changes.begin(), qemu.changes.end(), ours.changes.begin(),
                  ours.changes.end(), same))
    cmp.text += show_changes("qemu", qemu) + show_changes("ours", ours);
  if (cmp.text.empty()) return {};

  std::string head = format("case %zu at %" PRIx64 ":", index, case_pc(index));
  for (const uint32_t word : c.words) {
    const Row* row = decode(word);
    head += format(" %08x (%.*s)", word, row ? static_cast<int>(row->name.size()) : 1,
                   row ? row->name.data() : "?");
  }
  head += format("  nzcv %" PRIx64 " fpcr %" PRIx64 "\n", c.state.nzcv >> 28, c.state.fpcr);
  // The registers that a first instruction can name.
  for (const char letter : {'n', 'm', 'a', 't', 'u', 's'}) {
    const Row* row = decode(c.words[0]);
    if (!row || row->pattern.field(letter).width != 5) continue;
    const uint32_t r = row->field(letter, c.words[0]);
    if (r < 31)
      head += format("  %c: x%u %016" PRIx64 "  v%u %016" PRIx64 "_%016" PRIx64 "\n", letter, r,
                     c.state.x[r], r, c.state.v[2 * r + 1], c.state.v[2 * r]);
  }
  return head + cmp.text;
}

}  // namespace gpusim::a64::oracle
