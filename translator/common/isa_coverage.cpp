#include "translator/common/isa_coverage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "translator/common/error.h"

namespace gpusim {

void IsaCoverage::add_word(uint32_t word) {
  std::string row = isa_.row(word);
  if (!row.empty()) rows_.insert(std::move(row));
}

void IsaCoverage::add_blocks(const Module& module, std::span<const uint64_t> counts,
                             const WordAt& word_at) {
  for (size_t b = 0; b < counts.size() && b < module.blocks.size(); ++b) {
    const Block& block = module.blocks[b];
    for (uint32_t i = 0; i < block.insn_count && counts[b] != 0; ++i) {
      uint32_t word = 0;
      if (word_at(block.pc + (uint64_t{i} << module.code.pc_shift), &word)) add_word(word);
    }
  }
}

void IsaCoverage::append_to(const std::string& path) const {
  std::string text;
  for (const std::string& row : rows_) text += fmt::format("{} {}\n", isa_.name, row);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!written) throw Error(fmt::format("{}: {}", path, std::strerror(error)));
}

}  // namespace gpusim
