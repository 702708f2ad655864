// The device behind libGPUSim: contexts, memory in place, programs, kernels.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <csignal>

#include "tests/system/offload/service_fixture.h"

TEST_CASE("kernels work in place on memory that lies scattered") {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    Ram ram(16);
    Device d(false, backend);
    const uint64_t a = 0x1'0000'0000, b = a + 2 * kPage, c = b + 2 * kPage;
    d.service.map(d.context, a, ram.pieces({9, 3}), GPUSIM_READ);
    d.service.map(d.context, b, ram.pieces({4, 8}), kBoth);
    d.service.map(d.context, c, ram.pieces({12, 1}), kBoth);
    const uint32_t n = 2 * kPage / 4;
    const auto at = [&](std::initializer_list<uint64_t> pages, uint32_t i) -> int& {
      return ram.at<int>(pages.begin()[i / 1024])[i % 1024];
    };
    for (uint32_t i = 0; i < n; ++i) {
      at({9, 3}, i) = static_cast<int>(i);
      at({4, 8}, i) = static_cast<int>(7 * i);
    }
    const LoadOutcome program = d.load(kernels());
    REQUIRE(program.status == 0);
    CHECK(program.isa == "aarch64");
    CHECK(program.guest_instructions > 0);
    const auto launch = [&](uint32_t cores) {
      return d.run(d.call(program.program, "add", cores,
                          {core_number(), core_count(), value(a), value(b), value(c), value(n)}));
    };
    for (const uint32_t cores : {1u, 7u, 64u, 300u}) {
      CAPTURE(cores);
      std::memset(ram.at<int>(12), 0, kPage);
      std::memset(ram.at<int>(1), 0, kPage);
      const LaunchOutcome result = launch(cores);
      CHECK(result.status == 0);
      CHECK(result.report.exit_status == 0);
      CHECK(result.report.cores == cores);
      bool all = true;
      for (uint32_t i = 0; i < n; ++i) all &= at({12, 1}, i) == static_cast<int>(8 * i);
      CHECK(all);
      // The same again on the same machine counts the same.
      CHECK(launch(cores).report.guest_instructions == result.report.guest_instructions);
    }
    const Counters counters = d.service.counters(d.context);
    if (!sees_copies()) CHECK(counters.copied_bytes == 0);
    CHECK(counters.mapped_bytes == 6 * kPage);
    CHECK(counters.kernels == 8);
  }
}

TEST_CASE("arguments of every kind reach each core") {
  Ram ram(4);
  Device d;
  const uint64_t out = 0x20000, own = out + kPage;
  d.service.map(d.context, out, ram.pieces({0}), kBoth);
  d.service.map(d.context, own, ram.pieces({2}), GPUSIM_READ);
  const uint32_t p = d.load(kernels()).program;
  for (uint64_t i = 0; i < 100; ++i) ram.at<uint64_t>(2)[i] = i * i;
  CHECK(d.run(d.call(p, "words", 100, {core_number(), value(out), table(own), affine(5, 2)}))
            .report.exit_status == 0);
  for (uint64_t i = 0; i < 100; ++i) CHECK(ram.at<uint64_t>(0)[i] == i * i * 1000 + (5 + 2 * i) * 3);
  const float f = 1.5f;
  CHECK(d.run(d.call(p, "floats", 9,
                     {core_number(), value(out), floating(std::bit_cast<uint32_t>(f)),
                      floating(std::bit_cast<uint64_t>(2.25))}))
            .report.exit_status == 0);
  for (uint64_t i = 0; i < 9; ++i)
    CHECK(ram.at<double>(0)[i] == 1.5 * 2.25 + static_cast<double>(i));
}

TEST_CASE("each core of a kernel has thread-local variables of its own") {
  Ram ram(2);
  Device d;
  d.service.map(d.context, 0x20000, ram.pieces({1}), kBoth);
  const uint32_t p = d.load(kernels()).program;
  for (const uint32_t cores : {1u, 200u, 200u}) {
    CHECK(d.run(d.call(p, "thread_locals", cores, {core_number(), value(0x20000)}))
              .report.exit_status == 0);
    for (uint64_t i = 0; i < cores; ++i) CHECK(ram.at<uint64_t>(1)[i] == (17 + i) * 1000 + 2 * i);
  }
}

