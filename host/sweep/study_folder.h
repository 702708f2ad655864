// A study's folder: what was asked for, of which simulator, and the points that are finished.
#pragma once
#include <string>
#include <vector>

#include "host/sweep/point.h"
#include "host/sweep/workers.h"

namespace gpusim::sweep {

// What a folder holds.
struct StoredStudy {
  Study study;
  Json simulator, machine;
  std::string begun;
  std::vector<Point> points;
};
// Throws Error.
StoredStudy load_stored_study(const std::string& folder);

std::string json_text(const Json& json);

// Made if missing. Throws Error where it holds files that are no study's: they are left alone.
void make_study_folder(const std::string& folder);

// One process begins a study at a time, as far as the file system has locks; that of one on another
// machine is found by Workers.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

// Writes what is to be done, or takes up what was begun: with the same simulator, and where what is
// called the same is the same. Throws Error.
void open_study(const Study& study, const std::string& folder, const Json& simulator, bool restart);

// The study that others began, for one process more: `asked` if that process was given it, too.
// Its programs are read again, as this machine sees them. Throws Error that says what differs.
Study joined_study(const std::string& folder, const Json& simulator, const std::string& node,
                   const Study* asked);
bool is_same_study(const std::string& folder, const Json& simulator, const Study& asked);

// What processes leave that were killed: statistics, files that were being written.
void remove_leftovers(const std::string& folder);

}  // namespace gpusim::sweep
