// virtio-serial: a stream of messages, peers that come and go.
#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/system/daemon/fake_guest.h"

using namespace gpusim::test;

namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/gpusim-serial-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

// QEMU's monitor, as far as the daemon asks it.
class Monitor {
 public:
  explicit Monitor(const std::string& path) : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener_, 1) == 0);
  }
  ~Monitor() {
    hang_up();
    close(listener_);
  }
  // Answers the questions that come first.
  void greet(bool running) {
    pollfd wait{listener_, POLLIN, 0};
    REQUIRE(poll(&wait, 1, 20'000) == 1);
    peer_ = accept(listener_, nullptr, nullptr);
    say(R"({"QMP": {"version": {}, "capabilities": ["oob"]}})");
    std::string asked;
    while (asked.find("query-status") == std::string::npos ||
           asked.find("qmp_capabilities") == std::string::npos) {
      char bytes[512];
      const ssize_t size = recv(peer_, bytes, sizeof bytes, 0);
      REQUIRE(size > 0);
      asked.append(bytes, static_cast<size_t>(size));
    }
    say(R"({"return": {}})");
    say(R"({"return": {"status": "any", "running": )" +
        std::string(running ? "true}}" : "false}}"));
  }
  void say(const std::string& line) {
    const std::string text = line + "\r\n";
    // In two pieces.
    CHECK(send(peer_, text.data(), 5, MSG_NOSIGNAL) == 5);
    CHECK(send(peer_, text.data() + 5, text.size() - 5, MSG_NOSIGNAL) > 0);
  }
  void event(const std::string& name) {
    say(R"({"timestamp": {"seconds": 1, "microseconds": 2}, "event": ")" + name + "\"}");
  }
  void hang_up() {
    if (peer_ >= 0) close(peer_);
    peer_ = -1;
  }

 private:
  int listener_, peer_ = -1;
};

