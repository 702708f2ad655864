// A chip against sums made by hand, and against queueing theory.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "device_sim/base/error.h"
#include "host/chip/builtin_chips.h"
#include "host/chip/chip_model.h"
#include "host/chip/sampling.h"

namespace gpusim::host::chip {
namespace {

const ChipShape& chip_named(const std::string& name) {
  for (const ChipShape& c : builtin_chips())
    if (c.name == name) return c;
  FAIL("no chip ", name);
  return builtin_chips().front();
}

// Blocks of one instruction with one access each, at 4 * kind; at 12 one without an access.
struct Stream {
  Module module;
  std::vector<BlockSites> sites;
  MachineConfig config;
  std::vector<std::vector<uint64_t>> words;
  ChipShape shape = chip_named("tutorial-4");

  explicit Stream(uint32_t cores) : words(cores) {
    config.cores = cores;
    config.linear_size = uint64_t{1} << 32;
    config.window_base = uint64_t{1} << 40;
    module.isa = "aarch64";
    module.code.insn_class.assign(64, static_cast<uint8_t>(InsnClass::kOffChipMemory));
    for (uint32_t i = 0; i < 4; ++i) {
      module.blocks.push_back({.pc = uint64_t{4} * i, .insn_count = 1});
      BlockSites s{.pc = uint64_t{4} * i, .insn_count = 1, .accesses = {}};
      if (i < 3) s.accesses.push_back({0, static_cast<SiteKind>(i), 8, /*unit=*/i});
      sites.push_back(s);
    }
  }
  void access(uint32_t core, SiteKind kind, uint64_t address) {
    words[core].push_back(kBlockMark | static_cast<uint64_t>(kind));
    words[core].push_back(address);
  }
  void load(uint32_t core, uint64_t address) { access(core, SiteKind::kLoad, address); }
  void store(uint32_t core, uint64_t address) { access(core, SiteKind::kStore, address); }
  void work(uint32_t core, uint32_t instructions) {
    for (uint32_t i = 0; i < instructions; ++i) words[core].push_back(kBlockMark | 3);
  }
  std::unique_ptr<ChipModel> make() {
    return std::make_unique<ChipModel>(shape, module, config, 8, "");
  }
  void feed(ChipModel& chip) {
    chip.settle();
    for (uint32_t core = 0; core < words.size(); ++core) {
      if (!words[core].empty()) chip.read(core, words[core], sites);
      words[core].clear();
    }
  }
  ChipResult run() {
    const auto chip = make();
    feed(*chip);
    chip->after_slice(sites, {});
    return chip->finish(sites);
  }
};

constexpr uint64_t kLine = 64;
double part(const ChipResult& r, uint32_t core, Part p) {
  return cycles_of(r.totals.cores[core][static_cast<size_t>(p)]);
}

}  // namespace

TEST_CASE("single keys of a chip's description are changed") {
  const ChipShape chip = find_chip(
      "mesh-1024,shared.size=1MiB,memory.latency_cycles=200,memory.channels=2,memory.tiles=[3,7],"
      "cores.cycles.other=2.5,network.topology=torus,l1_instruction=null,l2.size=32K,l2.ways=8");
  CHECK(chip.name == "mesh-1024");
  CHECK(chip.shared.cache.size_bytes == 1 << 20);
  CHECK(chip.memory.latency_cycles == 200);
  CHECK(chip.memory.tiles == std::vector<uint32_t>{3, 7});
  CHECK(chip.cores.cycles[static_cast<size_t>(InsnClass::kOther)] == 2.5);
  CHECK(chip.network.topology == Topology::kTorus);
  CHECK(!chip.l1_instruction);
  REQUIRE(chip.l2);
  CHECK(chip.l2->size_bytes == 32 << 10);
  CHECK(chip.changes.size() == 9);
  CHECK(chip.sources.at("shared.size") == "changed by --chip: 1MiB");
  // All else is as it was.
  CHECK(chip.cores.store_buffer == chip_named("mesh-1024").cores.store_buffer);
  CHECK(find_chip("mempool-256,network.levels.1.cycles=9").network.levels[1].cycles == 9);
}

TEST_CASE("changes of a chip that mean nothing are refused by name") {
  const std::pair<const char*, const char*> wrong[] = {
      {"mesh-1024,shared.sise=1M", "unknown key \"sise\" (did you mean size?)"},
      {"mesh-1024,shared.sise=1M",
       "there are: clock_hz, coherence, cycles_per_request, hash, hit_cycles, interleave_bytes, "
       "kind, sharers, size, slices, ways"},
      {"mesh-1024,caches.l2.size=1M", "unknown key \"caches\""},
      {"mesh-1024,memory.latency_cycles=much", "mesh-1024.memory: \"latency_cycles\" must be"},
      {"mesh-1024,memory.latency_cycles=-1", "\"latency_cycles\" is -1"},
      {"mesh-1024,clock_hz=1e308,memory.clock_hz=1", "\"clock_hz\" is 1e+308; at most 1e+12 Hz"},
      {"mesh-1024,memory.clock_hz=0.5", "memory: \"clock_hz\" is 0.5"},
      {"mesh-1024,network.clock_hz=2e12", "network: \"clock_hz\" is 2e+12; at most 1e+12 Hz"},
      {"mesh-1024,memory.latency_cycles=1e7", "\"latency_cycles\" must be at most 1000000"},
      {"mesh-1024,memory.clock_hz=1e6,memory.latency_cycles=10000",
       "memory: \"latency_cycles\" at a \"clock_hz\" of 1e+06 makes 1e+07 cycles of the chip's "
       "1e+09 Hz; at most 1000000"},
      {"mesh-1024,memory.clock_hz=1,memory.latency_cycles=0", "memory: \"bytes_per_cycle\" at a"},
      {"mesh-1024,memory.clock_hz=1e6,memory.pages=open,memory.row_hit_cycles=10000",
       "\"row_hit_cycles\" at a"},
      {"mesh-1024,shared.clock_hz=1", "shared: \"hit_cycles\" at a"},
      {"mesh-1024,shared.clock_hz=1,shared.hit_cycles=0", "shared: \"cycles_per_request\" at a"},
      {"mesh-1024,network.clock_hz=1e4,network.link_cycles=100", "network: \"link_cycles\" at a"},
      {"mesh-1024,network.clock_hz=1", "network: \"router_cycles\" at a"},
      {"mesh-1024,network.clock_hz=1,network.router_cycles=0,network.link_cycles=0",
       "network: \"flit_bytes\" at a"},
      {"mempool-256,network.clock_hz=1e4,network.router_cycles=0,network.link_cycles=0,"
       "network.levels.0.ports=0.01",
       "network: \"levels.ports\" at a"},
      {"mesh-1024,clock_hz.x=1", "there is no key \"clock_hz.x\": \"clock_hz\" is 1000000000"},
      {"mesh-1024,memory.tiles.16=1", "is no number of the list's 16 elements"},
      {"mesh-1024,memory.channels=2", "\"tiles\" must have 2 numbers"},
      {"mesh-1024,l2=null", "the description does not have that key"},
      {"mesh-1024,shared..size=1M", "a part of it is empty"},
      {"mesh-1024,shared.size", "is no KEY=VALUE"},
      {"mesh-1024,", "is no KEY=VALUE"},
      {"mesh-1024,shared.size=", "is no KEY=VALUE"},
      {"mesh-1024,cores.latency.other=0.5", "cores.latency: \"other\" is 0.5"},
      {"mesh-1024,cores.latency.other=1001", "\"other\" must be at most 1000"},
      {"mesh-1024,cores.latency.off_chip_memory=3",
       "unknown key \"off_chip_memory\"; there are: control_flow, double_arithmetic"},
      {"mesh-1024,cores.latency.off_chip_memory=3", "\"l1_data.hit_cycles\" says it"},
      {"mesh-1024,cores.latency=3", "cores.latency: an object is expected"},
      {"shared.size=1M", "expected NAME or FILE"},
      {"mesh-1024,shared.ways=4,shared.ways=2", "shared.ways is given twice"},
      {"mesh-1023,shared.ways=4", "chips are bus-8, et-soc1, mempool-256, mesh-1024, tutorial-4"},
  };
  for (const auto& [option, says] : wrong) {
    CAPTURE(option);
    std::string message;
    try {
      find_chip(option);
    } catch (const Error& error) {
      message = error.what();
    }
    CHECK_MESSAGE(message.find(says) != std::string::npos, message);
    CHECK_MESSAGE(message.starts_with("--chip " + std::string(option) + ": "), message);
  }
}

TEST_CASE("a timeline keeps all time, in a bounded size") {
  std::mt19937_64 random(1);
  constexpr uint32_t kCores = 7;
  constexpr size_t kPieces = 16, kRows = 3;
  ChipTimeline timeline(kCores, kPieces, kRows);
  std::array<std::array<Ticks, kPhases>, kCores> sums{};
  for (int i = 0; i < 2000; ++i) {
    const auto core = static_cast<uint32_t>(random() % kCores);
    const auto phase = random() % kPhases;
    const Ticks length = random() % (i % 100 == 0 ? 3'000'000 : 20'000);
    timeline.add(core, static_cast<Phase>(phase), length);
    sums[core][phase] += length;
  }
  CHECK(timeline.shown() == std::vector<uint32_t>{0, 2, 4});
  CHECK(timeline.all().size() <= kPieces);
  CHECK(timeline.all().size() > kPieces / 2);
  for (size_t phase = 0; phase < kPhases; ++phase) {
    Ticks all = 0, of_pieces = 0;
    for (const auto& core : sums) all += core[phase];
    for (const auto& piece : timeline.all()) of_pieces += piece[phase];
    CHECK(of_pieces == all);
    for (size_t row = 0; row < kRows; ++row) {
      Ticks of_row = 0;
      for (const auto& piece : timeline.row(row)) of_row += piece[phase];
      CHECK(of_row == sums[timeline.shown()[row]][phase]);
    }
  }
  // Pieces are full up to the last one.
  for (size_t row = 0; row < kRows; ++row)
    for (size_t i = 0; i + 1 < timeline.row(row).size(); ++i) {
      Ticks sum = 0;
      for (const Ticks t : timeline.row(row)[i]) sum += t;
      CHECK(sum == timeline.piece_length());
    }
}

TEST_CASE("a timeline of a time near 64 bits ends") {
  ChipTimeline timeline(1, 16, 1);
  timeline.add(0, Phase{}, Ticks{1} << 63);
  CHECK(timeline.all().size() <= 16);
  CHECK(timeline.all().back()[0] != 0);
}

TEST_CASE("a timeline says when a core computed and when it waited for memory") {
  Stream s(2);
  s.work(0, 100);
  s.load(0, 0);
  s.work(0, 50);
  s.work(1, 40);
  const auto chip = s.make();
  chip->record_timeline();
  s.feed(*chip);
  chip->after_slice(s.sites, {});
  const ChipResult r = chip->finish(s.sites);
  REQUIRE(r.timeline);
  REQUIRE(r.timeline->row(0).size() > 8);
  const auto at = [&](size_t piece, Part p) {
    return cycles_of(r.timeline->row(0)[piece][static_cast<size_t>(p)]);
  };
  REQUIRE(r.timeline->piece_length() == 16 * kCycle);
  CHECK(at(0, Part::kCompute) == 16);
  CHECK(at(5, Part::kCompute) == 16);
  CHECK(at(6, Part::kCompute) == 5);  // the load, too
  CHECK(at(9, Part::kMemory) == 16);
  CHECK(r.timeline->row(1).size() == 3);
}

TEST_CASE("tiles of an innermost cluster have no link between them") {
  NetworkShape shape;
  shape.topology = Topology::kHierarchical;
  shape.columns = 4;
  shape.levels = {{.tiles = 2, .cycles = 3}, {.tiles = 4, .cycles = 7}};
  Network network(shape);
  CHECK(network.send(0, 1, 0, 0, 0).arrival == ticks(3));
  CHECK(network.send(2, 3, 24, 0, 0).arrival == ticks(4));  // two flits
  CHECK(network.send(0, 1, 0, 0, 0).arrival == network.zero_load(0, 1, 0));
  CHECK(network.flit_hops() == 0);
  std::vector<Ticks> arrivals;
  network.broadcast(0, 0, 0, 0, arrivals);
  CHECK(arrivals[0] == 0);
  CHECK(arrivals[1] == ticks(3));
  CHECK(arrivals[2] == arrivals[3]);
  CHECK(arrivals[2] >= ticks(7));
}

TEST_CASE("cycles of a sampled run, with how sure they are") {
  CHECK(parse_sampling("detail=10K,skip=2M").detail == 10'000);
  CHECK(parse_sampling("detail=10K,skip=2M").skip == 2'000'000);
  for (const char* bad : {"", "detail=1", "skip=1,detail=1", "detail=0,skip=1", "detail=1,skip=x",
                          "detail=1,skip=1T", "detail=1,skip=99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_sampling(bad), Error);
  }
  CHECK(estimate_cycles({}, 100).pieces == 0);
  CHECK(estimate_cycles({{10, 30}}, 100).cycles == 300);
  CHECK(estimate_cycles({{10, 30}}, 100).uncertainty < 0);
  // By hand: 2.5 cycles per instruction; rests -5 and 5, so 5 sqrt(2) / sqrt(2) of a mean piece of
  // 10 instructions, 12.706 for one degree of freedom, and 80 % of the run unseen.
  const SampledCycles two = estimate_cycles({{10, 20}, {10, 30}}, 100);
  CHECK(two.cycles == doctest::Approx(250));
  CHECK(two.uncertainty == doctest::Approx(12.706 * 5 / 10 * std::sqrt(0.8) * 100));
  CHECK(estimate_cycles({{10, 20}, {10, 20}}, 100).uncertainty == 0);
  CHECK(estimate_cycles({{10, 20}, {10, 30}}, 20).uncertainty == 0);  // all of it
  // The interval holds the truth in 95 % of cases.
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> spread(1, 0.3);
  int covered = 0;
  constexpr int kRuns = 1000, kAll = 400, kEvery = 20;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<DetailPiece> pieces;
    double truth = 0;
    for (int i = 0; i < kAll; ++i) {
      const double cycles = 100 * spread(random);
      truth += cycles;
      if (i % kEvery == 0) pieces.push_back({100, cycles});
    }
    const SampledCycles s = estimate_cycles(pieces, uint64_t{100} * kAll);
    covered += std::abs(s.cycles - truth) <= s.uncertainty;
  }
  CHECK(covered > 0.92 * kRuns);
  CHECK(covered < 0.98 * kRuns);
}

TEST_CASE("without load, messages take what they take alone, and are counted as ever") {
  std::mt19937_64 random(5);
  for (const Topology topology : {Topology::kMesh, Topology::kTorus, Topology::kRing,
                                  Topology::kCrossbar, Topology::kBus, Topology::kHierarchical}) {
    NetworkShape shape;
    shape.topology = topology;
    shape.columns = 5;
    shape.rows = 4;
    shape.router_cycles = 2;
    if (topology == Topology::kHierarchical)
      shape.levels = {{.tiles = 5, .cycles = 3}, {.tiles = 20, .cycles = 7}};
    Network ignoring(shape);
    ignoring.ignore_load(true);
    Network alone(shape);
    Ticks now = 0;
    std::vector<Ticks> x, y;
    for (int i = 0; i < 500; ++i) {
      now += ticks(1000);
      const auto from = static_cast<uint32_t>(random() % 20),
                 to = static_cast<uint32_t>(random() % 20);
      CHECK(ignoring.send(from, to, 64, now, now).arrival ==
            alone.send(from, to, 64, now, now).arrival);
      ignoring.send(from, to, 64, now, now);  // meets nobody, either
      alone.send(from, to, 64, now + ticks(500), now);
      now += ticks(1000);
      ignoring.broadcast(from, 0, now, now, x);
      alone.broadcast(from, 0, now, now, y);
      if (topology == Topology::kMesh) CHECK(x[to] <= y[to]);
    }
    CHECK(ignoring.messages() == alone.messages());
    CHECK(ignoring.flit_hops() == alone.flit_hops());
    for (uint32_t a = 0; a < 20; ++a)
      for (uint32_t b = 0; b < 20; ++b)
        CHECK(ignoring.bytes_between(a, b) == alone.bytes_between(a, b));
    for (uint32_t link = 0; link < ignoring.link_count(); ++link) CHECK(ignoring.used(link) == 0);
  }
}

TEST_CASE("a miss costs the sum of what lies on its way") {
  // Slice 0 and memory are on the core's tile: instruction 1, slice 10, memory 64 / 16 + 100.
  Stream near(1);
  near.load(0, 0);
  CHECK(cycles_of(near.run().totals.time) == 1 + 10 + 104);
  // The next ones hit.
  near.load(0, 0);
  near.load(0, 8);
  near.load(0, 56);
  CHECK(cycles_of(near.run().totals.time) == 115 + 2 - 0);
  // Slice 1 is elsewhere. 8 bytes of header are one flit: 2 + 1; with a line 5 flits: 2 + 1 + 4.
  Stream far(1);
  far.load(0, kLine);
  const ChipResult r = far.run();
  CHECK(cycles_of(r.totals.time) == 1 + 3 + 10 + 3 + 104 + 7 + 7);
  CHECK(part(r, 0, Part::kCompute) == 1);
  CHECK(part(r, 0, Part::kNetwork) == 20);
  CHECK(part(r, 0, Part::kShared) == 10);
  CHECK(part(r, 0, Part::kMemory) == 104);
  CHECK(r.totals.memory.memory_reads == 1);
  CHECK(r.off_chip_of[0] == 1);
}

TEST_CASE("chains of misses cost the configured latency exactly") {
  constexpr uint32_t kLoads = 1000;
  Stream s(1);
  for (uint32_t i = 0; i < kLoads; ++i) s.load(0, uint64_t{i} * 4 * kLine);  // all of slice 0
  CHECK(cycles_of(s.run().totals.time) == kLoads * 115.0);
}

TEST_CASE("long hits of a core that never misses are hits") {
  constexpr uint32_t kLoads = 1000;
  constexpr double kHit = 1e5;  // more ticks, in all, than 32 bits hold
  Stream s(1);
  s.shape.l1_data->hit_cycles = kHit;
  for (uint32_t i = 0; i <= kLoads; ++i) s.load(0, 0);
  const ChipResult r = s.run();
  CHECK(part(r, 0, Part::kL1) == kLoads * (kHit - 1));
  CHECK(part(r, 0, Part::kCompute) == kLoads + 1);
}

TEST_CASE("a schedule waits for what instructions read, and what is left goes on behind it") {
  using Insn = Pipeline::Insn;
  // r1 = load; r2 = r1 * r3, 5 cycles; r4 = 1 cycle.
  const Pipeline::Code code = {Insn{kCycle, 0, {0}, {{1, true, 3 * kCycle}}},
                               Insn{kCycle, 1, {1, 3}, {{2, false, 5 * kCycle}}},
                               Insn{kCycle, 2, {5}, {{4, false, kCycle}}}};
  const Pipeline::Schedule alone = Pipeline::schedule(code, {}, 0);
  const auto begin = [](const Pipeline::Schedule& s) {
    std::vector<Ticks> cycles;
    for (const Point& p : s.begin) cycles.push_back(p.at / kCycle);
    return cycles;
  };
  CHECK(begin(alone) == std::vector<Ticks>{0, 3, 4, 5});
  CHECK(alone.begin.back().stalls.l1 == 2 * kCycle);
  CHECK(alone.begin.back().stalls.dependence == 0);
  CHECK(alone.left == std::vector<Underway>{{2, false, 3 * kCycle}});
  // r3 and r0 come from before: of the later one the wait is.
  const std::vector<Underway> before = {{0, true, 2 * kCycle}, {3, false, 9 * kCycle}};
  const Pipeline::Schedule behind = Pipeline::schedule(code, before, 0);
  CHECK(begin(behind) == std::vector<Ticks>{2, 9, 10, 11});
  CHECK(behind.begin.back().stalls.l1 == 2 * kCycle);
  CHECK(behind.begin.back().stalls.dependence == 6 * kCycle);
  // A jump between the two took some of that.
  CHECK(begin(Pipeline::schedule(code, before, 4 * kCycle)) == std::vector<Ticks>{0, 5, 6, 7});
  // What is written again is no longer waited for.
  const Pipeline::Code again = {Insn{kCycle, 0, {}, {{3, false, kCycle}}},
                                Insn{kCycle, 1, {3}, {}}};
  CHECK(begin(Pipeline::schedule(again, before, 0)) == std::vector<Ticks>{0, 1, 2});
  // Over many ends of blocks nothing is under way: there would be states without end.
  std::vector<Underway> long_one = {{3, false, 1000 * kCycle}};
  for (int ends = 2; ends <= Pipeline::kMostEnds; ++ends)
    CHECK((long_one = Pipeline::schedule({}, long_one, 0).left).size() == 1);
  CHECK(Pipeline::schedule({}, long_one, 0).left.empty());
}

TEST_CASE("streams of all cores get the memory's bandwidth") {
  constexpr uint32_t kLines = 4000;
  Stream s(4);
  s.shape.cores.outstanding_loads = 16;
  for (uint32_t i = 0; i < kLines; ++i)
    for (uint32_t core = 0; core < 4; ++core) s.load(core, (uint64_t{core} << 24) + i * kLine);
  const ChipResult r = s.run();
  const double bytes = 4.0 * kLines * kLine;
  CHECK(r.totals.memory.memory_reads == 4 * kLines);
  CHECK(bytes / cycles_of(r.totals.time) == doctest::Approx(16).epsilon(0.02));
  CHECK(cycles_of(r.totals.channels[0]) == bytes / 16);
  double channels = 0;
  for (const Sample& sample : r.samples) {
    CHECK(sample.channels <= 1);
    CHECK(sample.busiest_link <= 1);
    channels += sample.channels * cycles_of(sample.end - sample.begin);
  }
  CHECK(channels == doctest::Approx(bytes / 16).epsilon(0.02));
}

TEST_CASE("a line that another core wrote comes from there") {
  Stream s(2);
  s.store(0, 0);
  s.work(1, 2000);
  s.load(1, 0);
  const ChipResult r = s.run();
  CHECK(r.totals.memory.forwards == 1);
  CHECK(r.totals.memory.memory_reads == 1);
  // Request to slice 0: 3, slice 10; to the owner on the same tile: 0, its cache 1, line to core
  // 1: 7.
  CHECK(cycles_of(r.clocks[1]) == 2001 + 3 + 10 + 1 + 7);
  CHECK(part(r, 1, Part::kCoherence) == 8);
}

TEST_CASE("parts of a chip may have a clock of their own") {
  const ChipShape plain = find_chip("tutorial-4");
  const ChipShape slow = find_chip(
      fmt::format("tutorial-4,memory.clock_hz={0},network.clock_hz={0},shared.clock_hz={0}",
                  plain.clock_hz / 2));
  CHECK(slow.memory.latency_cycles == 2 * plain.memory.latency_cycles);
  CHECK(slow.memory.bytes_per_cycle == plain.memory.bytes_per_cycle / 2);
  CHECK(slow.shared.cache.hit_cycles == 2 * plain.shared.cache.hit_cycles);
  CHECK(slow.clock_hz == plain.clock_hz);
  // Half as fast, to the last flit.
  for (const char* grid : {"tutorial-4", "mesh-1024", "mempool-256"}) {
    const ChipShape whole = find_chip(grid);
    const ChipShape half =
        find_chip(fmt::format("{},network.clock_hz={}", grid, whole.clock_hz / 2));
    Network fast(whole.network), slower(half.network);
    const uint32_t to = fast.tiles() - 1;
    Ticks at = ticks(1000);
    CHECK(slower.zero_load(0, to, 64) == 2 * fast.zero_load(0, to, 64));
    CHECK(slower.send(0, to, 64, at, at).arrival - at == slower.zero_load(0, to, 64));
    // The next message follows when the first one's flits are through.
    const Ticks first = fast.send(0, to, 64, at, at).arrival;
    const Ticks second = fast.send(0, to, 64, at, at).arrival;
    CHECK(slower.send(0, to, 64, at, at).arrival - at - slower.zero_load(0, to, 64) ==
          2 * (second - first));
  }
}

TEST_CASE("a part's clock may be as fast as to have figures beyond the limit of cycles") {
  const ChipShape chip = find_chip("tutorial-4,memory.clock_hz=1e12,memory.latency_cycles=2e6");
  CHECK(chip.memory.latency_cycles == 2e6 * chip.clock_hz / 1e12);
}

TEST_CASE("slices by a hash of the address") {
  ChipShape shape = find_chip("mesh-1024,shared.hash=xor");
  const MemorySystem hashed(shape, [](uint32_t, uint64_t, bool) {});
  shape.shared.folds_address = false;
  const MemorySystem plain(shape, [](uint32_t, uint64_t, bool) {});
  const uint32_t slices = shape.shared.slices;
  std::set<uint32_t> of_row, of_stride, of_plain_stride;
  for (uint64_t i = 0; i < slices; ++i) {
    of_row.insert(hashed.slice_of(uint64_t{slices} * 37 + i));
    of_stride.insert(hashed.slice_of(i * slices));
    of_plain_stride.insert(plain.slice_of(i * slices));
  }
  CHECK(of_row.size() == slices);
  CHECK(of_stride.size() == slices);
  CHECK(of_plain_stride.size() == 1);
  CHECK_THROWS_WITH_AS(find_chip("bus-8,shared.slices=3,shared.hash=xor"),
                       doctest::Contains("power of two"), Error);
}

TEST_CASE("readers of a line that nobody has alone do not wait for each other") {
  Stream s(4);
  s.load(0, 0);
  s.work(1, 2000);
  s.load(1, 0);  // from core 0: now two have it
  for (const uint32_t core : {2u, 3u}) {
    s.work(core, 4000);
    s.load(core, 0);
  }
  const ChipResult r = s.run();
  CHECK(r.totals.memory.forwards == 1);
  // Request: 3, slice: 10, line: 7; the second request comes to the slice's tile a cycle later.
  CHECK(cycles_of(r.clocks[2]) == 4001 + 3 + 10 + 7);
  CHECK(cycles_of(r.clocks[3]) == 4001 + 4 + 10 + 7);
  CHECK(part(r, 3, Part::kCoherence) == 0);
}

TEST_CASE("a write tells all who have the line") {
  Stream s(4);
  for (uint32_t core = 0; core < 4; ++core) s.load(core, 0);
  for (uint32_t core = 0; core < 4; ++core) s.work(core, 3000);
  s.store(0, 0);
  for (uint32_t core = 1; core < 4; ++core) s.work(core, 3000);
  for (uint32_t core = 1; core < 4; ++core) s.load(core, 0);
  const ChipResult r = s.run();
  CHECK(r.totals.memory.invalidations == 3);
  CHECK(r.totals.misses[static_cast<size_t>(Miss::kSharing)] == 3);
  CHECK(r.totals.misses[static_cast<size_t>(Miss::kFalseSharing)] == 0);
  CHECK(r.totals.misses[static_cast<size_t>(Miss::kCold)] == 4);
  s = Stream(4);
  s.shape.shared.sharers = 2;  // the third one is told like everybody
  for (uint32_t core = 0; core < 4; ++core) s.load(core, 0);
  for (uint32_t core = 0; core < 4; ++core) s.work(core, 3000);
  s.store(0, 0);
  CHECK(s.run().totals.memory.broadcasts == 1);
}

TEST_CASE("false sharing is told from sharing by the words") {
  Stream s(2);
  constexpr uint32_t kRounds = 50;
  for (uint32_t i = 0; i < kRounds; ++i) {
    s.store(0, 0);
    s.work(0, 500);
    s.work(1, 250);
    s.store(1, 8);
    s.work(1, 250);
  }
  const ChipResult r = s.run();
  CHECK(r.totals.misses[static_cast<size_t>(Miss::kSharing)] == 0);
  CHECK(r.totals.misses[static_cast<size_t>(Miss::kFalseSharing)] > kRounds);
  const auto pair = *r.totals.false_sharing.begin();
  CHECK(pair.first == std::pair<uint32_t, uint32_t>{1, 1});  // the store and the store
}

TEST_CASE("what a cache cannot hold is missed again") {
  Stream s(1);
  // Three lines of one set of two ways: LRU misses each time.
  for (uint32_t i = 0; i < 9; ++i) s.load(0, uint64_t{i % 3} * 2048);
  const ChipResult r = s.run();
  CHECK(r.totals.misses[static_cast<size_t>(Miss::kCold)] == 3);
  CHECK(r.totals.misses[static_cast<size_t>(Miss::kCapacity)] == 6);
}

TEST_CASE("from a barrier all go on behind the last one") {
  Stream s(2);
  const auto chip = s.make();
  s.work(0, 100);
  s.work(1, 5000);
  s.feed(*chip);
  chip->release(0, 0x1000, 0);
  chip->release(1, 0x1000, 0);
  chip->after_slice(s.sites, {});
  s.work(0, 20);  // the looks of the one that waited: left out
  s.work(1, 5);
  s.feed(*chip);
  chip->acquire(0, 0x1000, 0);
  chip->acquire(1, 0x1000, 0);
  chip->after_slice(s.sites, {});
  s.work(0, 10);
  s.work(1, 10);
  s.feed(*chip);
  chip->after_slice(s.sites, {});
  const ChipResult r = chip->finish(s.sites);
  // Core 1 comes at 5000 and takes the word's line from core 0, on slice 0: 3 + 10 + 1 + 7.
  CHECK(cycles_of(r.clocks[1]) == 5000 + 21 + 10);
  CHECK(cycles_of(r.clocks[0]) == 5000 + 21 + 10);
  CHECK(part(r, 0, Part::kWaiting) ==
        5021 - 100 - 114);  // its own atomic operation came from memory
  CHECK(r.totals.held_up[1] == ticks(5021 - 214));
  CHECK(r.totals.counts[0].skipped == 20);
  CHECK(r.unexplained_waits == 0);
}

TEST_CASE("a thread begins when it is started, and a sleeper goes on when it is woken") {
  Stream s(2);
  const auto chip = s.make();
  s.work(0, 700);
  s.feed(*chip);
  chip->started(1, 0);
  s.work(1, 10);
  s.work(0, 300);
  s.feed(*chip);
  chip->woken(0, 1);
  s.work(0, 5);
  s.feed(*chip);
  chip->after_slice(s.sites, {});
  const ChipResult r = chip->finish(s.sites);
  CHECK(cycles_of(r.clocks[1]) == 710);
  CHECK(cycles_of(r.clocks[0]) == 1005);  // it was there later than it was woken
}

// Blocks by which locks are taken and given: an exchange that acquires, and a store behind a fence.
struct LockStream : Stream {
  static constexpr uint32_t kTake = 4, kGive = 5;
  explicit LockStream(uint32_t cores) : Stream(cores) {
    std::array<double, kInsnClassCount> cycles;
    cycles.fill(1);
    shape = ideal_chip(cores, cycles, 1e9);
    const AccessSite fence{0, SiteKind::kFence, 0, 0};
    AccessSite exchange{0, SiteKind::kAtomic, 4, kTake};
    exchange.may_fail = true;
    add({exchange, fence});
    add({fence, {0, SiteKind::kStore, 4, kGive}});
  }
  void add(std::vector<AccessSite> accesses) {
    const uint64_t pc = 4 * module.blocks.size();
    module.blocks.push_back({.pc = pc, .insn_count = 1});
    sites.push_back({.pc = pc, .insn_count = 1, .accesses = std::move(accesses)});
  }
  void enter(uint32_t core, uint32_t block, uint64_t address) {
    words[core].push_back(kBlockMark | block);
    words[core].push_back(address);
  }
};

TEST_CASE("locks of programs' own code exclude each other in simulated time") {
  constexpr uint64_t kLock = 0x1000;
  LockStream s(3);
  for (uint32_t core = 0; core < 2; ++core)
    for (int round = 0; round < 3; ++round) {
      s.enter(core, LockStream::kTake, kLock);
      s.work(core, 100);
      s.enter(core, LockStream::kGive, kLock);
    }
  // Another lock.
  s.enter(2, LockStream::kTake, kLock + 64);
  s.work(2, 50);
  s.enter(2, LockStream::kGive, kLock + 64);
  const ChipResult r = s.run();
  // One cycle before, and then 101 for each piece: the store that ends it takes one.
  CHECK(cycles_of(std::max(r.clocks[0], r.clocks[1])) == 1 + 6 * 101);
  CHECK(cycles_of(r.clocks[2]) == 52);
  CHECK(part(r, 2, Part::kWaiting) == 0);
  CHECK(r.totals.locks == 7);
  CHECK(cycles_of(r.waited[0] + r.waited[1]) == cycles_of(r.clocks[0] + r.clocks[1]) - 2 * 3 * 102);
}

TEST_CASE("a wait that the program's end ends is not unexplained, one before work is") {
  for (const uint32_t after : {0u, 10u, 1000u}) {
    INFO(after);
    LockStream s(2);
    const auto wait = static_cast<uint32_t>(s.module.blocks.size());
    s.add({{0, SiteKind::kLoad, 4, 0}, {0, SiteKind::kYield, 0, 0}});
    s.work(0, 500);
    s.enter(1, wait, 0x9000);  // nobody ever writes there
    if (after != 0) s.work(1, after);
    CHECK(s.run().unexplained_waits == (after > 64 ? 1 : 0));
  }
}

TEST_CASE("attempts to take a lock that fail take no time once it is known for one") {
  constexpr uint64_t kLock = 0x1000;
  std::vector<Ticks> ends;
  for (const uint32_t attempts : {1u, 400u}) {
    LockStream s(2);
    s.enter(0, LockStream::kTake, kLock);
    s.work(0, 100);
    s.enter(0, LockStream::kGive, kLock);
    s.work(1, 2000);  // so that it is known
    for (uint32_t i = 0; i < attempts; ++i) s.enter(1, LockStream::kTake, kLock);
    s.work(1, 300);
    s.enter(1, LockStream::kGive, kLock);
    const ChipResult r = s.run();
    ends.push_back(r.clocks[1]);
    CHECK(r.totals.counts[1].instructions == 2000 + 1 + 300 + 1);
    CHECK(r.totals.counts[1].skipped == attempts - 1);
  }
  CHECK(cycles_of(ends[0]) == 2302);
  CHECK(ends[1] == ends[0]);
}

// Functions of a C library by which cores wait for a condition: an atomic operation on the
// variable, the mutex, and a look at another word of the variable by the one that signals.
struct ConditionStream : LockStream {
  static constexpr uint32_t kWait = 6, kLock = 7, kSignal = 8;
  static constexpr uint64_t kMutex = 0x2000, kVariable = 0x3000, kLookedAt = 36;
  explicit ConditionStream(uint32_t cores) : LockStream(cores) {
    const auto add_function = [&](const char* name, SiteKind kind) {
      module.symbols.push_back({.address = 4 * module.blocks.size(),
                                .size_bytes = 4,
                                .name = name,
                                .is_function = true});
      add({{0, kind, 4, 0}});
    };
    add_function("pthread_cond_wait", SiteKind::kAtomic);
    add_function("__pthread_mutex_cond_lock", SiteKind::kAtomic);
    add_function("pthread_cond_signal", SiteKind::kLoad);
  }
  void signal(uint32_t core, uint64_t variable = kVariable) {
    enter(core, kSignal, variable + kLookedAt);
  }
  void wait(uint32_t core) {
    enter(core, kWait, kVariable);
    enter(core, kLock, kMutex);
  }
};

TEST_CASE("who waits for a condition goes on behind a signal, also if it never slept") {
  ConditionStream s(2);
  const auto chip = s.make();
  const auto end_slice = [&] {
    s.feed(*chip);
    chip->after_slice(s.sites, {});
  };
  s.signal(0);  // before anybody waits
  end_slice();
  s.work(1, 10);
  s.signal(1);  // its own
  s.wait(1);
  s.work(1, 100);
  s.signal(0, ConditionStream::kVariable + 48);  // another one
  end_slice();
  s.work(0, 1000);
  s.signal(0);
  s.work(0, 1);
  end_slice();
  const ChipResult r = chip->finish(s.sites);
  CHECK(cycles_of(r.clocks[0]) == 1 + 1 + 1000 + 1 + 1);
  CHECK(cycles_of(r.clocks[1]) == 1 + 1 + 1000 + 1 + 100);
  CHECK(r.unexplained_waits == 0);
}

// Functions of a C library of which arguments and results are noted.
struct CallStream : LockStream {
  static constexpr uint64_t kObject = 0x4000;
  explicit CallStream(uint32_t cores) : LockStream(cores) {}
  uint32_t add_function(const char* name, size_t values) {
    const auto number = static_cast<uint32_t>(module.blocks.size());
    module.symbols.push_back(
        {.address = 4 * number, .size_bytes = 4, .name = name, .is_function = true});
    add(std::vector<AccessSite>(values, {0, SiteKind::kValue, 0, 0}));
    return number;
  }
  void call(uint32_t core, uint32_t function, std::vector<uint64_t> values = {}) {
    words[core].push_back(kBlockMark | function);
    words[core].push_back(kObject);
    words[core].insert(words[core].end(), values.begin(), values.end());
  }
};

TEST_CASE("units of a semaphore go to who asked first, when they were given") {
  // Whether the wait has a time limit, and whether it got a unit until then.
  for (const auto& [is_limited, result, waits] :
       {std::tuple{false, 0u, true}, {true, 0u, true}, {true, ~0u, false}}) {
    CallStream s(2);
    const uint32_t init = s.add_function("sem_init", 2), post = s.add_function("sem_post", 1);
    const uint32_t wait = s.add_function(is_limited ? "sem_timedwait" : "sem_wait", 2);
    s.call(0, init, {1});
    s.work(0, 1000);
    s.call(0, post);
    s.work(0, 1);
    s.work(1, 10);
    s.call(1, wait, {0});  // of the first value
    s.work(1, 20);
    s.call(1, wait, {result});
    s.work(1, 300);
    const ChipResult r = s.run();
    CHECK(cycles_of(r.clocks[0]) == 1001);
    CHECK(cycles_of(r.clocks[1]) == (waits ? 1000 : 30) + 300);
    CHECK(r.unexplained_waits == 0);
  }
}

TEST_CASE("who writes excludes all others, and readers pass each other") {
  CallStream s(3);
  const uint32_t read = s.add_function("pthread_rwlock_rdlock", 1);
  const uint32_t write = s.add_function("pthread_rwlock_wrlock", 1);
  const uint32_t leave = s.add_function("pthread_rwlock_unlock", 1);
  const auto piece = [&](uint32_t core, uint32_t before, uint32_t function) {
    s.work(core, before);
    s.call(core, function);
    s.work(core, 100);
    s.call(core, leave);
    s.work(core, 1);
  };
  piece(0, 10, read);
  piece(1, 20, read);
  piece(2, 30, write);  // from 120 on
  piece(0, 1, read);    // from 112 on, beside the second one
  const ChipResult r = s.run();
  CHECK(cycles_of(r.clocks[0]) == 10 + 100 + 1 + 1 + 100 + 1);
  CHECK(cycles_of(r.clocks[1]) == 20 + 100 + 1);
  CHECK(cycles_of(r.clocks[2]) == 10 + 100 + 1 + 1 + 100 + 100 + 1);
}

TEST_CASE("a barrier of a C library opens when as many came as it counts") {
  CallStream s(2);
  const uint32_t init = s.add_function("pthread_barrier_init", 2);
  const uint32_t wait = s.add_function("pthread_barrier_wait", 1);
  s.call(0, init, {2});
  for (uint32_t core = 0; core < 2; ++core)
    for (uint32_t round = 0; round < 4; ++round) {
      s.work(core, round % 2 == core ? 100 : 10);
      s.call(core, wait);
    }
  s.work(0, 1);
  s.work(1, 1);
  const ChipResult r = s.run();
  for (const Ticks clock : r.clocks) CHECK(cycles_of(clock) == 4 * 100 + 1);
}

TEST_CASE("who looks at the word of a thread that ended goes on behind its end") {
  LockStream s(2);
  const auto look = static_cast<uint32_t>(s.module.blocks.size());
  s.add({{0, SiteKind::kLoad, 4, 0}, {0, SiteKind::kFence, 0, 0}});
  const auto chip = s.make();
  s.work(0, 1000);
  s.enter(1, look, 0x5000);  // before
  s.feed(*chip);
  chip->left(0, 0x5000);
  chip->after_slice(s.sites, {});
  for (int i = 0; i < 2; ++i) {
    s.enter(1, look, 0x5000);
    s.work(1, 50);
  }
  s.feed(*chip);
  chip->after_slice(s.sites, {});
  const ChipResult r = chip->finish(s.sites);
  // What the looks take is in the wait, but for the last one.
  CHECK(cycles_of(r.clocks[1]) == 1000 + 50 + 1 + 50);
  CHECK(r.unexplained_waits == 0);
}

TEST_CASE("pieces of a lock use what is free before those that were known earlier") {
  LockCalendar held;
  held.take(1000, 100);
  CHECK(held.first_free(0, 1000) == 0);
  CHECK(held.first_free(1, 1000) == 1100);
  held.take(0, 1000);
  CHECK(held.size() == 1);
  CHECK(held.first_free(500, 1) == 1100);
  held.take(1200, 10);
  CHECK(held.first_free(1050, 100) == 1100);
  CHECK(held.first_free(1050, 101) == 1210);
  held.forget_before(1100);
  CHECK(held.size() == 1);
}

TEST_CASE("time does not depend on the slices in which words come, nor on threads") {
  std::vector<std::vector<Ticks>> seen;
  for (const auto& [piece, threads] : {std::pair{100000u, 1u}, {700u, 1u}, {333u, 2u}, {50u, 4u}}) {
    Stream s(4);
    s.config.threads = threads;
    const auto chip = s.make();
    std::mt19937 random(7);
    std::vector<std::vector<std::pair<SiteKind, uint64_t>>> todo(4);
    for (auto& list : todo)
      for (int i = 0; i < 3000; ++i)
        list.push_back(
            {random() % 3 == 0 ? SiteKind::kStore : SiteKind::kLoad, random() % 200 * 24});
    size_t at = 0;
    for (bool more = true; more; at += piece) {
      more = false;
      for (uint32_t core = 0; core < 4; ++core) {
        for (size_t i = at; i < std::min<size_t>(at + piece, todo[core].size()); ++i)
          s.access(core, todo[core][i].first, todo[core][i].second);
        more |= at + piece < todo[core].size();
      }
      s.feed(*chip);
      chip->after_slice(s.sites, {});
    }
    const ChipResult r = chip->finish(s.sites);
    CHECK(r.forced == 0);
    seen.push_back(r.clocks);
    seen.back().push_back(r.totals.memory.forwards);
    seen.back().push_back(r.totals.memory.invalidations);
  }
  for (const auto& one : seen) CHECK(one == seen[0]);
  CHECK(seen[0].back() > 100);
}

TEST_CASE("windows wait for a silent core that does not sleep, not for one that does") {
  // Core 0 fights for lines with core 1, whose words come late.
  const auto run = [](uint32_t silent_slices, bool are_known = true) {
    Stream s(3);
    const auto chip = s.make();
    const auto sleepers = are_known ? std::vector<uint8_t>{0, 0, 1} : std::vector<uint8_t>{};
    for (uint32_t i = 0; i < 500; ++i) s.store(0, i % 7 * kLine);
    for (uint32_t slice = 0; slice < silent_slices; ++slice) {
      s.feed(*chip);
      chip->after_slice(s.sites, sleepers);
      s.work(0, 1000);
    }
    for (uint32_t slice = silent_slices; slice < 40; ++slice) s.work(0, 1000);
    for (uint32_t i = 0; i < 500; ++i) s.store(1, i % 7 * kLine);
    s.feed(*chip);
    chip->ended(0);
    chip->ended(1);
    chip->after_slice(s.sites, sleepers);
    const ChipResult r = chip->finish(s.sites);
    std::vector<Ticks> seen = r.clocks;
    seen.push_back(r.totals.memory.forwards);
    seen.push_back(r.totals.memory.invalidations);
    return seen;
  };
  const auto at_once = run(0);
  CHECK(at_once[3] > 5);  // lines that went from one to the other
  CHECK(run(3) == at_once);
  CHECK(run(40) == at_once);
  CHECK(run(40, /*are_known=*/false) != at_once);
}

// --- Network

namespace {

NetworkShape mesh(uint32_t columns, uint32_t rows, Topology t = Topology::kMesh) {
  return {.topology = t,
          .columns = columns,
          .rows = rows,
          .router_cycles = 2,
          .link_cycles = 1,
          .flit_bytes = 16,
          .header_bytes = 8,
          .levels = {}};
}

}  // namespace

TEST_CASE("messages that meet nobody take the zero-load latency") {
  NetworkShape tree{.topology = Topology::kHierarchical, .columns = 8, .rows = 4, .levels = {}};
  tree.levels = {{1, 0.5, 1}, {8, 3, 2}, {32, 7, 1}};
  for (const NetworkShape& shape :
       {mesh(5, 3), mesh(4, 4, Topology::kTorus), mesh(7, 1, Topology::kRing),
        mesh(3, 3, Topology::kCrossbar), mesh(4, 1, Topology::kBus), tree}) {
    Network n(shape);
    Ticks at = 0;
    for (uint32_t a = 0; a < n.tiles(); ++a)
      for (uint32_t b = 0; b < n.tiles(); ++b)
        for (const uint32_t bytes : {0u, 64u}) {
          at += ticks(10000);
          const Delivery d = n.send(a, b, bytes, at, at);
          CHECK(d.queued == 0);
          CHECK(d.arrival - at == n.zero_load(a, b, bytes));
        }
    // To all tiles: over each link on a way once.
    const bool is_grid = n.link_name(0).find(" east") != std::string::npos;
    std::vector<Ticks> arrivals;
    std::vector<uint32_t> way;
    for (uint32_t a = 0; a < n.tiles(); ++a) {
      std::set<uint32_t> links;
      const uint64_t hops = n.flit_hops();
      at += ticks(10000);
      n.broadcast(a, 64, at, at, arrivals);
      for (uint32_t b = 0; b < n.tiles(); ++b) {
        if (b != a) CHECK(arrivals[b] - at == n.zero_load(a, b, 64));
        n.route(a, b, way);
        links.insert(way.begin(), way.end());
      }
      const uint64_t ejects = is_grid ? n.tiles() - 1 : 0;
      CHECK(n.flit_hops() - hops == n.flits_of(64) * (links.size() - ejects));
    }
  }
  // By hand: (0,0) to (3,2) are 5 hops: 6 routers of 2, 5 links of 1; 72 bytes are 5 flits.
  CHECK(Network(mesh(5, 3)).zero_load(0, 13, 64) == ticks(6 * 2 + 5 + 4));
  // Around the corner of a torus: 2 hops.
  CHECK(Network(mesh(4, 4, Topology::kTorus)).zero_load(0, 15, 0) == ticks(3 * 2 + 2));
  CHECK(Network(mesh(7, 1, Topology::kRing)).zero_load(1, 6, 0) == ticks(3 * 2 + 2));
}

TEST_CASE("a link with random arrivals is a queue M/D/1") {
  std::mt19937_64 random(1);
  for (const double load : {0.3, 0.6, 0.8, 0.9}) {
    Calendar link;
    std::exponential_distribution<double> gap(load);
    constexpr int kMessages = 400000;
    double at = 0, waited = 0;
    for (int i = 0; i < kMessages; ++i) {
      at += gap(random);
      const Ticks arrival = ticks(at);
      waited += cycles_of(link.take(arrival, kCycle, arrival) - arrival);
    }
    // Pollaczek and Khinchine, constant service of 1.
    CHECK(waited / kMessages == doctest::Approx(load / (2 * (1 - load))).epsilon(0.05));
  }
}

namespace {

// Mean latency in cycles when each tile sends a flit with this probability per cycle.
double latency_under(const NetworkShape& shape, double rate,
                     const std::function<uint32_t(uint32_t, std::mt19937&)>& target) {
  Network n(shape);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> dice(0, 1);
  constexpr uint32_t kCycles = 3000, kWarm = 1500;
  double sum = 0;
  uint64_t count = 0;
  for (uint32_t cycle = 0; cycle < kCycles; ++cycle)
    for (uint32_t tile = 0; tile < n.tiles(); ++tile) {
      if (dice(random) >= rate) continue;
      const uint32_t to = target(tile, random);
      const Ticks at = ticks(cycle);
      const Delivery d = n.send(tile, to, 0, at, at);
      if (cycle < kWarm) continue;
      sum += cycles_of(d.arrival - at);
      ++count;
    }
  return sum / static_cast<double>(count);
}

}  // namespace

TEST_CASE("a mesh saturates where its fullest link does") {
  constexpr uint32_t k = 8;
  const NetworkShape shape = mesh(k, k);
  struct Traffic {
    const char* name;
    double limit;  // flits per tile and cycle (Dally and Towles, chapter 3 and 9)
    std::function<uint32_t(uint32_t, std::mt19937&)> target;
  };
  const Traffic all[] = {
      // Half of all messages cross the middle: k / 4 per link and message rate.
      {"uniform", 4.0 / k, [](uint32_t, std::mt19937& r) { return r() % (k * k); }},
      // X first, then Y: k - 1 of a row turn at one tile.
      {"transpose", 1.0 / (k - 1), [](uint32_t t, std::mt19937&) { return t % k * k + t / k; }},
      {"neighbour", 1.0, [](uint32_t t, std::mt19937&) { return t / k * k + (t + 1) % k; }},
  };
  for (const Traffic& t : all) {
    INFO(t.name);
    const double idle = latency_under(shape, 0.02 * t.limit, t.target);
    // Neighbours: the last tile of a row sends back along all of it, where no other goes.
    CHECK(latency_under(shape, 0.5 * t.limit, t.target) < 1.5 * idle);
    if (t.limit >= 1) continue;  // a tile cannot send more
    CHECK(latency_under(shape, 0.85 * t.limit, t.target) < 3 * idle);
    CHECK(latency_under(shape, 1.3 * t.limit, t.target) > 3 * idle);
  }
}

namespace {

// Mean cycles from a core to a random word of a scratchpad and back, if each core sends so many
// requests per cycle.
double cycles_to_scratchpad(const ChipShape& shape, double rate) {
  MemorySystem memory(shape, [](uint32_t, uint64_t, bool) {});
  std::mt19937 random(5);
  std::uniform_real_distribution<double> dice(0, 1);
  constexpr uint32_t kCycles = 1500, kWarm = 500, kWords = 1 << 18;
  double sum = 0;
  uint64_t count = 0;
  for (uint32_t cycle = 0; cycle < kCycles; ++cycle)
    for (uint32_t core = 0; core < shape.cores.count; ++core) {
      if (dice(random) >= rate) continue;
      const Ticks at = ticks(cycle);
      memory.advance(at);
      const Answer a = memory.ask(core, Ask::kFarRead, random() % kWords, 4, at);
      if (cycle < kWarm) continue;
      sum += cycles_of(a.done - at);
      ++count;
    }
  return sum / static_cast<double>(count);
}

}  // namespace

// Cavalcante et al., DATE 2021, abstract: at most 5 cycles; on average fewer than 6 cycles at 0.33
// requests per core and cycle.
TEST_CASE("mempool-256 answers as fast under load as MemPool does") {
  const ChipShape& shape = chip_named("mempool-256");
  CHECK(cycles_to_scratchpad(shape, 0.001) <= 5);
  const double loaded = cycles_to_scratchpad(shape, 0.33);
  CHECK(loaded < 6);
  CHECK(loaded > cycles_to_scratchpad(shape, 0.05));
  // It gives way only near what its banks and ports can do.
  CHECK(cycles_to_scratchpad(shape, 0.95) > 20);
}

// --- Descriptions

TEST_CASE("every figure of a shipped chip has a source or is marked as assumed") {
  CHECK(builtin_chips().size() == 5);
  for (const EmbeddedFile& file : builtin_chip_files()) {
    INFO(file.name);
    CHECK(figures_without_source(file.text, file.name) == std::vector<std::string>{});
    CHECK(file.name == parse_chip(file.text, file.name).name + ".json");
  }
}

TEST_CASE("descriptions that are wrong say where") {
  using Json = nlohmann::ordered_json;
  Json good;
  for (const EmbeddedFile& file : builtin_chip_files())
    if (file.name == std::string("tutorial-4.json")) good = Json::parse(file.text);
  CHECK(figures_without_source(
            R"({"clock_hz": 1, "cores": {"count": 2}, "sources": {"cores": "x"}})", "c") ==
        std::vector<std::string>{"clock_hz"});
  const auto says = [&](const std::function<void(Json&)>& change) -> std::string {
    Json bad = good;
    change(bad);
    try {
      parse_chip(bad.dump(), "c.json");
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing";
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(says([](Json& j) { j.erase("shared"); }), "c.json: \"shared\" is missing");
  has(says([](Json& j) { j["schema"] = "x"; }), "\"schema\"");
  has(says([](Json& j) { j["cores"]["count"] = 0; }), "c.json.cores: \"count\" must be");
  has(says([](Json& j) { j["cores"]["per_tile"] = 3; }), "does not divide");
  has(says([](Json& j) { j["cores"]["cycles"]["division"] = 3; }), "c.json.cores.cycles");
  has(says([](Json& j) { j["l1_data"]["size"] = "5K"; }), "power of two of sets");
  has(says([](Json& j) { j["l1_data"]["size"] = "-1"; }), "c.json.l1_data: \"size\"");
  has(says([](Json& j) { j["shared"]["coherence"] = "moesi"; }), "one of none, mesi");
  has(says([](Json& j) { j["network"]["columns"] = 3; }), "make 4 tiles");
  has(says([](Json& j) { j["network"]["wires"] = 3; }), "wires");
  has(says([](Json& j) { j["memory"]["tiles"] = {9}; }), "names tile 9");
  has(says([](Json& j) { j["memory"]["bytes_per_cycle"] = "x"; }), "c.json.memory");
  has(says([](Json& j) { j["network"]["topology"] = "hierarchical"; }), "levels");
  has(says([](Json& j) { j["shared"]["slices"] = 3; }), "shared.slices");
  has(says([](Json& j) { j["line_bytes"] = 48; }), "\"line_bytes\" must be a power of two");
  CHECK_THROWS_AS(find_chip("no-such-chip"), Error);
}

}  // namespace gpusim::host::chip
