// Small ELF files made in memory.
#pragma once
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace gpusim {

// One executable segment at kTestText that holds the words; the entry is the first one.
inline constexpr uint64_t kTestOffset = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
inline constexpr uint64_t kTestText = 0x400000 + kTestOffset;

struct TestElf {
  Elf64_Ehdr header{};
  Elf64_Phdr segments[2]{};  // code, data
  std::vector<uint32_t> words;

  explicit TestElf(std::vector<uint32_t> code) : words(std::move(code)) {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_AARCH64;
    header.e_version = EV_CURRENT;
    header.e_entry = kTestText;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    header.e_shentsize = sizeof(Elf64_Shdr);
    const uint64_t size = words.size() * sizeof words[0];
    segments[0] = {PT_LOAD, PF_R | PF_X, kTestOffset, kTestText, kTestText, size, size, 4};
    segments[1] = {PT_LOAD, PF_R | PF_W, 0, 0x600000, 0x600000, 0, 0x1000, 16};
  }

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> out(kTestOffset + words.size() * sizeof words[0]);
    std::memcpy(out.data(), &header, sizeof header);
    std::memcpy(out.data() + sizeof header, segments, sizeof segments);
    std::memcpy(out.data() + kTestOffset, words.data(), words.size() * sizeof words[0]);
    return out;
  }
};

}  // namespace gpusim
