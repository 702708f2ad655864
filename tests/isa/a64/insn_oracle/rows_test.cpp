// Every row of the decode table that the translator knows, against qemu-aarch64: values, flags,
// FPSR, memory, branches, faults with their pc. More cases: GPUSIM_ORACLE_CASES=n per row, or
// GPUSIM_LONG=1; some rows only: GPUSIM_ORACLE_ROWS=ADD_imm,LDR_uimm.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "device_sim/simd/jit/compiler.h"
#include "tests/isa/a64/insn_oracle/oracle.h"
#include "tests/isa/a64/insn_oracle/qemu_quirks.h"
#include "translator/a64/translate.h"

namespace gpusim::a64 {
namespace {

using oracle::Batch;
using oracle::Case;
using oracle::Rng;
using oracle::State;

uint64_t hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return h;
}

void tune(const Row& row, Rng& rng, State& state) {
  if (row.group < Group::kFloat) return;
  if (rng() % 4 != 0) oracle::fill_with_one_format(rng, state);
  if (row.feature == Feature::kBf16 && rng() % 2 != 0)
    for (uint64_t& v : state.v) v = (v & 0xffff0000ffff0000) | (v >> 16 & 0x0000ffff0000ffff);
  // Exact arithmetic shows only while the inexact flag is clear, and the fast paths when it is set.
  if (rng() % 4 == 0) state.fpsr = 0x10;
}

Case draw(const Row& row, Rng& rng, uint64_t pc) {
  for (;;) {
    Case c = oracle::random_case(row, rng, pc);
    tune(row, rng, c.state);
    if (oracle::qemu_quirk(row, c.words[0], c.state.fpcr) == nullptr) return c;
  }
}

State draw_again(const Row& row, Rng& rng, Case c) {
  do {
    c.state = oracle::random_state_for(row, rng, c);
    tune(row, rng, c.state);
  } while (oracle::qemu_quirk(row, c.words[0], c.state.fpcr) != nullptr);
  return c.state;
}

bool is_chosen(const Row& row) {
  const char* text = std::getenv("GPUSIM_ORACLE_ROWS");
  if (text == nullptr) return true;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');)
    if (name == row.name) return true;
  return false;
}

void compare_rows(std::initializer_list<Group> groups) {
  const uint64_t seed = oracle::test_seed();
  const unsigned per_row = oracle::case_count(128, 4096);
  INFO("replay: GPUSIM_SEED=" << seed);
  Batch batch;
  size_t rows_seen = 0, total = 0, native_pieces = 0;
  const auto flush = [&] {
    total += batch.cases().size();
    native_pieces +=
        oracle::compare(batch, "max", [](const std::string& text) { FAIL_CHECK(text); });
    batch.clear();
  };
  for (const Row& row : rows()) {
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end()) continue;
    if (!is_translated(row.op) || oracle::not_on_qemu(row) != nullptr || !is_chosen(row)) continue;
    ++rows_seen;
    Rng rng(seed ^ hash(row.name));
    for (unsigned n = 0; n < per_row;) {
      if (batch.is_full()) flush();
      batch.add(draw(row, rng, batch.next_pc()));
      // Another state runs in another lane.
      static constexpr unsigned kLanes[] = {1, 1, 2, 3, 4, 8, 16, 64};
      const unsigned most = per_row < 1000 ? 5 : 8;
      const unsigned lanes = std::min(per_row - n, kLanes[rng() % most]);
      for (unsigned k = 1; k < lanes; ++k)
        batch.add_lane(draw_again(row, rng, batch.cases().back()));
      n += lanes;
    }
  }
  flush();
  const auto variants = oracle::all_variants();
  const bool has_native =
      simd::TraceCompiler::best() != simd::VectorCode::kNone &&
      std::any_of(variants.begin(), variants.end(), [](const auto& v) { return v.native; });
  if (rows_seen != 0 && has_native) CHECK(native_pieces > 0);
  MESSAGE(native_pieces << " pieces of native code, " << rows_seen << " rows, " << total
                        << " cases, seed " << seed);
}

TEST_CASE("integer rows") {
  compare_rows({Group::kDataProcessingImmediate, Group::kDataProcessingRegister});
}
TEST_CASE("memory rows") { compare_rows({Group::kLoadsStores}); }
TEST_CASE("branch and system rows") { compare_rows({Group::kBranchesSystem}); }
TEST_CASE("floating-point rows") { compare_rows({Group::kFloat}); }
TEST_CASE("vector rows") { compare_rows({Group::kSimd}); }

