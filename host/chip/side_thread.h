// A thread that does one thing after the other beside its owner.
#pragma once
#include <exception>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

namespace gpusim::host::chip {

class SideThread {
 public:
  SideThread() = default;
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;
  ~SideThread() {
    if (!thread_.joinable()) return;
    if (is_busy_) done_.acquire();
    job_ = nullptr;
    wanted_.release();
    thread_.join();
  }
  // Not while it is busy.
  void start(std::function<void()> job) {
    job_ = std::move(job);
    is_busy_ = true;
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    wanted_.release();
  }
  // Waits until it is done. Throws what it threw.
  void settle() {
    if (!is_busy_) return;
    done_.acquire();
    is_busy_ = false;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void work() {
    for (;;) {
      wanted_.acquire();
      if (!job_) return;
      try {
        job_();
      } catch (...) {
        error_ = std::current_exception();
      }
      done_.release();
    }
  }

  std::function<void()> job_;
  std::exception_ptr error_;
  std::binary_semaphore wanted_{0}, done_{0};
  bool is_busy_ = false;  // as the owner sees it
  std::thread thread_;
};

}  // namespace gpusim::host::chip
