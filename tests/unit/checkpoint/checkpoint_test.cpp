// Checkpoints whose checksums are right and whose contents are not: each is refused, or harmless.
#include "host/checkpoint/checkpoint.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

#include "host/error.h"
#include "host/loader.h"
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
  ChunkWriter file(path);
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

TEST_CASE("checkpoints with wrong contents are refused or harmless") {
  const char* const given = std::getenv("GPUSIM_SEED");
  const auto seed = given ? static_cast<uint32_t>(std::atoi(given)) : std::random_device()();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937 random(seed);
  const TemporaryFolder folder;
  const std::string path = folder.path / "run.gsc";
  Translator translator(load_program(GPUSIM_CHECKPOINT_GUEST));
  const Module& module = translator.module();
  for (const char* const what : {"pipes", "signals"}) {
    const MemoryPlan plan = plan_memory(module, {.cores = 3});
    {
      Run run(translator, "scalar", plan, folder.path, true);
      load_image(*run.backend_, module, plan);
      start_as_process(*run.backend_, translator, plan, {"guest", {what}, {}}, 1);
      for (int i = 0; i < 400 && run.control_->step(); ++i) {
      }
      REQUIRE(run.kernel_.alive() > 0);
      RunIdentity identity{.program = GPUSIM_CHECKPOINT_GUEST,
                           .cpu = module.cpu,
                           .backend = "scalar",
                           .starts_alone = true,
                           .plan = plan};
      write_checkpoint(path, identity, translator, *run.backend_, run.kernel_, *run.control_);
    }
    const std::vector<Chunk> good = chunks_of(path);
    int refused = 0, restored = 0;
    const bool is_long = std::getenv("GPUSIM_LONG") != nullptr;
    const int rounds = is_long ? 5000 : 30;
    for (int i = 0; i < rounds; ++i) {
      CAPTURE(i);
      std::vector<Chunk> bad = good;
      if (i > 0) {
        Chunk& c = bad[random() % bad.size()];
        if (c.raw.empty()) continue;
        for (uint32_t n = random() % 3 + 1; n > 0; --n) {
          // Most of what matters stands at the front; numbers are small, zero or all ones.
          const size_t range = random() % 2 ? std::min<size_t>(c.raw.size(), 200) : c.raw.size();
          uint8_t& b = c.raw[random() % range];
          b = static_cast<uint8_t>(random() % 4 == 0 ? 0xff : random() % 3 ? random() : 0);
        }
        if (random() % 16 == 0) c.raw.resize(random() % c.raw.size());
        write_chunks(path, bad);
      }
      try {
        ResumedRun resumed(path);
        resumed.grow(translator);
        const MachineConfig& config = resumed.identity().plan.config;
        if (config.cores > 4096) continue;
        Run run(translator, random() % 3 ? "scalar" : "simd", resumed.identity().plan, folder.path, true);
        resumed.restore_machine(module, run.plan_, *run.backend_);
        resumed.restore_run(run.kernel_, *run.control_);
        ++restored;
        for (int step = 0; step < 20 && run.control_->step(); ++step) {
        }
      } catch (const std::runtime_error&) {
        REQUIRE(i > 0);
        ++refused;
      } catch (const std::bad_alloc&) {
        ++refused;
      }
    }
    MESSAGE(std::string(what) << ": " << refused << " refused, " << restored << " restored");
    CHECK(refused > 0);
    CHECK(restored > 0);
  }
}

}  // namespace
}  // namespace gpusim::host

#endif
