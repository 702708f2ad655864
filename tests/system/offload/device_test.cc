// The service on a GPU: how it reaches the caller's memory, and what happens when it fails. Needs
// the emulated device, which fails when GPUSIM_EMULATED_FAILURES says so.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "tests/system/offload/service_fixture.h"

namespace {

void fail(const char* when) { setenv("GPUSIM_EMULATED_FAILURES", when, 1); }

// Kernels of one context: c = a + b on several pages, and a variable of the program's.
struct Work {
  explicit Work(const std::string& way, const std::string& backend = "cuda")
      : ram(16), device(false, backend, way) {
    map();
  }
  void map() {
    device.service.map(device.context, kA, ram.pieces({9, 3}), GPUSIM_READ);
    device.service.map(device.context, kB, ram.pieces({4, 8}), kBoth);
    device.service.map(device.context, kC, ram.pieces({12, 1}), kBoth);
    for (uint32_t i = 0; i < kN; ++i) {
      at({9, 3}, i) = static_cast<int>(i);
      at({4, 8}, i) = static_cast<int>(7 * i);
    }
  }
  int& at(std::initializer_list<uint64_t> pages, uint32_t i) {
    return ram.at<int>(pages.begin()[i / 1024])[i % 1024];
  }
  LaunchOutcome add(uint32_t program, uint32_t cores) {
    std::memset(ram.at<int>(12), 0, kPage);
    std::memset(ram.at<int>(1), 0, kPage);
    return device.run(
        device.call(program, "add", cores,
                    {core_number(), core_count(), value(kA), value(kB), value(kC), value(kN)}));
  }
  bool is_right() {
    for (uint32_t i = 0; i < kN; ++i)
      if (at({12, 1}, i) != static_cast<int>(8 * i)) return false;
    return true;
  }
  bool works(uint32_t program) {
    const LaunchOutcome done = add(program, 65);
    return done.status == 0 && done.report.exit_status == 0 && is_right();
  }
  std::string refusal(uint32_t program) {
    try {
      device.run(device.call(program, "nothing", 1));
    } catch (const OffloadError& e) {
      CHECK(e.number() == EIO);
      return e.what();
    }
    return "";
  }
  static constexpr uint32_t kN = 2 * kPage / 4;
  // Pages of one buffer lie in two regions of the device's directory.
  static constexpr uint64_t kA = 0x1'0000'0000, kB = kA + 0x20'f000, kC = kB + 2 * kPage;
  Ram ram;
  Device device;
};

}  // namespace

TEST_CASE("each way to guest memory gives the same, and says what it moved") {
  for (const std::string way : {"registered", "pageable", "copied"}) {
    CAPTURE(way);
    setenv("GPUSIM_EMULATED_HOST_MEMORY", way == "pageable" ? "pageable" : "register,read-only", 1);
    Work w(way);
    CHECK(w.device.service.device().find(", guest memory " + way) != std::string::npos);
    const uint32_t p = w.device.load(kernels()).program;
    const LaunchOutcome first = w.add(p, 33);
    CHECK(first.report.exit_status == 0);
    CHECK(w.is_right());
    const LaunchOutcome second = w.add(p, 33);
    CHECK(w.is_right());
    // Only what the cores wrote comes back, and code that is there already does not go over again.
    if (way == "copied") {
      CHECK(first.report.copied_bytes > second.report.copied_bytes);
      CHECK(second.report.copied_bytes >= (6 + 2) * kPage);
      CHECK(second.report.copied_bytes <= (6 + 2 + 4) * kPage);
      CHECK(w.device.service.counters(w.device.context).copied_bytes ==
            first.report.copied_bytes + second.report.copied_bytes);
    } else {
      CHECK(w.device.service.counters(w.device.context).copied_bytes == 0);
    }
    // Bytes that no core wrote are the caller's, also beside such as it wrote.
    w.at({4, 8}, 5) = 99;
    CHECK(w.device.run(w.device.call(p, "poke", 3, {core_number(), value(2), value(Work::kB)}))
              .report.exit_status == 0);
    CHECK(w.at({4, 8}, 0) == 1);
    CHECK(w.at({4, 8}, 5) == 99);
    // What is not mapped, or not for writing, is out of reach.
    for (const uint64_t out_of_reach : {Work::kA, Work::kC + 2 * kPage, Work::kA - 8})
      CHECK(w.device
                .run(w.device.call(p, "poke", 70, {core_number(), value(69), value(out_of_reach)}))
                .report.fault_core == 69);
    w.device.service.unmap(w.device.context, Work::kB, 2 * kPage);
    CHECK(w.add(p, 2).report.exit_status == 139);
  }
  setenv("GPUSIM_EMULATED_HOST_MEMORY", "register,read-only", 1);
}

TEST_CASE("the driver decides how memory is reached, unless the user does") {
  const auto way = [](const char* offered, const char* asked) -> std::string {
    setenv("GPUSIM_EMULATED_HOST_MEMORY", offered, 1);
    std::string said;
    try {
      said = Device(false, "cuda", asked).service.device();
      said = said.substr(said.find(", guest memory ") + 15);
    } catch (const std::exception& e) {
      said = e.what();
    }
    setenv("GPUSIM_EMULATED_HOST_MEMORY", "register,read-only", 1);
    return said;
  };
  CHECK(way("register,read-only", "auto") == "registered");
  CHECK(way("register,pageable,host-tables", "auto") == "registered");
  CHECK(way("pageable,host-tables", "auto") == "pageable");
  // Atomic operations would not reach pages of files.
  CHECK(way("pageable", "auto") == "copied");
  CHECK(way("none", "auto") == "copied");
  CHECK(way("none", "registered").find("does not offer registered access") != std::string::npos);
  CHECK(way("none", "somehow").find("there are: auto, registered") != std::string::npos);
  CHECK_THROWS(Device(false, "scalar", "copied"));
}

