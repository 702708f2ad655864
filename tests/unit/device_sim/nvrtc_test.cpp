// What compiled regions become for a GPU, without one: NVRTC takes them, for every chip.
#include "device_sim/cuda/compiled/nvrtc.h"

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "device_sim/cuda/compiled/cubin_maker.h"
#include "device_sim/cuda/regions.h"

namespace gpusim::cuda {
namespace {

namespace fs = std::filesystem;

// A loop that loads, multiplies, stores and counts.
Module loop() {
  Module m;
  m.slot_count = 8;
  m.code.text_base = 0x1000;
  const auto ends = [](Op op, Slot a, Slot b, uint32_t target) {
    return Uop{.op = op, .a = a, .b = b, .imm = Uop::pack_target(0, target)};
  };
  m.uops = {Uop{.op = Op::ldu32, .d = 1, .a = 2},
            Uop{.op = Op::mul32, .d = 1, .a = 1, .b = 3},
            Uop{.op = Op::st32, .d = 1, .a = 2, .imm = 4},
            Uop{.op = Op::addi64, .d = 2, .a = 2, .imm = 8},
            ends(Op::br_ne64, 2, 4, 0),
            Uop{.op = Op::service, .imm = Uop::pack_target(1, 0)}};
  m.uop_block = {0, 0, 0, 0, 0, 1};
  m.blocks = {{.pc = 0x1000, .insn_count = 5, .first_uop = 0, .uop_count = 5},
              {.pc = 0x1014, .insn_count = 1, .first_uop = 5, .uop_count = 1}};
  m.code.uop_at = {0, kNoUop, kNoUop, kNoUop, kNoUop, 5};
  return m;
}

std::string source(bool in_place) {
  const Module m = loop();
  const std::vector<CodeRegion> regions = choose_regions(m, std::vector<uint64_t>{1000000, 1});
  REQUIRE(regions.size() == 1);
  return regions_source(text_of(m, regions), in_place);
}

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "gpusim_nvrtc_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

TEST_CASE("NVRTC makes machine code of regions for each chip") {
  for (const char* const chip : {"sm_75", "sm_90", "sm_120"})
    for (const bool in_place : {false, true}) {
      CAPTURE(chip);
      CAPTURE(in_place);
      const DeviceCode made = compile_by_nvrtc(source(in_place), chip);
      CHECK(
          made.code.starts_with("\x7f"
                                "ELF"));
      CHECK(made.code.find(kRegionsKernel) != std::string::npos);
      CHECK(made.spilled_bytes == 0);
    }
}

TEST_CASE("NVRTC makes PTX of regions") {
  const std::string ptx = compile_by_nvrtc(source(false), "compute_90").code;
  CHECK(ptx.find(std::string(".entry ") + kRegionsKernel) != std::string::npos);
  CHECK(ptx.find("ld.relaxed.gpu.global.u32") != std::string::npos);
  CHECK(ptx.find('\0') == std::string::npos);
}

TEST_CASE("what NVRTC does not take is told in its words") {
  CHECK_THROWS_WITH_AS(compile_by_nvrtc("__global__ void f() { nobody(); }", "sm_90"),
                       doctest::Contains("identifier \"nobody\" is undefined"), std::runtime_error);
  CHECK_THROWS_WITH_AS(compile_by_nvrtc(source(false), "sm_12"), doctest::Contains("sm_12"),
                       std::runtime_error);
}

TEST_CASE("a compilation that nobody waits for ends") {
  const std::atomic<bool> ends = true;
  CHECK_THROWS_WITH_AS(compile_by_nvrtc(source(false), "sm_90", &ends),
                       doctest::Contains("CANCELLED"), std::runtime_error);
}

TEST_CASE("what was compiled stays in a folder") {
  const Folder folder;
  const std::string text = source(false);
  fs::path file;
  {
    CubinMaker maker(folder.path, CubinMaker::By::kNvrtc);
    maker.begin(text, "sm_90");
    maker.wait();
    const auto made = maker.take();
    REQUIRE(made.has_value());
    file = *made;
    CHECK(fs::file_size(file) > 1000);
  }
  const auto size = fs::file_size(file);
  const auto long_ago = fs::last_write_time(file) - std::chrono::hours(2);
  fs::last_write_time(file, long_ago);
  CubinMaker again(folder.path, CubinMaker::By::kNvrtc);
  again.begin(text, "sm_90");
  CHECK(again.take() == file);  // at once
  CHECK(fs::file_size(file) == size);
  CHECK(fs::last_write_time(file) > long_ago + std::chrono::hours(1));  // it is in use
  again.begin(text, "sm_120");
  again.wait();
  CHECK(again.take() != file);
  again.begin("__global__ void f() { nobody(); }", "sm_90");
  again.wait();
  CHECK_THROWS_AS(again.take(), std::runtime_error);
}

TEST_CASE("the folder does not grow for ever") {
  const Folder folder;
  const auto make = [&](const char* chip) {
    CubinMaker maker(folder.path, CubinMaker::By::kNvrtc, 1);
    maker.begin(source(false), chip);
    maker.wait();
    const fs::path made = maker.take().value();
    CHECK(fs::exists(made));
    return made;
  };
  const fs::path first = make("sm_90");
  const fs::path second = make("sm_120");
  CHECK(fs::exists(first));  // not yet an hour old
  for (const auto& entry : fs::directory_iterator(folder.path))
    if (entry.path().stem() == first.stem())
      fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(2));
  make("sm_75");
  CHECK(!fs::exists(first));
  CHECK(!fs::exists(fs::path(first).replace_extension(".cu")));
  CHECK(fs::exists(second));
}

TEST_CASE("where NVRTC is not there a sentence says so" * doctest::skip()) {
  Folder folder;
  CubinMaker maker(folder.path, CubinMaker::By::kNvrtc);
  CHECK_THROWS_WITH_AS(maker.begin(source(false), "sm_90"),
                       doctest::Contains("NVRTC cannot be loaded"), std::runtime_error);
}

}  // namespace
}  // namespace gpusim::cuda

int main(int count, char** arguments) {
  doctest::Context context(count, arguments);
  if (!::getenv("GPUSIM_NVRTC")) try {
      gpusim::cuda::nvrtc_version();
    } catch (const std::runtime_error& error) {
      std::printf("skipped: %s\n", error.what());
      return 77;
    }
  return context.run();
}
