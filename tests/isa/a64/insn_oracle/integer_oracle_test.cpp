// Every integer, memory and branch row against qemu-aarch64: values, flags, memory and faults.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/isa/a64/insn_oracle/oracle.h"

namespace gpusim::a64 {
namespace {

using oracle::Case;
using oracle::Result;
using oracle::Rng;

// Rows that this test does not draw, each with its reason.
const std::map<std::string_view, const char*> kNotDrawn = {
    {"UDF", "exceptions: tested by programs"},
    {"SVC", "the end of a case"},
    {"HVC", "UNDEFINED at EL0; qemu-user stops"},
    {"SMC", "UNDEFINED at EL0; qemu-user stops"},
    {"HLT", "qemu-user takes some for semihosting calls"},
    {"DCPS", "UNDEFINED at EL0"},
    {"ERET", "UNDEFINED at EL0"},
    {"ERETA", "UNDEFINED at EL0"},
    {"DRPS", "UNDEFINED at EL0"},
    {"WFI", "qemu-user waits for an interrupt that never comes"},
    {"SYS", "its encodings are tested one by one"},
    {"SYSL", "UNDEFINED at EL0"},
    {"MSR_imm", "UNDEFINED at EL0, but for extensions that we do not have"},
    {"MSR_reg", "tested register by register"},
    {"MRS", "tested register by register"},
    {"PACGA", "not supported"},
    {"PAC_reg", "qemu-user enables the keys; ours are disabled"},
    {"PAC_z", "qemu-user enables the keys; ours are disabled"},
    {"BRA_z", "qemu-user enables the keys; ours are disabled"},
    {"BLRA_z", "qemu-user enables the keys; ours are disabled"},
    {"BRA", "qemu-user enables the keys; ours are disabled"},
    {"BLRA", "qemu-user enables the keys; ours are disabled"},
    {"RETA", "qemu-user enables the keys; ours are disabled"},
    {"LDRA", "qemu-user enables the keys; ours are disabled"},
};

void compare(const std::vector<Case>& cases, const std::string& cpu) {
  const std::vector<Result> want = oracle::run_qemu(cases, cpu);
  struct Variant {
    const char* backend;
    bool optimise;
  };
  for (const auto& [backend, optimise] :
       {Variant{"scalar", false}, {"scalar", true}, {"simd", true}}) {
    CAPTURE(backend);
    CAPTURE(optimise);
    const std::vector<Result> got = oracle::run_gpusim(cases, backend, optimise);
    std::map<std::string_view, int> failures;  // per row: one example each says enough
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::string text = oracle::difference(i, cases[i], want[i], got[i]);
      if (text.empty()) continue;
      const Row* row = decode(cases[i].words[0]);
      if (failures[row ? row->name : "?"]++ == 0) FAIL_CHECK(text);
    }
    for (const auto& [name, count] : failures) MESSAGE(name << ": " << count << " differ");
  }
}

TEST_CASE("random instructions of every integer, memory and branch row") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  std::vector<Case> cases;
  size_t total = 0;
  const auto flush = [&] {
    compare(cases, "max");
    total += cases.size();
    cases.clear();
  };
  for (const Row& row : rows()) {
    if (row.group > Group::kBranchesSystem || kNotDrawn.contains(row.name)) continue;
    for (int i = 0; i < 150; ++i) {
      if (cases.size() == ORACLE_MAX_CASES) flush();
      cases.push_back(oracle::random_case(row, rng, cases.size()));
    }
  }
  flush();
  CHECK(total > 20000);
}

// --- sequences

class Sequence {
 public:
  explicit Sequence(Rng& rng) : rng_(rng) {}
  // A word of the row with some fields given.
  Sequence& add(std::string_view name, std::initializer_list<std::pair<char, uint32_t>> fields) {
    const auto found =
        std::find_if(rows().begin(), rows().end(), [&](const Row& r) { return r.name == name; });
    REQUIRE(found != rows().end());
    for (;;) {
      uint32_t word = random_word(*found, rng_);
      for (const auto& [letter, value] : fields) {
        const BitField f = found->pattern.field(letter);
        REQUIRE(f.width != 0);
        const uint32_t mask = ((1u << f.width) - 1) << f.lsb;
        word = (word & ~mask) | ((value << f.lsb) & mask);
      }
      if (decode(word) != &*found) continue;
      words_.push_back(word);
      return *this;
    }
  }
  Sequence& add_word(uint32_t word) {
    words_.push_back(word);
    return *this;
  }
  Case make() const {
    Case c;
    c.words = words_;
    c.state = oracle::random_state(rng_);
    c.uses_memory = true;
    return c;
  }

