// The softfloat against the instructions themselves, as qemu-aarch64 executes them: results and
// FPSR, bit for bit, under random FPCRs.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "device_sim/uir/softfloat/softfloat.h"
#include "tests/unit/softfloat/seed.h"
#include "tests/unit/softfloat/sequence.h"

namespace {

using namespace gpusim::softfloat;

constexpr uint64_t kSamplesPerCase = 1 << 14;

template <class F>
uint64_t MASK(bool condition) {
  return condition ? low_mask(F::kBits) : 0;
}

uint64_t JAVASCRIPT_INT(uint64_t a, uint64_t& st) {
  bool exact = false;
  return fp_to_int32_js(a, exact, st);
}

uint64_t JAVASCRIPT_FLAGS(uint64_t a, uint64_t& st) {
  bool exact = false;
  fp_to_int32_js(a, exact, st);
  return exact ? 0b0100 : 0;
}

struct Record {
  uint64_t result;
  uint64_t fpsr;
};

/// The guest's output, read case by case.
class Guest {
 public:
  Guest(uint64_t seed, uint64_t count) : records_(count) {
    const std::string command = std::string(GPUSIM_QEMU_AARCH64) + " " + GPUSIM_SOFTFLOAT_GUEST +
                                " " + std::to_string(seed) + " " + std::to_string(count);
    pipe_ = popen(command.c_str(), "r");
    REQUIRE(pipe_ != nullptr);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest() {
    if (pipe_ != nullptr) pclose(pipe_);
  }

  const std::vector<Record>& next_case() {
    REQUIRE(fread(records_.data(), sizeof(Record), records_.size(), pipe_) == records_.size());
    return records_;
  }

  int finish() {
    const int status = pclose(pipe_);
    pipe_ = nullptr;
    return status;
  }

 private:
  FILE* pipe_;
  std::vector<Record> records_;
};

using Function = uint64_t (*)(uint64_t a, uint64_t b, uint64_t c, uint64_t& st);

/// QEMU before 9.1 sets FJCVTZS's Z for a positive subnormal that FPCR.FZ flushes; Arm's
/// FPToFixedJS clears it. (QEMU issue 2375)
bool is_known_qemu_error(const std::string& instruction, uint64_t a, uint64_t fpcr) {
  return instruction == "fjcvtzs w0, d0" && (fpcr >> 24 & 1) != 0 && (a >> 52) == 0 && a != 0;
}

/// Repeats one instruction's operands here and counts differences, printing the first few.
uint64_t count_differences(Guest& guest, sequence& operands, uint64_t& fpcr, int kind,
                           const char* instruction, Function function) {
  uint64_t differences = 0;
  const std::vector<Record>& records = guest.next_case();
  for (uint64_t i = 0; i < records.size(); ++i) {
    uint64_t in[3];
    if (i % kSamplesPerFpcr == 0) fpcr = random_fpcr(&operands);
    random_operands(&operands, kind, in);
    uint64_t state = fpcr << 32;
    const uint64_t result = function(in[0], in[1], in[2], state);
    const uint64_t fpsr = state & 0xFFFFFFFF;
    if (result == records[i].result && fpsr == records[i].fpsr) continue;
    if (is_known_qemu_error(instruction, in[0], fpcr)) continue;
    if (++differences <= 3) {
      std::printf("%s: a=%#lx b=%#lx c=%#lx FPCR=%#lx: %#lx FPSR %#lx, QEMU %#lx FPSR %#lx\n",
                  instruction, in[0], in[1], in[2], fpcr, result, fpsr, records[i].result,
                  records[i].fpsr);
    }
  }
  return differences;
}

TEST_CASE("softfloat equals qemu-aarch64 on every instruction") {
  const uint64_t seed = seed_from_environment();
  INFO("replay: GPUSIM_SEED=" << seed);
  Guest guest(seed, kSamplesPerCase);
  sequence operands{seed};
  uint64_t fpcr = 0;
  uint64_t cases = 0;
#define CASE(kind, result_kind, instruction, expression)                                          \
  {                                                                                               \
    const Function function = []([[maybe_unused]] uint64_t a, [[maybe_unused]] uint64_t b,        \
                                 [[maybe_unused]] uint64_t c,                                     \
                                 [[maybe_unused]] uint64_t& st) { return uint64_t{expression}; }; \
    CHECK_MESSAGE(count_differences(guest, operands, fpcr, kind, instruction, function) == 0,     \
                  instruction);                                                                   \
    ++cases;                                                                                      \
  }
#include "tests/unit/softfloat/cases.def"
#undef CASE
  CHECK(guest.finish() == 0);
  MESSAGE(cases << " instructions, " << cases * kSamplesPerCase << " comparisons");
}

}  // namespace
