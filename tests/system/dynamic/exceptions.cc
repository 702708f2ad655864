// Exceptions through several frames and out of a library that was opened later.
#include <dlfcn.h>

#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Noisy {
  explicit Noisy(int n) : number(n) {}
  ~Noisy() { std::cout << "~" << number << " "; }
  int number;
};

static int deep(int n) {
  const Noisy here(n);
  if (n == 0) throw std::out_of_range("bottom");
  return deep(n - 1) + 1;
}

int main(int argc, char** argv) {
  try {
    deep(4);
  } catch (const std::exception& e) {
    std::cout << e.what() << "\n";
  }
  void* const library = dlopen(argc > 1 ? argv[1] : "./libplugin.so", RTLD_NOW);
  if (!library) {
    std::cout << dlerror() << "\n";
    return 1;
  }
  auto* const twice = reinterpret_cast<int (*)(int)>(dlsym(library, "twice_or_throw"));
  std::map<std::string, int> counts;
  for (int i = 0; i < 6; ++i) try {
      ++counts["value " + std::to_string(twice(i))];
    } catch (const std::string& text) {
      ++counts[text];
    }
  for (const auto& [text, count] : counts) std::cout << text << ": " << count << "\n";
  dlclose(library);
  std::vector<std::thread> threads;
  std::vector<long> sums(3);
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&sums, t] {
      try {
        for (int i = 0; i < 1000; ++i) sums[t] += i;
        throw t;
      } catch (int n) {
        sums[t] += n;
      }
    });
  for (std::thread& t : threads) t.join();
  std::cout << sums[0] + sums[1] + sums[2] << "\n";
  return 0;
}
