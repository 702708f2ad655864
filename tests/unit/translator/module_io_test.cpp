// Module files: what is written is read again, and nothing else is.
#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/unit/translator/seed.h"
#include "tests/unit/translator/test_elf.h"
#include "translator/common/translator.h"
#include "translator/module_io.h"

namespace gpusim {
namespace {

Module sample() {
  return translate_elf(TestElf({
                                   0x52800001,  // mov w1, #0
                                   0xb8615802,  // ldr w2, [x0, w1, uxtw #2]
                                   0x11000421,  // add w1, w1, #1
                                   0x7101903f,  // cmp w1, #100
                                   0x54ffffab,  // b.lt -12
                                   0xd65f03c0,  // ret
                                   0x04e0e3e0,  // an unknown one
                               })
                           .bytes(),
                       "test");
}

// Makes the checksum right again.
void seal(std::vector<uint8_t>& bytes) {
  const auto crc =
      static_cast<uint32_t>(crc32_z(crc32_z(0, nullptr, 0), bytes.data() + 24, bytes.size() - 24));
  std::memcpy(bytes.data() + 12, &crc, sizeof crc);
}

TEST_CASE("a module file holds the module") {
  const Module module = sample();
  const std::vector<uint8_t> bytes = module_bytes(module);
  CHECK(is_module(bytes));
  const Module again = read_module(bytes, "test");
  CHECK(module_bytes(again) == bytes);
  CHECK(again.uops == module.uops);
  CHECK(again.entry == module.entry);
  CHECK(again.abi.stack_pointer == module.abi.stack_pointer);
  // It goes on translating.
  CHECK(Translator(again).block_at(kTestText + 8).fault == Fault::kNone);
}

TEST_CASE("a module file keeps its CPU") {
  CHECK(sample().cpu == "cortex-a57");
  const TestElf elf({0xd5380600});  // mrs x0, id_aa64isar0_el1
  const Module max = translate_elf(elf.bytes(), "test", {.cpu = "max"});
  CHECK(max.uops != translate_elf(elf.bytes(), "test").uops);
  CHECK_THROWS_AS(translate_elf(elf.bytes(), "test", {.cpu = "cortex-m0"}), Error);

  const auto folder =
      std::filesystem::temp_directory_path() / ("gpusim_cpu_test_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto path = (folder / "m.gsm").string();
  const std::vector<uint8_t> bytes = module_bytes(max);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  CHECK(load_program(path).cpu == "max");
  CHECK(load_program(path, {.cpu = "max"}).uops == max.uops);
  CHECK_THROWS_AS(load_program(path, {.cpu = "cortex-a57"}), Error);
  std::filesystem::remove_all(folder);
}

TEST_CASE("cut module files are refused") {
  const std::vector<uint8_t> bytes = module_bytes(sample());
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(read_module(std::span(bytes).first(size), "test"), Error);
}

TEST_CASE("changed module files are refused") {
  const std::vector<uint8_t> bytes = module_bytes(sample());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<uint8_t> changed = bytes;
    changed[i] ^= 0x40;
    CHECK_THROWS_AS(read_module(changed, "test"), Error);
  }
}

TEST_CASE("other versions are refused by name") {
  std::vector<uint8_t> bytes = module_bytes(sample());
  bytes[8] = 99;
  CHECK_THROWS_WITH_AS(read_module(bytes, "m.gsm"),
                       doctest::Contains("m.gsm: a module file of version 99"), Error);
}

// With a right checksum, only the checks of the contents are left: a module that passes them must
// be safe to use.
TEST_CASE("a module file with a forged checksum is refused or harmless") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 rng(seed);
  const std::vector<uint8_t> bytes = module_bytes(sample());
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> changed = bytes;
    for (uint64_t n = 1 + rng() % 3; n > 0; --n)
      changed[24 + rng() % (changed.size() - 24)] = static_cast<uint8_t>(rng());
    seal(changed);
    try {
      Module module = read_module(changed, "test");
      for (uint32_t u = 0; u < module.uops.size(); ++u) (void)symbolize(module, uop_pc(module, u));
      Translator(std::move(module)).block_at(kTestText + 8);
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 0);
}

}  // namespace
}  // namespace gpusim
