#include <algorithm>
#include <cstdlib>
#include <map>

#include "tests/isa/a64/insn_oracle/oracle.h"

namespace gpusim::a64::oracle {

namespace {
// One word of the guest program's before the case's, two branches after them.
constexpr uint64_t code_bytes(size_t words) { return 4 * (words + 3); }
}  // namespace

bool Batch::is_full() const {
  return cases_.size() + kMaxLanes > ORACLE_MAX_CASES ||
         next_pc_ + code_bytes(ORACLE_MAX_WORDS) > ORACLE_CODE + ORACLE_CODE_BYTES;
}

void Batch::add(Case c) {
  c.pc = next_pc_;
  next_pc_ += code_bytes(c.words.size());
  lanes_ = 1;
  cases_.push_back(std::move(c));
}

void Batch::add_lane(const State& state) {
  if (lanes_ == kMaxLanes) return;
  ++lanes_;
  cases_.push_back(cases_.back());
  cases_.back().state = state;
}

std::string Variant::name() const {
  static constexpr const char* kPasses[] = {", not optimised", ", optimised", ", exact flags"};
  return std::string(backend) + (native ? ", native code" : "") +
         kPasses[static_cast<size_t>(passes)];
}

std::span<const Variant> all_variants() {
  using enum Passes;
  static constexpr Variant kVariants[] = {
      {"scalar", kNone, false},     {"scalar", kUsual, false},   {"scalar", kExactFlags, false},
      {"simd", kNone, false},       {"simd", kUsual, false},     {"simd", kNone, true},
      {"simd", kUsual, true},       {"simd", kExactFlags, true},
  };
  static constexpr Variant kCudaVariants[] = {
      {"cuda", kNone, false}, {"cuda", kUsual, false}, {"cuda", kExactFlags, false}};
  const char* const only = std::getenv("GPUSIM_BACKEND");
  if (only && std::string_view(only) == "cuda") return kCudaVariants;
  return kVariants;
}

size_t compare(const Batch& batch, const std::string& cpu,
               const std::function<void(const std::string&)>& fail) {
  if (batch.empty()) return 0;
  size_t native_pieces = 0;
  const std::span<const Case> cases = batch.cases();
  const std::vector<Result> want = run_qemu(cases, cpu);
  const Program programs[] = {translate(cases, Passes::kNone, cpu),
                              translate(cases, Passes::kUsual, cpu),
                              translate(cases, Passes::kExactFlags, cpu)};
  for (const Variant& variant : all_variants()) {
    const std::vector<Result> got =
        run_gpusim(cases, programs[static_cast<size_t>(variant.passes)], variant, &native_pieces);
    std::map<std::string_view, int> failures;  // per row: one example each says enough
    for (size_t i = 0; i < cases.size(); ++i) {
      // The passes drop flags that nothing but a look at a stopped core would see.
      const bool flags = variant.passes != Passes::kUsual || cases[i].words.size() == 1;
      const std::string text = difference(i, cases[i], want[i], got[i], flags);
      if (text.empty()) continue;
      const Row* row = decode(cases[i].words[0]);
      if (failures[row ? row->name : "?"]++ == 0) fail(variant.name() + ": " + text);
    }
    for (const auto& [name, count] : failures)
      if (count > 1) fail(std::string(name) + ": " + std::to_string(count) + " differ");
  }
  return native_pieces;
}

}  // namespace gpusim::a64::oracle
