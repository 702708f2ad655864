// Caches against streams of accesses made by hand, and their descriptions.
#include <doctest/doctest.h>

#include "device_sim/base/error.h"
#include "host/caches/hierarchy.h"
#include "host/caches/report.h"

namespace gpusim::host {
namespace {

// One block with one access; its word in the code map is an instruction of class off-chip memory.
struct Stream {
  Module module;
  std::vector<BlockSites> blocks;
  MachineConfig config;

  explicit Stream(uint32_t cores = 1) {
    config.cores = cores;
    config.linear_size = uint64_t{1} << 32;
    module.code.text_base = 0;
    module.code.insn_class.assign(64, static_cast<uint8_t>(InsnClass::kOffChipMemory));
    for (uint32_t i = 0; i < 3; ++i)
      blocks.push_back({.pc = uint64_t{4} * i,
                        .insn_count = 1,
                        .accesses = {{0, static_cast<SiteKind>(i), 8, /*unit=*/i}}});
  }
  static void add(std::vector<uint64_t>& words, SiteKind kind, uint64_t address) {
    words.push_back(kBlockMark | static_cast<uint64_t>(kind));
    words.push_back(address);
  }
  CacheReport run(const HierarchyShape& shape, const std::vector<std::pair<char, uint64_t>>& accesses,
                  uint32_t core = 0) {
    CacheHierarchy caches(shape, module, config);
    std::vector<uint64_t> words;
    for (const auto& [kind, address] : accesses)
      add(words, kind == 'r' ? SiteKind::kLoad : kind == 'w' ? SiteKind::kStore : SiteKind::kAtomic,
          address);
    caches.read(core, words, blocks);
    caches.end_slice();
    return caches.report();
  }
};

CacheShape level(uint64_t bytes, uint32_t ways) {
  return {.name = "L1", .size_bytes = bytes, .ways = ways};
}
HierarchyShape one_level(CacheShape shape) {
  return {.name = "test", .line_bytes = 64, .levels = {std::move(shape)}};
}

// Lines A, B, C ... of one set of a cache with 4 sets.
constexpr uint64_t at(char line) { return static_cast<uint64_t>(line - 'A') * 256; }

std::vector<std::pair<char, uint64_t>> reads(const char* lines) {
  std::vector<std::pair<char, uint64_t>> list;
  for (; *lines; ++lines) list.push_back({'r', at(*lines)});
  return list;
}

}  // namespace

TEST_CASE("LRU throws out what was used longest ago") {
  const HierarchyShape shape = one_level(level(4 * 2 * 64, 2));
  // A B miss, A hits, C takes B's place, A hits, B misses and takes C's.
  const CacheReport r = Stream().run(shape, reads("ABACABC"));
  CHECK(r.levels[0] == CacheCounts{.reads = 7, .read_misses = 5});
  CHECK(r.memory_reads == 5);
  CHECK(r.off_chip() == 5);
  CHECK(r.off_chip_at[0] == 5);
}

TEST_CASE("tree PLRU follows its bits") {
  CacheShape shape = level(4 * 4 * 64, 4);
  const std::vector<std::pair<char, uint64_t>> stream = reads("ABCDAEBCD");
  // A B C D fill ways 0 to 3. After A the tree points at ways 2 and 3, and there at way 2, so E takes
  // the place of C, although B was used longer ago: B hits. C and D miss.
  shape.replacement = Replacement::kTreePlru;
  const CacheReport tree = Stream().run(one_level(shape), stream);
  shape.replacement = Replacement::kLru;
  const CacheReport lru = Stream().run(one_level(shape), stream);
  CHECK(tree.levels[0].read_misses == 7);
  CHECK(lru.levels[0].read_misses == 8);
}

TEST_CASE("written lines go back when they are thrown out, or on at once") {
  CacheShape shape = level(4 * 1 * 64, 1);
  const std::vector<std::pair<char, uint64_t>> stream = {
      {'w', at('A')}, {'w', at('A') + 8}, {'r', at('B')}, {'a', at('B')}, {'r', at('A')}};
  const CacheReport back = Stream().run(one_level(shape), stream);
  CHECK(back.levels[0] == CacheCounts{.reads = 2, .read_misses = 2, .writes = 3, .write_misses = 1,
                                      .write_backs = 2});
  CHECK(back.memory_reads == 3);
  CHECK(back.memory_writes == 2);

  shape.write_back = false;
  const CacheReport through = Stream().run(one_level(shape), stream);
  CHECK(through.levels[0].write_backs == 0);
  CHECK(through.memory_reads == 3);
  CHECK(through.memory_writes == 3);

  shape.allocates_on_write = false;  // both writes to A miss
  const CacheReport around = Stream().run(one_level(shape), stream);
  CHECK(around.levels[0].write_misses == 2);
  CHECK(around.memory_reads == 2);
  CHECK(around.memory_writes == 3);
}

TEST_CASE("an access to two lines is one access") {
  const HierarchyShape shape = one_level(level(4 * 2 * 64, 2));
  const CacheReport r = Stream().run(shape, {{'r', 60}, {'r', 60}, {'r', 64}});
  CHECK(r.levels[0] == CacheCounts{.reads = 3, .read_misses = 1});
  CHECK(r.memory_reads == 2);
  CHECK(r.off_chip() == 1);
}

TEST_CASE("atomics do not count as memory instructions") {
  Stream s;
  s.module.code.insn_class[2] = static_cast<uint8_t>(InsnClass::kParallelism);
  CHECK(s.run(one_level(level(512, 2)), {{'a', 0}, {'r', 256}}).off_chip() == 1);
}

TEST_CASE("what cores ask of a shared cache is put in order by their instructions") {
  HierarchyShape shape = one_level(level(64, 1));
  CacheShape shared = level(4 * 1 * 64, 1);
  shared.cores = 0;
  shape.levels.push_back(shared);
  Stream s(2);
  const auto words = [](std::initializer_list<char> lines) {
    std::vector<uint64_t> list;
    for (const char line : lines) Stream::add(list, SiteKind::kLoad, at(line));
    return list;
  };
  const std::vector<uint64_t> zero = words({'A', 'B', 'A'}), one = words({'B', 'B', 'A'});
  std::vector<CacheReport> reports;
  for (const bool zero_first : {true, false}) {
    CacheHierarchy caches(shape, s.module, s.config);
    if (zero_first) caches.read(0, zero, s.blocks);
    caches.read(1, one, s.blocks);
    if (!zero_first) caches.read(0, zero, s.blocks);
    caches.end_slice();
    reports.push_back(caches.report());
  }
  // By time 0: A(0) B(1); 1: B(0), core 1 hits its own; 2: A(0) A(1).
  for (const CacheReport& r : reports) {
    CHECK(r.levels[0] == CacheCounts{.reads = 6, .read_misses = 5});
    CHECK(r.levels[1] == CacheCounts{.reads = 5, .read_misses = 3});
    CHECK(r.off_chip_of == std::vector<uint64_t>{2, 1});
  }
}

TEST_CASE("cores of a private machine do not share what lies at the same address") {
  HierarchyShape shape = one_level(level(64, 1));
  shape.levels[0].cores = 0;
  Stream s(2);
  s.config.memory_model = MemoryModel::kPrivate;
  s.config.linear_size = 0;
  std::vector<uint64_t> words;
  Stream::add(words, SiteKind::kLoad, 0);
  CacheHierarchy caches(shape, s.module, s.config);
  caches.read(0, words, s.blocks);
  caches.read(1, words, s.blocks);
  CHECK(caches.report().levels[0].read_misses == 2);
}

TEST_CASE("a level off the chip serves nothing on it") {
  HierarchyShape shape = one_level(level(64, 1));
  shape.levels.push_back(level(4096, 4));
  shape.levels[1].on_chip = false;
  const CacheReport r = Stream().run(shape, {{'r', 0}, {'r', 64}, {'r', 0}, {'r', 0}});
  CHECK(r.off_chip() == 3);
  CHECK(r.memory_reads == 2);
}

TEST_CASE("descriptions of caches") {
  const auto parse = [](const std::string& levels, const std::string& more = "") {
    return parse_hierarchy("{\"levels\": [" + levels + "]" + more + "}", "c.json");
  };
  const std::string good = R"({"name": "L1", "size": "32K", "ways": 4})";
  const HierarchyShape h = parse(good + R"(, {"name": "L2", "size": 1048576, "ways": 16, "cores": "all",
      "replacement": "tree-plru", "write": "through", "write_miss": "around", "place": "off-chip"})");
  CHECK(h.line_bytes == 64);
  CHECK(h.levels[0].size_bytes == 32768);
  CHECK(h.levels[0].cores == 1);
  CHECK(h.levels[1].cores == 0);
  CHECK_FALSE(h.levels[1].write_back);
  CHECK_FALSE(h.levels[1].allocates_on_write);
  CHECK_FALSE(h.levels[1].on_chip);
  const auto refused = [&](const std::string& levels, const char* says, const std::string& more = "") {
    CAPTURE(levels);
    try {
      parse(levels, more);
      FAIL("accepted");
    } catch (const Error& error) {
      CAPTURE(error.what());
      CHECK(std::string(error.what()).find(says) != std::string::npos);
    }
  };
  refused("", "\"levels\"");
  refused(R"({"name": "L1", "size": "32K"})", "\"ways\"");
  refused(R"({"name": "L1", "size": "32X", "ways": 4})", "\"size\"");
  refused(R"({"name": "L1", "size": "", "ways": 4})", "\"size\"");
  refused(R"({"name": "L1", "size": 0, "ways": 4})", "power of two of sets");
  refused(R"({"name": "L1", "size": "48K", "ways": 4})", "power of two of sets");
  refused(R"({"name": "L1", "size": 100, "ways": 1})", "power of two of sets");
  refused(R"({"name": "L1", "size": "99999999999999999999K", "ways": 1})", "\"size\"");
  refused(R"({"name": "L1", "size": "48K", "ways": 3, "replacement": "tree-plru"})", "ways");
  refused(R"({"name": "L1", "size": "32K", "ways": 4, "replacement": "random"})", "lru");
  refused(R"({"name": "L1", "size": "32K", "ways": 4, "cores": 0})", "\"cores\"");
  refused(R"({"name": "L1", "size": "32K", "ways": 4, "cores": "some"})", "\"cores\"");
  refused(R"({"name": "L1", "size": "32K", "ways": 4, "way": 1})", "unknown key");
  refused(R"({"name": "L1", "size": "32K", "ways": -4})", "\"ways\"");
  refused(R"({"name": "A", "size": "1K", "ways": 1, "cores": 4}, {"name": "B", "size": "1K", "ways": 1, "cores": 6})",
          "does not divide");
  refused(good, "power of two", ", \"line_bytes\": 48");
  refused(good, "unknown key", ", \"lines\": 64");
  CHECK_THROWS_AS(parse_hierarchy("{", "c.json"), Error);
  CHECK_THROWS_AS(load_hierarchy("/no/such/file"), Error);
}

}  // namespace gpusim::host