TEST_CASE("a program keeps its data between kernels, and programs at the same addresses take turns") {
  Ram ram(2);
  Device d;
  const uint64_t out = 0x20000;
  d.service.map(d.context, out, ram.pieces({1}), kBoth);
  const uint32_t p = d.load(kernels()).program, q = d.load(kernels("kernels2")).program;
  CHECK(d.run(d.call(p, "count", 5)).report.exit_status == 0);
  CHECK(d.run(d.call(q, "count", 2)).report.exit_status == 0);
  CHECK(d.run(d.call(p, "count", 300)).report.exit_status == 0);
  CHECK(d.run(d.call(p, "read_globals", 4, {core_number(), value(out)})).report.exit_status == 0);
  CHECK(ram.at<int>(1)[0] == 305 + 10);
  CHECK(ram.at<int>(1)[3] == 305 + 40);
  CHECK(d.run(d.call(q, "read_globals", 4, {core_number(), value(out)})).report.exit_status == 0);
  CHECK(ram.at<int>(1)[1] == 2 + 60);
  CHECK(d.load(kernels()).cached);
  d.service.unload(d.context, q);
  CHECK(error_of([&] { d.service.symbol(d.context, q, "count"); }) == ENOENT);
}

TEST_CASE("the caller's own globals are live") {
  Ram ram(64);
  Device d;
  const std::vector<uint8_t> elf = kernels();
  const uint64_t data = d.map_data(elf, ram);
  const uint32_t p = d.load(elf, GPUSIM_LOAD_LIVE_DATA).program;
  CHECK(d.run(d.call(p, "count", 77)).report.exit_status == 0);
  int counter = 0;
  std::memcpy(&counter, ram.bytes + (d.function(p, "counter") - data), sizeof counter);
  CHECK(counter == 77);
  // Another program at the same addresses takes its place, and gives it back.
  const uint32_t q = d.load(kernels("kernels2")).program;
  CHECK(d.run(d.call(q, "count", 5)).report.exit_status == 0);
  CHECK(d.run(d.call(p, "count", 3)).report.exit_status == 0);
  CHECK(d.run(d.call(q, "count", 5)).report.exit_status == 0);
  std::memcpy(&counter, ram.bytes + (d.function(p, "counter") - data), sizeof counter);
  CHECK(counter == 80);
  CHECK(d.service.counters(d.context).mapped_bytes > 0);
  d.service.unmap(d.context, data, d.service.counters(d.context).mapped_bytes);
  CHECK(d.run(d.call(p, "count", 3)).report.exit_status == 139);
}

TEST_CASE("kernels take no locks of a program whose variables are its caller's") {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    Ram ram(64);
    Device d(false, backend);
    d.service.map(d.context, 0x20000, ram.pieces({60, 61}), kBoth);
    const std::vector<uint8_t> elf = kernels("lockers");
    const uint64_t data = d.map_data(elf, ram);
    const uint32_t p = d.load(elf, GPUSIM_LOAD_LIVE_DATA).program;
    const auto objection = [&](const char* name) -> std::string {
      try {
        d.service.check(d.context, p, d.function(p, name));
      } catch (const OffloadError& e) {
        CHECK(e.number() == EOPNOTSUPP);
        return e.what();
      }
      return "";
    };
    // What can be seen in the code.
    const std::string printing = objection("prints_deep");
    CHECK(printing.find("prints_deep() cannot be a kernel: it calls printf()") == 0);
    CHECK(printing.find("gpusim_printf()") != std::string::npos);
    CHECK(printing.find("(prints_deep -> report -> printf)") != std::string::npos);
    CHECK(objection("allocates").find("malloc()") != std::string::npos);
    CHECK(objection("locks").find("pthread_mutex_lock()") != std::string::npos);
    for (const char* name : {"prints_by_pointer", "formats", "asserts", "draws", "wakes"}) {
      CAPTURE(name);
      CHECK(objection(name).empty());
    }
    // What cannot is stopped before it takes the lock.
    const LaunchOutcome by_pointer = d.run(d.call(p, "prints_by_pointer", 4, {core_number()}));
    CHECK(by_pointer.report.faults == 1);
    CHECK(by_pointer.report.fault_core == 2);
    CHECK(by_pointer.report.exit_status == 128 + SIGTRAP);
    CHECK(by_pointer.text.find("core 2: the kernel called puts() from prints_by_pointer") == 0);
    const uint64_t lock = d.function(p, "_IO_stdfile_1_lock") - data;
    for (uint64_t i = 0; i < 16; ++i) CHECK(ram.bytes[lock + i] == 0);
    const LaunchOutcome unseen = d.run(d.call(p, "prints_deep", 1, {core_number()}));
    CHECK(unseen.text.find("the kernel called printf() from prints_deep") != std::string::npos);
    const LaunchOutcome waking = d.run(d.call(p, "wakes", 3, {core_number()}));
    CHECK(waking.report.exit_status == 128 + SIGSYS);
    CHECK(waking.text.find("futex, called in wakes") != std::string::npos);
    const LaunchOutcome late = d.run(d.call(p, "wakes_late", 1, {value(0x20000)}));
    CHECK(late.text.find("futex, called in wakes_late+0x10)") != std::string::npos);
    CHECK(d.run(d.call(p, "draws", 2, {value(0x20000)})).report.exit_status == 0);
    CHECK(*ram.at<int>(60) == 4);
    // A process has a C library of its own.
    gpusim_launch process{};
    process.program = p;
    process.cores = 1;
    process.flags = GPUSIM_LAUNCH_PROCESS;
    process.output = 0x21000;
    process.output_size_bytes = 100;
    CHECK(d.run(process).report.exit_status == 3);
    CHECK(std::string(ram.at<char>(61)) == "main may print\n");
    // And so has a program whose variables are the device's.
    const uint32_t q = d.load(elf).program;
    d.service.check(d.context, q, d.function(q, "prints_deep"));
  }
}

