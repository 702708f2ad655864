// A guest that is both right and hostile, before a real daemon in its sandbox. Sequences of valid
// commands come from two kinds of contexts, by chance:
//
//   tame  their memory stands still; each reply must be the one that a model of the context expects
//   wild  another thread changes their tables, programs, data and requests while they are read
//
// Whatever happens to wild contexts, tame ones must not notice: their results stay right, memory
// that was given to nobody keeps its bytes, and the daemon answers everything.
//
// Each round has a seed of its own: GPUSIM_SEED replays one, but for the threads' timing.
// GPUSIM_FUZZ_SECONDS: how long rounds begin (10).
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "tests/system/daemon/fake_guest.h"

using namespace gpusim::test;

namespace {

using Rng = std::mt19937_64;

constexpr double kPatience = 120;                     // seconds for any reply; machines are busy
constexpr uint64_t kWildGpa = kRamGpa + (48u << 20);  // from here on; below it everything is tame
constexpr uint64_t kSlot = 1u << 20;                  // device addresses: one mapping in each
constexpr uint64_t kFirstSlot = 0x1000'0000;
constexpr uint32_t kMostContexts = 8, kMostCores = 4096;

uint64_t below(Rng& rng, uint64_t n) { return rng() % n; }
bool one_in(Rng& rng, uint64_t n) { return rng() % n == 0; }

// What became of wild commands; printed at the end, since a fuzzer whose commands all fail tries
// nothing.
struct Tally {
  uint64_t done = 0, refused = 0;
};
std::map<uint16_t, Tally> tallies;

// What a hostile guest writes in place of a number. Never an address in tame memory: that would be
// a guest that gives its processes each other's pages, which is its own affair.
uint64_t odd_number(Rng& rng) {
  switch (rng() % 10) {
    case 0:
      return below(rng, 4);
    case 1:
      return below(rng, 1 << 16);
    case 2:
      return below(rng, 64) * kPage;
    case 3:
    case 4:
      return kWildGpa + below(rng, 4000) * kPage;
    case 5:
      return kFirstSlot + below(rng, 8) * kSlot + below(rng, 2) * kPage;
    case 6:
      return kRamGpa + Ram::kSize - below(rng, 2) * 8;
    case 7:
      return uint64_t{1} << (48 + below(rng, 16));
    case 8:
      return ~uint64_t{0} << below(rng, 13);
    default:
      return rng() | uint64_t{1} << 63;
  }
}

// The thread that changes memory under the daemon's eyes.
class Changer {
 public:
  explicit Changer(uint64_t seed) : rng_(seed), thread_([this] { run(); }) {}
  ~Changer() {
    stop_ = true;
    thread_.join();
  }
  // 64-bit words in [bytes, bytes + size), until remove().
  void add(void* bytes, size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    targets_.push_back({static_cast<uint64_t*>(bytes), size_bytes / 8});
  }
  // Nothing changes while this lives.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }
  void remove(const void* bytes) {
    const std::lock_guard lock(mutex_);
    std::erase_if(targets_, [&](const Target& t) { return t.words == bytes; });
  }

 private:
  struct Target {
    uint64_t* words;
    size_t count;
  };
  void run() {
    while (!stop_) {
      if (const std::lock_guard lock(mutex_); !targets_.empty()) change();
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    }
  }
  // One word to and fro, for who reads it twice; mostly of what was given last, and of its head.
  void change() {
    const Target& t =
        targets_[one_in(rng_, 2) ? targets_.size() - 1 : below(rng_, targets_.size())];
    const size_t head = std::min<size_t>(t.count, 8);
    const std::atomic_ref<uint64_t> word(t.words[below(rng_, one_in(rng_, 2) ? head : t.count)]);
    const uint64_t right = word;
    // Wild memory is 16 MiB: a bit among the lower 24 leaves an address in it.
    const uint64_t bit = one_in(rng_, 2) ? below(rng_, 24) : 32 + below(rng_, 32);
    const uint64_t odd = one_in(rng_, 4) ? right ^ uint64_t { 1 } << bit : odd_number(rng_);
    for (int i = 0; i < 4000; ++i) word.store(i % 2 ? right : odd, std::memory_order_relaxed);
    if (one_in(rng_, 2)) word = odd;
  }

