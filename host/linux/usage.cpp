#include "host/linux/usage.h"

#include <algorithm>
#include <bit>
#include <chrono>

namespace gpusim::host {
namespace {

constexpr size_t kCountsAt = 5;  // in the longs of rusage: two times and ru_maxrss stand before

std::chrono::nanoseconds duration_of(const timeval& t) {
  return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  cpu.user += other.cpu.user;
  cpu.system += other.cpu.system;
  most_resident_kib = std::max(most_resident_kib, other.most_resident_kib);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  return *this;
}

std::array<int64_t, 18> Usage::longs() const {
  constexpr int64_t kSecond = 1'000'000;  // in microseconds
  std::array<int64_t, 18> all{};
  const int64_t user = cpu.user / std::chrono::microseconds(1);
  const int64_t system = cpu.system / std::chrono::microseconds(1);
  all[0] = user / kSecond;
  all[1] = user % kSecond;
  all[2] = system / kSecond;
  all[3] = system % kSecond;
  all[4] = most_resident_kib;
  std::ranges::copy(counts, all.begin() + kCountsAt);
  return all;
}

Usage usage_of(const rusage& host) {
  static_assert(sizeof(rusage) == sizeof(std::array<int64_t, 18>));
  const auto all = std::bit_cast<std::array<int64_t, 18>>(host);
  Usage usage{.cpu = {duration_of(host.ru_utime), duration_of(host.ru_stime)},
              .most_resident_kib = host.ru_maxrss};
  std::copy(all.begin() + kCountsAt, all.end(), usage.counts.begin());
  return usage;
}

}  // namespace gpusim::host
