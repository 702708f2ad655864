// The open files of guest processes: what a checkpoint keeps of them, and how they are opened
// again.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "host/linux/file_table.h"
#include "host/linux/path_policy.h"
#include "host/linux/record_locks.h"

namespace gpusim::host {

struct SavedFile {
  enum class Kind : uint8_t { kStandard, kPlain, kFolder, kDevice, kPipe, kText };
  Kind kind = Kind::kStandard;
  bool is_nonblocking = false;  // as the guest wishes
  std::string path;             // all but standard files and pipes
  int32_t flags = 0;            // of open(2): access and modes
  int64_t offset = -1;          // plain files, folders, and standard files that are plain ones
  uint64_t size = 0;            // plain files
  uint32_t pipe = 0;            // index in SavedFiles::pipes
  std::vector<char> text;       // of a file that gpusim made
};

struct SavedPipe {
  uint32_t capacity = 0;
  std::vector<uint8_t> contents;
};

struct SavedFiles {
  std::vector<SavedFile> files;  // the standard ones first
  std::vector<SavedPipe> pipes;
};

inline constexpr uint32_t kStandardFiles = 3;

// The files of all guest processes.
struct FileState {
  struct Descriptor {
    uint32_t process = 0;
    int32_t fd = 0;
    uint32_t file = 0;  // index in saved.files
    bool closes_on_exec = false;
  };
  struct Lock {
    uint32_t process = 0;
    int32_t fd = 0;  // one of that file's
    RecordLocks::Range range{};
  };
  SavedFiles saved;
  std::vector<Descriptor> descriptors;
  std::vector<Lock> locks;
};

// What `files`, each once and the standard ones first, are like now. Throws Error for one that
// could not be opened again.
SavedFiles capture_files(const std::vector<FileRef>& files);

// Opens them again; `standard` are this process's. A file that the guest may write is cut to the
// length that it had. Throws Error, before any file was changed, if one is not as it was. `note`: a
// line for the user.
std::vector<FileRef> reopen_files(const SavedFiles& saved, const std::array<FileRef, 3>& standard,
                                  const PathPolicy& paths,
                                  const std::function<void(const std::string&)>& note);

}  // namespace gpusim::host
