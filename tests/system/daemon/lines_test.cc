// Source lines in the text of faults: the reader of debug information, the engine that waits for
// it, and a daemon whose guests' files were made to do harm. GPUSIM_FUZZ_SECONDS: how long files
// are tried (5). GPUSIM_SEED replays one.
#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <string>

#include "host/offload/simulator.h"
#include "qemu_bridge/daemon/line_helper.h"
#include "tests/system/daemon/fake_guest.h"

using namespace gpusim;
using namespace gpusim::test;

namespace {

using Bytes = std::vector<uint8_t>;
using Rng = std::mt19937_64;

struct Range {
  size_t offset = 0, size_bytes = 0;
};

// Where its debug information lies.
std::vector<Range> debug_sections(const Bytes& elf) {
  Elf64_Ehdr header;
  std::memcpy(&header, elf.data(), sizeof header);
  const auto section = [&](size_t i) {
    Elf64_Shdr s;
    std::memcpy(&s, elf.data() + header.e_shoff + i * sizeof s, sizeof s);
    return s;
  };
  const size_t names = section(header.e_shstrndx).sh_offset;
  std::vector<Range> ranges;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (std::string(reinterpret_cast<const char*>(elf.data()) + names + s.sh_name)
            .starts_with(".debug_"))
      ranges.push_back({s.sh_offset, s.sh_size});
  }
  return ranges;
}

// From one byte to most of a section.
Bytes spoiled(Bytes elf, const std::vector<Range>& sections, Rng& rng) {
  const size_t changes = size_t{1} << rng() % 10;
  for (size_t i = 0; i < changes; ++i) {
    const Range& s = sections[rng() % sections.size()];
    uint8_t& byte = elf[s.offset + rng() % s.size_bytes];
    constexpr uint8_t kOdd[] = {0, 1, 0x7f, 0x80, 0xff};
    byte = rng() % 2 ? kOdd[rng() % std::size(kOdd)] : static_cast<uint8_t>(rng());
  }
  return elf;
}

uint64_t first_seed() {
  if (const char* text = std::getenv("GPUSIM_SEED")) return std::strtoull(text, nullptr, 0);
  return std::random_device{}();
}

double seconds_to_try() {
  const char* const text = std::getenv("GPUSIM_FUZZ_SECONDS");
  return text ? std::strtod(text, nullptr) : 5;
}

// The engine of a daemon, with the kernels, whose lines are found when `release` says so.
struct Engine {
  Engine() {
    service = std::make_unique<offload::Simulator>(offload::SimulatorOptions{
        .backend = "scalar", .threads = 1, .find_lines = [this](auto, auto places) {
          std::unique_lock lock(mutex);
          ++searches;
          changed.notify_all();
          changed.wait(lock, [&] { return is_released; });
          host::LineTable lines;
          if (fails) return lines;
          for (const uint64_t place : places) lines[place] = {{"poke", "/src/poke.c", 47}};
          return lines;
        }});
    context = service->open();
    program = load(context);
  }
  ~Engine() { release(); }

  uint32_t load(uint32_t where) {
    uint32_t number = 0;
    service->load(where, next_ticket++, read_file(kernels_file()), "kernels", 0,
                  [&](const offload::LoadOutcome& outcome) { number = outcome.program; });
    REQUIRE(steps_until([&] { return number != 0; }));
    return number;
  }
  // -> its outcome, once it has one
  std::shared_ptr<std::optional<offload::LaunchOutcome>> launch(uint32_t where, uint32_t which,
                                                                const std::string& name,
                                                                uint32_t queue) {
    gpusim_launch l{};
    l.program = which;
    l.function = service->symbol(where, which, name).address;
    l.cores = 2;
    l.queue = queue;
    if (name == "poke") {
      l.argument_count = 3;
      l.arguments[0] = core_number();
      l.arguments[1] = value(1);
      l.arguments[2] = value(16);
    }
    auto outcome = std::make_shared<std::optional<offload::LaunchOutcome>>();
    service->launch(where, last_ticket = next_ticket++, l,
                    [outcome](const offload::LaunchOutcome& o) { *outcome = o; });
    return outcome;
  }
  bool steps_until(const std::function<bool()>& is_true) {
    return eventually(60, [&] {
      service->step();
      return is_true();
    });
  }
  void wait_for_search() {
    REQUIRE(steps_until([&] {
      const std::lock_guard lock(mutex);
      return searches != 0;
    }));
  }
  void release() {
    const std::lock_guard lock(mutex);
    is_released = true;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  int searches = 0;
  bool is_released = false, fails = false;
  uint64_t next_ticket = 1, last_ticket = 0;
  uint32_t context = 0, program = 0;
  std::unique_ptr<offload::Simulator> service;
};

}  // namespace