uint64_t start_tick(Guest& g, Ram& ram) {
  const uint32_t c = g.open();
  const uint32_t program = g.load(c, read_file(kernels_file()));
  const uint64_t clock = ram.pages(1);
  g.map(c, 0x3000'0000, {{clock, kPage}});
  g.post(g.launch(c, program, g.symbol(c, program, "tick"), 1, {value(0x3000'0000)}));
  REQUIRE(eventually(10, [&] { return *ram.at<volatile uint64_t>(clock) > 1000; }));
  return clock;
}

bool stands_still(Ram& ram, uint64_t clock) {
  const uint64_t before = *ram.at<volatile uint64_t>(clock);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return *ram.at<volatile uint64_t>(clock) == before;
}

}  // namespace

TEST_CASE("messages may come in pieces, and nonsense is ignored") {
  Folder folder;
  Ram ram(folder.file("ram"));
  SerialLink link(folder.file("socket"), folder.file("ram"));
  link.connect();
  Guest g(link, ram);
  const gpusim_command hello = g.command(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION});
  const uint64_t gpa = ram.pages(1);
  *ram.at<gpusim_command>(gpa) = hello;
  const gpusim_message messages[4] = {{99, 1, 2},
                                      {GPUSIM_MESSAGE_PING, 5, 77},
                                      {GPUSIM_MESSAGE_DONE, 0, 0},
                                      {GPUSIM_MESSAGE_BELL, link.generation(), gpa}};
  const auto* bytes = reinterpret_cast<const char*>(messages);
  for (size_t i = 0; i < sizeof messages; ++i) {
    link.send(bytes + i, 1);
    if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const gpusim_message ping = link.receive(10);
  CHECK(ping.kind == GPUSIM_MESSAGE_PING);
  CHECK(ping.value == 77);
  const gpusim_message done = link.receive(10);
  CHECK(done.kind == GPUSIM_MESSAGE_DONE);
  CHECK(done.generation == link.generation());
  CHECK(done.value == gpa);
  CHECK(g.look(gpa).status == 0);
}

TEST_CASE("each connection and each driver begins anew") {
  Folder folder;
  Ram ram(folder.file("ram"));
  SerialLink link(folder.file("socket"), folder.file("ram"));
  link.connect();
  const uint32_t first = link.generation();
  link.hello();
  CHECK(link.generation() == first);  // nothing had happened
  size_t descriptors = 0, mappings = 0;
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    ram.forget();
    Guest g(link, ram);
    const uint64_t clock = start_tick(g, ram);
    const uint32_t before = link.generation();
    const gpusim_command stale = g.command(GPUSIM_OP_CONTEXT_OPEN);
    if (round % 2 == 0) {
      link.hello();
    } else {
      link.hang_up();
      link.connect();
    }
    CHECK(link.generation() != before);
    CHECK(g.run(stale).status == -EIO);
    CHECK(stands_still(ram, clock));
    if (round == 5) {
      descriptors = link.daemon().descriptors();
      mappings = link.daemon().mappings();
    }
  }
  CHECK(link.daemon().descriptors() <= descriptors);
  CHECK(link.daemon().mappings() <= mappings + 8);
}

TEST_CASE("a guest that does not listen to answers is not served for ever") {
  Folder folder;
  Ram ram(folder.file("ram"));
  SerialLink link(folder.file("socket"), folder.file("ram"));
  link.connect();
  Guest g(link, ram);
  CHECK(g.run(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION}).status == 0);
  const uint64_t resident = link.daemon().resident_kib();
  // 16 bytes each way; what the kernel keeps for both is a few hundred KiB.
  std::thread flood([&] {
    const gpusim_message ping{GPUSIM_MESSAGE_PING, 0, 1};
    for (int i = 0; i < 200'000; ++i) link.send(&ping, sizeof ping);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(link.daemon().resident_kib() <= resident + 2048);
  int pings = 0;
  for (;;) {
    const gpusim_message message = link.receive(10);
    pings += message.kind == GPUSIM_MESSAGE_PING;
    if (message.kind == 0 || pings == 200'000) break;
  }
  flood.join();
  CHECK(pings == 200'000);
  CHECK(g.run(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION}).status == 0);
}

TEST_CASE("RAM is looked for when the guest speaks") {
  Folder folder;
  SerialLink link(folder.file("socket"), folder.file("ram") + "@0x40000000:64M");
  link.connect();
  {
    const gpusim_message bell{GPUSIM_MESSAGE_BELL, link.generation(), kRamGpa};
    link.send(&bell, sizeof bell);
    CHECK(link.receive(10).kind == 0);  // hung up
    CHECK(eventually(5, [&] { return link.daemon().errors().find("--ram") != std::string::npos; }));
    link.hang_up();
  }
  Ram ram(folder.file("ram"));
  link.connect();
  Guest g(link, ram);
  CHECK(g.run(GPUSIM_OP_HELLO, 0, {GPUSIM_WIRE_VERSION}).status == 0);
  link.daemon().signal(SIGTERM);
  CHECK(link.daemon().wait(5) == 0);
  CHECK(!std::filesystem::exists(folder.file("socket")));
}

TEST_CASE("in a sandbox, too") {
  Folder folder;
  Ram ram(folder.file("ram"));
  SerialLink link(folder.file("socket"), folder.file("ram"), {"--sandbox"});
  for (int round = 0; round < 3; ++round) {
    link.connect();
    CHECK(link.daemon().status_line("Seccomp") == "2");
    ram.forget();
    Guest g(link, ram);
    start_tick(g, ram);
    link.hang_up();
  }
}

TEST_CASE("kernels stop with the virtual machine where QEMU's monitor tells") {
  for (const char* sandbox : {"--no-sandbox", "--sandbox"}) {
    CAPTURE(sandbox);
    Folder folder;
    Ram ram(folder.file("ram"));
    SerialLink link(folder.file("socket"), folder.file("ram"),
                    {"--qmp", folder.file("qmp"), sandbox});
    link.connect();
    Monitor monitor(folder.file("qmp"));  // later than the port
    monitor.greet(/*running=*/true);
    auto guest = std::make_unique<Guest>(link, ram);
    const uint64_t clock = start_tick(*guest, ram);
    const auto time = [&] { return *ram.at<volatile uint64_t>(clock); };
    const auto goes_on = [&] {
      const uint64_t before = time();
      return eventually(10, [&] { return time() > before; });
    };
    for (int round = 0; round < 3; ++round) {
      monitor.event("VSERPORT_CHANGE");
      CHECK(goes_on());
      monitor.event("STOP");
      CHECK(eventually(10, [&] { return stands_still(ram, clock); }));
      const uint64_t bell = guest->post(guest->command(GPUSIM_OP_COUNTERS, 1));
      CHECK(guest->wait(bell, 0.05).status == GPUSIM_PENDING);
      CHECK(stands_still(ram, clock));
      if (round == 1) {
        // A monitor that comes back says it again.
        monitor.hang_up();
        monitor.greet(/*running=*/false);
        CHECK(stands_still(ram, clock));
      }
      monitor.event("RESUME");
      CHECK(eventually(10, [&] { return guest->look(bell).status != GPUSIM_PENDING; }));
      CHECK(goes_on());
    }
    // QEMU ends while it is stopped, with a message that nobody read; the next one runs.
    monitor.event("STOP");
    CHECK(eventually(10, [&] { return stands_still(ram, clock); }));
    const gpusim_message ping{GPUSIM_MESSAGE_PING, 0, 1};
    link.send(&ping, sizeof ping);
    link.hang_up();
    monitor.hang_up();
    ram.forget();
    link.connect();
    monitor.greet(/*running=*/true);
    guest = std::make_unique<Guest>(link, ram);
    start_tick(*guest, ram);
    CHECK(link.daemon().errors() == "");
  }
}

TEST_CASE("a monitor that is not there, or is none, is said once, and does not stop kernels") {
  const auto said = [](SerialLink& link) {
    const std::string errors = link.daemon().errors();
    size_t count = 0;
    for (size_t at = 0; (at = errors.find("--qmp", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  Folder folder;
  Ram ram(folder.file("ram"));
  SerialLink link(folder.file("socket"), folder.file("ram"), {"--qmp", folder.file("qmp")});
  link.connect();
  Guest g(link, ram);
  const uint64_t clock = start_tick(g, ram);
  CHECK(eventually(20, [&] { return said(link) == 1; }));
  Monitor monitor(folder.file("qmp"));
  monitor.greet(/*running=*/true);
  monitor.say("SSH-2.0-OpenSSH_9.2");
  monitor.hang_up();
  monitor.greet(/*running=*/true);
  monitor.say(R"({"error": {"class": "GenericError", "desc": "no"}})");
  monitor.hang_up();
  CHECK(!stands_still(ram, clock));
  CHECK(said(link) == 1);
}

TEST_CASE("the command line is checked") {
  Folder folder;
  const auto fails = [&](std::vector<std::string> options, const std::string& text) {
    std::vector<std::string> command{GPUSIM_PROGRAM, "daemon"};
    command.insert(command.end(), options.begin(), options.end());
    Child child(command, -1);
    CHECK(child.wait(10) == 2);
    const std::string errors = child.errors();
    CHECK_MESSAGE(errors.find(text) != std::string::npos, errors);
    CHECK(errors.starts_with("gpusim: error: "));
    CHECK(errors.find('\n') == errors.size() - 1);
  };
  const std::string socket = folder.file("socket"), ram = folder.file("ram");
  fails({}, "--qemu-fd");
  fails({"--listen", socket}, "--ram");
  fails({"--ram", ram}, "--qemu-fd");
  fails({"--qemu-fd", "0", "--qmp", ram}, "--qmp is for --listen");
  fails({"--listen", socket, "--ram", ram, "--qmp", std::string(200, 'x')}, "characters");
  fails({"--qemu-fd", "0"}, "not a socket");
  fails({"--qemu-fd", "77"}, "not a socket");
  fails({"--listen", socket, "--ram", ram + "@0xzz"}, "no number");
  fails({"--listen", socket, "--ram", ":5"}, "no file");
  fails({"--listen", std::string(200, 'x'), "--ram", ram}, "characters");
  fails({"--listen", folder.path, "--ram", ram}, "not a socket");
  fails({"--listen", folder.file("no/such/place"), "--ram", ram}, "cannot create");
  fails({"--listen", socket, "--ram", ram, "--backend", "abacus"}, "abacus");
  fails({"--listen", socket, "--ram", ram, "--sandbox", "--no-sandbox"}, "exclude");
  fails({"--listen", socket, "--ram", ram, "--log", folder.file("no/such/log")}, "--log");
  // One that another daemon listens on; and one left behind.
  SerialLink link(socket, ram);
  REQUIRE(eventually(10, [&] { return std::filesystem::exists(socket); }));
  fails({"--listen", socket, "--ram", ram}, "another process");
  link.daemon().signal(SIGKILL);
  CHECK(link.daemon().wait(5) == 128 + SIGKILL);
  CHECK(std::filesystem::exists(socket));
  SerialLink next(socket, ram);
  next.connect();
}
