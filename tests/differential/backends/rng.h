// Random numbers of the differential tests; one seed replays a whole program.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <random>

namespace gpusim::difftest {

class Rng {
 public:
  explicit Rng(uint64_t seed) : engine_(seed) {}
  uint64_t next() { return engine_(); }
  uint32_t below(uint64_t n) { return static_cast<uint32_t>(engine_() % n); }
  // True once in n.
  bool once_in(uint32_t n) { return below(n) == 0; }
  bool coin() { return once_in(2); }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }
  template <class C>
  const auto& of(const C& c) {
    return c[below(std::size(c))];
  }

 private:
  std::mt19937_64 engine_;
};

inline const char* env(const char* name) { return std::getenv(name); }

inline uint64_t seed_from_env_or_random() {
  const char* text = env("GPUSIM_SEED");
  if (text) return std::strtoull(text, nullptr, 0);
  return uint64_t{std::random_device{}()} << 32 | std::random_device{}();
}

// How many random programs to run; GPUSIM_RANDOM_PROGRAMS overrides. A replayed seed is one program.
inline uint32_t program_count(uint32_t usual) {
  if (env("GPUSIM_SEED")) return 1;
  const char* text = env("GPUSIM_RANDOM_PROGRAMS");
  return text ? static_cast<uint32_t>(std::strtoul(text, nullptr, 0)) : usual;
}

}  // namespace gpusim::difftest
