// Writes the fuzzers' first inputs: make_seeds ELF_FOLDER MODULE_FOLDER [PROGRAM]...
#include <filesystem>
#include <fstream>
#include <iostream>

#include "device_sim/base/file.h"
#include "tests/unit/translator/test_elf.h"
#include "translator/common/translator.h"
#include "translator/module_io.h"

using namespace gpusim;

namespace {

void write(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::vector<uint8_t>> programs(int count, char** paths) {
  std::vector<std::vector<uint8_t>> all;
  all.push_back(TestElf({0x11000421, 0x6b00003f, 0x54ffffc1, 0xd65f03c0}).bytes());
  all.push_back(TestElf({0x52800001, 0xb8615802, 0x11000421, 0x7101903f, 0x54ffffab, 0x04e0e3e0,
                         0x1e622820, 0xfd000000, 0xd4000001, 0xd61f0000})
                    .bytes());
  for (int i = 0; i < count; ++i) all.push_back(read_file(paths[i]));
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: make_seeds ELF_FOLDER MODULE_FOLDER [PROGRAM]...\n";
    return 2;
  }
  const std::filesystem::path elf_folder = argv[1], module_folder = argv[2];
  std::filesystem::create_directories(elf_folder);
  std::filesystem::create_directories(module_folder);
  int n = 0;
  for (const std::vector<uint8_t>& bytes : programs(argc - 3, argv + 3)) {
    const std::string name = "seed" + std::to_string(n++);
    write(elf_folder / name, bytes);
    write(module_folder / name, module_bytes(translate_elf(bytes, name)));
  }
  return 0;
}
