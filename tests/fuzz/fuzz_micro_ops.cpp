// Modules with changed micro-ops and a right checksum: fuzz_micro_ops SECONDS.
//
// Each is refused by the reader, or runs on every backend, under a limit of instructions: it ends,
// touches nothing that is not its own (the preset asan looks closer), and does the same everywhere.
// Cores have private memory, so that whatever they do they do not race.
//
// A failure names its seed; GPUSIM_SEED=N runs that one program. A program that does not end is
// stopped by the processor time that it took, not by the clock.
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "device_sim/base/error.h"
#include "tests/differential/backends/random_a64.h"
#include "tests/differential/backends/run_case.h"
#include "tests/differential/backends/uop_fields.h"
#include "translator/module_io.h"

namespace gpusim::difftest {
namespace {

constexpr int kMostProcessorSeconds = 120;  // of one program: a thousand times what it takes

char endless[96];  // what to say of the program that runs

void begin_program(uint64_t seed) {
  std::snprintf(endless, sizeof endless, "does not end; replay: GPUSIM_SEED=%llu\n",
                static_cast<unsigned long long>(seed));
  const itimerval limit{{0, 0}, {kMostProcessorSeconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

void on_time_out(int) {
  size_t length = 0;
  while (endless[length]) ++length;
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, endless, length);
  _exit(1);
}

Op random_op(Rng& rng) { return static_cast<Op>(rng.below(kOpCount)); }

// Values near to what fields may hold, and far from it.
uint64_t random_number(Rng& rng) {
  switch (rng.below(5)) {
    case 0:
      return rng.below(70);
    case 1:
      return uint64_t{1} << rng.below(64);
    case 2:
      return interesting_integer(rng);
    case 3:
      return rng.below(64) | uint64_t{rng.below(256)} << 16 | uint64_t{rng.below(256)} << 24;
    default:
      return rng.next();
  }
}

// A slot that mostly exists.
Slot random_slot(const Module& m, Rng& rng) {
  return static_cast<Slot>(rng.below(rng.once_in(20) ? 256 : m.slot_count));
}

uint32_t random_place(const Module& m, Rng& rng) {
  if (rng.coin()) return rng.of(m.blocks).first_uop;
  return rng.below(rng.once_in(20) ? m.uops.size() + 3 : m.uops.size());
}

void change_slot(const Module& m, Uop& u, Rng& rng) {
  Slot* const fields[] = {&u.d, &u.a, &u.b, &u.c};
  *rng.of(fields) = random_slot(m, rng);
}

void change_field(Uop& u, Rng& rng) {
  switch (rng.below(4)) {
    case 0:
      u.aux = static_cast<uint8_t>(rng.coin() ? rng.below(8) : rng.next());
      return;
    case 1:
      u.set_imm16(static_cast<uint16_t>(random_number(rng)));
      return;
    default:
      u.imm = random_number(rng);
      return;
  }
}

// Control where there was none, or to another place.
void change_flow(const Module& m, Uop& u, uint32_t block, Rng& rng) {
  if (!shape_info(op_info(u.op).shape).has_target || rng.once_in(4))
    u = {.op = rng.pick({Op::link, Op::jmp, Op::br_eq64, Op::bri_ne32, Op::give_way, Op::fence}),
         .a = random_slot(m, rng),
         .b = random_slot(m, rng)};
  u.imm = Uop::pack_target(block, random_place(m, rng));
}

// Another one with fields that suit it; the end of a block stays one.
void replace(const Module& m, Uop& u, Rng& rng) {
  const ShapeInfo before = shape_info(op_info(u.op).shape);
  Uop other{.op = random_op(rng),
            .d = random_slot(m, rng),
            .a = random_slot(m, rng),
            .b = random_slot(m, rng),
            .c = random_slot(m, rng)};
  const ShapeInfo after = shape_info(op_info(other.op).shape);
  if (after.ends_block != before.ends_block) return;
  random_fields(other, static_cast<Slot>(m.abi.fp_state == kNoSlot ? 0 : m.abi.fp_state), rng);
  if (after.e.reads) other.e = random_slot(m, rng);
  if (other.op == Op::vector) {  // where the run of its state can be
    if (m.slot_count >= vector::kSlotCount)
      other.c = static_cast<Slot>(rng.below(m.slot_count - vector::kSlotCount + 1));
    u = other;
    return;
  }
  if (after.ends_block) {
    if (rng.coin())
      other.set_imm16(static_cast<uint16_t>(rng.below(64)));
    else
      other.aux = static_cast<uint8_t>(rng.below(4));
    other.imm = Uop::pack_target(u.block(), random_place(m, rng));
  } else if (!after.pure && !after.fp_state) {
    if (rng.coin())
      other.set_imm16(static_cast<uint16_t>(1u << rng.below(5)));
    else
      other.aux = static_cast<uint8_t>(rng.below(4));
    other.imm = rng.coin() ? 0 : random_number(rng);
  }
  u = other;
}

void change_table(Module& m, Rng& rng) {
  Block& b = m.blocks[rng.below(m.blocks.size())];
  const auto nearby = [&](uint32_t& x) { x += rng.below(5) - 2; };
  switch (rng.below(9)) {
    case 0:
      return nearby(b.first_uop);
    case 1:
      return nearby(b.uop_count);
    case 2:
      return nearby(b.insn_count);
    case 3:
      b.pc += 4 * (rng.below(5) - uint64_t{2});
      return;
    case 4:
      return nearby(b.classes[rng.below(16)]);
    case 5:
      m.uop_insn[rng.below(m.uops.size())] = static_cast<uint16_t>(random_number(rng));
      return;
    case 6:
      return nearby(m.uop_block[rng.below(m.uops.size())]);
    case 7:
      m.code.uop_at[rng.below(m.code.uop_at.size())] = random_place(m, rng);
      return;
    default:
      m.code.insn_class[rng.below(m.code.insn_class.size())] = static_cast<uint8_t>(rng.below(17));
  }
}

void mutate(Module& m, Rng& rng) {
  // Other operations with fields that suit them; then something that may be wrong.
  for (uint32_t n = rng.below(12); n > 0; --n) replace(m, m.uops[rng.below(m.uops.size())], rng);
  const uint32_t at = rng.below(m.uops.size());
  Uop& u = m.uops[at];
  switch (rng.below(8)) {
    case 0:
      return change_slot(m, u, rng);
    case 1:
      return std::swap(u, m.uops[rng.below(m.uops.size())]);
    case 2:
      u.op = random_op(rng);
      return;
    case 3:
      return change_flow(m, u, m.uop_block[at], rng);
    case 4:
      return change_table(m, rng);
    case 5:
      return;
    default:  // of several: most are not looked at
      for (uint32_t n = 10; n > 0; --n) change_field(m.uops[rng.below(m.uops.size())], rng);
  }
}

struct Count {
  uint64_t refused = 0, ran = 0;
};

// False: a backend did something else.
bool check_program(uint64_t seed, Count& count) {
  Rng rng(seed);
  Case c = random_a64_case(seed, rng.pick({1u, 3u, 64u, 64u, 70u}), rng.coin());
  mutate(c.module, rng);
  try {
    c.module = read_module(module_bytes(c.module), "fuzz");
  } catch (const Error&) {
    ++count.refused;
    return true;
  }
  ++count.ran;
  c.config.max_instructions = 200 + rng.below(400);
  const Result expected = run_case(c, {});
  std::string what = expected.trouble;
  for (const RunConfig& run : random_runs(rng, 1))
    if (what.empty()) what = check_case(c, expected, run);
  if (what.empty()) return true;
  std::fprintf(stderr, "replay: GPUSIM_SEED=%llu\n%s\n", static_cast<unsigned long long>(seed),
               what.c_str());
  return false;
}

int run(double seconds) {
  using Clock = std::chrono::steady_clock;
  std::signal(SIGPROF, on_time_out);
  const uint64_t first = seed_from_env_or_random();
  std::printf("first seed: %llu\n", static_cast<unsigned long long>(first));
  std::fflush(stdout);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  Count count;
  const bool is_replay = env("GPUSIM_SEED") != nullptr;
  // Some of each kind, however slow the machine.
  constexpr uint64_t kLeast = 20;
  for (uint64_t seed = first;; ++seed) {
    begin_program(seed);
    if (!check_program(seed, count)) return 1;
    if (is_replay) return 0;
    if (Clock::now() >= end && count.ran >= kLeast && count.refused >= kLeast) break;
  }
  std::printf("%llu modules ran on all backends, %llu were refused\n",
              static_cast<unsigned long long>(count.ran),
              static_cast<unsigned long long>(count.refused));
  return 0;
}

}  // namespace
}  // namespace gpusim::difftest

int main(int argc, char** argv) {
  return gpusim::difftest::run(argc > 1 ? std::atof(argv[1]) : 10);
}
