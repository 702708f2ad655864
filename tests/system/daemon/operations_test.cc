// All operations, by both transports.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>

#include "tests/system/daemon/fake_guest.h"

using namespace gpusim::test;

namespace {

// A machine with a daemon, and a context with the kernels.
struct Setup {
  explicit Setup(bool serial, std::vector<std::string> options = {}) {
    if (!serial) {
      ram = std::make_unique<Ram>();
      auto bell = std::make_unique<BellLink>(*ram, std::move(options));
      REQUIRE_MESSAGE(bell->ready().status == 0, bell->ready().text);
      link = std::move(bell);
    } else {
      char name[] = "/tmp/gpusim-daemon-test-XXXXXX";
      REQUIRE(mkdtemp(name) != nullptr);
      folder = name;
      ram = std::make_unique<Ram>(folder + "/ram");
      auto port =
          std::make_unique<SerialLink>(folder + "/socket", folder + "/ram", std::move(options));
      port->connect();
      link = std::move(port);
    }
    guest = std::make_unique<Guest>(*link, *ram);
    context = guest->open();
    program = guest->load(context, read_file(kernels_file()));
  }
  ~Setup() {
    CHECK_MESSAGE(link->daemon().lives(), link->daemon().errors());
    link.reset();
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
  gpusim_command launch(const std::string& name, uint32_t cores,
                        std::initializer_list<gpusim_argument> arguments = {}) {
    return guest->launch(context, program, guest->symbol(context, program, name), cores, arguments);
  }

  std::string folder;
  std::unique_ptr<Ram> ram;
  std::unique_ptr<Link> link;
  std::unique_ptr<Guest> guest;
  uint32_t context = 0, program = 0;
};

void both(const std::function<void(bool serial)>& test) {
  SUBCASE("bell page") { test(false); }
  SUBCASE("virtio-serial") { test(true); }
}

}  // namespace

TEST_CASE("HELLO tells what there is") {
  both([](bool serial) {
    Setup s(serial, {"--max-cores", "5000", "--max-contexts", "7"});
    const Reply r = s.guest->run(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION});
    REQUIRE(r.status == 0);
    CHECK(r.word[0] == GPUSIM_WIRE_VERSION);
    CHECK(r.word[1] == s.link->generation());
    CHECK(r.word[2] == 5000);
    CHECK(r.word[3] == 7);
    CHECK(r.word[4] >= uint64_t{1} << 32);
    CHECK(r.word[5] == kPage);
    CHECK(r.what().find("simd: ") != std::string::npos);
    CHECK(r.what().find("scalar: ") != std::string::npos);
    CHECK(s.guest->run(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION + 1}).status == -EPROTO);
    CHECK(s.guest->run(s.launch("nothing", 5001)).status == -EINVAL);
    std::vector<uint32_t> contexts;
    for (int i = 0; i < 6; ++i) contexts.push_back(s.guest->open());
    CHECK(s.guest->run(GPUSIM_OP_CONTEXT_OPEN).status == -EBUSY);
    s.guest->close(contexts[2]);
    s.guest->open();
  });
}

