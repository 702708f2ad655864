// C++ exceptions: through frames with destructors, by base class, rethrown, out of constructors.
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

struct Guard {
  const char* name;
  ~Guard() { std::printf("leave %s\n", name); }
};

struct Broken {
  Guard guard{"member"};
  explicit Broken(int n) {
    if (n > 2) throw std::out_of_range("constructor " + std::to_string(n));
  }
};

__attribute__((noinline)) int deep(int n) {
  Guard guard{n % 2 ? "odd" : "even"};
  if (n == 0) throw std::runtime_error("bottom");
  return deep(n - 1) + 1;
}

__attribute__((noinline)) void rethrow(int n) {
  try {
    if (n == 0) deep(3);
    if (n == 1) throw n;
    Broken broken(n);
    std::printf("made %d\n", n);
  } catch (const std::runtime_error& e) {
    std::printf("saw %s\n", e.what());
    throw;
  }
}

}  // namespace

int main() {
  for (int n = 0; n < 5; n++) {
    try {
      rethrow(n);
    } catch (const std::exception& e) {
      std::printf("%d: exception %s\n", n, e.what());
    } catch (int i) {
      std::printf("%d: integer %d\n", n, i);
    }
  }
  return 0;
}
