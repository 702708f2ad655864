// One description of a layout serves writing and reading: describe(archive, part). Little-endian;
// tables begin with a 64-bit count.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "device_sim/base/error.h"

namespace gpusim {

static_assert(std::endian::native == std::endian::little, "archives are little-endian");

inline constexpr uint64_t kAnyCount = ~uint64_t{0};

// A sink has write(data, size_bytes).
template <class Sink>
class ArchiveWriter {
 public:
  static constexpr bool kReading = false;
  explicit ArchiveWriter(Sink& sink) : sink_(sink) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void value(const T& v) { sink_.write(&v, sizeof v); }
  void text(std::string& s) { plain_array(s, kAnyCount); }
  // `most`: what a reader takes for possible.
  template <class V>
  void plain_array(V& v, uint64_t) {
    value(uint64_t{v.size()});
    sink_.write(v.data(), v.size() * sizeof(*v.data()));
  }
  template <class T, class F>
  void list(std::vector<T>& v, uint64_t, F each) {
    value(uint64_t{v.size()});
    for (T& item : v) each(item);
  }
  void require(bool, const char*) {}

 private:
  Sink& sink_;
};

// A source has read(data, size_bytes) and damaged(what), which throws. One whose end is near says
// with left() how many bytes there are at most.
template <class Source>
class ArchiveReader {
 public:
  static constexpr bool kReading = true;
  explicit ArchiveReader(Source& source) : source_(source) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void value(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;  // `bool` objects may only hold 0 and 1
      source_.read(&byte, 1);
      v = byte != 0;
    } else {
      source_.read(&v, sizeof v);
    }
  }
  void text(std::string& s) { plain_array(s, 1 << 16); }
  template <class V>
  void plain_array(V& v, uint64_t most) {
    const uint64_t n = count(most, sizeof(*v.data()));
    // Piece by piece: where the length is spoilt, the source ends long before memory does.
    constexpr uint64_t kPiece = 1 << 20;
    v.clear();
    while (v.size() < n) {
      const uint64_t at = v.size(), piece = std::min(kPiece, n - at);
      v.resize(at + piece);
      source_.read(v.data() + at, piece * sizeof(*v.data()));
    }
  }
  template <class T, class F>
  void list(std::vector<T>& v, uint64_t most, F each) {
    const uint64_t n = count(most, 1);
    v.clear();
    for (uint64_t i = 0; i < n; ++i) each(v.emplace_back());
  }
  void require(bool ok, const char* what) {
    if (!ok) source_.damaged(what);
  }

 private:
  uint64_t count(uint64_t most, size_t item_bytes) {
    uint64_t n = 0;
    value(n);
    if constexpr (requires { source_.left(); })
      require(n <= source_.left() / item_bytes, "a table is longer than the file");
    require(n <= most, "a table is too long");
    return n;
  }
  Source& source_;
};

struct ByteSink {
  void write(const void* data, size_t size_bytes) {
    const auto* const p = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), p, p + size_bytes);
  }
  std::vector<uint8_t> bytes;
};

class ByteSource {
 public:
  // `name` begins messages: "prog.gsm: damaged module file".
  ByteSource(std::span<const uint8_t> bytes, std::string name)
      : rest_(bytes), name_(std::move(name)) {}
  void read(void* data, size_t size_bytes) {
    if (size_bytes > rest_.size()) damaged("a table is cut short");
    if (size_bytes != 0) std::memcpy(data, rest_.data(), size_bytes);
    rest_ = rest_.subspan(size_bytes);
  }
  uint64_t left() const { return rest_.size(); }
  [[noreturn]] void damaged(const char* what) const { throw Error(name_ + " (" + what + ")"); }

 private:
  std::span<const uint8_t> rest_;
  std::string name_;
};

template <class Archive, class T, class F>
void describe_optional(Archive& a, std::optional<T>& v, F each) {
  bool has = v.has_value();
  a.value(has);
  if constexpr (Archive::kReading) v = has ? std::optional<T>(T{}) : std::nullopt;
  if (has) each(*v);
}

}  // namespace gpusim
