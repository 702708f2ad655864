#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "tests/isa/a64/insn_oracle/oracle.h"
#include "tests/isa/oracle/run_guest.h"

namespace gpusim::a64::oracle {

std::vector<Result> run_qemu(std::span<const Case> cases, const std::string& cpu) {
  if (cases.size() > ORACLE_MAX_CASES) throw std::invalid_argument("oracle: too many cases");
  using gpusim::oracle::File;
  File in, out;
  const oracle_header header{ORACLE_MAGIC, cases.size()};
  in.write(&header, 1);
  for (const Case& c : cases) {
    oracle_case record{};
    if (c.words.size() > ORACLE_MAX_WORDS) throw std::invalid_argument("oracle: too many words");
    std::copy(c.words.begin(), c.words.end(), record.words);
    record.word_count = static_cast<uint32_t>(c.words.size());
    record.uses_memory = c.uses_memory;
    record.code_offset = static_cast<uint32_t>(c.pc - ORACLE_CODE);
    record.state = c.state;
    in.write(&record, 1);
  }
  const char* emulator = std::getenv("GPUSIM_QEMU_AARCH64");
  gpusim::oracle::run_guest({emulator ? emulator : "qemu-aarch64", "-cpu", cpu, GPUSIM_ORACLE_GUEST},
                            in, out);
  std::vector<Result> results(cases.size());
  for (Result& r : results) {
    oracle_result record;
    out.read(&record, 1);
    r.signal = static_cast<int>(record.signal);
    r.exit = record.exit;
    if (r.signal != 0) r.pc = record.pc;
    r.state = record.state;
    r.changes.resize(record.change_count);
    out.read(r.changes.data(), r.changes.size());
  }
  return results;
}

}  // namespace gpusim::a64::oracle
