// std::thread, async, futures, mutexes, call_once, thread_local objects, exceptions across threads.
// cores: 8
#include <atomic>
#include <condition_variable>
#include <future>
#include <iostream>
#include <locale>
#include <map>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {
std::atomic<int> constructed{0}, destroyed{0};
struct Counter {
  int n = 0;
  Counter() { ++constructed; }
  ~Counter() { ++destroyed; }
};
thread_local Counter counter;

long sum_of(const std::vector<int>& v, size_t from, size_t to) {
  if (to - from < 2000) return std::accumulate(v.begin() + long(from), v.begin() + long(to), 0L);
  const size_t middle = (from + to) / 2;
  auto left = std::async(std::launch::async, sum_of, std::cref(v), from, middle);
  const long right = sum_of(v, middle, to);
  return left.get() + right;
}
}  // namespace

int main() {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::map<std::string, int> seen;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) {
        ++counter.n;
        const std::lock_guard lock(mutex);
        std::ostringstream name;
        name << "key " << k % (i + 1);
        ++seen[name.str()];
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& [name, n] : seen) std::cout << name << ": " << n << '\n';
  std::cout << "thread_local: " << constructed << ' ' << destroyed << '\n';

  std::vector<int> v(10000);
  std::iota(v.begin(), v.end(), 1);
  std::cout << "sum " << sum_of(v, 0, v.size()) << '\n';

  auto failing = std::async(std::launch::async, []() -> int { throw std::runtime_error("inside"); });
  try {
    failing.get();
  } catch (const std::exception& e) {
    std::cout << "caught " << e.what() << '\n';
  }
  std::promise<std::string> promise;
  auto future = promise.get_future();
  std::thread giver([&] { promise.set_value("a promise kept"); });
  std::cout << future.get() << '\n';
  giver.join();

  std::once_flag flag;
  int calls = 0;
  std::shared_mutex shared;
  std::condition_variable condition;
  bool go = false;
  threads.clear();
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      std::call_once(flag, [&] { ++calls; });
      std::shared_lock reading(shared);
      std::unique_lock lock(mutex);
      condition.wait(lock, [&] { return go; });
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  {
    const std::lock_guard lock(mutex);
    go = true;
  }
  condition.notify_all();
  for (std::thread& t : threads) t.join();
  std::cout << "call_once " << calls << '\n';
  std::cout.imbue(std::locale::classic());
  std::cout << std::fixed << 3.5 << ' ' << std::boolalpha << true << '\n';
  std::thread thrower([] {
    try {
      throw 42;
    } catch (int x) {
      std::cout << "thrown " << x << '\n';
    }
  });
  thrower.join();
  return 0;
}
