// A daemon whose GPU fails: by the emulated device, which does so when the environment says. Needs
// GPUSIM_BACKEND=cuda.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "tests/system/daemon/fake_guest.h"

using namespace gpusim::test;

namespace {

// A machine whose daemon's device fails so (tests/cuda_emulated/README.md).
struct Setup {
  explicit Setup(const char* failures, const std::string& way = "auto") {
    setenv("GPUSIM_EMULATED_FAILURES", failures, 1);
    link = std::make_unique<BellLink>(ram, std::vector<std::string>{"--guest-memory", way});
    unsetenv("GPUSIM_EMULATED_FAILURES");
    REQUIRE_MESSAGE(link->ready().status == 0, link->ready().text);
    guest = std::make_unique<Guest>(*link, ram);
    begin();
  }
  ~Setup() { CHECK_MESSAGE(link->daemon().lives(), link->daemon().errors()); }

  void begin() {
    context = guest->open();
    fill();
  }
  void fill() {
    page = ram.pages(1);
    guest->map(context, kData, {{page, kPage}});
    program = guest->load(context, read_file(kernels_file()));
  }
  gpusim_command launch(const std::string& name, uint32_t cores,
                        std::initializer_list<gpusim_argument> arguments = {}) {
    return guest->launch(context, program, guest->symbol(context, program, name), cores, arguments);
  }
  Reply poke() {
    *ram.at<int>(page) = 0;
    return guest->run(launch("poke", 40, {core_number(), value(39), value(kData)}));
  }
  bool works() {
    const Reply r = poke();
    INFO(r.what());
    return r.status == 0 && r.report.exit_status == 0 && *ram.at<int>(page) != 0;
  }

  static constexpr uint64_t kData = 0x2000'0000;
  Ram ram;
  std::unique_ptr<BellLink> link;
  std::unique_ptr<Guest> guest;
  uint32_t context = 0, program = 0;
  uint64_t page = 0;
};

}  // namespace

TEST_CASE("the daemon tells how a GPU reaches guest RAM, and what it moved") {
  for (const std::string way : {"registered", "copied"}) {
    CAPTURE(way);
    Setup s("", way);
    CHECK(s.guest->run(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION})
              .what()
              .find(", guest memory " + way) != std::string::npos);
    const Reply done = s.poke();
    CHECK(done.report.exit_status == 0);
    CHECK(*s.ram.at<int>(s.page) != 0);
    CHECK((done.report.copied_bytes != 0) == (way == "copied"));
    CHECK(s.guest->run(GPUSIM_OP_COUNTERS, s.context).word[0] == done.report.copied_bytes);
  }
}

TEST_CASE("a kernel for which the GPU has no room ends with ENOMEM, the next one works") {
  Setup s("");
  gpusim_command large = s.launch("nothing", 1 << 20);
  large.request.launch.stack_size_bytes = uint64_t{1} << 30;
  const Reply full = s.guest->run(large);
  CHECK(full.status == -ENOMEM);
  CHECK_MESSAGE(full.what().find("the GPU has no ") == 0, full.what());
  CHECK(s.works());
}

TEST_CASE("a kernel that the GPU refuses ends with EIO, the next one works") {
  Setup s("refuse:1=701");
  const Reply refused = s.poke();
  CHECK(refused.status == -EIO);
  CHECK_MESSAGE(refused.what().find("starting a slice") != std::string::npos, refused.what());
  CHECK(s.works());
}

TEST_CASE("where the driver does not register guest RAM the daemon copies it") {
  Setup s("register:1=2");
  CHECK(s.works());
  CHECK(s.guest->run(GPUSIM_OP_COUNTERS, s.context).word[0] != 0);
}

TEST_CASE("a GPU that fails ends the context whose kernel it was; a reset brings it back") {
  Setup s("launch:1=719");
  const uint32_t other = s.guest->open();
  const Reply failed = s.poke();
  CHECK(failed.status == -EIO);
  CHECK_MESSAGE(failed.what().find("the device failed while ") == 0, failed.what());
  CHECK_MESSAGE(failed.what().find("719") != std::string::npos, failed.what());
  const Reply refused = s.poke();
  CHECK(refused.status == -EIO);
  CHECK_MESSAGE(refused.what().find("reset this context") != std::string::npos, refused.what());
  // Other contexts do not notice.
  const uint32_t mine = std::exchange(s.context, other);
  s.fill();
  CHECK(s.works());
  s.context = mine;
  CHECK(s.guest->run(GPUSIM_OP_RESET, s.context).status == 0);
  s.fill();
  CHECK(s.works());
}

TEST_CASE("a GPU that is lost for good leaves a daemon that says so") {
  Setup s("launch:1=719,reset:1=719,reset:2=719,reset:3=719,reset:4=719");
  CHECK(s.poke().status == -EIO);
  const Reply refused = s.poke();
  CHECK(refused.status == -EIO);
  CHECK_MESSAGE(refused.what().find("cannot be used any more") != std::string::npos,
                refused.what());
  CHECK(s.guest->run(GPUSIM_OP_CONTEXT_OPEN).status == -EIO);
  // What needs no GPU is served.
  CHECK(s.guest->run(GPUSIM_OP_COUNTERS, s.context).status == 0);
  CHECK(s.guest->run(GPUSIM_OP_UNMAP, s.context, {Setup::kData, kPage}).status == 0);
  s.guest->close(s.context);
}
