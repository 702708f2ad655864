// Open files of one guest process.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/linux/folder.h"
#include "host/linux/record_locks.h"

namespace gpusim::host {

// A host file that closes with the last descriptor that names it.
class OpenFile {
 public:
  enum class Kind : uint8_t {
    kOther,   // a file, a device, or what gpusim was started with
    kFolder,
    kPipe,
    kMemory,  // memfd
    kEventCounter,
    kTimer,
    kEpoll,
    kSocket,
    kSignals,
  };
  // `path`: by which it was opened, for checkpoints and messages.
  OpenFile(int host_fd, bool owned, Kind kind = Kind::kOther, std::string path = {})
      : host_fd_(host_fd), owned_(owned), kind_(kind), path_(std::move(path)) {}
  virtual ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int host_fd() const { return host_fd_; }
  bool is_owned() const { return owned_; }
  Kind kind() const { return kind_; }
  bool is_folder() const { return kind_ == Kind::kFolder; }
  const std::string& path() const { return path_; }
  // The host's file does not block: a call that has to wait parks its core and is tried again.
  bool parks() const { return kind_ >= Kind::kPipe && kind_ != Kind::kMemory; }
  // Whether it may become ready from now on without any core's doing. To be asked before a look
  // whether it is ready: a timer that expires in between would be neither.
  virtual bool changes_by_itself() const;
  // A thread that has these signals pending is about to poll it, or a set that it is in.
  virtual void prepare_look(uint64_t /*pending_signals*/) {}
  // Duplicates of the host's descriptor that must not outlive it: they would keep a pipe's end open.
  void own_duplicate(int fd) { duplicates_.push_back(fd); }
  void close_duplicate(int fd);
  // Another file that it needs as long as it is open.
  void keep(std::shared_ptr<OpenFile> other) { kept_ = std::move(other); }

  bool is_nonblocking = false;  // as the guest wishes
  FolderRef folder;             // if it is one
  bool is_text = false;         // made by gpusim: own_files.h; of a folder the host has a listing
  bool is_changeable = false;   // its mode and times: it lies in a writable root
  bool is_reached_from_outside = false;  // of what parks: another process has an end of it
  bool is_armed = false;        // of a timer: it was set, and not read since

 private:
  int host_fd_;
  bool owned_;
  Kind kind_;
  std::string path_;
  std::vector<int> duplicates_;
  std::shared_ptr<OpenFile> kept_;
};
using FileRef = std::shared_ptr<OpenFile>;

class FileTable {
 public:
  static constexpr int kMost = 20000;

  // `standard`: the files 0, 1 and 2, shared by all processes.
  FileTable(const std::array<FileRef, 3>& standard, uint64_t limit)
      : files_(standard.begin(), standard.end()) {
    set_limit(limit);
  }

  // Null: EBADF.
  const OpenFile* find(int64_t fd) const;
  FileRef share(int64_t fd) const;
  // RLIMIT_NOFILE: numbers are below it from now on.
  void set_limit(uint64_t limit) { limit_ = static_cast<int>(std::min<uint64_t>(limit, kMost)); }
  int limit() const { return limit_; }
  // The lowest free number from `from` on, or -1: EMFILE.
  int add(FileRef file, int from = 0);
  bool set(int64_t fd, FileRef file);
  bool close(int64_t fd);
  void close_all();
  // FD_CLOEXEC: kept, though nothing is ever executed.
  bool closes_on_exec(int64_t fd) const { return closes_on_exec_.contains(fd); }
  void set_closes_on_exec(int64_t fd, bool closes) {
    if (closes)
      closes_on_exec_.insert(fd);
    else
      closes_on_exec_.erase(fd);
  }
  // As in Linux, what owns record locks is the table.
  RecordLocks& locks() { return locks_; }
  const RecordLocks& locks() const { return locks_; }

  // By number; null where there is none.
  const std::vector<FileRef>& all() const { return files_; }

 private:
  std::vector<FileRef> files_;
  int limit_ = kMost;
  RecordLocks locks_;
  std::set<int64_t> closes_on_exec_;
};

}  // namespace gpusim::host
