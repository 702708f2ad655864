// Work of all streams, in the order of submission, on one thread. That order keeps every promise of
// streams and events: what a stream waits for was submitted before.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace gpusim::cuda_api {

class Queue {
 public:
  using Work = std::function<void()>;
  ~Queue() { finish(); }
  // The number by which the work can be waited for: 1, 2, ...
  uint64_t submit(Work work);
  // `number` 0 has always been done.
  void wait(uint64_t number);
  bool is_done(uint64_t number);
  void drain();
  // Whether the caller is work of this queue, which must not wait for itself.
  bool is_own_thread() const;
  // Does what is there and ends the thread; nothing is taken any more.
  void finish();

 private:
  void serve();
  void wait_for(std::unique_lock<std::mutex>& lock, uint64_t number);
  std::mutex mutex_;
  std::condition_variable has_work_, has_done_;
  std::deque<Work> work_;
  uint64_t submitted_ = 0, done_ = 0;
  uint64_t least_awaited_ = UINT64_MAX;  // nobody waits for less
  bool is_idle_ = false, is_finished_ = false;
  std::thread thread_;
};

}  // namespace gpusim::cuda_api
