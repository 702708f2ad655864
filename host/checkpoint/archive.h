// One description of each part of a checkpoint serves writing and reading: describe(archive, part).
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "host/checkpoint/chunk_file.h"

namespace gpusim::host {

class Saving {
 public:
  static constexpr bool kReading = false;
  explicit Saving(ChunkWriter& file) : file_(file) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void value(const T& v) { file_.write(&v, sizeof v); }
  void text(std::string& s) {
    value(static_cast<uint64_t>(s.size()));
    file_.write(s.data(), s.size());
  }
  // `most`: what a reader takes for possible.
  template <class V>
  void plain_array(V& v, uint64_t) {
    value(static_cast<uint64_t>(v.size()));
    file_.write(v.data(), v.size() * sizeof(*v.data()));
  }
  template <class T, class F>
  void list(std::vector<T>& v, uint64_t, F each) {
    value(static_cast<uint64_t>(v.size()));
    for (T& item : v) each(item);
  }
  void require(bool, const char*) {}

 private:
  ChunkWriter& file_;
};

class Loading {
 public:
  static constexpr bool kReading = true;
  explicit Loading(ChunkReader& file) : file_(file) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void value(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;  // `bool` objects may only hold 0 and 1
      file_.read(&byte, 1);
      v = byte != 0;
    } else {
      file_.read(&v, sizeof v);
    }
  }
  void text(std::string& s) {
    constexpr uint64_t kMost = 1 << 16;
    s.resize(count(kMost));
    file_.read(s.data(), s.size());
  }
  template <class V>
  void plain_array(V& v, uint64_t most) {
    v.resize(count(most));
    file_.read(v.data(), v.size() * sizeof(*v.data()));
  }
  template <class T, class F>
  void list(std::vector<T>& v, uint64_t most, F each) {
    const uint64_t n = count(most);
    v.clear();
    for (uint64_t i = 0; i < n; ++i) each(v.emplace_back());
  }
  void require(bool ok, const char* what) {
    if (!ok) file_.damaged(what);
  }

 private:
  uint64_t count(uint64_t most) {
    uint64_t n = 0;
    value(n);
    require(n <= most, "a table is too long");
    return n;
  }
  ChunkReader& file_;
};

template <class Archive, class T, class F>
void describe_optional(Archive& a, std::optional<T>& v, F each) {
  bool has = v.has_value();
  a.value(has);
  if constexpr (Archive::kReading) v = has ? std::optional<T>(T{}) : std::nullopt;
  if (has) each(*v);
}

// A point on this process's clock, as the time left until then: a checkpoint stops the clock.
template <class Archive>
void describe_deadline(Archive& a, std::chrono::steady_clock::time_point& t,
                       std::chrono::steady_clock::time_point now) {
  int64_t left = std::chrono::nanoseconds(t - now).count();
  a.value(left);
  constexpr int64_t kMost = int64_t{1} << 62;
  a.require(left > -kMost && left < kMost, "a point in time");
  if constexpr (Archive::kReading) t = now + std::chrono::nanoseconds(left);
}

template <class Archive>
void describe_duration(Archive& a, std::chrono::nanoseconds& d) {
  int64_t count = d.count();
  a.value(count);
  a.require(count >= 0 && count < int64_t{1} << 62, "a duration");
  d = std::chrono::nanoseconds(count);
}

}  // namespace gpusim::host