  Rng rng_;
  std::mutex mutex_;
  std::vector<Target> targets_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Machine {
  explicit Machine(Rng& rng) {
    std::vector<std::string> options{"--max-contexts", std::to_string(kMostContexts),
                                     "--max-cores",    std::to_string(kMostCores),
                                     "--time-limit",   "2",
                                     "--memory-limit", "4G",
                                     "--threads",      one_in(rng, 2) ? "1" : "2",
                                     "--backend",      one_in(rng, 4) ? "scalar" : "simd",
                                     "--sandbox"};
    if (one_in(rng, 4)) {
      char name[] = "/tmp/gpusim-sequences-XXXXXX";
      REQUIRE(mkdtemp(name) != nullptr);
      folder = name;
      ram = std::make_unique<Ram>(folder + "/ram");
      auto serial = std::make_unique<SerialLink>(folder + "/socket", folder + "/ram", options);
      serial->connect();
      link = std::move(serial);
    } else {
      ram = std::make_unique<Ram>();
      auto bells = std::make_unique<BellLink>(*ram, options);
      REQUIRE_MESSAGE(bells->ready().status == 0, bells->ready().text);
      bell = bells.get();
      link = std::move(bells);
    }
    CHECK(link->daemon().status_line("Seccomp") == "2");
  }
  ~Machine() {
    link.reset();
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
  std::string folder;
  std::unique_ptr<Ram> ram;
  std::unique_ptr<Link> link;
  BellLink* bell = nullptr;  // null: virtio-serial
};

struct Mapping {
  uint64_t address = 0, gpa = 0, pages = 0;
};

// A command that takes its time.
struct Running {
  uint64_t gpa = 0, ticket = 0;
};

class Tame {
 public:
  Tame(Guest& guest, Rng& rng, std::span<const uint8_t> elf)
      : g_(guest), rng_(rng), elf_(elf), number_(guest.open()) {}

  void step() {
    switch (below(rng_, 12)) {
      case 0:
      case 1:
        return map();
      case 2:
        return unmap();
      case 3:
      case 4:
      case 5:
        return add();
      case 6:
        return start_endless();
      case 7:
        return cancel();
      case 8:
        return churn();
      case 9:
        return fault();
      case 10:
        return refused();
      default:
        if (one_in(rng_, 4)) reset();
    }
  }

  void close() {
    expect({0}, run(GPUSIM_OP_CONTEXT_CLOSE));
    ended();
    expect({-ENOENT}, run(GPUSIM_OP_COUNTERS));
  }

 private:
  Reply run(uint16_t op, std::initializer_list<uint64_t> words = {}, const std::string& text = "") {
    return g_.wait(g_.post(g_.command(op, number_, words, text)), kPatience);
  }
  static void expect(std::initializer_list<int> wanted, const Reply& reply) {
    REQUIRE_MESSAGE(
        std::ranges::find(wanted, reply.status) != wanted.end(),
        "status " << reply.status << " instead of " << *wanted.begin() << ": " << reply.what());
  }

  void map() {
    const uint64_t address = kFirstSlot + below(rng_, 16) * kSlot, pages = 1 + below(rng_, 8);
    const uint64_t gpa = g_.ram.pages(pages);
    std::vector<gpusim_extent> extents;  // of one page each; neighbours may be merged or not
    for (uint64_t i = 0; i < pages; ++i) extents.push_back({gpa + i * kPage, kPage});
    const Reply reply = run(GPUSIM_OP_MAP, {address, pages * kPage, GPUSIM_READ | GPUSIM_WRITE,
                                            g_.table(extents), extents.size()});
    const bool taken =
        std::ranges::any_of(mappings_, [&](const Mapping& m) { return m.address == address; });
    expect({taken ? -EEXIST : 0}, reply);
    if (!taken) mappings_.push_back({address, gpa, pages});
  }

  void unmap() {
    if (mappings_.empty()) return;
    const size_t which = below(rng_, mappings_.size());
    const Mapping m = mappings_[which];
    const Reply reply = run(GPUSIM_OP_UNMAP, {m.address, m.pages * kPage});
    if (running_.empty())
      expect({0}, reply);
    else
      expect({0, -EBUSY}, reply);  // it may have ended by its limit
    if (reply.status == 0) mappings_.erase(mappings_.begin() + static_cast<ptrdiff_t>(which));
  }

  bool load() {
    if (program_ != 0) return true;
    // At an address that no mapping has.
    const uint64_t at = kFirstSlot + 64 * kSlot, size = (elf_.size() + kPage - 1) / kPage * kPage;
    g_.map(number_, at, {{g_.ram.pages_for(elf_), size}}, GPUSIM_READ);
    const Reply reply = run(GPUSIM_OP_LOAD, {at, elf_.size()});
    expect({0}, reply);
    program_ = static_cast<uint32_t>(reply.word[0]);
    return true;
  }
  uint64_t symbol(const std::string& name) { return g_.symbol(number_, program_, name); }
  const Mapping* large() const {
    const auto found =
        std::ranges::find_if(mappings_, [](const Mapping& m) { return m.pages >= 3; });
    return found == mappings_.end() ? nullptr : &*found;
  }

  // c = a + b, by any number of cores.
  void add() {
    finish();
    const Mapping* m = large();
    if (!m || !load()) return;
    int* const a = g_.ram.at<int>(m->gpa);
    constexpr uint64_t kInts = kPage / sizeof(int);
    for (uint64_t i = 0; i < 2 * kInts; ++i) a[i] = static_cast<int>(rng_() >> 40);
    std::memset(a + 2 * kInts, 0, kPage);
    const uint64_t n = below(rng_, kInts + 1), cores = 1 + below(rng_, 300);
    const Reply reply = g_.wait(
        g_.post(g_.launch(number_, program_, symbol("add"), static_cast<uint32_t>(cores),
                          {core_number(), core_count(), value(m->address),
                           value(m->address + kPage), value(m->address + 2 * kPage), value(n)})),
        kPatience);
    expect({0}, reply);
    CHECK(reply.report.exit_status == 0);
    for (uint64_t i = 0; i < kInts; ++i)
      REQUIRE(a[2 * kInts + i] == (i < n ? a[i] + a[kInts + i] : 0));
  }

  void churn() {
    finish();
    const Mapping* m = large();
    if (!m || !load()) return;
    const uint64_t cores = 1 + below(rng_, kPage / 8), n = below(rng_, 2000);
    const Reply reply =
        g_.wait(g_.post(g_.launch(number_, program_, symbol("churn"), static_cast<uint32_t>(cores),
                                  {core_number(), value(m->address), value(n)})),
                kPatience);
    expect({0}, reply);
    for (uint64_t core = 0; core < cores; ++core) {
      uint64_t x = core;
      for (uint64_t i = 0; i < n; ++i) x = x * 6364136223846793005u + (x >> 33) + i;
      REQUIRE(g_.ram.at<uint64_t>(m->gpa)[core] == x);
    }
  }

  void start_endless() {
    if (running_.size() == 3 || !load()) return;
    const gpusim_command c = g_.launch(number_, program_, symbol("forever"), 1);
    running_.push_back({g_.post(c), c.ticket});
  }

  void cancel() {
    if (running_.empty()) return;
    const size_t which = below(rng_, running_.size());
    const Running r = running_[which];
    expect({0, -ENOENT}, run(GPUSIM_OP_CANCEL, {r.ticket}));
    expect({-ECANCELED, -ETIMEDOUT}, g_.wait(r.gpa, kPatience));
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(which));
  }
  void finish() {
    while (!running_.empty()) cancel();
  }

  void fault() {
    finish();
    if (!load()) return;
    const Reply reply = g_.wait(g_.post(g_.launch(number_, program_, symbol("poke"), 8,
                                                  {core_number(), value(5), value(16)})),
                                kPatience);
    expect({0}, reply);
    CHECK(reply.report.exit_status == 139);
    CHECK(reply.report.fault_core == 5);
  }

  void refused() {
    expect({-EINVAL}, run(GPUSIM_OP_UNMAP, {kFirstSlot + 99 * kSlot, kPage}));
    expect({-ENOENT}, run(GPUSIM_OP_CANCEL, {0xdead}));
    expect({-ENOENT}, run(GPUSIM_OP_UNLOAD, {4711}));
    expect({-EINVAL}, run(GPUSIM_OP_COUNTERS, {1}));
    expect({-ENOSYS}, run(99));
    expect({0}, run(GPUSIM_OP_COUNTERS));
  }

  void reset() {
    expect({0}, run(GPUSIM_OP_RESET));
    ended();
    const Reply counters = run(GPUSIM_OP_COUNTERS);
    expect({0}, counters);
    CHECK(counters.word[1] == 0);
  }

  // Everything of the context is gone, and what ran has its reply already.
  void ended() {
    for (const Running& r : running_) {
      expect({-ECANCELED, -ETIMEDOUT}, g_.look(r.gpa));
      g_.wait(r.gpa, kPatience);
    }
    running_.clear();
    mappings_.clear();
    program_ = 0;
  }

  Guest& g_;
  Rng& rng_;
  std::span<const uint8_t> elf_;
  uint32_t number_, program_ = 0;
  std::vector<Mapping> mappings_;
  std::deque<Running> running_;
};

// Wild memory; all of it may be mapped in any wild context.
class WildMemory {
 public:
  explicit WildMemory(Ram& ram) : ram_(ram) {}
  uint64_t pages(uint64_t count) {
    if (next_ + count * kPage > kRamGpa + Ram::kSize) next_ = kWildGpa;  // and over old ones again
    const uint64_t gpa = next_;
    next_ += count * kPage;
    return gpa;
  }
  // Of commands: the changer has them only while they wait.
  uint64_t block() {
    if (blocks_.empty()) blocks_.push_back(ram_.pages(1));
    const uint64_t gpa = blocks_.back();
    blocks_.pop_back();
    return gpa;
  }
  void give_back(uint64_t block) { blocks_.push_back(block); }