TEST_CASE("kernels of different queues overlap, those of one do not") {
  if (sees_copies()) return;  // kernels there see nothing that the caller writes meanwhile
  Ram ram(2);
  Device d;
  d.service.map(d.context, 0x20000, ram.pieces({0}), kBoth);
  const uint32_t p = d.load(kernels()).program;
  std::vector<uint64_t> ended;
  const auto launch = [&](uint64_t queue, gpusim_launch l) {
    l.queue = queue;
    const uint64_t ticket = ++d.ticket;
    d.service.launch(d.context, ticket, l, [&ended, ticket](const LaunchOutcome& o) {
      CHECK(o.status == 0);
      CHECK(o.report.lasted_ns >= o.report.run_ns);
      ended.push_back(ticket);
    });
    return ticket;
  };
  const uint64_t waiting = launch(1, d.call(p, "await", 70, {value(0x20000)}));
  const uint64_t behind = launch(1, d.call(p, "nothing", 1));
  for (int i = 0; i < 10; ++i) CHECK(d.service.step());
  CHECK(ended.empty());
  // Which ends the first one, on other cores and on as many.
  const uint64_t other =
      launch(2, d.call(p, "poke", 70, {core_number(), value(3), value(0x20000)}));
  d.drain();
  CHECK(ended == std::vector<uint64_t>{other, waiting, behind});
  // No more than eight at once; the others begin when one has ended.
  ended.clear();
  ram.at<int>(0)[0] = 0;
  for (uint64_t queue = 1; queue <= 8; ++queue)
    launch(queue, d.call(p, "await", 1, {value(0x20000)}));
  const uint64_t ninth = launch(9, d.call(p, "nothing", 1));
  for (int i = 0; i < 30; ++i) CHECK(d.service.step());
  CHECK(ended.empty());
  d.service.unload(d.context, d.load(kernels()).program);
  ram.at<int>(0)[0] = 1;
  d.drain();
  CHECK(ended.size() == 9);
  CHECK(std::ranges::find(ended, ninth) != ended.end());
}

TEST_CASE("device addresses can be the process's own") {
  struct Node {
    Node* next;
    uint64_t value;
  };
  Device d(/*identity=*/true);
  auto* memory = static_cast<uint8_t*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* nodes = reinterpret_cast<Node*>(memory);
  for (int i = 0; i < 100; ++i) nodes[i] = {i < 99 ? &nodes[i + 1] : nullptr, uint64_t(i)};
  const auto address = reinterpret_cast<uint64_t>(memory);
  d.service.map_own(d.context, address, 2 * kPage, kBoth);
  const uint32_t p = d.load(kernels()).program;
  CHECK(d.run(d.call(p, "sum_list", 1, {value(address), value(address + kPage)}))
            .report.exit_status == 0);
  CHECK(*reinterpret_cast<uint64_t*>(memory + kPage) == 99 * 100 / 2);
  // The neighbour is not mapped for the device.
  const LaunchOutcome bad =
      d.run(d.call(p, "sum_list", 1, {value(address), value(address + 2 * kPage)}));
  CHECK(bad.report.exit_status == 139);
  CHECK(bad.report.faults == 1);
  d.service.unmap(d.context, address, 2 * kPage);
  CHECK(d.run(d.call(p, "sum_list", 1, {value(address), value(address)})).report.exit_status == 139);
  munmap(memory, 2 * kPage);
}