TEST_CASE("where the driver refuses to register memory, it is copied") {
  fail("register:3=2");
  Work w("auto");
  const uint32_t p = w.device.load(kernels()).program;
  CHECK(w.works(p));
  CHECK(w.device.service.counters(w.device.context).copied_bytes > 0);
  // Memory that is only read, where the driver registers none.
  setenv("GPUSIM_EMULATED_HOST_MEMORY", "register", 1);
  Work only_writable("auto");
  CHECK(only_writable.works(only_writable.device.load(kernels()).program));
  setenv("GPUSIM_EMULATED_HOST_MEMORY", "register,read-only", 1);
  // Nothing else will do: the mapping fails, and leaves nothing behind.
  fail("register:1=2");
  Device strict(false, "cuda", "registered");
  Ram ram(1);
  CHECK(error_of([&] { strict.service.map(strict.context, 0x20000, ram.pieces({0}), kBoth); }) ==
        ENOMEM);
  CHECK(strict.service.counters(strict.context).mapped_bytes == 0);
  strict.service.map(strict.context, 0x20000, ram.pieces({0}), kBoth);
}

TEST_CASE("a kernel for which the device has no room, or that it refuses, ends alone") {
  Work w("auto");
  const uint32_t p = w.device.load(kernels()).program;
  gpusim_launch large = w.device.call(p, "nothing", 1 << 20);
  large.stack_size_bytes = uint64_t{1} << 30;
  const LaunchOutcome full = w.device.run(large);
  CHECK(full.status == -ENOMEM);
  CHECK(full.text.find("the GPU has no ") == 0);
  CHECK(w.works(p));
  fail("refuse:1=701");
  const LaunchOutcome refused = w.add(p, 65);
  CHECK(refused.status == -EIO);
  CHECK(refused.text.find("starting a slice") != std::string::npos);
  CHECK(w.works(p));
}

TEST_CASE("a device that fails ends the context whose kernel it was, and not the service") {
  for (const std::string way : {"registered", "copied"}) {
    CAPTURE(way);
    Work w(way);
    const uint32_t p = w.device.load(kernels()).program;
    CHECK(w.works(p));
    // Another context, with a kernel that runs.
    const uint32_t other = w.device.service.open();
    Ram ram(1);
    w.device.service.map(other, 0x20000, ram.pieces({0}), kBoth);
    std::optional<uint32_t> other_program;
    w.device.service.load(other, 1, kernels(), "kernels.elf", 0,
                          [&](const LoadOutcome& o) { other_program = o.program; });
    while (!other_program) w.device.service.step();
    const auto launch = [&](const char* name) {
      gpusim_launch l = w.device.call(p, name, 2, {core_number(), value(1), value(0x20000)});
      l.program = *other_program;
      return l;
    };
    std::optional<LaunchOutcome> interrupted;
    w.device.service.launch(other, 2, launch("forever"),
                            [&](const LaunchOutcome& o) { interrupted = o; });
    std::optional<LaunchOutcome> failed;
    w.device.service.launch(w.device.context, ++w.device.ticket, w.device.call(p, "forever", 65),
                            [&](const LaunchOutcome& o) { failed = o; });
    // Until both have begun.
    for (int i = 0; i < 100; ++i) w.device.service.step();
    CHECK((!interrupted && !failed));
    fail("launch:1=719");
    while (!failed || !interrupted) w.device.service.step();
    fail("");
    REQUIRE(failed);
    REQUIRE(interrupted);
    for (const LaunchOutcome& o : {*failed, *interrupted}) {
      CHECK(o.status == -EIO);
      CHECK(o.text.find("the device failed while kernels.elf ran (CUDA: ") == 0);
      CHECK(o.text.find("719") != std::string::npos);
    }
    // One of the two contexts is over, whichever kernel was on the device; the other goes on.
    std::optional<LaunchOutcome> poked;
    bool other_is_over = false;
    try {
      w.device.service.launch(other, 3, launch("poke"), [&](const LaunchOutcome& o) { poked = o; });
      while (!poked) w.device.service.step();
      CHECK(poked->report.exit_status == 0);
      CHECK(*ram.at<int>(0) == 1);
    } catch (const OffloadError& e) {
      other_is_over = true;
      CHECK(e.number() == EIO);
    }
    const std::string refusal = w.refusal(p);
    CHECK(refusal.empty() == other_is_over);
    if (!refusal.empty()) CHECK(refusal.find("reset this context") != std::string::npos);
    // And after a reset that one, too.
    w.device.service.reset(w.device.context);
    w.map();
    CHECK(w.works(w.device.load(kernels()).program));
    w.device.service.close(other);
  }
}

TEST_CASE("a device that is lost for good leaves a service that says so") {
  Work w("auto");
  const uint32_t p = w.device.load(kernels()).program;
  fail("launch:1=719,reset:1=719,reset:2=719,reset:3=719");
  CHECK(w.add(p, 65).status == -EIO);
  CHECK(w.refusal(p).find("cannot be used any more") != std::string::npos);
  CHECK(error_of([&] { w.device.service.open(); }) == EIO);
  w.device.service.unmap(w.device.context, Work::kB, 2 * kPage);
  w.device.service.close(w.device.context);
}
