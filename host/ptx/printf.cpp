#include "host/ptx/printf.h"

#include <bit>
#include <cstdio>

namespace gpusim::ptx {
namespace {

template <class T>
std::string formatted(const std::string& spec, T value) {
  const int size = std::snprintf(nullptr, 0, spec.c_str(), value);
  if (size < 0) return spec;
  std::string out(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), spec.c_str(), value);
  out.pop_back();
  return out;
}

class Printer {
 public:
  Printer(const std::string& format, const PrintfMemory& memory)
      : format_(format), memory_(memory) {}

  std::string run() {
    std::string out;
    for (size_t i = 0; i < format_.size();) {
      if (format_[i] != '%') {
        out += format_[i++];
        continue;
      }
      const size_t begin = i++;
      if (i < format_.size() && format_[i] == '%') {
        out += '%';
        ++i;
        continue;
      }
      out += conversion(begin, i);
    }
    return out;
  }

 private:
  uint64_t next(uint32_t size) {
    offset_ = (offset_ + size - 1) / size * size;
    const uint64_t value = memory_.argument(offset_, size);
    offset_ += size;
    return value;
  }

  // From the % at `begin`; `i` stands behind it and moves behind the conversion. The host's printf
  // gets a specification made anew, so that it never reads arguments that are not there.
  std::string conversion(size_t begin, size_t& i) {
    const auto at = [&] { return i < format_.size() ? format_[i] : '\0'; };
    std::string spec = "%";
    const auto number = [&] {
      if (at() == '*') {
        ++i;
        spec += std::to_string(static_cast<int32_t>(next(4)));
      }
      int digits = 0;
      for (; at() >= '0' && at() <= '9'; ++i)
        if (++digits <= 4) spec += at();
    };
    while (at() == '-' || at() == '+' || at() == ' ' || at() == '#' || at() == '0') {
      spec += at();
      ++i;
    }
    number();
    if (at() == '.') {
      spec += '.';
      ++i;
      number();
    }
    int longs = 0;
    for (; at() == 'l' || at() == 'h' || at() == 'z' || at() == 'j' || at() == 't'; ++i)
      if (at() != 'h') longs += at() == 'l' ? 1 : 2;
    const char kind = at();
    if (kind != '\0') ++i;
    switch (kind) {
      case 'd':
      case 'i': {
        const uint64_t v = next(longs != 0 ? 8 : 4);
        const auto value = longs != 0 ? static_cast<long long>(v)
                                      : static_cast<long long>(static_cast<int32_t>(v));
        return formatted(spec + "ll" + kind, value);
      }
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return formatted(spec + "ll" + kind,
                         static_cast<unsigned long long>(next(longs != 0 ? 8 : 4)));
      case 'c':
        return formatted(spec + kind, static_cast<int>(next(4)));
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        return formatted(spec + kind, std::bit_cast<double>(next(8)));
      case 'p':
        return formatted(spec + kind, reinterpret_cast<void*>(next(8)));
      case 's':
        return formatted(spec + kind, memory_.string(next(8)).c_str());
      default:
        return format_.substr(begin, i - begin);
    }
  }

  const std::string& format_;
  const PrintfMemory& memory_;
  uint64_t offset_ = 0;
};

}  // namespace

std::string format_printf(const std::string& format, const PrintfMemory& memory) {
  return Printer(format, memory).run();
}

}  // namespace gpusim::ptx