// --- what qemu-user can't tell

// Runs the words of a row on our side alone; `expect` says what has to come out.
template <class Expect>
void check_alone(const Row& row, Expect expect, void (*prepare)(Case&) = nullptr) {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed << "  " << row.name);
  Rng rng(seed ^ hash(row.name));
  Batch batch;
  for (int i = 0; i < 20; ++i) {
    Case c = oracle::random_case(row, rng, batch.next_pc());
    if (prepare) prepare(c);
    batch.add(c);
    c.state = oracle::random_state(rng);
    if (prepare) prepare(c);
    batch.add_lane(c.state);
  }
  std::vector<oracle::Result> want(batch.cases().size());
  for (size_t i = 0; i < want.size(); ++i) {
    const Case& c = batch.cases()[i];
    want[i].state = c.state;
    expect(c, want[i]);
  }
  for (const oracle::Variant& v : oracle::all_variants()) {
    const auto got = oracle::run_gpusim(batch.cases(), translate(batch.cases(), v.passes), v);
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string text = difference(i, batch.cases()[i], want[i], got[i]);
      if (!text.empty()) FAIL_CHECK(v.name() << " (not qemu, but the manual): " << text);
    }
  }
}

uint32_t field_of(const Case& c, char letter) {
  const Row* row = decode(c.words[0]);
  return row->pattern.field(letter).width == 0 ? 30 : row->field(letter, c.words[0]);
}

// Rn, which must not be 31.
void point_to_exit(Case& c) {
  if (field_of(c, 'n') == 31) c.words[0] ^= 1u << 5;
  c.state.x[field_of(c, 'n')] = oracle::jump_exit_pc(c);
}

void expect_jump(const Case&, oracle::Result& r) { r.exit = 1; }
void expect_call(const Case& c, oracle::Result& r) {
  r.exit = 1;
  r.state.x[30] = c.pc + 4;
}

// LDRA: the base in the middle of the window, aligned; Rn is not Rt.
void point_to_window(Case& c) {
  if (field_of(c, 'n') == field_of(c, 't') || field_of(c, 'n') == 31) c.words[0] ^= 1u << 5;
  if (field_of(c, 'n') == field_of(c, 't') || field_of(c, 'n') == 31) c.words[0] ^= 1u << 6;
  c.state.x[field_of(c, 'n')] = ORACLE_WINDOW + ORACLE_WINDOW_BYTES / 2;
}
void expect_load(const Case& c, oracle::Result& r) {
  const uint32_t word = c.words[0], n = field_of(c, 'n'), t = field_of(c, 't');
  // S:imm9, in doublewords; bit 11 writes back.
  const int64_t imm10 =
      static_cast<int64_t>((word >> 22 & 1) << 9 | (word >> 12 & 0x1ff)) - ((word >> 22 & 1) << 10);
  const uint64_t address = c.state.x[n] + static_cast<uint64_t>(imm10) * 8;
  if (t != 31) r.state.x[t] = oracle_window_word((address - ORACLE_WINDOW) / 8);
  if (word >> 11 & 1) r.state.x[n] = address;
}

TEST_CASE("rows that qemu-user cannot run do what the manual says") {
  for (const Row& row : rows()) {
    const oracle::NotOnQemu* entry = oracle::not_on_qemu(row);
    if (entry == nullptr) continue;
    switch (entry->expect) {
      case oracle::Expect::kUndefined:
        check_alone(row, [](const Case& c, oracle::Result& r) {
          r.signal = 4;
          r.pc = c.pc;
        });
        break;
      case oracle::Expect::kNothing:
        check_alone(row, [](const Case&, oracle::Result&) {});
        break;
      case oracle::Expect::kJump:
        check_alone(row, expect_jump, point_to_exit);
        break;
      case oracle::Expect::kCall:
        check_alone(row, expect_call, point_to_exit);
        break;
      case oracle::Expect::kLoad:
        check_alone(row, expect_load, point_to_window);
        break;
      case oracle::Expect::kElsewhere:
        break;
    }
  }
}

TEST_CASE("no entry of the lists is out of date") {
  std::set<std::string_view> names;
  for (const Row& row : rows()) names.insert(row.name);
  for (const oracle::NotOnQemu& entry : oracle::all_not_on_qemu())
    CHECK_MESSAGE(names.contains(entry.row), "no row " << entry.row);
}

}  // namespace
}  // namespace gpusim::a64