 private:
  Ram& ram_;
  uint64_t next_ = kWildGpa;
  std::vector<uint64_t> blocks_;
};

class Wild {
 public:
  Wild(Guest& guest, Rng& rng, std::span<const uint8_t> elf, WildMemory& memory, Changer& changer)
      : g_(guest),
        rng_(rng),
        elf_(elf),
        memory_(memory),
        changer_(changer),
        number_(guest.open()) {}

  void step() {
    switch (below(rng_, 8)) {
      case 0:
      case 1:
        return map();
      case 2:
        post(g_.command(GPUSIM_OP_UNMAP, number_, {slot(), kPage * (1 + below(rng_, 8))}));
        return;
      case 3:
        return load();
      case 4:
      case 5:
        return launch();
      case 6:
        return direct();
      default:
        return other();
    }
  }

  void close() {
    forget_targets();
    const Reply reply = g_.run(GPUSIM_OP_CONTEXT_CLOSE, number_);
    REQUIRE_MESSAGE(reply.status == 0, reply.what());
    collect();
  }

 private:
  uint64_t slot() { return kFirstSlot + below(rng_, 8) * kSlot; }

  // Rings for it while its request changes; the answer may be any.
  void post(const gpusim_command& command) {
    const uint64_t gpa = memory_.block();
    auto* const block = g_.ram.at<gpusim_command>(gpa);
    *block = command;
    if (one_in(rng_, 2)) changer_.add(&block->request, sizeof block->request);
    g_.link.ring(gpa);
    pending_.push_back(gpa);
    if (pending_.size() > 4) collect();
  }

