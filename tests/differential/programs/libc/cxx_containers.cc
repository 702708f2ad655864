// The C++ library: containers, algorithms, strings, streams, virtual functions, lambdas.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Box : Shape {
  double a, b;
  Box(double x, double y) : a(x), b(y) {}
  double area() const override { return a * b; }
};
struct Disc : Shape {
  double r;
  explicit Disc(double x) : r(x) {}
  double area() const override { return 3.25 * r * r; }
};

}  // namespace

int main() {
  std::map<std::string, int> words;
  std::istringstream text("the cat and the dog and the bird saw the other cat");
  for (std::string word; text >> word;) ++words[word];
  for (const auto& [word, count] : words) std::cout << word << '=' << count << ' ';
  std::cout << '\n';
  std::vector<int> v(100);
  std::iota(v.begin(), v.end(), -50);
  std::sort(v.begin(), v.end(), [](int a, int b) {
    return a * a % 37 < b * b % 37 || (a * a % 37 == b * b % 37 && a < b);
  });
  v.erase(std::remove_if(v.begin(), v.end(), [](int x) { return x % 3 == 0; }), v.end());
  std::cout << v.front() << ' ' << v.back() << ' ' << v.size() << ' '
            << std::accumulate(v.begin(), v.end(), 0) << '\n';
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 1; i < 5; i++) {
    if (i % 2)
      shapes.push_back(std::make_unique<Box>(i, i + 0.5));
    else
      shapes.push_back(std::make_unique<Disc>(i));
  }
  for (const auto& shape : shapes) std::cout << shape->area() << ' ';
  std::priority_queue<std::pair<int, std::string>> queue;
  for (const auto& [word, count] : words) queue.emplace(count, word);
  std::cout << queue.top().second << '\n';
  std::unordered_map<int, std::function<int(int)>> functions;
  for (int i = 0; i < 10; i++) functions[i] = [i](int x) { return x * i + 1; };
  int x = 1;
  for (int i = 1; i < 10; i++) x = functions.at(i)(x) % 10007;
  std::cout << x << ' ' << std::hex << 255 << std::dec << ' ' << 0.1 + 0.2 << std::endl;
  return static_cast<int>(shapes.size());
}
