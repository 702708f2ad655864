// The bell page: hello, pausing, peers that go wrong or away.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "tests/system/daemon/fake_guest.h"

using namespace gpusim::test;

namespace {

struct Kernels {
  explicit Kernels(Link& link, Ram& ram) : guest(link, ram) {
    context = guest.open();
    program = guest.load(context, read_file(kernels_file()));
    clock = ram.pages(1);
    guest.map(context, 0x3000'0000, {{clock, kPage}});
  }
  gpusim_command launch(const std::string& name,
                        std::initializer_list<gpusim_argument> arguments = {}) {
    return guest.launch(context, program, guest.symbol(context, program, name), 1, arguments);
  }
  gpusim_command tick() { return launch("tick", {value(0x3000'0000)}); }
  uint64_t time() { return *guest.ram.at<volatile uint64_t>(clock); }

  Guest guest;
  uint32_t context = 0, program = 0;
  uint64_t clock = 0;
};

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

TEST_CASE("a hello that is wrong is refused with a reason") {
  Ram ram;
  using Hello = gpusim_bell_hello;
  using Regions = std::vector<gpusim_bell_region>;
  using Page = gpusim_bell_page;
  const std::vector<std::function<void(Hello&, Regions&, Page&)>> changes{
      [](Hello& h, Regions&, Page&) { h.magic = 1; },
      [](Hello& h, Regions&, Page&) { h.version = 99; },
      [](Hello& h, Regions&, Page&) { h.wire_version = 99; },
      [](Hello& h, Regions&, Page&) { h.generation = 0; },
      [](Hello& h, Regions&, Page&) { h.region_count = 2; },
      [](Hello& h, Regions&, Page&) { h.region_count = 1000; },
      [](Hello& h, Regions&, Page&) { h.fd_count = 2; },
      [](Hello&, Regions& r, Page&) { r[1].gpa += 1; },
      [](Hello&, Regions& r, Page&) { r[1].gpa = ~uint64_t{0} << 12; },
      [](Hello&, Regions& r, Page&) { r[1].gpa = r[2].gpa; },
      [](Hello&, Regions& r, Page&) { r[1].size_bytes += kPage; },
      [](Hello&, Regions& r, Page&) { r[1].size_bytes = 0; },
      [](Hello&, Regions& r, Page&) { r[2].size_bytes += kPage; },
      [](Hello&, Regions& r, Page&) { r[2].offset = ~uint64_t{0} << 12; },
      [](Hello&, Regions& r, Page&) { r[1].fd_index = 0; },
      [](Hello&, Regions& r, Page&) { r[1].fd_index = 3; },
      [](Hello&, Regions& r, Page&) { r[1].flags = 4; },
      [](Hello&, Regions&, Page& p) { p.magic = 0; },
      [](Hello&, Regions&, Page& p) { p.generation += 1; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    BellLink link(ram, {}, false, changes[i]);
    CHECK(link.ready().magic == GPUSIM_BELL_MAGIC);
    CHECK(link.ready().status == -EINVAL);
    CHECK(std::string(link.ready().text).size() > 10);
    CHECK(link.daemon().wait(10) == 2);
    CHECK(link.daemon().errors().starts_with("gpusim: error: "));
  }
  BellLink no_backend(ram, {"--backend", "abacus"});
  CHECK(no_backend.ready().status == -ENODEV);
  CHECK(no_backend.daemon().wait(10) == 2);
  BellLink good(ram);
  CHECK(good.ready().status == 0);
  CHECK(good.ready().generation == good.generation());
}

TEST_CASE("memory stands still while the machine is paused") {
  Ram ram;
  BellLink link(ram);
  Kernels k(link, ram);
  const gpusim_command endless = k.tick();
  const uint64_t gpa = k.guest.post(endless);
  REQUIRE(eventually(10, [&] { return k.time() > 1000; }));
  for (int round = 0; round < 3; ++round) {
    REQUIRE(link.pause(5));
    const uint64_t time = k.time();
    const uint64_t bell = k.guest.post(k.guest.command(GPUSIM_OP_COUNTERS, k.context));
    sleep_ms(50);
    CHECK(k.time() == time);
    CHECK(k.guest.look(bell).status == GPUSIM_PENDING);
    CHECK(eventually(5, [&] { return link.sleeps(); }));
    link.resume();
    CHECK(k.guest.wait(bell).status == 0);
    REQUIRE(eventually(10, [&] { return k.time() > time; }));
  }
  CHECK(k.guest.look(gpa).status == GPUSIM_PENDING);
  REQUIRE(link.pause(5));
  link.daemon().signal(SIGTERM);
  CHECK(link.daemon().wait(10) == 0);
  CHECK(k.guest.look(gpa).status == GPUSIM_PENDING);  // nothing was written
}

TEST_CASE("a machine may be paused from the start") {
  Ram ram;
  BellLink link(ram, {}, /*paused=*/true);
  REQUIRE(link.ready().status == 0);
  CHECK(eventually(5, [&] { return link.page().paused == 1; }));
  Guest guest(link, ram);
  const uint64_t gpa = guest.post(guest.command(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION}));
  CHECK(guest.wait(gpa, 0.05).status == GPUSIM_PENDING);
  link.resume();
  CHECK(eventually(5, [&] { return guest.look(gpa).status == 0; }));
}

TEST_CASE("the daemon sleeps when there is nothing to do, and wakes up") {
  Ram ram;
  BellLink link(ram, {"--spin-us", "20"});
  Kernels k(link, ram);
  for (int i = 0; i < 200; ++i) {
    if (i % 2 == 0) REQUIRE(eventually(5, [&] { return link.sleeps(); }));
    REQUIRE(k.guest.run(k.launch("nothing")).status == 0);
  }
  const auto ticks = [&] {  // of the processor, used
    std::string stat;
    const std::vector<uint8_t> bytes =
        read_file("/proc/" + std::to_string(link.daemon().pid()) + "/stat");
    stat.assign(bytes.begin(), bytes.end());
    size_t at = stat.rfind(')') + 2;
    for (int i = 0; i < 11; ++i) at = stat.find(' ', at) + 1;
    return std::stol(stat.substr(at));
  };
  const long before = ticks();
  sleep_ms(500);
  CHECK(ticks() - before <= 5);
}

TEST_CASE("a ring of 64 bells") {
  Ram ram;
  BellLink link(ram);
  Guest guest(link, ram);
  std::vector<uint64_t> gpas;
  for (int i = 0; i < 1000; ++i)
    gpas.push_back(guest.post(guest.command(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION})));
  for (const uint64_t gpa : gpas) CHECK(guest.wait(gpa).status == 0);
}

TEST_CASE("a page that is damaged ends the daemon, not more") {
  Ram ram;
  BellLink link(ram);
  Kernels k(link, ram);
  k.guest.post(k.tick());
  link.page().head += 1000;
  link.wake();
  CHECK(link.daemon().wait(10) == 0);
  CHECK(link.daemon().errors() ==
        "gpusim daemon: the bell page is damaged: more bells than its ring holds\n");
}

TEST_CASE("the daemon ends with its peer, whatever it does") {
  Ram ram;
  for (const bool busy : {false, true}) {
    BellLink link(ram);
    Kernels k(link, ram);
    if (busy) k.guest.post(k.tick());
    sleep_ms(20);
    link.hang_up();
    CHECK(link.daemon().wait(5) == 0);
    CHECK(link.daemon().errors() == "");
  }
}

TEST_CASE("the daemon ends when its peer is killed") {
  // A process that starts a daemon and tells its number.
  auto* pid = static_cast<volatile pid_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t peer = fork();
  if (peer == 0) {
    Ram ram;
    BellLink link(ram);
    Kernels k(link, ram);
    k.guest.post(k.tick());
    *pid = link.daemon().pid();
    for (;;) pause();
  }
  REQUIRE(eventually(20, [&] { return *pid != 0; }));
  CHECK(kill(*pid, 0) == 0);
  kill(peer, SIGKILL);
  waitpid(peer, nullptr, 0);
  // Init reaps it; as long as nobody does it is a zombie.
  CHECK(eventually(5, [&] {
    if (kill(*pid, 0) != 0) return true;
    const std::vector<uint8_t> stat = read_file("/proc/" + std::to_string(*pid) + "/stat");
    const std::string text(stat.begin(), stat.end());
    return text.find(") Z") != std::string::npos;
  }));
}

TEST_CASE("a daemon that was killed leaves memory that the next one serves") {
  Ram ram;
  auto link = std::make_unique<BellLink>(ram);
  auto k = std::make_unique<Kernels>(*link, ram);
  k->guest.post(k->tick());
  gpusim_command stale = k->launch("nothing");
  link->daemon().signal(SIGKILL);
  CHECK(link->daemon().wait(5) == 128 + SIGKILL);
  k.reset();
  link = std::make_unique<BellLink>(ram);
  k = std::make_unique<Kernels>(*link, ram);
  CHECK(k->guest.run(stale).status == -EIO);
  CHECK(k->guest.run(k->launch("nothing")).status == 0);
}

TEST_CASE("SIGTERM counts even in a kernel that is slow to stop") {
  Ram ram;
  BellLink link(ram);
  Kernels k(link, ram);
  k.guest.post(k.tick());
  sleep_ms(20);
  link.daemon().signal(SIGTERM);
  CHECK(link.daemon().wait(5) == 0);
}