  void collect() {
    for (const uint64_t gpa : pending_) {
      const auto* const block = g_.ram.at<gpusim_command>(gpa);
      const std::atomic_ref<const int32_t> status(block->status);
      const bool answered = eventually(kPatience, [&] {
        if (status.load() != GPUSIM_PENDING) return true;
        g_.link.wait();
        return false;
      });
      REQUIRE_MESSAGE(answered, "operation " << block->op << " has no answer");
      CHECK((status.load() <= 0 && status.load() >= -4095));
      CHECK(memchr(block->reply.text, 0, sizeof block->reply.text) != nullptr);
      Tally& tally = tallies[block->op];
      ++(status.load() == 0 || status.load() == -ETIMEDOUT ? tally.done : tally.refused);
      if (block->op == GPUSIM_OP_LOAD && status.load() == 0)
        programs_.push_back(static_cast<uint32_t>(block->reply.word[0]));
      changer_.remove(&block->request);
      memory_.give_back(gpa);
    }
    pending_.clear();
  }

  void target(uint64_t gpa, size_t size_bytes) {
    changer_.add(g_.ram.at<uint8_t>(gpa), size_bytes);
    targets_.push_back(gpa);
    if (targets_.size() > 12) {
      changer_.remove(g_.ram.at<uint8_t>(targets_.front()));
      targets_.pop_front();
    }
  }
  void forget_targets() {
    for (const uint64_t gpa : targets_) changer_.remove(g_.ram.at<uint8_t>(gpa));
    targets_.clear();
  }