TEST_CASE("kernels work on guest memory in place") {
  both([](bool serial) {
    Setup s(serial);
    Guest& g = *s.guest;
    // Pages in the wrong order, some of them neighbours, on both sides of the regions' border.
    const uint64_t a = s.ram->pages(4);
    const uint64_t border = kRamGpa + Ram::kSize / 2;
    g.map(s.context, 0x2000'0000,
          {{a + 2 * kPage, kPage}, {border - kPage, 2 * kPage}, {a, kPage}, {a + kPage, kPage}});
    std::memset(s.ram->at<char>(border - kPage), 0, 2 * kPage);
    const uint64_t n = 1024;  // per page
    std::iota(s.ram->at<int>(a + 2 * kPage), s.ram->at<int>(a + 2 * kPage) + n, 0);
    std::iota(s.ram->at<int>(border - kPage), s.ram->at<int>(border - kPage) + n, 7);
    const Reply r = g.run(s.launch("add", 100,
                                   {core_number(), core_count(), value(0x2000'0000),
                                    value(0x2000'1000), value(0x2000'2000), value(n)}));
    REQUIRE_MESSAGE(r.status == 0, r.what());
    CHECK(r.report.exit_status == 0);
    CHECK(r.report.cores == 100);
    CHECK(r.report.guest_instructions > 4 * n);
    REQUIRE(r.classes.count <= GPUSIM_MOST_CLASSES);
    CHECK(std::accumulate(r.classes.instructions, r.classes.instructions + r.classes.count,
                          uint64_t{0}) == r.report.guest_instructions);
    const int* c = s.ram->at<int>(border);
    for (int i = 0; i < static_cast<int>(n); ++i) REQUIRE(c[i] == 2 * i + 7);

    const Reply counters = g.run(GPUSIM_OP_COUNTERS, s.context);
    CHECK(counters.word[0] == 0);  // nothing was copied
    CHECK(counters.word[1] > 5 * kPage);
    CHECK(counters.word[2] == 1);
    CHECK(counters.word[3] == 1);
    CHECK(g.run(GPUSIM_OP_UNMAP, s.context, {0x2000'0000, 4 * kPage}).status == -EINVAL);
    CHECK(g.run(GPUSIM_OP_UNMAP, s.context, {0x2000'0000, 5 * kPage}).status == 0);
    const Reply after = g.run(GPUSIM_OP_COUNTERS, s.context);
    CHECK(after.word[1] == counters.word[1] - 5 * kPage);
    CHECK(g.run(GPUSIM_OP_UNLOAD, s.context, {s.program}).status == 0);
    CHECK(g.run(GPUSIM_OP_UNLOAD, s.context, {s.program}).status == -ENOENT);
    g.close(s.context);
    CHECK(g.run(GPUSIM_OP_COUNTERS, s.context).status == -ENOENT);
    // The same bytes again: translated already.
    s.context = g.open();
    s.program = g.load(s.context, read_file(kernels_file()));
    CHECK(g.run(GPUSIM_OP_COUNTERS, s.context).word[4] == 1);
  });
}

TEST_CASE("native code and threads work in the sandbox, and without it") {
  for (const char* option : {"--sandbox", "--no-sandbox"}) {
    Setup s(false, {option, "--backend", "simd", "--threads", "3"});
    CHECK(s.link->daemon().status_line("Seccomp") ==
          (std::string(option) == "--sandbox" ? "2" : "0"));
    CHECK(s.link->daemon().status_line("NoNewPrivs") == "1");
    const uint64_t out = s.ram->pages(4);
    s.guest->map(s.context, 0x3000'0000, {{out, 4 * kPage}});
    const Reply r =
        s.guest->run(s.launch("churn", 512, {core_number(), value(0x3000'0000), value(20'000)}));
    REQUIRE_MESSAGE(r.status == 0, r.what());
    for (uint64_t core = 0; core < 512; ++core) {
      uint64_t x = core;
      for (uint64_t i = 0; i < 20'000; ++i) x = x * 6364136223846793005u + (x >> 33) + i;
      REQUIRE(s.ram->at<uint64_t>(out)[core] == x);
    }
  }
}

TEST_CASE("what a kernel writes arrives in guest memory") {
  both([](bool serial) {
    Setup s(serial);
    const uint64_t out = s.ram->pages(1);
    s.guest->map(s.context, 0x3000'0000, {{out, kPage}});
    gpusim_command c = s.launch("say", 2, {value(3)});
    c.request.launch.output = 0x3000'0000;
    c.request.launch.output_size_bytes = 20;
    const Reply r = s.guest->run(c);
    REQUIRE_MESSAGE(r.status == 0, r.what());
    CHECK(r.report.output_bytes == 36);
    CHECK(std::string(s.ram->at<char>(out), 24) ==
          std::string("hello\nhello\nhello\n\0\0\0\0\0\0", 24));
    c.ticket = 999;
    c.request.launch.output_size_bytes = kPage + 1;
    CHECK(s.guest->run(c).status == -EFAULT);

    // A whole program, with memory of its own.
    c = s.guest->launch(s.context, s.program, 0, 1);
    c.request.launch.flags = GPUSIM_LAUNCH_PROCESS;
    c.request.launch.output = 0x3000'0000;
    c.request.launch.output_size_bytes = kPage;
    const Reply process = s.guest->run(c);
    CHECK_MESSAGE(process.status == 0, process.what());
    CHECK(process.report.exit_status == 3);
    CHECK(std::string(s.ram->at<char>(out), 8) == "process\n");
  });
}

TEST_CASE("faults and endless kernels") {
  both([](bool serial) {
    Setup s(serial, {"--time-limit", "2"});
    Guest& g = *s.guest;
    const Reply fault = g.run(s.launch("poke", 8, {core_number(), value(5), value(16)}));
    CHECK(fault.status == 0);
    CHECK(fault.report.exit_status == 139);
    CHECK(fault.report.faults == 1);
    CHECK(fault.report.fault_core == 5);
    CHECK(fault.what().find("core 5") != std::string::npos);
    CHECK_MESSAGE(fault.what().find("in poke() at kernels.c:") != std::string::npos, fault.what());
    // What is not mapped for writing.
    g.map(s.context, 0x3000'0000, {{s.ram->pages(1), kPage}}, GPUSIM_READ);
    CHECK(g.run(s.launch("poke", 1, {core_number(), value(0), value(0x3000'0000)}))
              .report.exit_status == 139);

    const Reply late = g.run(s.launch("forever", 64));
    CHECK(late.status == -ETIMEDOUT);
    CHECK(late.what().find("limit") != std::string::npos);
    const gpusim_command endless = s.launch("forever", 64), waits = s.launch("nothing", 1);
    const uint64_t first = g.post(endless), second = g.post(waits);
    CHECK(g.run(GPUSIM_OP_UNMAP, s.context, {0x3000'0000, kPage}).status == -EBUSY);
    CHECK(g.run(GPUSIM_OP_UNLOAD, s.context, {s.program}).status == -EBUSY);
    CHECK(g.run(GPUSIM_OP_CANCEL, s.context, {waits.ticket}).status == 0);
    CHECK(g.look(second).status == -ECANCELED);
    CHECK(g.run(GPUSIM_OP_CANCEL, s.context, {endless.ticket}).status == 0);
    CHECK(g.wait(first).status == -ECANCELED);
    CHECK(g.run(GPUSIM_OP_CANCEL, s.context, {endless.ticket}).status == -ENOENT);
    CHECK(g.run(s.launch("nothing", 64)).status == 0);
    // In the middle of a kernel.
    const uint64_t third = g.post(s.launch("forever", 1));
    g.close(s.context);
    CHECK(g.look(third).status == -ECANCELED);
    const uint32_t next = g.open();
    g.map(next, 0x3000'0000, {{s.ram->pages(1), kPage}});
    CHECK(g.run(GPUSIM_OP_RESET, next).status == 0);
    CHECK(g.run(GPUSIM_OP_COUNTERS, next).word[1] == 0);
  });
}

// A slice of so many cores that each do what is slow takes seconds: they may not wait for its end.
TEST_CASE("CANCEL, time limits and signals reach a million slow cores") {
  constexpr uint32_t kCores = 1 << 20;
  constexpr uint64_t kAt = 0x3000'0000;
  const auto started = [&](Setup& s) {
    const uint64_t page = s.ram->pages(1);
    s.guest->map(s.context, kAt, {{page, kPage}});
    const gpusim_command crawl = s.launch("crawl", kCores, {core_number(), value(kAt)});
    const uint64_t gpa = s.guest->post(crawl);
    CHECK(eventually(60, [&] { return *s.ram->at<volatile uint64_t>(page) != 0; }));
    return std::pair(gpa, crawl.ticket);
  };
  // It does not matter how long it takes, but for what happens if it takes much too long.
  const auto say = [&](const std::string& what, auto since) {
    MESSAGE(what << ": ms " << std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::steady_clock::now() - since)
                                   .count());
  };
  for (const std::string backend : {"scalar", "simd"}) {
    CAPTURE(backend);
    Setup s(false, {"--backend", backend});
    const auto [gpa, ticket] = started(s);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(s.guest->run(GPUSIM_OP_COUNTERS, s.context).status == 0);
    say("COUNTERS", begin);
    const auto then = std::chrono::steady_clock::now();
    CHECK(s.guest->run(GPUSIM_OP_CANCEL, s.context, {ticket}).status == 0);
    say("CANCEL", then);
    CHECK(s.guest->look(gpa).status == -ECANCELED);
  }
  {
    Setup s(false, {"--time-limit", "0.2"});
    const Reply r = s.guest->wait(started(s).first);
    CHECK(r.status == -ETIMEDOUT);
    MESSAGE("the limit of 200 ms: ms " << r.report.lasted_ns / 1'000'000);
  }
  Ram ram;
  BellLink link(ram);
  Guest guest(link, ram);
  const uint32_t context = guest.open();
  const uint32_t program = guest.load(context, read_file(kernels_file()));
  const uint64_t page = ram.pages(1);
  guest.map(context, kAt, {{page, kPage}});
  const uint64_t gpa =
      guest.post(guest.launch(context, program, guest.symbol(context, program, "crawl"), kCores,
                              {core_number(), value(kAt)}));
  CHECK(eventually(60, [&] { return *ram.at<volatile uint64_t>(page) != 0; }));
  const auto begin = std::chrono::steady_clock::now();
  link.daemon().signal(SIGTERM);
  CHECK(link.daemon().wait(20) == 0);  // 1: it had to be ended
  say("SIGTERM", begin);
  CHECK(guest.look(gpa).status == -ECANCELED);
}

TEST_CASE("processes post launches past the driver") {
  both([](bool serial) {
    Setup s(serial);
    Guest& g = *s.guest;
    constexpr uint64_t kAt = 0x3000'0000, kData = 0x3100'0000;
    const uint64_t page = s.ram->pages(1), data = s.ram->pages(1);
    g.map(s.context, kAt, {{page, kPage}});
    g.map(s.context, kData, {{data, kPage}});
    g.map(s.context, 0x3200'0000, {{s.ram->pages(1), kPage}}, GPUSIM_READ);
    const auto direct = [&](uint64_t at) { return g.run(GPUSIM_OP_DIRECT, s.context, {at}).status; };
    CHECK(direct(kAt + 8) == -EINVAL);
    CHECK(direct(kAt + kPage - 64) == -EFAULT);
    CHECK(direct(0x3200'0000) == -EFAULT);
    CHECK(direct(0x3300'0000) == -EFAULT);
    auto* const d = s.ram->at<gpusim_direct>(page);
    CHECK(d->listening == 0);
    REQUIRE(direct(kAt) == 0);

    const std::atomic_ref<uint32_t> state(d->state), listening(d->listening);
    const std::atomic_ref<int32_t> status(d->command.status);
    const auto post = [&](const gpusim_command& command) {
      d->command = command;
      state = GPUSIM_DIRECT_POSTED;
      if (!listening) g.run(GPUSIM_OP_COUNTERS, s.context);  // it fell asleep
    };
    const auto run = [&](const gpusim_command& command) {
      post(command);
      Reply r;
      if (!eventually(20, [&] { return status != GPUSIM_PENDING; })) return r;
      static_cast<gpusim_reply&>(r) = d->command.reply;
      r.status = status;
      state = GPUSIM_DIRECT_FREE;
      return r;
    };
    for (int round = 0; round < 50; ++round) {
      gpusim_command poke = s.launch("poke", 8, {core_number(), value(5), value(kData)});
      poke.context = s.context + 1;  // not looked at
      poke.generation = 4711;
      *s.ram->at<int>(data) = 0;
      const Reply r = run(poke);
      REQUIRE_MESSAGE(r.status == 0, r.what());
      CHECK(r.report.cores == 8);
      CHECK(*s.ram->at<int>(data) == 1);
    }
    CHECK(g.run(GPUSIM_OP_COUNTERS, s.context).word[5] == 50);
    // Others' memory is not in this context.
    const uint32_t other = g.open();
    g.map(other, 0x5000'0000, {{s.ram->pages(1), kPage}});
    CHECK(run(s.launch("poke", 1, {core_number(), value(0), value(0x5000'0000)})).report.exit_status ==
          139);
    CHECK(run(g.command(GPUSIM_OP_COUNTERS, s.context)).status == -EPERM);
    CHECK(run(g.command(GPUSIM_OP_CONTEXT_CLOSE, other)).status == -EPERM);
    CHECK(run(g.command(4711, s.context)).status == -ENOSYS);
    gpusim_command bad = s.launch("nothing", 1);
    bad.magic = 1;
    CHECK(run(bad).status == -EINVAL);
    bad = s.launch("nothing", 1);
    bad.request.launch.program = 99;
    CHECK(run(bad).status == -ENOENT);

    gpusim_command endless = s.launch("forever", 64);
    endless.ticket = 7;
    post(endless);
    CHECK(eventually(20, [&] { return state == GPUSIM_DIRECT_TAKEN; }));
    state = GPUSIM_DIRECT_POSTED;  // a second one before the reply is not looked at
    CHECK(direct(0) == -EBUSY);
    CHECK(g.run(GPUSIM_OP_UNMAP, s.context, {kAt, kPage}).status == -EBUSY);
    CHECK(state == GPUSIM_DIRECT_POSTED);
    state = GPUSIM_DIRECT_TAKEN;
    CHECK(g.run(GPUSIM_OP_CANCEL, s.context, {7}).status == -ENOENT);
    CHECK(g.run(GPUSIM_OP_CANCEL, s.context, {GPUSIM_DIRECT_TICKET | 7}).status == 0);
    CHECK(eventually(20, [&] { return status == -ECANCELED; }));
    CHECK(run(s.launch("nothing", 1)).status == 0);

    // It sleeps, and says so. What is cancelled before anybody saw it is cancelled all the same.
    CHECK(eventually(20, [&] { return listening == 0; }));
    endless.ticket = 8;
    d->command = endless;
    state = GPUSIM_DIRECT_POSTED;
    CHECK(g.run(GPUSIM_OP_CANCEL, s.context, {GPUSIM_DIRECT_TICKET | 8}).status == 0);
    CHECK(eventually(20, [&] { return status == -ECANCELED; }));
    CHECK(eventually(20, [&] { return listening == 0; }));
    d->command = s.launch("nothing", 1);
    state = GPUSIM_DIRECT_POSTED;
    // Taken first, or never.
    CHECK(eventually(20, [&] { return g.run(GPUSIM_OP_UNMAP, s.context, {kAt, kPage}).status == 0; }));
    CHECK(status != GPUSIM_PENDING);
    d->command.status = GPUSIM_PENDING;
    state = GPUSIM_DIRECT_POSTED;
    for (int i = 0; i < 10; ++i) g.run(GPUSIM_OP_COUNTERS, s.context);
    CHECK(state == GPUSIM_DIRECT_POSTED);
    state = GPUSIM_DIRECT_FREE;
    // In the middle of a kernel.
    g.map(s.context, kAt, {{page, kPage}});
    REQUIRE(direct(kAt) == 0);
    post(s.launch("forever", 1));
    REQUIRE(eventually(20, [&] { return state == GPUSIM_DIRECT_TAKEN; }));
    g.close(s.context);
    CHECK(status == -ECANCELED);
    listening = 0;
    for (int i = 0; i < 10; ++i) g.run(GPUSIM_OP_COUNTERS, other);
    CHECK(listening == 0);
  });
}

TEST_CASE("a page of posted launches that goes in part") {
  both([](bool serial) {
    Setup s(serial);
    Guest& g = *s.guest;
    constexpr uint64_t kAt = 0x3000'0000;
    const uint64_t page = s.ram->pages(1);
    g.map(s.context, kAt, {{page, kPage}});
    g.map(s.context, kAt + kPage, {{s.ram->pages(1), kPage}});
    REQUIRE(g.run(GPUSIM_OP_DIRECT, s.context, {kAt + kPage - 64}).status == 0);
    const std::atomic_ref<uint32_t> state(s.ram->at<gpusim_direct>(page + kPage - 64)->state);
    CHECK(g.run(GPUSIM_OP_UNMAP, s.context, {kAt + kPage, kPage}).status == 0);
    state = GPUSIM_DIRECT_POSTED;
    for (int i = 0; i < 10; ++i) CHECK(g.run(GPUSIM_OP_COUNTERS, s.context).status == 0);
    CHECK(state == GPUSIM_DIRECT_POSTED);
  });
}

TEST_CASE("contexts take turns") {
  both([](bool serial) {
    Setup s(serial);
    std::vector<std::unique_ptr<Guest>> guests;
    std::vector<uint64_t> endless, clocks;
    for (int i = 0; i < 3; ++i) {
      const uint32_t context = s.guest->open();
      const uint32_t program = s.guest->load(context, read_file(kernels_file()));
      clocks.push_back(s.ram->pages(1));
      s.guest->map(context, 0x3000'0000, {{clocks.back(), kPage}});
      endless.push_back(s.guest->post(s.guest->launch(
          context, program, s.guest->symbol(context, program, "tick"), 1, {value(0x3000'0000)})));
    }
    for (int i = 0; i < 20; ++i) REQUIRE(s.guest->run(s.launch("nothing", 1)).status == 0);
    std::vector<uint64_t> counts;
    REQUIRE(eventually(20, [&] {
      counts.clear();
      for (const uint64_t clock : clocks)
        counts.push_back(uint64_t{*s.ram->at<volatile uint64_t>(clock)});
      return *std::min_element(counts.begin(), counts.end()) > 20'000'000;
    }));
    // Within a few slices of each other.
    CHECK(*std::max_element(counts.begin(), counts.end()) <
          2 * *std::min_element(counts.begin(), counts.end()));
    for (const uint64_t gpa : endless) CHECK(s.guest->look(gpa).status == GPUSIM_PENDING);
  });
}

TEST_CASE("a thousand contexts leave nothing behind") {
  both([](bool serial) {
    Setup s(serial);
    Guest& g = *s.guest;
    const std::vector<uint8_t> elf = read_file(kernels_file());
    const uint64_t size = (elf.size() + kPage - 1) / kPage * kPage;
    const uint64_t image = s.ram->pages_for(elf), data = s.ram->pages(1);
    const uint64_t table = g.table({{image, size}}), data_table = g.table({{data, kPage}});
    const uint64_t nothing = g.symbol(s.context, s.program, "nothing");
    Child& daemon = s.link->daemon();
    size_t descriptors = 0, mappings = 0;
    uint64_t resident = 0;
    for (int i = 0; i < 1000; ++i) {
      const uint32_t c = g.open();
      REQUIRE(g.run(GPUSIM_OP_MAP, c, {0x1000'0000, size, GPUSIM_READ, table, 1}).status == 0);
      REQUIRE(g.run(GPUSIM_OP_MAP, c, {0x2000'0000, kPage, 3, data_table, 1}).status == 0);
      const Reply r = g.run(GPUSIM_OP_LOAD, c, {0x1000'0000, elf.size()});
      REQUIRE_MESSAGE(r.status == 0, r.what());
      const auto program = static_cast<uint32_t>(r.word[0]);
      REQUIRE(g.run(g.launch(c, program, nothing, 4)).status == 0);
      // Some end in the middle of a kernel or of a load.
      if (i % 3 == 0) g.post(g.launch(c, program, g.symbol(c, program, "forever"), 4));
      if (i % 5 == 0) g.post(g.command(GPUSIM_OP_LOAD, c, {0x1000'0000, elf.size()}));
      g.close(c);
      if (i == 200) {
        descriptors = daemon.descriptors();
        mappings = daemon.mappings();
        resident = daemon.resident_kib();
      }
    }
    CHECK(daemon.descriptors() <= descriptors);
    CHECK(daemon.mappings() <= mappings + 8);  // an allocator's
    CHECK(daemon.resident_kib() <= resident + 4096);
  });
}

TEST_CASE("bad commands get an errno and a sentence, and do no harm") {
  both([](bool serial) {
    Setup s(serial);
    Guest& g = *s.guest;
    const uint32_t c = s.context;
    const uint64_t page = s.ram->pages(1);
    const uint64_t table = g.table({{page, kPage}});
    int checked = 0;
    const auto refused = [&](const gpusim_command& command, int status) {
      const Reply r = g.run(command);
      CAPTURE(command.op);
      CHECK_MESSAGE(r.status == status, "got " << r.status << ": " << r.what());
      CHECK(r.what().size() > 5);
      ++checked;
    };
    gpusim_command bad = g.command(GPUSIM_OP_COUNTERS, c);
    bad.magic = 0;
    refused(bad, -EINVAL);
    bad = g.command(GPUSIM_OP_COUNTERS, c);
    bad.version = 77;
    refused(bad, -EPROTO);
    for (const uint16_t op : {0, GPUSIM_OP_CLASSES + 1, 255, 65535})
      refused(g.command(op, c), -ENOSYS);
    bad = g.command(GPUSIM_OP_COUNTERS, c);
    bad.generation ^= 1;
    refused(bad, -EIO);
    bad = g.command(GPUSIM_OP_COUNTERS, c);
    bad.reserved[8] = 1;
    refused(bad, -EINVAL);
    refused(g.command(GPUSIM_OP_COUNTERS, c + 1000), -ENOENT);
    refused(g.command(GPUSIM_OP_COUNTERS, 0), -ENOENT);
    refused(g.command(GPUSIM_OP_CONTEXT_OPEN, c), -EINVAL);
    refused(g.command(GPUSIM_OP_COUNTERS, c, {1}), -EINVAL);
    refused(g.command(GPUSIM_OP_COUNTERS, c, {}, "text"), -EINVAL);

    const auto map = [&](uint64_t address, uint64_t size, uint64_t rights, uint64_t at,
                         uint64_t count) {
      return g.command(GPUSIM_OP_MAP, c, {address, size, rights, at, count});
    };
    const uint64_t at = 0x2000'0000;
    const auto extents = [&](std::vector<gpusim_extent> list, uint64_t size) {
      return map(at, size, 3, g.table(list), list.size());
    };
    refused(map(at + 1, kPage, 3, table, 1), -EINVAL);
    refused(map(at, kPage + 1, 3, table, 1), -EINVAL);
    refused(map(at, 0, 3, table, 1), -EINVAL);
    refused(map(at, kPage, 0, table, 1), -EINVAL);
    refused(map(at, kPage, 4, table, 1), -EINVAL);
    refused(map(at, kPage, 3, table, 0), -EINVAL);
    refused(map(at, kPage, 3, table, ~uint64_t{0}), -EINVAL);
    refused(map(at, uint64_t{1} << 62, 3, table, GPUSIM_MOST_EXTENTS + 1), -EINVAL);
    refused(map(at, uint64_t{1} << 62, 3, table, GPUSIM_MOST_EXTENTS), -EINVAL);  // zeros follow
    refused(map(at, kPage, 3, kRamGpa + Ram::kSize - 8, 1), -EFAULT);
    refused(map(at, kPage, 3, ~uint64_t{0} - 8, 1), -EFAULT);
    refused(map(at, kPage, 3, kRamGpa - 8, 1), -EFAULT);
    refused(map(~uint64_t{0} << 12, kPage, 3, table, 1), -EINVAL);
    refused(map(uint64_t{1} << 46, kPage, 3, table, 1), -EINVAL);
    refused(map(0, kPage, 3, table, 1), -EINVAL);
    refused(extents({{page, kPage}}, 2 * kPage), -EINVAL);
    refused(extents({{page, 2 * kPage}}, kPage), -EINVAL);
    refused(extents({{page, 0}}, kPage), -EINVAL);
    refused(extents({{page + 8, kPage}}, kPage), -EINVAL);
    refused(extents({{page, kPage}, {page, ~uint64_t{0} << 12}}, 2 * kPage), -EINVAL);
    refused(extents({{kRamGpa - kPage, kPage}}, kPage), -EFAULT);
    refused(extents({{kRamGpa + Ram::kSize, kPage}}, kPage), -EFAULT);
    refused(extents({{kRamGpa + Ram::kSize - kPage, 2 * kPage}}, 2 * kPage), -EFAULT);
    refused(extents({{~uint64_t{0} << 12, kPage}}, kPage), -EFAULT);
    refused(extents({{~uint64_t{0} << 12, 2 * kPage}}, 2 * kPage), -EFAULT);
    CHECK(g.run(map(at, kPage, 3, table, 1)).status == 0);
    refused(map(at, kPage, 3, table, 1), -EEXIST);
    refused(extents({{page, kPage}, {page, kPage}}, 2 * kPage), -EEXIST);
    // One page at many addresses is nothing bad.
    CHECK(g.run(map(at + kPage, kPage, 3, table, 1)).status == 0);
    refused(g.command(GPUSIM_OP_UNMAP, c, {at, 2 * kPage}), -EINVAL);
    refused(g.command(GPUSIM_OP_UNMAP, c, {at + 3 * kPage, kPage}), -EINVAL);

    refused(g.command(GPUSIM_OP_LOAD, c, {at, kPage}), -ENOEXEC);
    refused(g.command(GPUSIM_OP_LOAD, c, {at, 0}), -EINVAL);
    refused(g.command(GPUSIM_OP_LOAD, c, {at, 3 * kPage}), -EFAULT);
    refused(g.command(GPUSIM_OP_LOAD, c, {at, ~uint64_t{0}}), -EINVAL);
    refused(g.command(GPUSIM_OP_LOAD, c, {~uint64_t{0}, 2}), -EFAULT);
    refused(g.command(GPUSIM_OP_LOAD, c, {at, kPage, 2}), -EINVAL);
    refused(g.command(GPUSIM_OP_UNLOAD, c, {77}), -ENOENT);
    refused(g.command(GPUSIM_OP_UNLOAD, c, {(uint64_t{1} << 32) + s.program}), -ENOENT);
    refused(g.command(GPUSIM_OP_SYMBOL, c, {s.program}, "no such thing"), -ENOENT);
    refused(g.command(GPUSIM_OP_SYMBOL, c, {s.program}, std::string(256, 'x')), -ENOENT);
    refused(g.command(GPUSIM_OP_CANCEL, c, {12345}), -ENOENT);

    const auto spoiled = [&](const std::function<void(gpusim_launch&)>& spoil) {
      gpusim_command l = s.launch("nothing", 1, {value(1)});
      spoil(l.request.launch);
      return l;
    };
    refused(spoiled([](gpusim_launch& l) { l.cores = 0; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) { l.cores = ~0u; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) { l.program = 99; }), -ENOENT);
    refused(spoiled([](gpusim_launch& l) { l.flags = 2; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) { l.reserved[2] = 1; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) { l.argument_count = 17; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) { l.argument_count = ~0u; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) { l.arguments[0].kind = 4; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) { l.arguments[0].is_float = 2; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) { l.arguments[0].reserved[5] = 1; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) {
              l.arguments[0].kind = GPUSIM_ARGUMENT_PER_CORE;
              l.arguments[0].value = ~uint64_t{0} - 7;
            }),
            -EFAULT);
    refused(spoiled([](gpusim_launch& l) { l.stack_size_bytes = ~uint64_t{0}; }), -EINVAL);
    refused(spoiled([](gpusim_launch& l) {
              l.flags = GPUSIM_LAUNCH_PROCESS;
              l.strings = ~uint64_t{0};
              l.strings_size_bytes = 2;
            }),
            -EFAULT);
    // A place that is not code faults.
    CHECK(g.run(spoiled([](gpusim_launch& l) { l.function = 0x123; })).status <= 0);
    CHECK(g.run(spoiled([](gpusim_launch& l) { l.function = ~uint64_t{0}; })).status <= 0);

    // A ticket that is in use, and a block whose bell rings twice.
    const gpusim_command endless = s.launch("forever", 1);
    const uint64_t first = g.post(endless);
    gpusim_command again = s.launch("nothing", 1);
    again.ticket = endless.ticket;
    refused(again, -EEXIST);
    s.link->ring(first);
    CHECK(g.run(GPUSIM_OP_CANCEL, c, {endless.ticket}).status == 0);
    CHECK(g.wait(first).status == -ECANCELED);
    again.ticket = g.next_ticket++;
    CHECK(g.run(again).status == 0);
    CHECK(checked > 60);

    // Bells for what is no command.
    for (const uint64_t gpa : {uint64_t{0}, uint64_t{64}, kRamGpa - 1024, kRamGpa + Ram::kSize - 64,
                               kRamGpa + Ram::kSize, ~uint64_t{0}, ~uint64_t{63}, page + 1, page})
      s.link->ring(gpa);
    CHECK(g.run(s.launch("nothing", 1)).status == 0);
    CHECK(*s.ram->at<uint64_t>(page) == 0);
  });
}

TEST_CASE("memory in too many pieces is refused, and all of it comes back") {
  Setup s(false);
  Guest& g = *s.guest;
  // Every second page: no neighbours to merge.
  std::vector<gpusim_extent> extents;
  const uint64_t pages = s.ram->pages(8000);
  for (uint64_t i = 0; i < 4000; ++i) extents.push_back({pages + 2 * i * kPage, kPage});
  const uint64_t table = g.table(extents), size = 4000 * kPage;
  for (int round = 0; round < 2; ++round) {
    const uint32_t c = g.open();
    int mapped = 0;
    Reply r;
    for (uint64_t i = 0; i < 64; ++i, ++mapped) {
      r = g.run(GPUSIM_OP_MAP, c, {0x4000'0000 + i * size, size, 3, table, extents.size()});
      if (r.status != 0) break;
    }
    CHECK(r.status == -ENOMEM);
    CHECK(r.what().find("max_map_count") != std::string::npos);
    CHECK(mapped == (65530 / 4 * 3) / 4001);
    CHECK(g.run(s.launch("nothing", 64)).status == 0);
    g.close(c);
  }
}

TEST_CASE("guest memory that is cut short on the host ends the kernels that touch it, not more") {
  both([](bool serial) {
    Setup s(serial);
    Guest& g = *s.guest;
    constexpr uint64_t kPages = 512;
    const uint64_t kept = s.ram->pages(2);
    // A context with memory that stays, and one whose memory goes, in many pieces.
    const uint32_t other = g.open();
    const uint32_t program = g.load(other, read_file(kernels_file()));
    const uint64_t function = g.symbol(other, program, "add"),
                   tick = g.symbol(other, program, "tick");
    g.map(s.context, 0x2000'0000, {{kept, 2 * kPage}});
    const auto add = [&](uint32_t context, uint32_t of, uint64_t at) {
      return g.launch(
          context, of, context == other ? function : g.symbol(s.context, of, "add"), 64,
          {core_number(), core_count(), value(at), value(at), value(at + kPage), value(kPage / 4)});
    };
    // All else of the test lies in the first half of the file.
    const uint64_t first = kRamGpa + Ram::kSize / 2;
    std::vector<gpusim_extent> extents;
    for (uint64_t i = 0; i < kPages; ++i) extents.push_back({first + 2 * i * kPage, kPage});
    g.map(other, 0x2000'0000, extents);
    REQUIRE(g.run(add(other, program, 0x2000'0000)).status == 0);
    const gpusim_command runs = g.launch(other, program, tick, 1, {value(0x2000'0000)});
    const uint64_t posted = g.post(runs);
    REQUIRE(eventually(10, [&] { return *s.ram->at<volatile uint64_t>(first) > 1000; }));
    REQUIRE(ftruncate(s.ram->fd(), static_cast<off_t>(first - kRamGpa)) == 0);
    const Reply gone = g.wait(posted);
    CHECK(gone.status == -EFAULT);
    CHECK(gone.what().find("cut short") != std::string::npos);
    CHECK(g.run(add(other, program, 0x2000'0000 + 100 * kPage)).status == -EFAULT);
    CHECK(g.run(add(s.context, s.program, 0x2000'0000)).status == 0);
    // What is mapped anew is what the file has.
    CHECK(g.run(GPUSIM_OP_UNMAP, other, {0x2000'0000, kPages * kPage}).status == 0);
    g.map(other, 0x2000'0000, {{kept, 2 * kPage}});
    CHECK(g.run(add(other, program, 0x2000'0000)).status == 0);
  });
}

TEST_CASE("SIGTERM answers what waits and ends") {
  both([](bool serial) {
    Setup s(serial);
    const uint64_t gpa = s.guest->post(s.launch("forever", 1));
    CHECK(s.guest->wait(gpa, 0.05).status == GPUSIM_PENDING);
    s.link->daemon().signal(SIGTERM);
    CHECK(s.link->daemon().wait(10) == 0);
    CHECK(s.guest->look(gpa).status == -ECANCELED);
    CHECK(s.link->daemon().errors() == "");
    // ~Setup wants a daemon that lives.
    s.link = std::make_unique<BellLink>(*s.ram);
  });
}

TEST_CASE("the log tells each command") {
  char name[] = "/tmp/gpusim-daemon-log-XXXXXX";
  const int fd = mkstemp(name);
  REQUIRE(fd >= 0);
  close(fd);
  {
    Setup s(false, {"--log", name});
    CHECK(s.guest->run(GPUSIM_OP_COUNTERS, 4711).status == -ENOENT);
    CHECK(s.guest->run(s.launch("nothing", 1)).status == 0);
  }
  const std::vector<uint8_t> bytes = read_file(name);
  const std::string text(bytes.begin(), bytes.end());
  for (const char* what : {"generation", "CONTEXT_OPEN -> 0", "LOAD -> 0", "LAUNCH -> 0",
                           "COUNTERS -> -2: there is no context 4711"})
    CHECK_MESSAGE(text.find(what) != std::string::npos, what << " in " << text);
  std::filesystem::remove(name);
}
