// C++: objects in data-sharing clauses, user-defined reductions, exceptions, random-access iterators.
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

static long alive = 0, made = 0;
struct Counted {
  int value = 0;
  Counted() { add(1); }
  explicit Counted(int v) : value(v) { add(1); }
  Counted(const Counted& other) : value(other.value + 1) { add(1); }
  Counted& operator=(const Counted&) = default;
  ~Counted() { add(-1); }
  static void add(long n) {
#pragma omp atomic
    alive += n;
    if (n > 0) {
#pragma omp atomic
      made += n;
    }
  }
};

using Words = std::map<std::string, int>;
static void merge_into(Words& to, const Words& from) {
  for (const auto& [k, n] : from) to[k] += n;
}
#pragma omp declare reduction(merge : Words : merge_into(omp_out, omp_in))

int main() {
  long wrong = 0;
  {
    Counted one(10);
#pragma omp parallel firstprivate(one) reduction(+ : wrong)
    {
      wrong += one.value != 11;
      one.value += omp_get_thread_num();
    }
    Counted last;
#pragma omp parallel for lastprivate(last)
    for (int i = 0; i < 100; ++i) last.value = i;
    std::printf("objects: wrong %ld, last %d, one %d\n", wrong, last.value, one.value);
#pragma omp parallel
#pragma omp single
    {
      for (int i = 0; i < 20; ++i) {
#pragma omp task firstprivate(one) shared(wrong)
        {
#pragma omp atomic
          wrong += one.value < 11;
        }
      }
    }
  }
  std::printf("tasks with objects: wrong %ld, alive %ld\n", wrong, alive);

  std::vector<int> v(1000);
  std::iota(v.begin(), v.end(), 0);
  long sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(guided)
  for (auto it = v.begin(); it != v.end(); ++it) sum += *it;
  std::printf("iterators: %ld\n", sum);

  Words words;
  const char* text[] = {"one", "two", "three", "two", "three", "three"};
#pragma omp parallel for reduction(merge : words)
  for (int i = 0; i < 600; ++i) ++words[text[i % 6]];
  for (auto& [k, n] : words) std::printf("%s=%d ", k.c_str(), n);
  std::printf("\n");

  int caught = 0;
#pragma omp parallel for reduction(+ : caught)
  for (int i = 0; i < 64; ++i) {
    try {
      if (i % 3 == 0) throw std::runtime_error(std::to_string(i));
    } catch (const std::runtime_error& e) {
      caught += std::stoi(e.what());
    }
  }
  std::printf("caught %d\n", caught);

  std::mutex mutex;
  std::vector<int> collected;
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < 200; ++i) {
    std::lock_guard<std::mutex> guard(mutex);
    collected.push_back(i);
  }
  std::sort(collected.begin(), collected.end());
  std::printf("collected %zu, sum %d\n", collected.size(),
              std::accumulate(collected.begin(), collected.end(), 0));
  return 0;
}