  void map() {
    const uint64_t pages = 1 + below(rng_, 8), gpa = memory_.pages(pages), table = memory_.pages(1);
    auto* const extents = g_.ram.at<gpusim_extent>(table);
    for (uint64_t i = 0; i < pages; ++i) extents[i] = {gpa + i * kPage, kPage};
    if (one_in(rng_, 2)) target(table, pages * sizeof(gpusim_extent));
    if (one_in(rng_, 2)) target(gpa, pages * kPage);
    post(g_.command(GPUSIM_OP_MAP, number_,
                    {slot(), pages * kPage, 1 + below(rng_, 3), table, pages}));
  }

  void load() {
    const uint64_t size = (elf_.size() + kPage - 1) / kPage * kPage,
                   gpa = memory_.pages(size / kPage);
    const uint64_t table = memory_.pages(1), at = kFirstSlot + (32 + below(rng_, 8)) * kSlot;
    std::memcpy(g_.ram.at<uint8_t>(gpa), elf_.data(), elf_.size());
    *g_.ram.at<gpusim_extent>(table) = {gpa, size};
    post(g_.command(GPUSIM_OP_MAP, number_, {at, size, GPUSIM_READ, table, 1}));
    if (one_in(rng_, 2)) target(gpa, one_in(rng_, 2) ? 512 : elf_.size());
    post(g_.command(GPUSIM_OP_LOAD, number_, {at, elf_.size(), one_in(rng_, 8)}));
    if (programs_.empty()) collect();  // launches need one
  }

  gpusim_command some_launch() {
    static const char* const names[] = {"nothing", "add", "churn",  "tick",
                                        "poke",    "say", "forever"};
    const uint32_t program =
        programs_.empty() ? static_cast<uint32_t>(below(rng_, 4)) : programs_.back();
    const Reply symbol =
        g_.run(GPUSIM_OP_SYMBOL, number_, {program}, names[below(rng_, std::size(names))]);
    gpusim_command c =
        g_.launch(number_, program, symbol.status == 0 ? symbol.word[0] : 0x400000 + rng_() % 4096,
                  static_cast<uint32_t>(1 + below(rng_, 200)),
                  {core_number(), value(slot()), value(slot()), value(below(rng_, 3000))});
    c.request.launch.time_limit_ns = 20'000'000;
    c.request.launch.max_instructions = one_in(rng_, 2) ? 100'000 : 0;
    if (one_in(rng_, 4)) {
      c.request.launch.output = slot();
      c.request.launch.output_size_bytes = 100;
    }
    if (one_in(rng_, 4))
      c.request.launch.arguments[2] = {GPUSIM_ARGUMENT_PER_CORE, 0, {}, slot(), 0};
    return c;
  }
  void launch() {
    const gpusim_command c = some_launch();
    post(c);
    if (one_in(rng_, 4)) post(g_.command(GPUSIM_OP_CANCEL, number_, {c.ticket}));
  }

  // Where launches are posted past the driver: all of the page is anybody's.
  void direct() {
    const uint64_t gpa = memory_.pages(1), table = memory_.pages(1), at = kFirstSlot + 50 * kSlot;
    *g_.ram.at<gpusim_extent>(table) = {gpa, kPage};
    post(g_.command(GPUSIM_OP_DIRECT, number_, {0}));
    post(g_.command(GPUSIM_OP_UNMAP, number_, {at, kPage}));
    post(g_.command(GPUSIM_OP_MAP, number_, {at, kPage, 3, table, 1}));
    post(g_.command(GPUSIM_OP_DIRECT, number_, {at}));
    auto* const page = g_.ram.at<gpusim_direct>(gpa);
    page->command = some_launch();
    target(gpa, one_in(rng_, 2) ? 64 : sizeof(gpusim_direct));
    std::atomic_ref<uint32_t>(page->state) = GPUSIM_DIRECT_POSTED;
  }

  void other() {
    switch (below(rng_, 6)) {
      case 0:
        return post(g_.command(GPUSIM_OP_CANCEL, number_, {g_.next_ticket - below(rng_, 4)}));
      case 1:
        return post(g_.command(GPUSIM_OP_CANCEL, number_,
                               {GPUSIM_DIRECT_TICKET | (g_.next_ticket - below(rng_, 4))}));
      case 2:
        return post(g_.command(GPUSIM_OP_UNLOAD, number_, {below(rng_, 4)}));
      case 3:
        return post(g_.command(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION}));
      case 4:
        return post(g_.command(GPUSIM_OP_COUNTERS, number_));
      default:
        if (one_in(rng_, 3)) post(g_.command(GPUSIM_OP_RESET, number_));
    }
  }

