// Checkpoints whose checksums are right and whose contents are not: each is refused, or harmless.
#include "host/checkpoint/checkpoint.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <random>

#include "device_sim/base/error.h"
#include "host/loader.h"
#include "host/memory_budget.h"
#include "host/start_state.h"
#include "tests/unit/checkpoint/temporary_folder.h"

#ifdef GPUSIM_CHECKPOINT_GUEST

namespace gpusim::host {
namespace {

struct Chunk {
  uint32_t section = 0;
  std::vector<uint8_t> raw;
};

std::vector<Chunk> chunks_of(const std::string& path) {
  const std::vector<uint8_t> file = bytes_of(path);
  std::vector<Chunk> chunks;
  for (size_t at = 16; at + 24 <= file.size();) {
    uint32_t head[4];  // see chunk_file.h
    std::memcpy(head, file.data() + at, sizeof head);
    Chunk& c = chunks.emplace_back(Chunk{head[0], std::vector<uint8_t>(head[2])});
    REQUIRE(ZSTD_decompress(c.raw.data(), c.raw.size(), file.data() + at + 24, head[3]) == head[2]);
    at += 24 + head[3];
  }
  REQUIRE(chunks.back().section == kEndSection);
  chunks.pop_back();
  return chunks;
}

void write_chunks(const std::string& path, const std::vector<Chunk>& chunks) {
  ChunkWriter file(OutputFile("--checkpoint", path));
  for (const Chunk& c : chunks) {
    file.begin(c.section);
    file.write(c.raw.data(), c.raw.size());
  }
  file.finish();
}

// A run as simulate() puts it together, without the program's name on a command line.
class Run {
 public:
  Run(Translator& translator, const std::string& backend, const MemoryPlan& plan,
      const std::string& folder, bool starts_alone)
      : backend_(make_backend(backend)),
        plan_(plan),
        null_(::open("/dev/null", O_RDWR)),
        kernel_(*backend_, {.plan = &plan_,
                            .module = &translator.module(),
                            .translator = &translator,
                            .starts_alone = starts_alone,
                            .shares_cores = true,
                            .roots = {{folder, true}},
                            .standard_files = {null_, null_, null_},
                            .program = GPUSIM_CHECKPOINT_GUEST,
                            .note = {}}) {
    backend_->configure(translator.module(), plan_.config);
    control_.emplace(translator, *backend_, plan_, kernel_, RunControlOptions{.slice = 300, .program = {}},
                     [](const std::string&) {});
  }
  ~Run() { ::close(null_); }

  std::unique_ptr<Backend> backend_;
  MemoryPlan plan_;
  int null_;
  Kernel kernel_;
  std::optional<RunControl> control_;
};

// A guest stopped somewhere, with threads, pipes and signals under way.
struct Start {
  const char* what;
  const char* backend;
  MemoryModel model;
  uint32_t cores;
  int steps;
};
constexpr Start kStarts[] = {{"pipes", "scalar", MemoryModel::kShared, 3, 400},
                             {"signals", "simd", MemoryModel::kShared, 3, 400},
                             {"threads", "simd", MemoryModel::kShared, 6, 300},
                             {"threads", "scalar", MemoryModel::kShared, 2, 300},
                             {"signals", "cuda", MemoryModel::kPrivate, 9, 300},
                             {"memory", "simd", MemoryModel::kPrivate, 70, 200}};

void write_good(const Start& start, const Module& program, const std::string& folder,
                const std::string& path) {
  Translator translator{Module(program)};
  const Module& module = translator.module();
  const bool is_private = start.model == MemoryModel::kPrivate;
  const MemoryPlan plan =
      plan_memory(module, {.model = start.model,
                           .cores = start.cores,
                           .memory_size_bytes = is_private ? uint64_t{8} << 20 : 0});
  Run run(translator, start.backend, plan, folder, !is_private);
  load_image(*run.backend_, module, plan);
  start_as_process(*run.backend_, translator, plan, {"guest", {start.what}, {}},
                   is_private ? start.cores : 1);
  for (int i = 0; i < start.steps && run.control_->step(); ++i) {
  }
  REQUIRE(run.kernel_.alive() > 0);
  REQUIRE((start.cores > 2 || run.kernel_.alive_without_core() > 0));
  RunIdentity identity{.program = GPUSIM_CHECKPOINT_GUEST,
                       .cpu = module.cpu,
                       .backend = start.backend,
                       .group_width = plan.config.group_width,
                       .starts_alone = !is_private,
                       .plan = plan};
  write_checkpoint({"--checkpoint", path}, identity, translator, *run.backend_, run.kernel_,
                   *run.control_);
}

class Mutator {
 public:
  explicit Mutator(std::mt19937& random) : random_(random) {}
  uint32_t below(size_t n) { return static_cast<uint32_t>(random_() % n); }

