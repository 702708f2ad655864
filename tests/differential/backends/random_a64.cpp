#include "tests/differential/backends/random_a64.h"

#include <algorithm>

#include "tests/differential/backends/uop_fields.h"
#include "tests/unit/translator/test_elf.h"
#include "translator/a64/decode.h"
#include "translator/common/isa_list.h"
#include "translator/common/translator.h"

namespace gpusim::difftest {
namespace {

constexpr uint64_t kWindow = 0x10000000;
constexpr uint32_t kWindowShift = 14;
// The window starts with what the prologue loads into the registers: V0 .. V31, then X0 .. X30.
constexpr uint32_t kXAt = 512;
constexpr uint32_t kIndexRegister = 19, kFirstPointer = 20, kPointers = 9;
constexpr uint32_t kBrk = 0xd4200000;

class A64Generator {
 public:
  explicit A64Generator(uint64_t seed) : rng_(seed), engine_(seed) {}

  std::vector<uint32_t> make_words() {
    prologue();
    const uint32_t n = 20 + rng_.below(80);
    for (uint32_t i = 0; i < n; ++i) {
      if (rng_.once_in(10)) words_.push_back(forward_branch(n - i));
      else words_.push_back(plain_word());
    }
    words_.push_back(0xd53b4200);  // MRS X0, NZCV: flags count when they are read
    words_.insert(words_.end(), 4, kBrk);
    return words_;
  }

  std::vector<SlotData> registers(uint32_t cores) {
    std::vector<SlotData> words(kXAt / 8 + 32);
    for (uint32_t i = 0; i < words.size(); ++i) {
      const bool is_x = i >= kXAt / 8;
      const uint32_t x = i - kXAt / 8;
      SlotData& d = words[i];
      const auto value = [&] {
        return is_x ? interesting_integer(rng_) : interesting_float(rng_);
      };
      if (is_x && x == kIndexRegister) {
        d.base = rng_.below(32);
      } else if (is_x && x >= kFirstPointer && x < kFirstPointer + kPointers) {
        d.base = rng_.once_in(8) ? kTestText & ~uint64_t{0xfff} : kWindow + 0x1000 + 8 * rng_.below(1000);
        d.stride = rng_.coin() ? 0 : rng_.pick<uint64_t>({1, 4, 8, 16, ~uint64_t{7}});
      } else if (rng_.coin()) {
        d.base = value();
        d.stride = is_x && rng_.coin() ? rng_.below(9) : 0;
      } else {
        d.values.resize(std::min<uint32_t>(cores, 61));
        for (uint64_t& v : d.values) v = value();
      }
    }
    // FPCR goes through X0.
    words[kXAt / 8] = {rng_.coin() ? 0 : rng_.next() & 0x07c80000, 0, {}};
    return words;
  }

 private:
  void prologue() {
    for (uint32_t i = 0; i < 32; i += 2)  // LDP Qi, Qi+1, [SP, #16 * i]
      words_.push_back(0xad400000 | i << 15 | (i + 1) << 10 | 31 << 5 | i);
    words_.push_back(0x9108001e | 31 << 5);  // ADD X30, SP, #512
    for (uint32_t i = 0; i < 30; i += 2)  // LDP Xi, Xi+1, [X30, #8 * i]
      words_.push_back(0xa9400000 | i << 15 | (i + 1) << 10 | 30 << 5 | i);
    words_.push_back(0xd51b4400);            // MSR FPCR, X0
    words_.push_back(0xf94077c0 | 30);       // LDR X30, [X30, #232]
  }

  uint32_t forward_branch(uint32_t words_left) {
    const uint32_t distance = 1 + rng_.below(std::min(words_left, 12u));
    const uint32_t r = rng_.below(31);
    switch (rng_.below(4)) {
      case 0: return 0x14000000 | distance;
      case 1: return 0x54000000 | distance << 5 | rng_.below(16);
      case 2: return 0x34000000 | rng_.below(2) << 31 | rng_.below(2) << 24 | distance << 5 | r;
      default:
        return 0x36000000 | rng_.below(2) << 31 | rng_.below(2) << 24 | rng_.below(32) << 19 |
               distance << 5 | r;
    }
  }

  static uint32_t with_field(uint32_t word, uint32_t at, uint32_t value) {
    return (word & ~(31u << at)) | value << at;
  }

  uint32_t plain_word() {
    const GuestIsa& isa = *find_isa("aarch64");
    const auto rows = a64::rows();
    for (;;) {
      const a64::Row& row = rows[rng_.below(rows.size())];
      if (row.group == a64::Group::kBranchesSystem) continue;
      uint32_t word = a64::random_word(row, engine_);
      const auto is_pointer = [](uint32_t r) { return r - kFirstPointer < kPointers; };
      if (row.group == a64::Group::kLoadsStores) {
        // Mostly to addresses that exist.
        uint32_t tame = with_field(word, 5, kFirstPointer + rng_.below(kPointers));
        if (rng_.coin()) tame = with_field(tame, 16, kIndexRegister);
        if (a64::decode(tame) == &row && !rng_.once_in(20)) word = tame;
        if (is_pointer(word >> 10 & 31) && rng_.below(8)) continue;
      }
      if ((is_pointer(word & 31) || (word & 31) == kIndexRegister) && rng_.below(16)) continue;
      BlockBuilder b = isa.make_builder();
      b.begin_block(kTestText);
      const std::span bytes(reinterpret_cast<const uint8_t*>(&word), sizeof word);
      if (isa.translate({kTestText, bytes}, b) == InsnResult::kNext) return word;
    }
  }

  Rng rng_;
  std::mt19937_64 engine_;
  std::vector<uint32_t> words_;
};

}  // namespace

std::vector<uint32_t> random_a64_words(uint64_t seed) { return A64Generator(seed).make_words(); }

Case random_a64_case(uint64_t seed, uint32_t cores, bool optimise) {
  A64Generator generator(seed);
  const TestElf elf(generator.make_words());
  Case c;
  c.module = translate_elf(elf.bytes(), "random", {.optimise = optimise});
  c.config.cores = cores;
  c.config.memory_model = MemoryModel::kPrivate;
  c.config.linear_base = 0x400000;
  c.config.linear_size = 0x2000;
  c.config.window_base = kWindow;
  c.config.window_shift = kWindowShift;
  c.memory_seed = seed;
  c.regions = {{0x400000, 0x2000, kRead | kExecute},
               {kWindow, 0x3000, kRead | kWrite},
               {kWindow + 0x3000, 0x1000, kRead}};
  c.window_words = generator.registers(cores);
  c.slots.resize(c.module.slot_count);
  for (const InitialValue& v : c.module.initial_values) c.slots[v.slot].base = v.value;
  c.slots[static_cast<size_t>(c.module.abi.stack_pointer)].base = kWindow;
  c.ignored.assign(c.module.slot_count, false);
  for (uint32_t i = 0; i < c.module.uops.size(); ++i)
    if (c.module.uops[i].op == Op::trap && uop_pc(c.module, i) == kTestText + 4 * (elf.words.size() - 4))
      c.exit_uop = i;
  c.resumed_faults = 15;
  return c;
}

}  // namespace gpusim::difftest
