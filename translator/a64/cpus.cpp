// Values: those that Linux shows to user code (Documentation/arm64/cpu-feature-registers.rst),
// which for the two named cores are also those of qemu-aarch64 -cpu NAME.
#include "translator/a64/cpus.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace gpusim::a64 {
namespace {

// linux/arch/arm64/include/uapi/asm/hwcap.h, by bit number.
// clang-format off
enum Hwcap : unsigned {
  kFp, kAsimd, kEvtstrm, kAes, kPmull, kSha1, kSha2, kCrc32,
  kAtomics, kFphp, kAsimdhp, kCpuid, kAsimdrdm, kJscvt, kFcma, kLrcpc,
  kDcpop, kSha3, kSm3, kSm4, kAsimddp, kSha512, kSve, kAsimdfhm,
  kDit, kUscat, kIlrcpc, kFlagm, kSsbs, kSb, kPaca, kPacg,
};
enum Hwcap2 : unsigned {
  kDcpodp = 0, kFlagm2 = 7, kFrint = 8, kI8mm = 13, kBf16 = 14, kDgh = 15, kRng = 16, kEcv = 19,
};
// clang-format on
template <class... Bits>
constexpr uint64_t bits(Bits... b) {
  return ((uint64_t{1} << b) | ...);
}

constexpr uint64_t kArmv80 = bits(kFp, kAsimd, kAes, kPmull, kSha1, kSha2, kCrc32, kCpuid);
constexpr uint64_t kArmv82 =
    kArmv80 | bits(kAtomics, kFphp, kAsimdhp, kAsimdrdm, kLrcpc, kDcpop, kAsimddp);
static_assert(kArmv80 == 0x8fb && kArmv82 == 0x119ffb);

// Everything here but what we do not have: SVE, pointer authentication (its keys are disabled),
// accesses that may be misaligned and still atomic (USCAT), the event stream.
constexpr uint64_t kMaxHwcap = kArmv82 | bits(kJscvt, kFcma, kSha3, kSm3, kSm4, kSha512, kAsimdfhm,
                                              kDit, kIlrcpc, kFlagm, kSsbs, kSb);
constexpr uint64_t kMaxHwcap2 = bits(kDcpodp, kFlagm2, kFrint, kI8mm, kBf16, kDgh, kRng, kEcv);

constexpr GuestCpu kCpus[] = {
    {"cortex-a57", "Armv8.0 with AES, PMULL, SHA-1, SHA-2, CRC32", kArmv80, 0},
    {"neoverse-n1", "Armv8.2 with LSE, RDM, FP16, dot products, RCPC", kArmv82, 0},
    {"max", "Armv8.6 with all that gpusim has", kMaxHwcap, kMaxHwcap2},
};

// One column per CPU.
struct IdRegister {
  uint32_t CRm, op2;
  std::array<uint64_t, std::size(kCpus)> values;
};
constexpr IdRegister kIdRegisters[] = {
    {0, 0, {0x411fd070, 0x414fd0c1, 0xf0470}},              // MIDR_EL1
    {0, 5, {1u << 31, 1u << 31, 1u << 31}},                 // MPIDR_EL1
    {0, 6, {0, 0, 0}},                                      // REVIDR_EL1
    {4, 0, {0x11, 0x110011, 0x1000000110011}},              // ID_AA64PFR0_EL1: FP, AdvSIMD, DIT
    {4, 1, {0, 0x20, 0x20}},                                // ID_AA64PFR1_EL1: SSBS
    {5, 0, {6, 6, 6}},                                      // ID_AA64DFR0_EL1
    {6, 0, {0x11120, 0x100010211120, 0x1021111110212120}},  // ID_AA64ISAR0_EL1
    {6, 1, {0, 0x100001, 0x11101100211002}},                // ID_AA64ISAR1_EL1, without APA and GPA
    {7, 0, {0xff000000, 0xff000000, 0x10000000ff000000}},   // ID_AA64MMFR0_EL1: ECV
};

// The names that Linux gives the bits above: arch/arm64/kernel/cpuinfo.c.
constexpr const char* kHwcapNames[] = {
    "fp",       "asimd",   "evtstrm", "aes",      "pmull",   "sha1",    "sha2",   "crc32",
    "atomics",  "fphp",    "asimdhp", "cpuid",    "asimdrdm", "jscvt",  "fcma",   "lrcpc",
    "dcpop",    "sha3",    "sm3",     "sm4",      "asimddp", "sha512",  "sve",    "asimdfhm",
    "dit",      "uscat",   "ilrcpc",  "flagm",    "ssbs",    "sb",      "paca",   "pacg"};
constexpr struct {
  Hwcap2 bit;
  const char* name;
} kHwcap2Names[] = {{kDcpodp, "dcpodp"}, {kFlagm2, "flagm2"}, {kFrint, "frint"}, {kI8mm, "i8mm"},
                    {kBf16, "bf16"},     {kDgh, "dgh"},       {kRng, "rng"},     {kEcv, "ecv"}};

}  // namespace

std::string cpu_lines(uint32_t cpu) {
  std::string features;
  for (size_t bit = 0; bit < std::size(kHwcapNames); ++bit)
    if (kCpus[cpu].hwcap >> bit & 1) features += std::string(" ") + kHwcapNames[bit];
  for (const auto& [bit, name] : kHwcap2Names)
    if (kCpus[cpu].hwcap2 >> bit & 1) features += std::string(" ") + name;
  uint64_t midr = 0;
  id_register(cpu, 0, 0, &midr);
  return fmt::format(
      "BogoMIPS\t: 100.00\nFeatures\t:{}\nCPU implementer\t: {:#04x}\nCPU architecture: 8\n"
      "CPU variant\t: {:#x}\nCPU part\t: {:#05x}\nCPU revision\t: {}\n",
      features, midr >> 24 & 0xff, midr >> 20 & 0xf, midr >> 4 & 0xfff, midr & 0xf);
}

std::span<const GuestCpu> cpus() { return kCpus; }

bool id_register(uint32_t cpu, uint32_t CRm, uint32_t op2, uint64_t* value) {
  for (const IdRegister& r : kIdRegisters) {
    if (r.CRm != CRm || r.op2 != op2) continue;
    *value = r.values[cpu];
    return true;
  }
  *value = 0;
  return CRm >= 4 && CRm <= 7;
}

SystemFeatures system_features(uint32_t cpu) {
  const GuestCpu& c = kCpus[cpu];
  const auto has = [&](Hwcap bit) { return (c.hwcap >> bit & 1) != 0; };
  const auto has2 = [&](Hwcap2 bit) { return (c.hwcap2 >> bit & 1) != 0; };
  uint64_t pfr1 = 0;
  id_register(cpu, 4, 1, &pfr1);
  // Not by HWCAP: qemu's Neoverse N1 has SSBS but does not say so there.
  return {.fp16 = has(kFphp),
          .dit = has(kDit),
          .ssbs = (pfr1 >> 4 & 15) == 2,
          .rng = has2(kRng),
          .ecv = has2(kEcv)};
}

}  // namespace gpusim::a64