  Guest& g_;
  Rng& rng_;
  std::span<const uint8_t> elf_;
  WildMemory& memory_;
  Changer& changer_;
  uint32_t number_;
  std::vector<uint64_t> pending_;  // gpas
  std::vector<uint32_t> programs_;
  std::deque<uint64_t> targets_;
};

// Memory stands still while the machine does, whatever runs.
void pause(Machine& machine, Changer& changer) {
  if (!machine.bell) return;
  const auto held = changer.hold();
  REQUIRE(machine.bell->pause(kPatience));
  const auto* const bytes = machine.ram->at<uint8_t>(kRamGpa);
  const std::vector<uint8_t> before(bytes, bytes + Ram::kSize);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(std::memcmp(before.data(), bytes, Ram::kSize) == 0);
  machine.bell->resume();
}

void round_of(uint64_t seed, int steps) {
  INFO("replay: GPUSIM_SEED=" << seed);
  Rng rng(seed);
  const std::vector<uint8_t> elf = read_file(kernels_file());
  Machine machine(rng);
  Ram& ram = *machine.ram;
  Guest guest(*machine.link, ram);
  constexpr size_t kCanary = 64 * kPage;
  const uint64_t canary = ram.pages(64);
  std::memset(ram.at<uint8_t>(canary), 0xa5, kCanary);
  const size_t descriptors = machine.link->daemon().descriptors();
  {
    WildMemory memory(ram);
    Changer changer(seed + 1);
    std::vector<std::unique_ptr<Tame>> tame;
    std::vector<std::unique_ptr<Wild>> wild;
    for (int i = 0; i < steps; ++i) {
      INFO("step " << i);
      const size_t open = tame.size() + wild.size();
      if (open < 2 || (open < kMostContexts && one_in(rng, 10))) {
        if (one_in(rng, 2))
          tame.push_back(std::make_unique<Tame>(guest, rng, elf));
        else
          wild.push_back(std::make_unique<Wild>(guest, rng, elf, memory, changer));
      } else if (open == kMostContexts && one_in(rng, 8)) {
        CHECK(guest.run(GPUSIM_OP_CONTEXT_OPEN).status == -EBUSY);
      } else if (one_in(rng, 20) && !tame.empty()) {
        tame.back()->close();
        tame.pop_back();
      } else if (one_in(rng, 20) && !wild.empty()) {
        wild.back()->close();
        wild.pop_back();
      } else if (one_in(rng, 30)) {
        pause(machine, changer);
      } else if (!wild.empty() && (tame.empty() || one_in(rng, 2))) {
        wild[below(rng, wild.size())]->step();
      } else {
        tame[below(rng, tame.size())]->step();
      }
      REQUIRE_MESSAGE(machine.link->daemon().lives(), machine.link->daemon().errors());
    }
    for (const auto& context : wild) context->close();
    for (const auto& context : tame) context->close();
  }
  CHECK(std::all_of(ram.at<uint8_t>(canary), ram.at<uint8_t>(canary) + kCanary,
                    [](uint8_t b) { return b == 0xa5; }));
  CHECK(machine.link->daemon().descriptors() <= descriptors + 4);  // the engine's own
  CHECK(machine.link->daemon().errors() == "");
}

double seconds() {
  const char* text = std::getenv("GPUSIM_FUZZ_SECONDS");
  return text ? std::atof(text) : 10;
}

}  // namespace

TEST_CASE("tame contexts do not notice what happens to wild ones") {
  constexpr int kSteps = 120;
  if (const char* text = std::getenv("GPUSIM_SEED"))
    return round_of(std::strtoull(text, nullptr, 0), kSteps);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds());
  std::random_device random;
  int rounds = 0;
  do {
    round_of(uint64_t{random()} << 20 | rounds, kSteps);
    ++rounds;
  } while (std::chrono::steady_clock::now() < end);
  MESSAGE(rounds << " rounds of " << kSteps << " steps; wild commands:");
  for (const auto& [op, tally] : tallies)
    MESSAGE("operation " << op << ": " << tally.done << " done, " << tally.refused << " refused");
}
