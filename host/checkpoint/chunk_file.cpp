#include "host/checkpoint/chunk_file.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"

namespace gpusim::host {
namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

constexpr char kMagic[8] = {'G', 'P', 'U', 'S', 'I', 'M', 'C', '\n'};
// Raise it with every change of what sections hold.
constexpr uint32_t kVersion = 11;
constexpr size_t kChunk = size_t{1} << 20;       // raw bytes
constexpr size_t kFileBuffer = size_t{4} << 20;
constexpr int kLevel = 1;  // fast: most of a checkpoint is memory with many equal words

struct FileHeader {
  char magic[8];
  uint32_t version, zero;
};
struct ChunkHeader {
  uint32_t section, number, raw, stored;
  uint64_t checksum;
};
static_assert(sizeof(FileHeader) == 16 && sizeof(ChunkHeader) == 24);

uint64_t checksum_of(const ChunkHeader& header, const uint8_t* stored) {
  const uint64_t seed = XXH3_64bits(&header, offsetof(ChunkHeader, checksum));
  return XXH3_64bits_withSeed(stored, header.stored, seed);
}

}  // namespace

ChunkWriter::ChunkWriter(const OutputFile& file)
    : path_(file.path()),
      folder_(::fcntl(file.folder(), F_DUPFD_CLOEXEC, 0)),
      name_(file.name()),
      beside_(name_ + ".tmp"),
      compressor_(ZSTD_createCCtx()) {
  if (!compressor_) throw std::bad_alloc();
  try {
    fd_ = ::openat(folder_.get(), beside_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                   0666);
    if (fd_ < 0) fail(errno);
    // Two runs with the same file would write into each other's.
    if (::flock(fd_, LOCK_EX | LOCK_NB) < 0)
      throw Error(fmt::format("--checkpoint {}: another run is writing it", path_));
    if (::ftruncate(fd_, 0) < 0) fail(errno);
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(compressor_));
    throw;
  }
  raw_.reserve(kChunk);
  packed_.resize(ZSTD_compressBound(kChunk));
  FileHeader header{{}, kVersion, 0};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  put(&header, sizeof header);
}

ChunkWriter::~ChunkWriter() {
  if (fd_ >= 0) {  // not finished
    ::unlinkat(folder_.get(), beside_.c_str(), 0);
    ::close(fd_);
  }
  ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(compressor_));
}

void ChunkWriter::fail(int error) const {
  throw Error(fmt::format("--checkpoint {}: {}", path_, std::strerror(error)));
}

void ChunkWriter::flush_file() {
  for (size_t done = 0; done < out_.size();) {
    const ssize_t n = ::write(fd_, out_.data() + done, out_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    done += static_cast<size_t>(n);
  }
  out_.clear();
}

void ChunkWriter::put(const void* data, size_t size_bytes) {
  const auto* p = static_cast<const uint8_t*>(data);
  out_.insert(out_.end(), p, p + size_bytes);
  stored_ += size_bytes;
  if (out_.size() >= kFileBuffer) flush_file();
}

void ChunkWriter::flush_chunk() {
  if (raw_.empty() && section_ != kEndSection) return;
  const size_t size = ZSTD_compressCCtx(static_cast<ZSTD_CCtx*>(compressor_), packed_.data(),
                                        packed_.size(), raw_.data(), raw_.size(), kLevel);
  if (ZSTD_isError(size))
    throw Error(fmt::format("--checkpoint {}: {}", path_, ZSTD_getErrorName(size)));
  ChunkHeader header{section_, number_++, static_cast<uint32_t>(raw_.size()),
                     static_cast<uint32_t>(size), 0};
  header.checksum = checksum_of(header, packed_.data());
  put(&header, sizeof header);
  put(packed_.data(), size);
  raw_.clear();
}

void ChunkWriter::begin(uint32_t section) {
  if (section_ != 0) flush_chunk();
  section_ = section;
}

void ChunkWriter::write(const void* data, size_t size_bytes) {
  const auto* p = static_cast<const uint8_t*>(data);
  while (size_bytes != 0) {
    const size_t part = std::min(size_bytes, kChunk - raw_.size());
    raw_.insert(raw_.end(), p, p + part);
    p += part;
    size_bytes -= part;
    if (raw_.size() == kChunk) flush_chunk();
  }
}

void ChunkWriter::finish() {
  begin(kEndSection);
  flush_chunk();
  flush_file();
  // Its bytes are on the disk before its name is, and its name before anyone hears of it.
  if (::fsync(fd_) < 0) fail(errno);
  if (::renameat(folder_.get(), beside_.c_str(), folder_.get(), name_.c_str()) < 0) fail(errno);
  ::close(std::exchange(fd_, -1));
  const FileDescriptor folder(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.get());
}

ChunkReader::ChunkReader(const std::string& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat s {};
  if (fd_ < 0 || ::fstat(fd_, &s) < 0) {
    const int error = errno;
    if (fd_ >= 0) ::close(fd_);
    throw Error(fmt::format("--resume {}: {}{}; expected a file that gpusim run --checkpoint FILE "
                            "wrote",
                            path, std::strerror(error),
                            error == ENOENT ? nearest_file(path) : std::string()));
  }
  try {
    if (!S_ISREG(s.st_mode)) throw Error(fmt::format("--resume {}: not a file", path));
    decompressor_ = ZSTD_createDCtx();
    if (!decompressor_) throw std::bad_alloc();
    for (const bool only_look : {true, false}) {
      if (::lseek(fd_, 0, SEEK_SET) < 0) damaged("it cannot be read twice");
      left_ = static_cast<uint64_t>(s.st_size);
      file_.clear();
      file_at_ = 0;
      number_ = section_ = 0;
      FileHeader header{};
      if (left_ < sizeof header) throw Error(path_ + ": not a checkpoint of gpusim");
      read_file(&header, sizeof header);
      if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
        throw Error(path_ + ": not a checkpoint of gpusim");
      if (header.version != kVersion)
        throw Error(
            fmt::format("{}: a checkpoint of another version of gpusim (format {}, here {})", path_,
                        header.version, kVersion));
      if (header.zero != 0) damaged("its head");
      if (!only_look) break;
      while (section_ != kEndSection) next_chunk(false);
      if (left_ + (file_.size() - file_at_) != 0) damaged("something follows its end");
    }
    section_ = 0;
  } catch (...) {
    ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(decompressor_));
    ::close(fd_);
    throw;
  }
}

