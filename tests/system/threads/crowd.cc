// Threads of the C++ library: the first argument chooses, the second is their number.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

namespace {

int asyncs(int n) {
  std::vector<std::future<long>> all;
  for (int i = 0; i < n; ++i)
    all.push_back(std::async(std::launch::async, [i]() -> long {
      if (i % 10 == 9) throw std::runtime_error("nine");
      return i;
    }));
  long sum = 0, thrown = 0;
  for (auto& f : all) try {
      sum += f.get();
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  std::printf("async: %ld, %ld thrown\n", sum, thrown);
  return 0;
}

int jthreads(int n) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::atomic<int> stopped{0};
  std::latch all_there(n);
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < n; ++i)
      all.emplace_back([&, i](std::stop_token stop) {
        // Called, unless the thread has seen the request and ended before.
        std::atomic<int> called{0};
        std::stop_callback callback(stop, [&] { ++called; });
        all_there.count_down();
        if (i % 2) {
          std::unique_lock lock(mutex);
          changed.wait(lock, stop, [] { return false; });
        } else {
          while (!stop.stop_requested()) std::this_thread::yield();
        }
        ++stopped;
      });
    all_there.wait();
  }
  std::printf("jthread: %d stopped\n", stopped.load());
  return 0;
}

int barriers(int n) {
  long phases = 0, sum = 0;
  std::barrier barrier(n, [&]() noexcept { ++phases; });
  std::counting_semaphore<4> few(4);
  std::shared_mutex mutex;
  std::vector<std::jthread> all;
  for (int i = 0; i < n; ++i)
    all.emplace_back([&, i] {
      for (int phase = 0; phase < 3; ++phase) {
        few.acquire();
        {
          std::unique_lock lock(mutex);
          sum += i;
        }
        few.release();
        barrier.arrive_and_wait();
        std::shared_lock lock(mutex);
        if (sum != (phase + 1L) * n * (n - 1) / 2) std::abort();
        lock.unlock();
        barrier.arrive_and_wait();
      }
    });
  all.clear();
  std::printf("barrier: %ld phases, %ld\n", phases, sum);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 2 ? std::atoi(argv[2]) : 100;
  if (!std::strcmp(argv[1], "async")) return asyncs(n);
  if (!std::strcmp(argv[1], "jthread")) return jthreads(n);
  if (!std::strcmp(argv[1], "barrier")) return barriers(n);
  return 2;
}
