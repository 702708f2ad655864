// Open files of one guest process.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace gpusim::host {

// A host file that closes with the last descriptor that names it.
class OpenFile {
 public:
  OpenFile(int host_fd, bool owned) : host_fd_(host_fd), owned_(owned) {}
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int host_fd() const { return host_fd_; }

 private:
  int host_fd_;
  bool owned_;
};
using FileRef = std::shared_ptr<OpenFile>;

class FileTable {
 public:
  static constexpr int kMost = 20000;

  // `standard`: the files 0, 1 and 2, shared by all processes.
  explicit FileTable(const std::array<FileRef, 3>& standard)
      : files_(standard.begin(), standard.end()) {}

  // Null: EBADF.
  const OpenFile* find(int64_t fd) const;
  FileRef share(int64_t fd) const;
  // The lowest free number from `from` on, or -1: EMFILE.
  int add(FileRef file, int from = 0);
  bool set(int64_t fd, FileRef file);
  bool close(int64_t fd);

 private:
  std::vector<FileRef> files_;
};

}  // namespace gpusim::host
