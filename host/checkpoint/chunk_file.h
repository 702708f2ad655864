// The container of a checkpoint: named sections, cut into chunks that are compressed and checked one by
// one, so that neither side needs it in memory.
//
// Little-endian. Magic "GPUSIMC\n", u32 version, u32 0; then chunks: u32 section, u32 number (from 0,
// over the file), u32 raw bytes, u32 stored bytes, u64 XXH3 of these four and the stored bytes, the
// stored bytes (a zstd frame). The last one is an empty chunk of section kEnd, and nothing follows it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/output_file.h"

namespace gpusim::host {

inline constexpr uint32_t kEndSection = 0x20444e45;  // "END "
inline constexpr uint32_t section_name(const char (&name)[5]) {
  return static_cast<uint32_t>(name[0]) | static_cast<uint32_t>(name[1]) << 8 |
         static_cast<uint32_t>(name[2]) << 16 | static_cast<uint32_t>(name[3]) << 24;
}

// Writes beside the file, to its name.tmp; finish() puts it in its place, and only then does what
// was there before go. All errors are Errors.
class ChunkWriter {
 public:
  explicit ChunkWriter(const OutputFile& file);
  ~ChunkWriter();
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;

  void begin(uint32_t section);
  void write(const void* data, size_t size_bytes);
  void finish();
  uint64_t stored_bytes() const { return stored_; }

 private:
  void flush_chunk();
  void put(const void* data, size_t size_bytes);
  void flush_file();
  [[noreturn]] void fail(int error) const;

  std::string path_;
  FileDescriptor folder_;
  std::string name_, beside_;  // in `folder_`
  int fd_ = -1;
  uint32_t section_ = 0, number_ = 0;
  uint64_t stored_ = 0;
  std::vector<uint8_t> raw_, packed_, out_;
  void* compressor_ = nullptr;
};

// Trusts nothing. All errors are Errors that name the file.
class ChunkReader {
 public:
  // Reads the file through once: whatever was damaged is found here.
  explicit ChunkReader(const std::string& path);
  ~ChunkReader();
  ChunkReader(const ChunkReader&) = delete;
  ChunkReader& operator=(const ChunkReader&) = delete;

  // The next section, which must be this one; the one before must have been read to its end.
  void begin(uint32_t section);
  void read(void* data, size_t size_bytes);
  bool at_end_of_section();
  [[noreturn]] void damaged(const char* what) const;

 private:
  // The next chunk, unpacked to raw_ unless only looked at.
  void next_chunk(bool unpack);
  void read_file(void* data, size_t size_bytes);

  std::string path_;
  int fd_ = -1;
  std::vector<uint8_t> file_;  // read ahead
  size_t file_at_ = 0;
  uint64_t left_ = 0;  // bytes of the file behind file_
  uint32_t section_ = 0, expected_ = 0, number_ = 0;
  std::vector<uint8_t> packed_, raw_;
  size_t raw_at_ = 0;
  void* decompressor_ = nullptr;
};

}  // namespace gpusim::host