  void spoil(std::vector<Chunk>& chunks) {
    for (uint32_t n = 1 + below(3); n > 0; --n) {
      const uint32_t at = below(chunks.size());
      std::vector<uint8_t>& raw = chunks[at].raw;
      switch (below(24)) {
        case 0:  // cut
          raw.resize(below(raw.size() + 1));
          break;
        case 1:  // grow
          raw.insert(raw.end(), below(64), static_cast<uint8_t>(random_()));
          break;
        case 2:  // a piece twice, or moved
          if (!raw.empty()) {
            const uint32_t from = below(raw.size());
            const std::vector<uint8_t> piece(
                raw.begin() + from, raw.begin() + std::min<long>(from + 64, long(raw.size())));
            raw.insert(raw.begin() + below(raw.size()), piece.begin(), piece.end());
          }
          break;
        case 3:  // sections in another order, or one missing
          if (chunks.size() < 3) break;
          if (below(2))
            std::swap(chunks[at], chunks[below(chunks.size())]);
          else
            chunks.erase(chunks.begin() + at);
          break;
        default:
          spoil_number(raw);
      }
    }
  }

 private:
  // Most of what matters stands at the front of a section.
  void spoil_number(std::vector<uint8_t>& raw) {
    if (raw.empty()) return;
    const size_t widths[] = {1, 1, 2, 4, 8};
    const size_t width = widths[below(5)];
    const size_t range = below(2) ? std::min<size_t>(raw.size(), 256) : raw.size();
    const size_t at = below(range);
    uint64_t value = 0;
    std::memcpy(&value, raw.data() + at, std::min(width, raw.size() - at));
    const uint64_t bit = uint64_t{1} << below(8 * width);
    switch (below(7)) {
      case 0:
        value = 0;
        break;
      case 1:
        value = ~uint64_t{0};
        break;
      case 2:
        value = bit;
        break;
      case 3:
        value = bit - 1;
        break;
      case 4:
        value ^= bit;
        break;
      case 5:
        value += below(2) ? 1 : ~uint64_t{0};
        break;
      default:
        value = uint64_t{random_()} << 32 | random_();
    }
    std::memcpy(raw.data() + at, &value, std::min(width, raw.size() - at));
  }
  std::mt19937& random_;
};

// As a user would, but for a machine that is too large for a test: `gpusim run` judges those by
// --host-memory.
bool resume(const std::string& path, const Module& program, const std::string& folder,
            const std::string& backend) {
  Translator translator{Module(program)};
  ResumedRun resumed(path);
  resumed.grow(translator);
  const MemoryPlan plan = resumed.identity().plan;
  const RunShape shape{.plan = &plan, .backend = backend};
  judge_needs(known_needs(translator.module(), shape), {uint64_t{256} << 20, true},
              plan.config.cores);
  Run run(translator, backend, plan, folder, resumed.identity().starts_alone);
  resumed.restore_machine(translator.module(), run.plan_, *run.backend_);
  resumed.restore_run(run.kernel_, *run.control_);
  for (int step = 0; step < 20 && run.control_->step(); ++step) {
  }
  return true;
}

// GPUSIM_FUZZ_SECONDS says how long; a crash or a hang ends the program, with what replays it.
TEST_CASE("checkpoints with wrong contents are refused or harmless") {
  const char* const given = std::getenv("GPUSIM_SEED");
  const auto seed =
      given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device()();
  const char* const limit = std::getenv("GPUSIM_FUZZ_SECONDS");
  const double seconds = limit ? std::atof(limit) : 3;
  std::fprintf(stderr, "replay: GPUSIM_SEED=%u\n", seed);
  std::mt19937 random(seed);
  Mutator mutator(random);
  const TemporaryFolder folder;
  const Module program = load_program(GPUSIM_CHECKPOINT_GUEST);
  std::vector<std::vector<Chunk>> good;
  std::vector<std::string> backends;
  for (const BackendInfo& info : all_backends())
    if (std::string why; info.available(&why)) backends.push_back(info.name);
  for (size_t i = 0; i < std::size(kStarts); ++i) {
    if (std::find(backends.begin(), backends.end(), kStarts[i].backend) == backends.end()) continue;
    const std::string path = folder.path / ("good" + std::to_string(i));
    write_good(kStarts[i], program, folder.path, path);
    REQUIRE(resume(path, program, folder.path, kStarts[i].backend));
    good.push_back(chunks_of(path));
  }
  const std::string path = folder.path / "run.gsc";
  int refused = 0, restored = 0;
  constexpr unsigned kHangSeconds = 120;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; i < 20 || std::chrono::steady_clock::now() < end; ++i) {
    CAPTURE(i);
    std::vector<Chunk> bad = good[random() % good.size()];
    mutator.spoil(bad);
    write_chunks(path, bad);
    ::alarm(kHangSeconds);
    try {
      resume(path, program, folder.path, backends[random() % backends.size()]);
      ++restored;
    } catch (const std::runtime_error&) {
      ++refused;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    ::alarm(0);
  }
  MESSAGE(refused << " refused, " << restored << " restored");
  CHECK(refused > 0);
  CHECK(restored > 0);
}

}  // namespace
}  // namespace gpusim::host

#endif
