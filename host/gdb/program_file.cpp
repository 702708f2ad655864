#include "host/gdb/program_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

namespace gpusim::host::gdb {
namespace {

// GDB manual, "Errno Values".
constexpr int kNoEntry = 2, kBadNumber = 9, kInvalid = 22, kTooManyOpen = 24;
constexpr uint64_t kFirstHandle = 3;
constexpr size_t kMostOpen = 64;

std::string failed(int error) { return fmt::format("F-1,{:x}", error); }

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = bytes; i-- > 0;) out += static_cast<char>(value >> 8 * i);
}

// GDB manual, "struct stat": big-endian.
std::string stat_record(const struct stat& s) {
  std::string out;
  put(out, s.st_dev, 4);
  put(out, s.st_ino, 4);
  put(out, s.st_mode, 4);
  put(out, s.st_nlink, 4);
  put(out, s.st_uid, 4);
  put(out, s.st_gid, 4);
  put(out, s.st_rdev, 4);
  put(out, static_cast<uint64_t>(s.st_size), 8);
  put(out, static_cast<uint64_t>(s.st_blksize), 8);
  put(out, static_cast<uint64_t>(s.st_blocks), 8);
  put(out, static_cast<uint64_t>(s.st_atime), 4);
  put(out, static_cast<uint64_t>(s.st_mtime), 4);
  put(out, static_cast<uint64_t>(s.st_ctime), 4);
  return out;
}

bool is_elf(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char magic[4] = {};
  return file && ::pread(file.get(), magic, sizeof magic, 0) == sizeof magic &&
         std::memcmp(magic, "\177ELF", sizeof magic) == 0;
}

}  // namespace

ProgramFile::ProgramFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (!error && is_elf(path)) path_ = whole.lexically_normal().string();
}

std::string ProgramFile::open(Words words) {
  const auto name = from_hex(words.until(','));
  const bool is_it = name && !path_.empty() && std::string(name->begin(), name->end()) == path_;
  if (!is_it) return failed(kNoEntry);
  if (open_.size() >= kMostOpen) return failed(kTooManyOpen);
  FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return failed(kNoEntry);
  uint64_t handle = kFirstHandle;
  while (open_.contains(handle)) ++handle;
  open_.emplace(handle, std::move(file));
  return fmt::format("F{:x}", handle);
}

std::string ProgramFile::answer(Words words) {
  if (words.take("setfs:")) return "F0";
  if (words.take("open:")) return open(words);
  const bool is_close = words.take("close:"), is_stat = !is_close && words.take("fstat:");
  if (!is_close && !is_stat && !words.take("pread:")) return {};
  const auto handle = words.number();
  const auto found = handle ? open_.find(*handle) : open_.end();
  if (found == open_.end()) return failed(kBadNumber);
  const FileDescriptor& file = found->second;
  if (is_close) {
    open_.erase(found);
    return "F0";
  }
  if (is_stat) {
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return failed(kInvalid);
    const std::string record = stat_record(status);
    return fmt::format("F{:x};{}", record.size(), escaped(record));
  }
  words.take(",");
  const auto count = words.number();
  words.take(",");
  const auto offset = words.number();
  if (!count || !offset) return failed(kInvalid);
  constexpr uint64_t kMost = 1 << 14;
  std::vector<char> bytes(std::min(*count, kMost));
  const ssize_t n = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(*offset));
  if (n < 0) return failed(kInvalid);
  return fmt::format("F{:x};{}", n, escaped({bytes.data(), static_cast<size_t>(n)}));
}

}  // namespace gpusim::host::gdb
