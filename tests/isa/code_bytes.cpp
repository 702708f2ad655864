#include "tests/isa/code_bytes.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <stdexcept>

namespace gpusim {
namespace {

void append_sections(Elf* elf, uint16_t machine, std::vector<uint8_t>& bytes) {
  GElf_Ehdr header;
  if (gelf_getehdr(elf, &header) == nullptr || header.e_machine != machine) return;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr s;
    if (gelf_getshdr(section, &s) == nullptr) continue;
    if ((s.sh_flags & SHF_EXECINSTR) == 0 || s.sh_type != SHT_PROGBITS) continue;
    const Elf_Data* data = elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    const auto* code = static_cast<const uint8_t*>(data->d_buf);
    bytes.insert(bytes.end(), code, code + data->d_size);
  }
}

}  // namespace

void append_code(const std::string& path, uint16_t machine, std::vector<uint8_t>& bytes) {
  elf_version(EV_CURRENT);
  const int fd = open(path.c_str(), O_RDONLY);
  if (fd < 0) throw std::runtime_error("cannot open " + path);
  const size_t before = bytes.size();
  Elf* const file = elf_begin(fd, ELF_C_READ, nullptr);
  if (elf_kind(file) == ELF_K_AR) {
    Elf_Cmd command = ELF_C_READ;
    while (command != ELF_C_NULL) {
      Elf* const member = elf_begin(fd, command, file);
      if (member == nullptr) break;
      if (elf_kind(member) == ELF_K_ELF) append_sections(member, machine, bytes);
      command = elf_next(member);
      elf_end(member);
    }
  } else if (elf_kind(file) == ELF_K_ELF) {
    append_sections(file, machine, bytes);
  }
  elf_end(file);
  close(fd);
  if (bytes.size() == before)
    throw std::runtime_error("no code of machine " + std::to_string(machine) + " in " + path);
}

}  // namespace gpusim
