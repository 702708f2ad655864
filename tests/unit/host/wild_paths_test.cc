// Random sequences of the calls that name files, with wild paths, flags, descriptors and pointers. None may
// see or change what lies outside the root, and none may end gpusim.
// GPUSIM_SEED replays; GPUSIM_WILD_CALLS is how many calls, for hours of them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "tests/unit/host/kernel_machine.h"
#include "tests/unit/host/snapshot.h"

namespace gpusim::host {
namespace {

constexpr uint64_t kHere = static_cast<uint64_t>(-100);
constexpr uint64_t kSecond = kBuffer + 0x800, kOut = kBuffer + 0x1000;
const char kSecret[] = "secret that no guest reads";

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

class WildCalls {
 public:
  explicit WildCalls(uint64_t seed) : random_(seed) {
    fs::create_directories(m_.own.base / "outside/d");
    for (const char* name : {"outside/f", "outside/d/f", "f"})
      std::ofstream(m_.own.base / name) << kSecret;
    fs::create_directories(m_.folder / "d/d");
    std::ofstream(m_.folder / "f") << "plain";
    fs::create_directory_symlink(m_.own.base, m_.folder / "up");
    fs::create_directory_symlink("../outside", m_.folder / "l");
    outside_ = snapshot(m_.own.base / "outside");
    before_ = snapshot_of(m_.own.base / "f");
  }

  void go(uint64_t calls) {
    for (uint64_t i = 0; i < calls; ++i) {
      step();
      if (i % 512 == 0) check();
    }
    check();
    // Calls that all fail would prove nothing.
    for (const auto& [number, times] : succeeded_) {
      CAPTURE(number);
      CHECK(times != 0);
    }
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  template <class T, size_t N>
  const T& one_of(const T (&list)[N]) {
    return list[below(N)];
  }

  // Mostly of names that exist, so that calls get somewhere.
  std::string path() {
    static const char* const kNames[] = {"f", "d", "l", "up", "..", ".", "", "outside", "root", "n", "m"};
    const std::string starts[] = {m_.folder, m_.folder, m_.own.base, "", "", "/", "/proc/self/cwd",
                                  "/proc/self/root", "/dev/null/..", "/dev", "/proc/self/fd",
                                  m_.folder.string() + "/../root"};
    static const char* const kPlain[] = {"f", "d", "n", "m", "o", "p"};
    if (below(3) == 0) return m_.folder / one_of(kPlain);
    std::string text = one_of(starts);
    for (uint64_t n = below(6); n != 0; --n) {
      if (!text.empty()) text += "/";
      text += one_of(kNames);
    }
    if (below(40) == 0) text += std::string(below(5000), 'x');
    if (below(40) == 0 && !text.empty()) text[below(text.size())] = static_cast<char>(below(256));
    return text;
  }
  uint64_t pointer(uint64_t good) {
    static const uint64_t kBad[] = {0, 8, ~uint64_t{0}, kToyText, uint64_t{1} << 63,
                                    kToyData + 0x4000 - 3};
    return below(12) == 0 ? one_of(kBad) : good;
  }
  uint64_t folder() { return below(3) != 0 ? kHere : below(30); }
  uint64_t flags() { return below(4) == 0 ? random_() : below(2) ? 0 : uint64_t{1} << below(24); }

  void step() {
    m_.put(kBuffer, path().substr(0, 0x600));
    m_.put(kSecond, path().substr(0, 0x600));
    const uint64_t first = pointer(kBuffer), second = pointer(kSecond), out = pointer(kOut);
    const uint64_t fd = below(30);
    switch (below(24)) {
      case 0: return call(34, {folder(), first, random_()});
      case 1: return call(35, {folder(), first, below(2) * 0x200});
      case 2: return call(36, {first, folder(), second});
      case 3: return call(37, {folder(), first, folder(), second, below(2) * 0x400});
      case 4: return call(38, {folder(), first, folder(), second});
      case 5: return call(276, {folder(), first, folder(), second, below(5)});
      case 6: return call(43, {first, out});
      case 7: return call(45, {first, below(100)});
      case 8: return call(48, {folder(), first, below(9)});
      case 9: return call(49, {first});
      case 10: return call(50, {fd});
      case 11: return call(52, {fd, random_()});
      case 12: return call(53, {folder(), first, random_()});
      case 13: return call(54, {folder(), first, flags(), flags(), flags()});
      case 14: return call(57, {fd < 3 ? 3 : fd});
      case 15: return call(78, {folder(), first, out, below(200)});
      case 16: return call(79, {folder(), first, out, flags()});
      case 17: return call(88, {folder(), below(9) ? first : 0, below(2) ? 0 : out, flags()});
      case 18: return call(291, {folder(), first, flags(), 0x7ff, out});
      case 19: return call(439, {folder(), first, below(9), flags()});
      case 20: return call(61, {fd, out, below(500)});
      case 21: return read(fd);
      default:
        return open({folder(), first, below(4) ? below(4) | (below(2) * 0100) : random_(), 0600});
    }
  }

  void call(uint64_t number, std::vector<uint64_t> args) {
    succeeded_[number] += m_.call(0, number, std::move(args)).value >= 0;
  }

  void open(std::vector<uint64_t> args) {
    constexpr int64_t kMostOpen = 30;
    const Reply reply = m_.call(0, 56, std::move(args));
    succeeded_[56] += reply.value >= 0;
    if (reply.value >= kMostOpen) call(57, {static_cast<uint64_t>(reply.value)});
  }

  void read(uint64_t fd) {
    if (fd < 3) return;
    const Reply reply = m_.call(0, 67, {fd, kOut, 64, 0});
    if (reply.value > 0) REQUIRE(m_.get(kOut, 26) != kSecret);
  }

  void check() {
    REQUIRE(snapshot(m_.own.base / "outside") == outside_);
    REQUIRE(snapshot_of(m_.own.base / "f") == before_);
    REQUIRE(std::distance(fs::directory_iterator(m_.own.base), {}) == 3);
    // So that something is there to work on. The guest may have made links by these names.
    for (const char* name : {"f", "n", "m", "o", "p"}) fs::remove_all(m_.folder / name);
    std::ofstream(m_.folder / "f") << "plain";
    std::error_code ignored;
    fs::create_directory(m_.folder / "d", ignored);
  }

  Machine m_;
  std::mt19937_64 random_;
  std::map<std::string, std::string> outside_;
  std::string before_;
  std::map<uint64_t, uint64_t> succeeded_;
};

TEST_CASE("wild calls that name files stay in the root") {
  const uint64_t seed = number_from("GPUSIM_SEED", std::random_device()());
  INFO("replay: GPUSIM_SEED=" << seed);
  WildCalls(seed).go(number_from("GPUSIM_WILD_CALLS", 20000));
}

}  // namespace
}  // namespace gpusim::host
