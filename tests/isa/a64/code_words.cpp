#include "tests/isa/a64/code_words.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace gpusim::a64 {
namespace {

void append_sections(Elf* elf, std::vector<uint32_t>& words) {
  GElf_Ehdr header;
  if (gelf_getehdr(elf, &header) == nullptr || header.e_machine != EM_AARCH64) return;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr s;
    if (gelf_getshdr(section, &s) == nullptr) continue;
    if ((s.sh_flags & SHF_EXECINSTR) == 0 || s.sh_type != SHT_PROGBITS) continue;
    const Elf_Data* data = elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    const size_t count = data->d_size / sizeof(uint32_t);
    const size_t old = words.size();
    words.resize(old + count);
    std::memcpy(words.data() + old, data->d_buf, count * sizeof(uint32_t));
  }
}

}  // namespace

void append_code_words(const std::string& path, std::vector<uint32_t>& words) {
  elf_version(EV_CURRENT);
  const int fd = open(path.c_str(), O_RDONLY);
  if (fd < 0) throw std::runtime_error("cannot open " + path);
  const size_t before = words.size();
  Elf* const file = elf_begin(fd, ELF_C_READ, nullptr);
  if (elf_kind(file) == ELF_K_AR) {
    Elf_Cmd command = ELF_C_READ;
    while (command != ELF_C_NULL) {
      Elf* const member = elf_begin(fd, command, file);
      if (member == nullptr) break;
      if (elf_kind(member) == ELF_K_ELF) append_sections(member, words);
      command = elf_next(member);
      elf_end(member);
    }
  } else if (elf_kind(file) == ELF_K_ELF) {
    append_sections(file, words);
  }
  elf_end(file);
  close(fd);
  if (words.size() == before) throw std::runtime_error("no AArch64 code in " + path);
}

}  // namespace gpusim::a64