 private:
  Rng& rng_;
  std::vector<uint32_t> words_;
};

uint32_t reg(Rng& rng) { return static_cast<uint32_t>(rng() % 31); }

TEST_CASE("comparisons and the branches and selects that use them") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  std::vector<Case> cases;
  const std::string_view setters[] = {"SUBS_imm", "ADDS_imm", "SUBS_shift", "ADDS_shift",
                                      "SUBS_ext", "ANDS_imm", "ANDS_shift", "BICS_shift",
                                      "ADDS_ext", "ADCS",     "SBCS",       "CCMP_imm",
                                      "CCMP_reg", "CCMN_imm", "SETF8",      "RMIF"};
  const std::string_view users[] = {"B_cond", "B_cond",   "CSEL", "CSINC",
                                    "CSNEG",  "CCMP_reg", "ADC"};
  for (int i = 0; i < 4000; ++i) {
    const std::string_view setter = setters[rng() % std::size(setters)];
    const std::string_view user = users[rng() % std::size(users)];
    Sequence s(rng);
    if (setter.find("S_") != setter.npos && rng() % 2)
      s.add(setter, {{'d', 31}});  // CMP, TST
    else
      s.add(setter, {});
    if (rng() % 3 == 0) s.add("ADD_imm", {});
    if (user == "B_cond")
      s.add(user, {{'i', 2}});
    else
      s.add(user, {});
    if (rng() % 4 == 0 && user != "B_cond") s.add("CSINC", {});
    Case c = s.make();
    c.uses_memory = false;
    if (rng() % 3 == 0)  // near the immediates that compilers compare with
      for (uint64_t& x : c.state.x) x = rng() % 64 - 32;
    cases.push_back(c);
  }
  compare(cases, "max");
}

TEST_CASE("random straight lines of data processing, with a branch behind") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  std::vector<const Row*> drawn;
  for (const Row& row : rows())
    if (row.group <= Group::kDataProcessingRegister && !kNotDrawn.contains(row.name))
      drawn.push_back(&row);
  std::vector<Case> cases;
  for (int i = 0; i < 6000; ++i) {
    Sequence s(rng);
    // Few registers, so that results are used and overwritten.
    const auto narrow = [&](const Row& row, uint32_t word) {
      for (const char letter : {'d', 'n', 'm', 'a'}) {
        const BitField f = row.pattern.field(letter);
        if (f.width != 5 || rng() % 8 == 0) continue;
        word = (word & ~(31u << f.lsb)) | static_cast<uint32_t>(rng() % 4) << f.lsb;
      }
      return word;
    };
    for (int k = 0; k < 4; ++k) {
      const Row& row = *drawn[rng() % drawn.size()];
      s.add_word(narrow(row, random_word(row, rng)));
    }
    s.add("B_cond", {{'i', 2}});
    Case c = s.make();
    c.uses_memory = false;
    cases.push_back(c);
  }
  compare(cases, "max");
}

TEST_CASE("constants in pieces, and chains of bit fields") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  std::vector<Case> cases;
  for (int i = 0; i < 2000; ++i) {
    const uint32_t d = reg(rng), z = static_cast<uint32_t>(rng() % 2);
    Sequence s(rng);
    switch (rng() % 4) {
      case 0:
        s.add("MOVZ", {{'d', d}, {'z', z}})
            .add("MOVK", {{'d', d}, {'z', 1}})
            .add("MOVK", {{'d', d}});
        break;
      case 1:
        s.add("MOVN", {{'d', d}, {'z', z}}).add("MOVK", {{'d', d}, {'z', z}});
        break;
      case 2:
        s.add("ADRP", {{'d', d}}).add("ADD_imm", {{'n', d}, {'z', 1}});
        break;
      default:
        s.add("UBFM", {{'d', d}})
            .add("SBFM", {{'n', d}, {'d', d}})
            .add("BFM", {{'n', d}})
            .add("EXTR", {{'m', d}});
        break;
    }
    Case c = s.make();
    c.uses_memory = false;
    cases.push_back(c);
  }
  compare(cases, "max");
}

