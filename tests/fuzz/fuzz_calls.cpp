// System calls with wild arguments: every call that is provided, on several cores, with hostile
// pointers, sizes, descriptors, paths and structures. The kernel must not crash, hang, leak
// descriptors of the host, or change a file outside of the folder that the guest may use.
//
// An input is a list of actions; see World::act. Replay one: fuzz_calls FILE.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "device_sim/scalar/scalar_backend.h"
#include "host/exit_status.h"
#include "host/linux/kernel.h"
#include "host/loader.h"
#include "tests/unit/host/toy_module.h"

using namespace gpusim;
using namespace gpusim::host;
namespace fs = std::filesystem;

namespace {

constexpr uint32_t kCores = 4;
constexpr uint64_t kBuffers = kToyData + 0x100, kStrings = kToyData + 0x1400;
constexpr uint64_t kDataEnd = kToyData + 0x4000;  // of the last page that can be written
constexpr uint64_t kFileLimit = uint64_t{1} << 20;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// One folder that the guest may use and one beside it that nothing may change.
class Folders {
 public:
  Folders()
      : top_(fs::canonical(fs::temp_directory_path()) /
             ("gpusim-fuzz-calls-" + std::to_string(::getpid()))) {
    fs::remove_all(top_);
    fs::create_directories(outside());
    std::ofstream(outside() / "canary") << "canary";
    fs::create_directories(inside());
    ::lstat((outside() / "canary").c_str(), &canary_);
    ::lstat(outside().c_str(), &folder_);
    renew();
    null_ = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    require(null_ >= 0, "/dev/null");
  }
  ~Folders() { fs::remove_all(top_); }

  fs::path inside() const { return top_ / "inside"; }
  fs::path outside() const { return top_ / "outside"; }
  int null() const { return null_; }

  void renew() {
    ::chmod(inside().c_str(), 0755);
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(inside(), error)) {
      if (entry.is_directory(error)) ::chmod(entry.path().c_str(), 0755);
      fs::remove_all(entry.path(), error);
    }
    fs::create_directories(inside() / "d");
    std::ofstream(inside() / "f") << std::string(5000, 'f');
    fs::create_symlink("../outside/canary", inside() / "way-out", error);
    fs::create_symlink("../outside", inside() / "d" / "way-out", error);
  }
  void check() const {
    struct stat canary, folder;
    require(::lstat((outside() / "canary").c_str(), &canary) == 0, "the canary is gone");
    require(::lstat(outside().c_str(), &folder) == 0, "the canary's folder is gone");
    const auto same = [](const struct stat& a, const struct stat& b) {
      return a.st_ino == b.st_ino && a.st_mode == b.st_mode && a.st_uid == b.st_uid &&
             a.st_gid == b.st_gid && a.st_nlink == b.st_nlink && a.st_size == b.st_size &&
             a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
    };
    require(same(canary, canary_) && same(folder, folder_), "the guest changed a file outside");
  }

 private:
  fs::path top_;
  struct stat canary_ {
  }, folder_{};
  int null_ = -1;
};

Folders& folders() {
  static Folders the;
  return the;
}

const std::vector<uint64_t>& provided_calls() {
  static const std::vector<uint64_t> numbers = [] {
    std::vector<uint64_t> list;
    for (uint64_t n = 0; n < 512; ++n)
      if (find_handler(n)) list.push_back(n);
    return list;
  }();
  return numbers;
}

std::vector<std::string> strings() {
  const std::string in = folders().inside();
  return {"f",
          "d",
          in,
          in + "/f",
          in + "/new",
          "way-out",
          "d/way-out/canary",
          "../outside/canary",
          in + "/../outside/canary",
          "/proc/self/cwd/../outside/canary",
          "/proc/self/exe",
          "/dev/null",
          "..",
          "/",
          "",
          std::string(300, 'n'),
          in + "/d/way-out",
          "/proc/self/fd/3",
          "/dev/shm/x",
          in + "/d/../new"};
}

size_t open_descriptors() {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  template <class T>
  T take() {
    T value{};
    const size_t n = std::min(sizeof(T), size_);
    std::memcpy(&value, data_, n);
    data_ += n;
    size_ -= n;
    return value;
  }
  uint8_t byte() { return take<uint8_t>(); }

 private:
  const uint8_t* data_;
  size_t size_;
};

class World {
 public:
  explicit World(MemoryModel model) {
    plan_ = plan_memory(module_,
                        {.model = model, .cores = kCores, .memory_size_bytes = uint64_t{2} << 20});
    backend_.configure(module_, plan_.config);
    load_image(backend_, module_, plan_);
    kernel_.emplace(backend_, Kernel::Config{.plan = &plan_,
                                             .module = &module_,
                                             .starts_alone = model == MemoryModel::kShared,
                                             .roots = {{folders().inside(), true}},
                                             .standard_files = {folders().null(), folders().null(),
                                                                folders().null()},
                                             .program = "/proc/self/exe",
                                             .note = {}});
    uint64_t at = kStrings;
    for (const std::string& text : strings()) {
      strings_.push_back(at);
      put(at, {reinterpret_cast<const uint8_t*>(text.c_str()), text.size() + 1});
      at += text.size() + 1;
    }
    require(at < kDataEnd - 0x1000, "room for strings");
  }