TEST_CASE("programs of two devices in this process's addresses take turns") {
  Device a(true), b(true);
  const uint32_t p = a.load(kernels()).program, q = b.load(kernels("kernels2")).program;
  uint32_t ended = 0;
  const auto launch = [&](Device& d, uint32_t program, const char* name) {
    gpusim_launch l = d.call(program, name, 70);
    l.max_instructions = name[0] == 'f' ? 500'000 : 0;
    d.service.launch(d.context, ++d.ticket, l, [&ended, name](const LaunchOutcome& o) {
      CHECK(o.report.exit_status == (name[0] == 'f' ? 124 : 0));
      ++ended;
    });
  };
  for (const char* name : {"count", "forever", "count"}) {
    launch(a, p, name);
    launch(b, q, name);
  }
  for (bool more = true; more;) {
    more = a.service.step();
    more |= b.service.step();
  }
  CHECK(ended == 6);
}

TEST_CASE("faults, exit statuses and limits are reported and leave the device usable") {
  Ram ram(2);
  Device d;
  d.service.map(d.context, 0x20000, ram.pieces({0}), GPUSIM_READ);
  const uint32_t p = d.load(kernels()).program;
  const LaunchOutcome fault =
      d.run(d.call(p, "poke", 200, {core_number(), value(123), value(0x20010)}));
  CHECK(fault.status == 0);
  CHECK(fault.report.exit_status == 139);
  CHECK(fault.report.faults == 1);
  CHECK(fault.report.fault_core == 123);
  CHECK(fault.report.fault_pc - d.function(p, "poke") < 64);
  CHECK(fault.text.find("core 123: fault: store") == 0);
  CHECK(fault.text.find(", in poke(): ") != std::string::npos);
  CHECK(fault.text.find('\n') == std::string::npos);
  CHECK(d.run(d.call(p, "leave", 3, {core_number()})).report.exit_status == 40);
  gpusim_launch limited = d.call(p, "forever", 70);
  limited.max_instructions = 10'000;
  CHECK(d.run(limited).report.exit_status == 124);
  gpusim_launch timed = d.call(p, "forever", 2);
  timed.time_limit_ns = 20'000'000;
  CHECK(d.run(timed).status == -ETIMEDOUT);
  gpusim_launch nowhere = d.call(p, "forever", 2);
  nowhere.function = 0x20000;
  CHECK(d.run(nowhere).status == -EINVAL);
  gpusim_launch deep = d.call(p, "recurse", 1, {core_number(), value(0), value(1'000'000)});
  CHECK(d.run(deep).report.exit_status == 139);
  CHECK(d.run(d.call(p, "nothing", 1000)).report.exit_status == 0);
}

TEST_CASE("a kernel has neither files nor memory of the host, and its output goes to the caller") {
  Ram ram(4);
  Device d;
  d.service.map(d.context, 0x20000, ram.pieces({0, 1}), kBoth);
  const uint32_t p = d.load(kernels()).program;
  CHECK(d.run(d.call(p, "ask", 1, {value(0x20000)})).report.exit_status == 0);
  CHECK(ram.at<int64_t>(0)[0] < 0);
  CHECK(ram.at<int64_t>(0)[2] < 0);
  gpusim_launch say = d.call(p, "say", 1, {value(3)});
  say.output = 0x21000;
  say.output_size_bytes = 10;
  const LaunchOutcome result = d.run(say);
  CHECK(result.report.output_bytes == 18);
  CHECK(result.report.output_kept_bytes == 6);  // whole lines
  CHECK(std::string(ram.at<char>(1), 12) == std::string("hello\n\0\0\0\0\0\0", 12));
}

