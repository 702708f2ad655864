#include "device_sim/base/folder_limit.h"

#include <algorithm>
#include <system_error>
#include <vector>

namespace gpusim {
namespace {

namespace fs = std::filesystem;

struct Entry {
  fs::path path;
  fs::file_time_type written;
  uint64_t bytes = 0;
};

uint64_t file_bytes(const fs::path& file) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(file, error);
  return error ? 0 : bytes;
}

uint64_t bytes_of(const fs::directory_entry& entry) {
  std::error_code error;
  if (!entry.is_directory(error)) return file_bytes(entry.path());
  uint64_t bytes = 0;
  for (fs::recursive_directory_iterator at(entry.path(), error), end; !error && at != end;
       at.increment(error))
    if (at->is_regular_file(error)) bytes += file_bytes(at->path());
  return bytes;
}

}  // namespace

void limit_folder(const fs::path& folder, uint64_t most_bytes, std::chrono::seconds spared) {
  std::error_code error;
  std::vector<Entry> entries;
  uint64_t all = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (at->is_symlink(gone)) continue;  // what it leads to is elsewhere
    const auto written = fs::last_write_time(at->path(), gone);
    if (gone) continue;
    entries.push_back({at->path(), written, bytes_of(*at)});
    all += entries.back().bytes;
  }
  std::ranges::sort(entries, {}, &Entry::written);
  const auto recent = fs::file_time_type::clock::now() - spared;
  for (const Entry& entry : entries) {
    if (all <= most_bytes || entry.written > recent) return;
    fs::remove_all(entry.path, error);
    if (!error) all -= entry.bytes;
  }
}

}  // namespace gpusim