  // False: nothing is left that could call.
  bool act(Input& input) {
    const uint8_t head = input.byte();
    const uint32_t core = head & (kCores - 1);
    switch (head >> 4) {
      case 15:
        kernel_->expire(Clock::now());
        end_killed();
        break;
      case 14: {  // a structure of any words
        const uint64_t at = kBuffers + input.byte() * uint64_t{16};
        for (uint8_t count = input.byte() & 15; count-- > 0;) {
          const uint64_t word = value(input);
          put(at + count * uint64_t{8}, {reinterpret_cast<const uint8_t*>(&word), 8}, core);
        }
        break;
      }
      case 13: {  // any bytes
        const uint64_t at = kBuffers + input.byte() * uint64_t{16};
        for (uint8_t i = 0, count = input.byte() & 63; i < count; ++i) {
          const uint8_t b = input.byte();
          put(at + i, {&b, 1}, core);
        }
        break;
      }
      default:
        call(core, input);
    }
    return kernel_->alive() != 0;
  }

 private:
  void put(uint64_t address, std::span<const uint8_t> bytes, uint32_t core = 0) {
    // Where the guest took the right away, its program could not store either.
    if (kernel_ && !GuestAccess(backend_, core).allows(address, bytes.size(), kWrite)) return;
    backend_.write_memory(core, address, bytes);
  }

  // Mostly of a kind that some call wants.
  uint64_t value(Input& input) {
    static constexpr uint64_t kOdd[16] = {~uint64_t{0},
                                          uint64_t{1} << 63,
                                          INT64_MAX,
                                          UINT32_MAX,
                                          INT32_MAX,
                                          uint64_t{1} << 31,
                                          0xfff,
                                          0x1000,
                                          0x1001,
                                          kFileLimit,
                                          uint64_t{1} << 47,
                                          (uint64_t{1} << 47) - 1,
                                          static_cast<uint64_t>(-100),
                                          0x80000,
                                          0x80800,
                                          04000};
    static constexpr uint64_t kBeforeEnd[16] = {0,  1,  2,  3,  4,  7,  8,  12,
                                                15, 16, 24, 31, 32, 63, 64, 128};
    const uint8_t b = input.byte();
    const uint64_t index = b >> 4;
    switch (b & 15) {
      case 1:
        return index;
      case 2:
        return 0 - index;
      case 3:
        return kOdd[index];
      case 4:
        return kBuffers + index * 0x100;
      case 5:
        return kDataEnd - kBeforeEnd[index];
      case 6:
        return strings_[(index + 16 * size_t(input.byte() & 1)) % strings_.size()];
      case 7:
        return results_[index];
      case 8:
        return uint64_t{1} << (input.byte() & 63);
      case 9:
        return input.take<uint16_t>();
      case 10:
        return input.take<uint32_t>();
      case 11:
        return results_[index] + input.byte() * uint64_t{8};
      case 12:
        return plan_.stack_top(static_cast<uint32_t>(index) % kCores) - input.byte();
      case 13:
        return kToyText + input.byte() * uint64_t{16};
      case 14:
        return input.take<uint64_t>();
      default:
        return index;
    }
  }

  void call(uint32_t core, Input& input) {
    const auto which = input.take<uint16_t>();
    const uint64_t number =
        which >= 0xff00 ? which : provided_calls()[which % provided_calls().size()];
    std::array<uint64_t, 6> arguments;
    for (uint64_t& a : arguments) a = value(input);
    if (!kernel_->is_alive(core) || kernel_->is_parked(core)) return;
    for (Slot i = 0; i < 6; ++i) backend_.set_slot(core, i, arguments[i]);
    backend_.set_slot(core, 8, number);
    const Reply reply = kernel_->handle(core, 0);
    switch (reply.kind) {
      case Reply::Kind::kResult:
        require(reply.value >= 0 || reply.value > -4096, "an error number");
        if (reply.value >= 0) results_[next_result_++ % results_.size()] = uint64_t(reply.value);
        kernel_->resume(core, 0, reply.value);
        break;
      case Reply::Kind::kParked:
        require(kernel_->is_parked(core), "a parked core");
        break;
      case Reply::Kind::kExitProcess:
        for (uint32_t c = 0; c < kCores; ++c)
          if (!kernel_->is_private() || c == core) kernel_->end_thread(c);
        break;
      default:
        kernel_->end_thread(core);
    }
    end_killed();
  }

  void end_killed() {
    for (const Kernel::Killed& killed : kernel_->take_killed()) kernel_->end_thread(killed.core);
  }

  Module module_ = toy_module();
  MemoryPlan plan_;
  ScalarBackend backend_;
  std::optional<Kernel> kernel_;
  std::vector<uint64_t> strings_;
  std::array<uint64_t, 16> results_{};
  size_t next_result_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // Files of the guest stay small.
  std::signal(SIGPIPE, SIG_IGN);
  const rlimit limit{kFileLimit, kFileLimit};
  require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
  require(::chdir(folders().inside().c_str()) == 0, "chdir");
  std::atexit([] { (void)!::chdir("/"); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // As gpusim does. Not earlier: libFuzzer's own handler, set after LLVMFuzzerInitialize, ends the
  // process where a guest reaches the limit.
  std::signal(SIGXFSZ, SIG_IGN);
  Input input(data, size);
  const size_t before = open_descriptors();
  {
    World world((input.byte() & 1) ? MemoryModel::kPrivate : MemoryModel::kShared);
    while (!input.empty() && world.act(input)) {
    }
  }
  require(open_descriptors() == before, "descriptors leaked");
  folders().check();
  folders().renew();
  return 0;
}