TEST_CASE("a program runs whole, as a process of its own") {
  Ram ram(4);
  Device d;
  d.service.map(d.context, 0x20000, ram.pieces({0, 1}), kBoth);
  const uint32_t p = d.load(kernels()).program;
  const char strings[] = "some-name\0one\0two";
  std::memcpy(ram.bytes, strings, sizeof strings);
  gpusim_launch l{};
  l.program = p;
  l.cores = 1;
  l.flags = GPUSIM_LAUNCH_PROCESS;
  l.strings = 0x20000;
  l.strings_size_bytes = sizeof strings;
  l.output = 0x21000;
  l.output_size_bytes = kPage;
  const LaunchOutcome result = d.run(l);
  CHECK(result.status == 0);
  CHECK(result.report.exit_status == 3);
  CHECK(std::string(ram.at<char>(1)) == "some-name");
}

TEST_CASE("kernels can be cancelled, wait for memory to change, and take turns between contexts") {
  if (sees_copies()) return;  // as above
  Ram ram(2);
  Device d;
  d.service.map(d.context, 0x20000, ram.pieces({0}), kBoth);
  const uint32_t p = d.load(kernels()).program;
  std::vector<int> ended;
  const auto launch = [&](uint64_t ticket, const gpusim_launch& l) {
    d.service.launch(d.context, ticket, l, [&ended, ticket](const LaunchOutcome& o) {
      ended.push_back(static_cast<int>(ticket));
      ended.push_back(o.status);
    });
  };
  launch(1001, d.call(p, "forever", 65));
  launch(1002, d.call(p, "nothing", 3));
  launch(1003, d.call(p, "await", 3, {value(0x20000)}));
  for (int i = 0; i < 10; ++i) CHECK(d.service.step());
  CHECK(ended.empty());
  CHECK(error_of([&] { d.service.unmap(d.context, 0x20000, kPage); }) == EBUSY);
  CHECK(error_of([&] { launch(1002, d.call(p, "nothing", 1)); }) == EEXIST);

  // Another context's kernel is not kept waiting by the one that never ends.
  const uint32_t other = d.service.open();
  std::optional<uint32_t> other_program;
  d.service.load(other, 1, kernels(), "kernels.elf", 0,
                 [&](const LoadOutcome& o) { other_program = o.program; });
  while (!other_program) d.service.step();
  bool other_done = false;
  gpusim_launch l = d.call(p, "nothing", 100);
  l.program = *other_program;
  d.service.launch(other, 2, l, [&](const LaunchOutcome& o) { other_done = o.status == 0; });
  CHECK(d.comes([&] { return other_done; }));

  d.service.cancel(d.context, 1001);
  CHECK(ended == std::vector<int>{1001, -ECANCELED});
  CHECK(d.comes([&] { return ended.size() == 4; }));
  ram.at<int>(0)[0] = 1;
  d.drain();
  CHECK(ended == std::vector<int>{1001, -ECANCELED, 1002, 0, 1003, 0});
  CHECK(error_of([&] { d.service.cancel(d.context, 1001); }) == ENOENT);
  // Closing cancels.
  launch(1004, d.call(p, "forever", 1));
  d.service.step();
  d.service.close(d.context);
  CHECK(ended.back() == -ECANCELED);
  CHECK(error_of([&] { d.service.counters(d.context); }) == EBADF);
}

