// Static C++: streams, locales, strings, regular expressions, exceptions of many kinds, thread_local.
#include <algorithm>
#include <any>
#include <exception>
#include <functional>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <locale>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>

namespace {
struct Tracer {
  static int alive;
  int id;
  explicit Tracer(int i) : id(i) { ++alive; }
  Tracer(const Tracer& o) : id(o.id) { ++alive; }
  ~Tracer() { --alive; }
};
int Tracer::alive = 0;
thread_local std::string per_thread = "made at first use";

struct Base {
  virtual ~Base() = default;
  virtual std::string name() const = 0;
};
struct One : Base {
  std::string name() const override { return "one"; }
};
struct Two : virtual Base {
  std::string name() const override { return "two"; }
};

int descend(int depth) {
  const Tracer tracer(depth);
  if (depth == 0) throw std::out_of_range("bottom");
  try {
    return descend(depth - 1) + 1;
  } catch (const std::out_of_range& e) {
    if (depth % 3 == 0) std::throw_with_nested(std::runtime_error("level " + std::to_string(depth)));
    throw;
  }
}
void unwind(const std::exception& e) {
  std::cout << " / " << e.what();
  try {
    std::rethrow_if_nested(e);
  } catch (const std::exception& inner) {
    unwind(inner);
  }
}
void noexcept_free() noexcept(false) { throw 1.5; }
}  // namespace

int main() {
  std::cout << std::setw(8) << std::left << "left" << '|' << std::right << std::setw(6) << 42 << '|'
            << std::hex << std::showbase << 255 << '|' << std::oct << 8 << std::dec << '\n';
  std::cout << std::setprecision(12) << 1.0 / 3 << ' ' << std::scientific << 12345.678 << ' '
            << std::fixed << 2.5 << ' ' << std::defaultfloat << 1e-20 << '\n';
  std::cout << std::numeric_limits<double>::infinity() << ' ' << std::boolalpha << false << '\n';
  std::istringstream in("12 3.75 word 0x1f rest of line\nnext");
  int i;
  double d;
  std::string word, line;
  in >> i >> d >> word >> std::hex >> i;
  std::getline(in, line);
  std::cout << i << ' ' << d << ' ' << word << ' ' << line << ' ' << in.good() << '\n';
  in >> i;
  std::cout << "bad input: " << in.fail() << '\n';
  std::cout << std::put_money(123456) << ' ' << std::locale().name() << '\n';

  try {
    descend(8);
  } catch (const std::exception& e) {
    std::cout << typeid(e).name();
    unwind(e);
    std::cout << ", alive " << Tracer::alive << '\n';
  }
  try {
    noexcept_free();
  } catch (int) {
    std::cout << "int\n";
  } catch (...) {
    const std::exception_ptr p = std::current_exception();
    try {
      std::rethrow_exception(p);
    } catch (double x) {
      std::cout << "double " << x << '\n';
    }
  }
  const std::unique_ptr<Base> one = std::make_unique<One>(), two = std::make_unique<Two>();
  std::cout << one->name() << two->name() << (dynamic_cast<Two*>(one.get()) == nullptr) << '\n';
  try {
    (void)dynamic_cast<One&>(*two);
  } catch (const std::bad_cast& e) {
    std::cout << e.what() << '\n';
  }
  try {
    std::vector<int>().at(3);
  } catch (const std::out_of_range&) {
    std::cout << "at\n";
  }
  try {
    std::cout << std::any_cast<int>(std::any(std::string("text")));
  } catch (const std::bad_any_cast& e) {
    std::cout << e.what() << '\n';
  }
  try {
    (void)!std::get<int>(std::variant<int, std::string>("s"));
  } catch (const std::bad_variant_access&) {
    std::cout << "variant\n";
  }
  try {
    volatile size_t huge = SIZE_MAX / 2;
    delete[] new char[huge];
  } catch (const std::bad_alloc& e) {
    std::cout << e.what() << '\n';
  }
  std::cout << std::regex_replace(std::string("a1b22c333"), std::regex("([0-9]+)"), "<$1>") << '\n';
  std::vector<int> v(10);
  std::iota(v.begin(), v.end(), 0);
  std::rotate(v.begin(), v.begin() + 3, v.end());
  std::copy(v.begin(), v.end(), std::ostream_iterator<int>(std::cout, ","));
  std::function<int(int)> fact = [&](int n) { return n < 2 ? 1 : n * fact(n - 1); };
  std::cout << fact(10) << ' ' << per_thread << '\n';
  std::set_terminate([] {
    std::cout << "terminate" << std::endl;
    std::_Exit(9);
  });
  throw std::logic_error("nobody catches this");
}