TEST_CASE("who looks for source lines keeps no other kernel waiting") {
  Engine e;
  const auto fault = e.launch(e.context, e.program, "poke", 0);
  const auto behind = e.launch(e.context, e.program, "nothing", 0);
  const auto beside = e.launch(e.context, e.program, "nothing", 1);
  e.wait_for_search();
  CHECK(e.steps_until([&] { return beside->has_value(); }));
  const uint32_t other = e.service->open();
  const uint32_t program = e.load(other);
  const auto elsewhere = e.launch(other, program, "nothing", 0);
  CHECK(e.steps_until([&] { return elsewhere->has_value(); }));
  // Kernels of a queue end in their order.
  CHECK(!fault->has_value());
  CHECK(!behind->has_value());
  e.release();
  CHECK(e.steps_until([&] { return behind->has_value(); }));
  REQUIRE(fault->has_value());
  CHECK((*fault)->status == 0);
  CHECK((*fault)->report.faults == 1);
  CHECK_MESSAGE((*fault)->text.find("in poke() at poke.c:47") != std::string::npos, (*fault)->text);
  // What is known is not looked for again.
  const auto again = e.launch(e.context, e.program, "poke", 0);
  CHECK(e.steps_until([&] { return again->has_value(); }));
  CHECK((*again)->text == (*fault)->text);
  CHECK(e.searches == 1);
}

TEST_CASE("a search that fails leaves the text without lines, and is the last of its program") {
  Engine e;
  e.fails = true;
  e.release();
  for (int i = 0; i < 2; ++i) {
    const auto fault = e.launch(e.context, e.program, "poke", 0);
    CHECK(e.steps_until([&] { return fault->has_value(); }));
    CHECK((*fault)->status == 0);
    CHECK_MESSAGE((*fault)->text.find("in poke(): ") != std::string::npos, (*fault)->text);
    CHECK(e.searches == 1);
  }
  const uint32_t program = e.load(e.context);
  const auto other = e.launch(e.context, program, "poke", 0);
  CHECK(e.steps_until([&] { return other->has_value(); }));
  CHECK(e.searches == 2);
}

TEST_CASE("a kernel that waits for its source lines can be cancelled, and its context closed") {
  Engine e;
  const auto fault = e.launch(e.context, e.program, "poke", 0);
  e.wait_for_search();
  e.service->cancel(e.context, e.last_ticket);
  REQUIRE(fault->has_value());
  CHECK((*fault)->status == -ECANCELED);
  CHECK((*fault)->report.faults == 1);
  const auto second = e.launch(e.context, e.program, "poke", 0);
  CHECK(e.steps_until([&] { return e.searches == 2; }));
  e.service->close(e.context);
  REQUIRE(second->has_value());
  CHECK((*second)->status == -ECANCELED);
}

TEST_CASE("a reader for each request, which may come to harm") {
  const daemon::LineHelper helper;  // the first of this process's threads is its only one
  const Bytes good = read_file(kernels_file());
  const std::vector<Range> sections = debug_sections(good);
  REQUIRE(sections.size() >= 3);
  uint64_t poke = 0;
  {
    Engine e;
    poke = e.service->symbol(e.context, e.program, "poke").address;
  }
  const std::vector<uint64_t> places{poke, poke + 4, 16};
  const auto check_good = [&] {
    const host::LineTable lines = helper.find(good, places);
    REQUIRE(lines.size() == 3);
    REQUIRE(lines.at(poke).size() == 1);
    CHECK(lines.at(poke).front().function == "poke");
    CHECK(lines.at(poke).front().file.ends_with("kernels.c"));
    CHECK(lines.at(poke).front().line > 0);
    CHECK(lines.at(16).empty());
  };
  check_good();
  CHECK(helper.find(Bytes(100, 0xff), places).at(poke).empty());
  const std::vector<uint64_t> too_many(daemon::LineHelper::kMostAddresses + 1, poke);
  CHECK(helper.find(good, too_many).empty());

  const bool replays = std::getenv("GPUSIM_SEED") != nullptr;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds_to_try());
  uint64_t seed = first_seed(), files = 0, without = 0;
  do {
    INFO("replay: GPUSIM_SEED=" << seed);
    Rng rng(seed++);
    const host::LineTable lines = helper.find(spoiled(good, sections, rng), places);
    CHECK((lines.empty() || lines.size() == places.size()));
    ++files;
    without += lines.empty();
  } while (!replays && std::chrono::steady_clock::now() < end);
  MESSAGE(files << " files, " << without << " of them without an answer");
  check_good();
}

TEST_CASE("a daemon whose guests' debug information was made to do harm") {
  Ram ram;
  BellLink link(ram);
  REQUIRE_MESSAGE(link.ready().status == 0, link.ready().text);
  Guest guest(link, ram);
  const Bytes good = read_file(kernels_file());
  const std::vector<Range> sections = debug_sections(good);
  const auto fault_of = [&](const Bytes& elf) {
    const uint32_t context = guest.open();
    const uint32_t program = guest.load(context, elf);
    const Reply r = guest.run(guest.launch(context, program, guest.symbol(context, program, "poke"),
                                           8, {core_number(), value(5), value(16)}));
    REQUIRE_MESSAGE(r.status == 0, r.what());
    CHECK(r.report.faults == 1);
    CHECK(r.report.fault_core == 5);
    guest.close(context);
    return r.what();
  };
  const std::string before = fault_of(good);
  CHECK_MESSAGE(before.find("in poke() at kernels.c:") != std::string::npos, before);
  uint64_t seed = first_seed();
  for (int file = 0; file < 20; ++file) {
    INFO("replay: GPUSIM_SEED=" << seed);
    Rng rng(seed++);
    const std::string text = fault_of(spoiled(good, sections, rng));
    CHECK_MESSAGE(text.starts_with("core 5: fault: store to memory"), text);
  }
  CHECK(fault_of(good) == before);
  CHECK_MESSAGE(link.daemon().lives(), link.daemon().errors());
}