TEST_CASE("exclusives: success, a changed value, another address, CLREX") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  std::vector<Case> cases;
  for (int i = 0; i < 1500; ++i) {
    const uint32_t y = static_cast<uint32_t>(rng() % 4), n = 20, status = 21;
    const uint32_t t = static_cast<uint32_t>(rng() % 20), v = static_cast<uint32_t>(rng() % 20);
    const bool pair = rng() % 3 == 0;
    Sequence s(rng);
    const std::string_view load =
        pair ? (rng() % 2 ? "LDXP" : "LDAXP") : (rng() % 2 ? "LDXR" : "LDAXR");
    const std::string_view store =
        pair ? (rng() % 2 ? "STXP" : "STLXP") : (rng() % 2 ? "STXR" : "STLXR");
    const uint32_t size = pair ? y & 1 : y;
    if (pair)
      s.add(load, {{'y', size}, {'n', n}, {'t', t}, {'u', (t + 1) % 20}});
    else
      s.add(load, {{'y', size}, {'n', n}, {'t', t}});
    switch (rng() % 6) {
      case 0:
        s.add("CLREX", {});
        break;
      case 1:
        s.add("STR_uimm", {{'y', 0}, {'i', 0}, {'n', n}, {'t', v}});
        break;
      case 2:
        s.add("ADD_imm", {{'z', 1}, {'h', 0}, {'i', 16}, {'n', n}, {'d', n}});
        break;
      default:
        break;
    }
    if (pair)
      s.add(store, {{'y', size}, {'n', n}, {'s', status}, {'t', v}, {'u', (v + 3) % 20}});
    else
      s.add(store, {{'y', size}, {'n', n}, {'s', status}, {'t', v}});
    Case c = s.make();
    c.state.x[n] = oracle::random_address(rng, 64) & ~uint64_t{63};
    cases.push_back(c);
  }
  compare(cases, "max");
}

TEST_CASE("system registers and cache maintenance that user code has") {
  const uint64_t seed = oracle::test_seed();
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  struct Encoding {
    const char* row;
    uint32_t p, o, C, g, l;
  };
  std::vector<Encoding> encodings = {
      {"MRS", 1, 3, 4, 2, 0},     {"MRS", 1, 3, 4, 4, 0},     {"MRS", 1, 3, 4, 4, 1},
      {"MRS", 1, 3, 0, 0, 1},     {"MRS", 1, 3, 0, 0, 7},     {"MRS", 1, 0, 0, 0, 0},
      {"MRS", 1, 0, 0, 0, 6},     {"MRS", 1, 0, 0, 4, 0},     {"MRS", 1, 0, 0, 6, 0},
      {"MSR_reg", 1, 3, 4, 2, 0}, {"MSR_reg", 1, 3, 4, 4, 1},
  };
  std::vector<Case> cases;
  for (const Encoding& e : encodings) {
    for (int i = 0; i < 20; ++i) {
      Sequence s(rng);
      s.add(e.row, {{'p', e.p}, {'o', e.o}, {'C', e.C}, {'g', e.g}, {'l', e.l}});
      cases.push_back(s.make());
    }
  }
  for (int i = 0; i < 20; ++i) {  // FPCR: bits that are RES0 here read as zero
    const uint32_t t = reg(rng);
    Sequence s(rng);
    s.add("MSR_reg", {{'p', 1}, {'o', 3}, {'C', 4}, {'g', 4}, {'l', 0}, {'t', t}});
    s.add("MRS", {{'p', 1}, {'o', 3}, {'C', 4}, {'g', 4}, {'l', 0}, {'t', (t + 1) % 31}});
    Case c = s.make();
    c.state.x[t] &= ~uint64_t{0x370000};  // qemu keeps AArch32's LEN and STRIDE
    cases.push_back(c);
  }
  const uint32_t dc_ops[] = {4, 10, 11, 14};  // CRm: ZVA, CVAC, CVAU, CIVAC
  for (const uint32_t crm : dc_ops) {
    for (int i = 0; i < 20; ++i) {
      const uint32_t t = reg(rng);
      Sequence s(rng);
      s.add("SYS", {{'o', 3}, {'C', 7}, {'g', crm}, {'l', 1}, {'t', t}});
      Case c = s.make();
      c.state.x[t] = oracle::random_address(rng, 1);
      cases.push_back(c);
    }
  }
  compare(cases, "cortex-a57");
}

}  // namespace
}  // namespace gpusim::a64
