#include <cinttypes>
#include <cstdio>
#include <cstring>

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
  void check(const char* what, unsigned number, const char* rest, uint64_t before, uint64_t qemu,
             uint64_t ours) {
    if (qemu == ours) return;
    text += format("  %s%u%-4s qemu %016" PRIx64 "  ours %016" PRIx64 "  before %016" PRIx64 "\n",
                   what, number, rest, qemu, ours, before);
  }
  void check(const char* what, uint64_t before, uint64_t qemu, uint64_t ours) {
    if (qemu == ours) return;
    text += format("  %-6s qemu %016" PRIx64 "  ours %016" PRIx64 "  before %016" PRIx64 "\n", what,
                   qemu, ours, before);
  }
};

std::string show_changes(const char* who, const Result& r) {
  std::string text = format("  memory %s:", who);
  if (r.changes.size() > 12) return text + format(" %zu words\n", r.changes.size());
  for (const Change& c : r.changes) text += format(" [%" PRIx64 "]=%016" PRIx64, c.offset, c.value);
  return text + "\n";
}

// What the instruction at a fault may have loaded or stored in part: the manual leaves it open.
struct Unsettled {
  uint32_t x = 0, v = 0;
  uint64_t from = 0, bytes = 0;  // of memory
};

Unsettled unsettled_at(const Case& c, const Result& r) {
  Unsettled u;
  const uint64_t i = (r.pc - c.pc) / 4;
  if (i >= c.words.size()) return u;
  const uint32_t word = c.words[i];
  const Row* row = decode(word);
  if (row == nullptr) return u;
  const auto has = [&](char letter) { return row->pattern.field(letter).width == 5; };
  const bool vector = row->group == Group::kSimd || row->name.find("_fp") != std::string_view::npos;
  if (!has('t')) return u;
  const uint32_t t = row->field('t', word);
  if (row->group == Group::kSimd) {  // structures
    for (uint32_t k = 0; k < 4; ++k) u.v |= 1u << (t + k) % 32;
    const uint32_t n = row->field('n', word);
    u.from = n == 31 ? r.state.sp : r.state.x[n];
    u.bytes = 64;
  }
  uint32_t& set = vector ? u.v : u.x;
  set |= 1u << t;
  if (has('u')) set |= 1u << row->field('u', word);
  return u;
}

bool same_changes(const Result& a, const Result& b, const Unsettled& skip) {
  const auto settled = [&](const Result& r) {
    std::vector<Change> list;
    for (const Change& c : r.changes)
      if (ORACLE_WINDOW + c.offset - (skip.from - 7) >= skip.bytes + 7 || skip.bytes == 0)
        list.push_back(c);
    return list;
  };
  const std::vector<Change> x = settled(a), y = settled(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Change& p, const Change& q) {
    return p.offset == q.offset && p.value == q.value;
  });
}

}  // namespace

std::string difference(size_t index, const Case& c, const Result& qemu, const Result& ours,
                       bool flags_at_faults, uint64_t fpsr_ignore) {
  if (ours.steady && qemu.signal == ours.signal && qemu.pc == ours.pc && qemu.exit == ours.exit &&
      std::memcmp(&qemu.state, &ours.state, sizeof(State)) == 0 && same_changes(qemu, ours, {}))
    return {};
  Comparison cmp;
  if (!ours.steady) cmp.text += "  lanes that started alike, or a second run, differ\n";
  if (qemu.signal != ours.signal)
    cmp.text += format("  signal qemu %d  ours %d\n", qemu.signal, ours.signal);
  cmp.check("pc", 0, qemu.pc, ours.pc);
  const bool faulted = qemu.signal != 0;
  const Unsettled skip = faulted ? unsettled_at(c, qemu) : Unsettled{};
  if (!faulted) cmp.check("exit", 0, qemu.exit, ours.exit);
  for (unsigned i = 0; i < 31; ++i)
    if ((skip.x >> i & 1) == 0)
      cmp.check("x", i, "", c.state.x[i], qemu.state.x[i], ours.state.x[i]);
  cmp.check("sp", c.state.sp, qemu.state.sp, ours.state.sp);
  if (!faulted || flags_at_faults)
    cmp.check("nzcv", c.state.nzcv, qemu.state.nzcv, ours.state.nzcv);
  cmp.check("fpcr", c.state.fpcr, qemu.state.fpcr, ours.state.fpcr);
  cmp.check("fpsr", c.state.fpsr, qemu.state.fpsr & ~fpsr_ignore, ours.state.fpsr & ~fpsr_ignore);
  for (unsigned i = 0; i < 64; ++i)
    if ((skip.v >> i / 2 & 1) == 0)
      cmp.check("v", i / 2, i % 2 ? ".hi" : ".lo", c.state.v[i], qemu.state.v[i], ours.state.v[i]);
  if (!same_changes(qemu, ours, skip))
    cmp.text += show_changes("qemu", qemu) + show_changes("ours", ours);
  if (cmp.text.empty()) return {};

  std::string head = format("case %zu at %" PRIx64 ":", index, c.pc);
  for (const uint32_t word : c.words) {
    const Row* row = decode(word);
    head += format(" %08x (%.*s)", word, row ? static_cast<int>(row->name.size()) : 1,
                   row ? row->name.data() : "?");
  }
  head += format("  nzcv %" PRIx64 " fpcr %" PRIx64 " fpsr %" PRIx64, c.state.nzcv >> 28,
                 c.state.fpcr, c.state.fpsr);
  if (faulted) head += format(" signal %d at %" PRIx64, qemu.signal, qemu.pc);
  head += "\n";
  // The registers that a first instruction can name.
  for (const char letter : {'n', 'm', 'a', 't', 'u', 's'}) {
    const Row* row = decode(c.words[0]);
    if (!row || row->pattern.field(letter).width != 5) continue;
    const uint32_t r = row->field(letter, c.words[0]);
    head += format("  %c: x%u %016" PRIx64 "  v%u %016" PRIx64 "_%016" PRIx64 "\n", letter, r,
                   r < 31 ? c.state.x[r] : c.state.sp, r, c.state.v[2 * r + 1], c.state.v[2 * r]);
  }
  return head + cmp.text;
}

}  // namespace gpusim::a64::oracle