ChunkReader::~ChunkReader() {
  ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(decompressor_));
  ::close(fd_);
}

void ChunkReader::damaged(const char* what) const {
  throw Error(fmt::format("{}: damaged checkpoint ({})", path_, what));
}

void ChunkReader::read_file(void* data, size_t size_bytes) {
  auto* to = static_cast<uint8_t*>(data);
  while (size_bytes != 0) {
    if (file_at_ == file_.size()) {
      if (left_ == 0) damaged("it is cut short");
      file_.resize(std::min<uint64_t>(left_, kFileBuffer));
      size_t have = 0;
      while (have < file_.size()) {
        const ssize_t n = ::read(fd_, file_.data() + have, file_.size() - have);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw Error(fmt::format("--resume {}: {}", path_, std::strerror(errno)));
        if (n == 0) damaged("it is cut short");
        have += static_cast<size_t>(n);
      }
      left_ -= have;
      file_at_ = 0;
    }
    const size_t part = std::min(size_bytes, file_.size() - file_at_);
    std::memcpy(to, file_.data() + file_at_, part);
    file_at_ += part;
    to += part;
    size_bytes -= part;
  }
}

void ChunkReader::next_chunk(bool unpack) {
  if (section_ == kEndSection) damaged("a section is missing");
  ChunkHeader header{};
  read_file(&header, sizeof header);
  if (header.number != number_ || header.raw > kChunk || header.stored > ZSTD_COMPRESSBOUND(kChunk) ||
      header.stored > left_ + (file_.size() - file_at_))
    damaged("the head of a chunk");
  packed_.resize(header.stored);
  read_file(packed_.data(), packed_.size());
  if (checksum_of(header, packed_.data()) != header.checksum) damaged("a checksum");
  ++number_;
  section_ = header.section;
  if (!unpack) return;
  raw_.resize(header.raw);
  raw_at_ = 0;
  const size_t size =
      ZSTD_decompressDCtx(static_cast<ZSTD_DCtx*>(decompressor_), raw_.data(), raw_.size(),
                          packed_.data(), packed_.size());
  if (ZSTD_isError(size) || size != raw_.size()) damaged("a chunk");
}

void ChunkReader::begin(uint32_t section) {
  if (expected_ != 0 && !at_end_of_section()) damaged("a section is too long");
  expected_ = section;
  if (section_ == 0) next_chunk(true);
}

bool ChunkReader::at_end_of_section() {
  if (raw_at_ == raw_.size() && section_ == expected_) next_chunk(true);
  return section_ != expected_;
}

void ChunkReader::read(void* data, size_t size_bytes) {
  auto* to = static_cast<uint8_t*>(data);
  while (size_bytes != 0) {
    if (at_end_of_section()) damaged("a section is too short");
    const size_t part = std::min(size_bytes, raw_.size() - raw_at_);
    std::memcpy(to, raw_.data() + raw_at_, part);
    raw_at_ += part;
    to += part;
    size_bytes -= part;
  }
}

}  // namespace gpusim::host
