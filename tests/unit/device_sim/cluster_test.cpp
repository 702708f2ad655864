// Clusters of CTAs: their barrier, and memory that their CTAs see of each other.
#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/unit/device_sim/cta_machine.h"

namespace gpusim {
namespace {

enum Slots : Slot { kA, kB, kC, kD, kP, kQ, kSlots };

constexpr Uop of_cluster(CtaSync kind) {
  return {.op = Op::cta_sync, .aux = static_cast<uint8_t>(kind), .imm = BarrierFields{}.pack()};
}
constexpr Uop kArrive = of_cluster(CtaSync::kClusterArrive),
              kWait = of_cluster(CtaSync::kClusterWait);

uint64_t shared_of(uint32_t rank, uint64_t offset) {
  return CtaMachine::kCluster + (uint64_t{rank} << CtaMachine::kClusterShift) + offset;
}

// Each thread stores its number to its own CTA's memory, and behind the barrier loads that of the
// thread opposite in the next CTA of its cluster.
TEST_CASE("behind the cluster's barrier, threads see what others of the cluster stored before") {
  Module m;
  append(m, {{.op = Op::st32, .d = kA, .a = kB},
             kArrive,
             {.op = Op::addi32, .d = kA, .a = kA, .imm = 1},
             kWait,
             {.op = Op::ldu32, .d = kD, .a = kC},
             kArrive,
             kWait,
             {.op = Op::st32, .d = kA, .a = kB},
             kArrive,
             kWait,
             {.op = Op::ldu32, .d = kP, .a = kC},
             kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs())
    for (const uint32_t threads : {1u, 20u, 32u, 64u, 100u, 256u})
      for (const uint32_t cluster : {1u, 2u, 3u, 8u}) {
        CAPTURE(run.backend);
        CAPTURE(run.width);
        CAPTURE(threads);
        CAPTURE(cluster);
        const uint32_t places = 2 * cluster;
        CtaMachine machine(m, run, threads, places, 4096, cluster);
        for (uint32_t p = 0; p < places; ++p)
          for (uint32_t t = 0; t < threads; ++t) {
            const uint32_t core = machine.core(t, p);
            machine.backend().set_slot(core, kA, 10000 * p + 7 * t + 1);
            machine.backend().set_slot(core, kB, CtaMachine::kShared + 4 * t);
            machine.backend().set_slot(core, kC,
                                       shared_of((p + 1) % cluster, 4 * (threads - 1 - t)));
          }
        CHECK(machine.run().empty());
        CHECK(machine.ended == places);
        for (uint32_t p = 0; p < places; ++p)
          for (uint32_t t = 0; t < threads; ++t) {
            const uint32_t next = p - p % cluster + (p + 1) % cluster;
            const uint64_t stored = 10000 * next + 7 * (threads - 1 - t) + 1;
            REQUIRE(machine.get(kD, t, p) == stored);
            REQUIRE(machine.get(kP, t, p) == stored + 1);
          }
      }
}

// The odd CTAs of each cluster end at once, the even ones' odd threads before the barrier.
TEST_CASE("threads that ended do not keep the cluster's barrier closed") {
  Module m;
  append(m, {{.op = Op::bri_ne64, .a = kA}}, 5);
  append(m, {kArrive, kWait, {.op = Op::addi32, .d = kD, .a = kD, .imm = 5}, kEndThread});
  append(m, {kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 96, 4, 64, 4);
    for (uint32_t p = 0; p < 4; ++p)
      for (uint32_t t = 0; t < 96; ++t)
        machine.backend().set_slot(machine.core(t, p), kA, p % 2 != 0 || t % 2 != 0);
    CHECK(machine.run().empty());
    CHECK(machine.ended == 4);
    CHECK(machine.get(kD, 2, 2) == 5);
    CHECK(machine.get(kD, 3, 2) == 0);
  }
}

// Adds to a counter in the memory of the cluster's first CTA.
TEST_CASE("atomic operations reach the memory of other CTAs of the cluster") {
  Module m;
  append(m, {{.op = Op::amo_add, .d = kD, .a = kA, .b = kB, .aux = 2}, kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs())
    for (const uint32_t threads : {7u, 32u, 160u}) {
      CAPTURE(run.backend);
      CtaMachine machine(m, run, threads, 6, 64, 3);
      machine.set(kA, [](uint32_t) { return shared_of(0, 8); });
      machine.set(kB, [](uint32_t t) { return t + 1; });
      CHECK(machine.run().empty());
      for (const uint32_t place : {0u, 3u})
        CHECK(machine.backend().cta_memory(place)[8] +
                  256 * machine.backend().cta_memory(place)[9] +
                  65536 * machine.backend().cta_memory(place)[10] ==
              3 * threads * (threads + 1) / 2);
      CHECK(machine.backend().cta_memory(1)[8] == 0);
    }
}

TEST_CASE("there is nothing behind a CTA's memory, and no CTA beyond the cluster's last") {
  Module m;
  append(m, {{.op = Op::ldu32, .d = kD, .a = kA}, kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs())
    for (const uint64_t address : {shared_of(1, 64), shared_of(2, 0), shared_of(0, 61)}) {
      CAPTURE(run.backend);
      CAPTURE(address);
      CtaMachine machine(m, run, 32, 4, 64, 2);
      machine.set(kA, [&](uint32_t) { return address; });
      const std::vector<Event> events = machine.run();
      REQUIRE(events.size() == 128);
      for (const Event& e : events) CHECK(e.fault == Fault::kLoadAccess);
    }
}

TEST_CASE("a thread arrives once before it waits, and waits for nothing else") {
  for (const bool arrives_twice : {false, true}) {
    Module m;
    append(m, {kArrive, arrives_twice ? kArrive : kWait, kWait, kEndThread});
    finish_warps(m, kSlots);
    for (const CtaRun& run : cta_runs()) {
      CAPTURE(run.backend);
      CtaMachine machine(m, run, 64, 2, 64, 2);
      const std::vector<Event> events = machine.run();
      REQUIRE(events.size() == 128);
      for (const Event& e : events) CHECK(e.fault == Fault::kBarrier);
    }
  }
}

// One CTA waits for a thread of the other that stays at a barrier of its own CTA.
TEST_CASE("a cluster in which nobody can go on is stuck, and no other") {
  Module m;
  append(m, {{.op = Op::bri_ne64, .a = kA}}, 4);
  append(m, {kArrive, kWait, kEndThread});
  append(m, {{.op = Op::cta_sync, .imm = BarrierFields{.barrier = 1, .threads = 128}.pack()},
             kArrive,
             kWait,
             kEndThread});
  finish_warps(m, kSlots);
  for (const CtaRun& run : cta_runs()) {
    CAPTURE(run.backend);
    CtaMachine machine(m, run, 64, 4, 64, 2);
    for (uint32_t t = 0; t < 32; ++t) machine.backend().set_slot(machine.core(t, 1), kA, 1);
    const std::vector<Event> events = machine.run();
    REQUIRE(!events.empty());
    for (const Event& e : events) {
      CHECK(e.fault == Fault::kDeadlock);
      CHECK(e.core < machine.core(0, 2));
    }
    CHECK(machine.ended == 2);
  }
}

TEST_CASE("machines of clusters have whole ones, on one host thread") {
  Module m;
  append(m, {kEndThread});
  finish_warps(m, kSlots);
  MachineConfig config;
  config.cta_threads = 32;
  config.cores = 96;
  config.cluster_ctas = 2;
  config.memory_model = MemoryModel::kPrivate;
  for (const char* name : {"scalar", "simd"}) {
    if (std::string why; std::string(name) == "simd" && !SimdBackend::available(&why)) continue;
    CHECK_THROWS_AS(make_backend(name, {.warps = true})->configure(m, config), std::logic_error);
    MachineConfig threads = config;
    threads.cores = 128;
    threads.threads = 2;
    CHECK_THROWS_AS(make_backend(name, {.warps = true})->configure(m, threads), std::logic_error);
  }
}

}  // namespace
}  // namespace gpusim
