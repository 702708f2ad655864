// Whatever is not a static program of a known ISA is refused, and the message says why.
#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "tests/unit/translator/seed.h"
#include "tests/unit/translator/test_elf.h"
#include "translator/common/translator.h"

namespace gpusim {
namespace {

const std::vector<uint32_t> kCode = {
    0x11000421,  // add w1, w1, #1
    0x6b00003f,  // cmp w1, w0
    0x54ffffc1,  // b.ne -8
    0xd65f03c0,  // ret
};

std::string error_of(std::span<const uint8_t> bytes) {
  try {
    translate_elf(bytes, "prog");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string error_with(const std::function<void(TestElf&)>& change) {
  TestElf elf(kCode);
  change(elf);
  return error_of(elf.bytes());
}

void check_error(const std::function<void(TestElf&)>& change, const char* part) {
  const std::string error = error_with(change);
  INFO("message: " << error);
  CHECK(error.find(part) != std::string::npos);
  CHECK(error.rfind("prog: ", 0) == 0);
}

TEST_CASE("the unchanged file is fine") {
  CHECK(error_with([](TestElf&) {}).empty());
}

TEST_CASE("files that are no programs") {
  const std::vector<uint8_t> text{'h', 'e', 'l', 'l', 'o'};
  CHECK(error_of(text).find("not an ELF file") != std::string::npos);
  CHECK(error_of({}).find("not an ELF file") != std::string::npos);
  CHECK_THROWS_AS(translate_file("/nonexistent/program"), Error);
  CHECK_THROWS_AS(translate_file("/"), Error);
}

TEST_CASE("programs for something else") {
  check_error([](TestElf& e) { e.header.e_machine = EM_X86_64; }, "a program for x86-64");
  check_error([](TestElf& e) { e.header.e_machine = EM_BPF; }, "a program for BPF");
  check_error([](TestElf& e) { e.header.e_machine = 0x1234; }, "ELF machine number 4660");
  check_error([](TestElf& e) { e.header.e_ident[EI_CLASS] = ELFCLASS32; },
              "a 32-bit program for AArch64; only 64-bit ones can be run");
  check_error([](TestElf& e) { e.header.e_ident[EI_DATA] = ELFDATA2MSB; }, "big-endian");
  check_error([](TestElf& e) { e.header.e_type = ET_REL; }, "an object file");
  check_error([](TestElf& e) { e.header.e_type = ET_CORE; }, "a core dump");
  check_error([](TestElf& e) { e.segments[1].p_type = PT_INTERP; }, "dynamically linked");
}

// One segment with two instructions: li a7, 93; ecall.
struct Elf32 {
  Elf32_Ehdr header{};
  Elf32_Phdr segment{};
  uint32_t code[2] = {0x05d00893, 0x00000073};

  explicit Elf32(uint32_t address) {
    constexpr unsigned char kIdent[] = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT};
    std::copy(std::begin(kIdent), std::end(kIdent), header.e_ident);
    header.e_type = ET_EXEC;
    header.e_machine = EM_RISCV;
    header.e_version = EV_CURRENT;
    header.e_entry = address;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof segment;
    header.e_phnum = 1;
    segment = {.p_type = PT_LOAD,
               .p_offset = sizeof header + sizeof segment,
               .p_vaddr = address,
               .p_paddr = address,
               .p_filesz = sizeof code,
               .p_memsz = sizeof code,
               .p_flags = PF_R | PF_X,
               .p_align = 4};
  }
  std::span<const uint8_t> bytes() const {
    return {reinterpret_cast<const uint8_t*>(this), sizeof *this};
  }
};

TEST_CASE("32-bit files") {
  CHECK(translate_elf(Elf32(0x10000).bytes(), "prog").isa == "riscv32");
  CHECK(error_of(Elf32(0x1000).bytes()).empty());
  CHECK(error_of(Elf32(0xffffeff8).bytes()).empty());
  for (const uint32_t address : {0u, 0xff8u, 0xffffeffcu, 0xfffffff8u, 0xfffffffcu})
    CHECK(error_of(Elf32(address).bytes()).find("where 32-bit programs may be") !=
          std::string::npos);
  CHECK(error_of(Elf32(0x10000).bytes().first(40)).find("truncated ELF header: 40 bytes of 52") !=
        std::string::npos);
  CHECK(error_of(Elf32(0x10000).bytes().first(60)).find("program headers at offset") !=
        std::string::npos);
}

TEST_CASE("damaged headers") {
  check_error([](TestElf& e) { e.header.e_type = 77; }, "unknown type");
  check_error([](TestElf& e) { e.header.e_ident[EI_CLASS] = 9; }, "unknown class");
  check_error([](TestElf& e) { e.header.e_ident[EI_DATA] = 9; }, "unknown byte order");
  check_error([](TestElf& e) { e.header.e_phnum = 0; }, "no program headers");
  check_error([](TestElf& e) { e.header.e_phoff = 1 << 20; }, "program headers");
  check_error([](TestElf& e) { e.header.e_phnum = 1000; }, "program headers");
  check_error([](TestElf& e) { e.header.e_phentsize = 8; }, "program headers");
  check_error([](TestElf& e) { e.header.e_entry = 0x600000; }, "the entry point 0x600000");
  check_error([](TestElf& e) { e.header.e_entry += 2; }, "alignment");
}

TEST_CASE("impossible segments") {
  check_error([](TestElf& e) { e.segments[0].p_filesz = 0x1000; }, "0x1000 bytes in the file");
  check_error([](TestElf& e) { e.segments[0].p_offset = 0x1000; }, "lie outside of the file");
  check_error([](TestElf& e) { e.segments[0].p_offset = ~uint64_t{7}; }, "lie outside of the file");
  check_error([](TestElf& e) { e.segments[1].p_vaddr = ~uint64_t{0} - 15; }, "48-bit");
  check_error([](TestElf& e) { e.segments[1].p_memsz = ~uint64_t{0} - 15; }, "48-bit");
  check_error([](TestElf& e) { e.segments[1].p_memsz = uint64_t{1} << 40; }, "spread over");
  check_error([](TestElf& e) { e.segments[1].p_vaddr = uint64_t{1} << 40; }, "spread over");
  check_error([](TestElf& e) { e.segments[1].p_vaddr = kTestText + 8; }, "overlap");
  check_error([](TestElf& e) { e.segments[0].p_flags = PF_R; }, "no executable segment");
  check_error([](TestElf& e) { e.segments[0].p_filesz = 0; }, "no code");
  check_error([](TestElf& e) { e.segments[0].p_type = e.segments[1].p_type = PT_NOTE; },
              "no loadable segment");
}

TEST_CASE("every cut file is refused") {
  const std::vector<uint8_t> bytes = TestElf(kCode).bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    INFO("size " << size);
    CHECK(error_of(std::span(bytes).first(size)) != "");
  }
}

TEST_CASE("randomly damaged files are refused or translated") {
  const uint64_t seed = seed_from_env_or_random();
  INFO("replay: GPUSIM_SEED=" << seed);
  std::mt19937_64 rng(seed);
  const std::vector<uint8_t> bytes = TestElf(kCode).bytes();
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint8_t> changed = bytes;
    for (uint64_t n = 1 + rng() % 4; n > 0; --n)
      changed[rng() % changed.size()] = static_cast<uint8_t>(rng());
    if (!error_of(changed).empty()) ++refused;
  }
  CHECK(refused > 0);
}

}  // namespace
}  // namespace gpusim