TEST_CASE("what cannot be mapped, loaded or launched is refused and changes nothing") {
  Ram ram(8);
  Device d;
  const auto map = [&](uint64_t address, std::vector<FilePiece> pieces) {
    return error_of([&] { d.service.map(d.context, address, pieces, kBoth); });
  };
  CHECK(map(0x20000, ram.pieces({0, 1})) == 0);
  CHECK(map(0x21000, ram.pieces({2})) == EEXIST);
  CHECK(map(0x1f000, ram.pieces({2, 3})) == EEXIST);
  CHECK(map(0x22000, {}) == EINVAL);
  CHECK(map(0, ram.pieces({2})) == EINVAL);
  CHECK(map(0x22001, ram.pieces({2})) == EINVAL);
  CHECK(map(0x22000, {{ram.fd, 1, kPage}}) == EINVAL);
  CHECK(map(0x22000, {{ram.fd, 0, kPage - 1}}) == EINVAL);
  CHECK(map((uint64_t{1} << 37) - kPage, ram.pieces({2, 3})) == EINVAL);
  CHECK(map(~uint64_t{0} - kPage + 1, ram.pieces({2})) == EINVAL);
  CHECK(map(0x22000, {{ram.fd, 0, ~uint64_t{0} - kPage + 1}, {ram.fd, 0, 2 * kPage}}) == EINVAL);
  CHECK(map(0x22000, {{ram.fd, 0, kPage}, {-1, 0, kPage}}) == EBADF);
  CHECK(map(0x22000, ram.pieces({4, 5})) == 0);
  CHECK(d.service.counters(d.context).mapped_bytes == 4 * kPage);
  CHECK(error_of([&] { d.service.unmap(d.context, 0x20000, kPage); }) == EINVAL);
  CHECK(error_of([&] { d.service.unmap(d.context, 0x20000, 2 * kPage); }) == 0);
  CHECK(map(0x20000, ram.pieces({6})) == 0);

  CHECK(d.load({1, 2, 3}).status == -ENOEXEC);
  std::vector<uint8_t> cut = kernels();
  cut.resize(cut.size() / 2);
  CHECK(d.load(cut).status != 0);
  const uint32_t p = d.load(kernels()).program;
  const auto launch = [&](auto change) {
    gpusim_launch l = d.call(p, "add", 2);
    change(l);
    return error_of([&] { d.service.launch(d.context, 99, l, {}); });
  };
  CHECK(launch([](gpusim_launch& l) { l.cores = 0; }) == EINVAL);
  CHECK(launch([](gpusim_launch& l) { l.cores = ~0u; }) == EINVAL);
  CHECK(launch([](gpusim_launch& l) { l.argument_count = 17; }) == EINVAL);
  CHECK(launch([](gpusim_launch& l) { l.flags = 2; }) == EINVAL);
  CHECK(launch([](gpusim_launch& l) { l.reserved[2] = 1; }) == EINVAL);
  CHECK(launch([](gpusim_launch& l) { l.program = 77; }) == ENOENT);
  CHECK(launch([](gpusim_launch& l) {
          l.output = 0x20000;
          l.output_size_bytes = kPage + 1;
        }) == EFAULT);
  const auto outcome = [&](auto change) {
    gpusim_launch l = d.call(p, "add", 2, {value(1)});
    change(l);
    return d.run(l).status;
  };
  CHECK(outcome([](gpusim_launch& l) { l.arguments[0].kind = 9; }) == -EINVAL);
  CHECK(outcome([](gpusim_launch& l) { l.arguments[0] = table(0x20ff8); }) == -EFAULT);
  CHECK(outcome([](gpusim_launch& l) { l.arguments[0] = table(~uint64_t{0} - 7); }) == -EFAULT);
  CHECK(outcome([](gpusim_launch& l) { l.stack_size_bytes = ~uint64_t{0}; }) == -EINVAL);
  CHECK(outcome([](gpusim_launch& l) {
          l.flags = GPUSIM_LAUNCH_PROCESS;
          l.strings = 0x20000;
          l.strings_size_bytes = 2 * kPage;
        }) == -EFAULT);
  // A buffer where the program's code lies: the program cannot be put there.
  const uint64_t code = d.function(p, "add") & ~(kPage - 1);
  CHECK(map(code, ram.pieces({7})) == 0);
  CHECK(d.run(d.call(p, "nothing", 1)).status == -EEXIST);
  d.service.unmap(d.context, code, kPage);
  CHECK(d.run(d.call(p, "nothing", 1)).status == 0);
}

TEST_CASE("a thousand contexts leave nothing behind") {
  Ram ram(2);
  Simulator service({.backend = setting("GPUSIM_BACKEND"),
                     .guest_memory = setting("GPUSIM_GUEST_MEMORY"),
                     .threads = 1});
  const std::vector<uint8_t> elf = kernels();
  size_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint32_t c = service.open();
    service.map(c, 0x20000, ram.pieces({1, 0}), kBoth);
    if (i % 100 == 0) {
      bool loaded = false;
      service.load(c, 1, elf, "kernels.elf", 0, [&](const LoadOutcome& o) {
        loaded = true;
        gpusim_launch l{};
        l.program = o.program;
        l.cores = 3;
        l.function = service.symbol(c, o.program, "nothing").address;
        service.launch(c, 2, l, [](const LaunchOutcome& r) { CHECK(r.status == 0); });
      });
      while (!loaded || service.step()) service.step();
    }
    service.close(c);
    if (i == 0) before = open_descriptors();
  }
  CHECK(open_descriptors() == before);
  std::vector<uint32_t> many;
  CHECK(error_of([&] {
          for (;;) many.push_back(service.open());
        }) == EBUSY);
  for (const uint32_t c : many) service.close(c);
}
