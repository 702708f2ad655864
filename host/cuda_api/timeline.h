// What a process did when, for `gpusim cuda --timeline`: calls of the API by host threads, and the
// work of streams that they started. Each begin and each end is a line of JSON in an EventLog;
// host/cli/cuda_timeline.cpp makes a picture of them.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "host/cuda_api/event_log.h"
#include "host/cuda_api/graph.h"
#include "host/cuda_api/kernel_engine.h"

namespace gpusim::cuda_api {

// Where work of a stream came from.
struct Origin {
  uint64_t stream = 0;
  uint64_t call = 0;  // 0: of none that was recorded
  int64_t submitted_ns = 0;
};

class Timeline {
 public:
  void begin(const std::string& folder, int process, uint64_t most_bytes);
  bool is_on() const { return log_.is_on(); }

  // The call that this thread is in submits work to `stream`.
  Origin origin(uint64_t stream) const;
  // That call names a stream or an event.
  void note_stream(uint64_t stream) const;
  void note_event(uint64_t event) const;

  // Work begins; what that returns is handed to its end. 0: not recorded.
  uint64_t begin_work(const Node& node, const Origin& origin);
  void end_work(uint64_t work);
  void end_kernel(uint64_t work, uint64_t launch, const LaunchOutcome& outcome);

 private:
  friend class RecordedCall;
  // Of queries in a row that found work unfinished there is one event.
  struct Polls {
    const char* function = nullptr;
    uint64_t stream = 0, event = 0, count = 0;
    bool has_stream = false;
    int64_t begin_ns = 0, end_ns = 0;
  };
  struct Thread;
  static Thread& thread();
  uint64_t number_of(Thread& thread);
  void add_polls(Thread& thread);
  EventLog log_;
  std::atomic<uint64_t> last_{0}, threads_{0};
};

// A call of the API, from its begin to its end. Of calls within calls only the outer is recorded.
class RecordedCall {
 public:
  explicit RecordedCall(const char* function) noexcept;
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;
  // Gives `status` back.
  int end(int status) noexcept;

 private:
  void begin(const char* function);

  Timeline* timeline_ = nullptr;  // null: not recorded
  const char* function_ = nullptr;
  int64_t begin_ns_ = 0;
  bool is_query_ = false;
};

}  // namespace gpusim::cuda_api
