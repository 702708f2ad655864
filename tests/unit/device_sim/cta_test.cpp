// Barriers and memory of CTAs, atomic operations of warps, and CTAs that follow each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/unit/device_sim/cta_machine.h"

namespace gpusim {
namespace {

enum Slots : Slot { kA, kB, kC, kD, kP, kQ, kSlots };

constexpr Uop barrier(uint8_t number, uint16_t threads = 0, CtaSync kind = CtaSync::kSync) {
  return {.op = Op::cta_sync,
          .aux = static_cast<uint8_t>(kind),
          .imm = BarrierFields{.barrier = number, .threads = threads}.pack()};
}

// Each thread stores its number, and after a barrier loads that of the thread opposite.
TEST_CASE("a barrier parts what comes before from what comes after") {
  Module m;
  append(m, {{.op = Op::st32, .d = kA, .a = kB},
             barrier(3),
             {.op = Op::ldu32, .d = kD, .a = kC},
             barrier(3),
             {.op = Op::st32, .d = kD, .a = kB},
             barrier(0),
             {.op = Op::ldu32, .d = kP, .a = kC},
             kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs())
    for (const uint32_t threads : {1u, 20u, 32u, 40u, 64u, 96u, 100u, 256u, 1024u}) {
      CAPTURE(run.backend);
      CAPTURE(run.width);
      CAPTURE(threads);
      CtaMachine machine(m, run, threads, 3, 4096);
      machine.set(kA, [](uint32_t t) { return 7 * t + 1; });
      machine.set(kB, [](uint32_t t) { return CtaMachine::kShared + 4 * t; });
      machine.set(kC, [&](uint32_t t) { return CtaMachine::kShared + 4 * (threads - 1 - t); });
      CHECK(machine.run().empty());
      CHECK(machine.ended == 3);
      for (uint32_t t = 0; t < threads; ++t) {
        REQUIRE(machine.get(kD, t, 1) == 7 * (threads - 1 - t) + 1);
        REQUIRE(machine.get(kP, t, 2) == 7 * t + 1);
      }
    }
}

TEST_CASE("a barrier's reduction is of all threads that arrived") {
  for (const CtaReduce kind : {CtaReduce::kPopc, CtaReduce::kAnd, CtaReduce::kOr})
    for (const bool negated : {false, true})
      for (const uint32_t threads : {32u, 64u, 70u, 320u}) {
        Module m;
        append(m, {{.op = Op::cta_reduce,
                    .d = kD,
                    .a = kA,
                    .aux = static_cast<uint8_t>(kind),
                    .imm = BarrierFields{.negated = negated}.pack()},
                   kEndThread});
        finish_warps(m, kSlots);
        for (const CtaRun& run : cta_runs())
          for (const uint32_t period : {1u, 3u, 1000u}) {
            CAPTURE(run.backend);
            CAPTURE(threads);
            CtaMachine machine(m, run, threads);
            machine.set(kA, [&](uint32_t t) { return t % period == 0; });
            CHECK(machine.run().empty());
            uint32_t count = 0;
            for (uint32_t t = 0; t < threads; ++t) count += (t % period == 0) != negated;
            const uint32_t expected = kind == CtaReduce::kPopc  ? count
                                      : kind == CtaReduce::kAnd ? count == threads
                                                                : count != 0;
            for (uint32_t t = 0; t < threads; ++t) REQUIRE(machine.get(kD, t) == expected);
          }
      }
}

// Threads of the first 64 fill a buffer, ten times, and only arrive at "full"; the others wait
// there, read, and only arrive at "empty", where the first wait. A count of 128 covers both.
TEST_CASE("producers and consumers meet at barriers with counts") {
  Module m;
  append(m, {{.op = Op::bri_ne64, .a = kC}}, 6);
  append(m,
         {{.op = Op::st32, .d = kD, .a = kB},  // 1: a producer
          barrier(1, 128, CtaSync::kArrive),
          barrier(2, 128),
          {.op = Op::addi32, .d = kD, .a = kD, .imm = 1},
          {.op = Op::jmp}},
         11);
  append(m,
         {barrier(1, 128),
          {.op = Op::ldu32, .d = kP, .a = kB},  // 6: a consumer
          {.op = Op::add32, .d = kD, .a = kD, .b = kP},
          barrier(2, 128, CtaSync::kArrive),
          {.op = Op::jmp}},
         11);
  append(m,
         {{.op = Op::addi32, .d = kA, .a = kA, .imm = ~uint64_t{0}}, {.op = Op::bri_ne32, .a = kA}},
         0);
  append(m, {kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CAPTURE(run.width);
    CtaMachine machine(m, run, 128, 2, 256);
    machine.set(kA, [](uint32_t) { return 10; });
    machine.set(kB, [](uint32_t t) { return CtaMachine::kShared + 4 * (t % 64); });
    machine.set(kC, [](uint32_t t) { return t / 64; });
    machine.set(kD, [](uint32_t t) { return t < 64 ? t : 0; });
    CHECK(machine.run().empty());
    CHECK(machine.ended == 2);
    for (uint32_t t = 64; t < 128; ++t) CHECK(machine.get(kD, t, 1) == 10 * (t - 64) + 45);
  }
}

// The threads of all but the first warp end before the barrier.
TEST_CASE("a barrier does not wait for warps that have ended") {
  Module m;
  append(m, {{.op = Op::bri_ne64, .a = kA}}, 5);
  append(m, {barrier(0), {.op = Op::addi32, .d = kD, .a = kD, .imm = 1}, barrier(1), kEndThread});
  append(m,
         {{.op = Op::addi32, .d = kB, .a = kB, .imm = ~uint64_t{0}},  // 5: works for a while
          {.op = Op::bri_ne32, .a = kB}},
         5);
  append(m, {kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 160);
    machine.set(kA, [](uint32_t t) { return t / 32; });
    machine.set(kB, [](uint32_t t) { return 1 + t; });
    CHECK(machine.run().empty());
    CHECK(machine.ended == 1);
    for (uint32_t t = 0; t < 32; ++t) CHECK(machine.get(kD, t) == 1);
  }
}

TEST_CASE("impossible barriers are faults of the threads that ask for them") {
  Module m;
  append(m, {{.op = Op::cta_sync,
              .b = kA,
              .c = kB,
              .imm = BarrierFields{.barrier_in_slot = true, .threads_in_slot = true}.pack()},
             kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 64);
    machine.set(kA, [](uint32_t t) { return t < 32 ? 16 : 0; });
    machine.set(kB, [](uint32_t t) { return t < 32 ? 0 : 33; });
    const std::vector<Event> events = machine.run();
    REQUIRE(events.size() == 64);
    for (const Event& e : events) CHECK(e.fault == Fault::kBarrier);
  }
}

// A thread asks the host; its warp and its CTA wait for it, and go on when it comes back.
TEST_CASE("threads that the host has are waited for") {
  Module m;
  append(m, {{.op = Op::bri_ne64, .a = kA}}, 2);
  append(m, {{.op = Op::service}}, 2);
  append(m, {{.op = Op::warp,
              .d = kD,
              .a = kB,
              .aux = static_cast<uint8_t>(WarpOp::kReduceAdd),
              .imm = WarpFields{}.pack()},
             barrier(0),
             kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 96);
    machine.set(kA, [](uint32_t t) { return t == 40 ? 0 : 1; });
    machine.set(kB, [](uint32_t) { return 1; });
    const std::vector<Event> events = machine.run();
    REQUIRE(events.size() == 1);
    CHECK(events[0].core == 40);
    CHECK(events[0].status == CoreStatus::kService);
    CHECK(machine.ended == 0);
    machine.backend().set_slot(40, kB, 10);
    machine.backend().start(40, events[0].uop);
    CHECK(machine.go_on().empty());
    CHECK(machine.ended == 1);
    for (uint32_t t = 0; t < 96; ++t) CHECK(machine.get(kD, t) == (t / 32 == 1 ? 41 : 32));
  }
}

TEST_CASE("memory of a CTA is its own, and ends where it says") {
  Module m;
  append(m, {{.op = Op::amo_add, .d = kD, .a = kB, .b = kA, .aux = 2},
             barrier(0),
             {.op = Op::ldu32, .d = kP, .a = kB},
             {.op = Op::st8, .d = kA, .a = kC},
             kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs())
    for (const uint32_t threads : {32u, 64u, 192u}) {
      CAPTURE(run.backend);
      CAPTURE(threads);
      CtaMachine machine(m, run, threads, 4, 24);
      machine.set(kA, [](uint32_t) { return 1; });
      machine.set(kB, [](uint32_t) { return CtaMachine::kShared + 16; });
      machine.set(kC, [](uint32_t t) { return CtaMachine::kShared + (t == 5 ? 24 : 23); });
      std::vector<Event> events = machine.run();
      REQUIRE(events.size() == 4);
      std::ranges::sort(events, {}, &Event::core);  // seeds hold warps back for whole slices
      for (uint32_t place = 0; place < 4; ++place) {
        CHECK(events[place].core == machine.core(5, place));
        CHECK(events[place].fault == Fault::kStoreAccess);
        CHECK(events[place].address == CtaMachine::kShared + 24);
        CHECK(machine.get(kP, 0, place) == threads);
        CHECK(machine.backend().cta_memory(place)[23] == 1);
      }
    }
}

TEST_CASE("the next CTA of a place begins as new") {
  Module m;
  append(m, {{.op = Op::add32, .d = kD, .a = kA, .b = kB}, barrier(0), kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs())
    for (const uint32_t threads : {1u, 2u, 16u, 64u, 100u}) {
      CAPTURE(run.backend);
      CAPTURE(threads);
      const uint32_t places = threads <= 2 ? 3 : 2;
      CtaMachine machine(m, run, threads, places);
      Backend& b = machine.backend();
      for (uint32_t next = 0; next < 20; ++next) {
        const uint32_t place = next % places;
        b.set_cta_slots(place, kA, {.value = 1000 * next});
        b.set_cta_slots(place, kB, {.value = 5, .step = 3});
        b.start_cta(place, 0);
        CHECK(machine.go_on().empty());
        CHECK(machine.ended == next + 1);
        for (uint32_t t = 0; t < threads; ++t)
          REQUIRE(machine.get(kD, t, place) == 1000 * next + 5 + 3 * t);
      }
    }
}

// --- atomic operations

uint64_t stored(const CtaRun& run, const Uop& amo, uint64_t first,
                const std::vector<uint64_t>& with, std::vector<uint64_t>* found = nullptr) {
  Module m;
  append(m, {amo, {.op = Op::ld64, .d = kP, .a = kB}, kEndThread});
  finish_warps(m, kSlots);
  const auto threads = static_cast<uint32_t>(with.size());
  CtaMachine machine(m, run, threads, 1, 64);
  std::memcpy(machine.backend().cta_memory(0).data() + 8, &first, 8);
  machine.set(kA, [&](uint32_t t) { return with[t]; });
  machine.set(kB, [](uint32_t) { return CtaMachine::kShared + 8; });
  CHECK(machine.run().empty());
  if (found)
    for (uint32_t t = 0; t < threads; ++t) found->push_back(machine.get(kD, t));
  uint64_t last;
  std::memcpy(&last, machine.backend().cta_memory(0).data() + 8, 8);
  return last;
}
Uop amo_row(Op op, uint8_t aux) { return {.op = op, .d = kD, .a = kB, .b = kA, .aux = aux}; }

TEST_CASE("lanes add floats one after the other, rounded each time") {
  std::mt19937 random(9);
  for (const CtaRun& run : cta_runs()) {
    if (run.seed != 0) continue;  // lanes are held apart on purpose
    CAPTURE(run.backend);
    for (int round = 0; round < 20; ++round) {
      std::vector<uint64_t> singles, doubles;
      float sum = 1.5f;
      double wide = 1.5;
      for (int i = 0; i < 32; ++i) {
        const float x =
            std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 50);
        singles.push_back(std::bit_cast<uint32_t>(x) | uint64_t{random()} << 32);
        doubles.push_back(std::bit_cast<uint64_t>(double{x} / 3));
        sum += x;
        wide += double{x} / 3;
      }
      std::vector<uint64_t> found;
      CHECK(uint32_t(stored(run, amo_row(Op::amo_fadd, uint8_t(FloatWord::kF32)),
                            std::bit_cast<uint32_t>(1.5f), singles, &found)) ==
            std::bit_cast<uint32_t>(sum));
      CHECK(found[0] == std::bit_cast<uint32_t>(1.5f));
      CHECK(stored(run, amo_row(Op::amo_fadd, uint8_t(FloatWord::kF64)),
                   std::bit_cast<uint64_t>(1.5), doubles) == std::bit_cast<uint64_t>(wide));
    }
  }
}

TEST_CASE("float sums flush where asked, and give the NaNs of such machines") {
  const CtaRun run;
  const auto sum = [&](FloatWord word, uint64_t x, uint64_t y) {
    const uint64_t all = stored(run, amo_row(Op::amo_fadd, uint8_t(word)), x, {y});
    return (uint8_t(word) & 3) == 3 ? all
                                    : all & (~uint64_t{0} >> (64 - (8 << (uint8_t(word) & 3))));
  };
  CHECK(sum(FloatWord::kF32, 1, 1) == 2);  // subnormal
  CHECK(sum(FloatWord::kF32Flushed, 0x80000001, 0x80000001) == 0x80000000);
  CHECK(sum(FloatWord::kF32Flushed, 0x00800001, 0x80800000) == 0);
  CHECK(sum(FloatWord::kF32, 0x7f800000, 0xff800000) == 0x7fffffff);  // inf - inf
  CHECK(sum(FloatWord::kF32, 0xffc12345, 0x3f800000) == 0x7fffffff);
  CHECK(sum(FloatWord::kF64, 0x7ff0000000000000, 0xfff0000000000000) == 0xfff8000000000000);
  CHECK(sum(FloatWord::kF16, 0x3c00, 0x4000) == 0x4200);  // 1 + 2
  CHECK(sum(FloatWord::kF16, 0x7c00, 0xfc00) == 0x7fff);
  CHECK(sum(FloatWord::kBf16, 0x3f80, 0x4000) == 0x4040);
  CHECK(sum(FloatWord::kF16x2, 0x40003c00, 0x3c003c00) == 0x42004000);
  CHECK(sum(FloatWord::kBf16x2, 0x40003f80, 0x3f803f80) == 0x40404000);
}

TEST_CASE("increments and decrements wrap at the operand") {
  for (const CtaRun& run : cta_runs()) {
    if (run.seed != 0) continue;
    CAPTURE(run.backend);
    const std::vector<uint64_t> more(40, 6), limit(32, 6);
    std::vector<uint64_t> found;
    CHECK(stored(run, amo_row(Op::amo_inc, 2), 5, more) == 3);
    CHECK(stored(run, amo_row(Op::amo_dec, 2), 9, more) == 2);
    CHECK(stored(run, amo_row(Op::amo_inc, 2), 5, limit, &found) == 2);  // 5 6 0 1 …
    CHECK(found[0] == 5);
    CHECK(found[2] == 0);
    found.clear();
    CHECK(stored(run, amo_row(Op::amo_dec, 2), 9, limit, &found) == 3);  // 9 6 5 … 0 6 …
    CHECK(found[1] == 6);
    CHECK(stored(run, amo_row(Op::amo_inc, 3), ~uint64_t{0}, {5}) == 0);
    CHECK(stored(run, amo_row(Op::amo_dec, 3), 0, {uint64_t{1} << 40}) == uint64_t{1} << 40);
  }
}

TEST_CASE("machines of CTAs are refused where they make no sense") {
  Module m;
  append(m, {kEndThread});
  finish_warps(m, kSlots);
  CHECK_THROWS_WITH_AS(CtaMachine(m, {}, 1025), "a CTA has at most 1024 threads, not 1025",
                       std::runtime_error);
  if (std::string why; SimdBackend::available(&why))
    CHECK_THROWS_AS(CtaMachine(m, {.backend = "simd", .width = 16}, 64), std::runtime_error);
  m.warp_size = 0;
  for (const CtaRun& run : cta_runs()) CHECK_THROWS_AS(CtaMachine(m, run, 64), std::runtime_error);
}

}  // namespace
}  // namespace gpusim
