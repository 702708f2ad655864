// A file of lines that keeps what was added whatever ends the process: it is mapped memory, so that
// neither _exit nor SIGKILL loses a line, and no descriptor stays open that the program may close.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace gpusim::cuda_api {

// Of the name of an empty file beside a log: something could not be written.
inline constexpr char kLostEvents[] = ".lost";

class EventLog {
 public:
  EventLog() = default;
  // What is mapped stays: threads may still add lines.
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  // FOLDER/PROCESS-N.events, with an N that makes it new. `most_bytes`: from when on the log is
  // full.
  void begin(const std::string& folder, int process, uint64_t most_bytes);
  // Whether lines are taken: not in a process that was forked off, nor after a failure.
  bool is_on() const;
  bool is_full() const { return is_full_; }
  // A newline is added. What stands behind the last newline was never finished. A failure, and
  // that the log is full, is said once.
  void add(std::string_view line);

 private:
  void put(std::string_view bytes);
  void fail(int error);
  bool map_next();
  std::mutex mutex_;
  std::string path_;
  int process_ = 0;
  bool is_begun_ = false;
  std::atomic<bool> is_full_{false}, has_failed_{false};
  uint64_t most_bytes_ = 0;
  uint64_t size_bytes_ = 0;  // of the file before the part that is mapped
  char* part_ = nullptr;
  size_t used_bytes_ = 0;  // of that part
};

}  // namespace gpusim::cuda_api
