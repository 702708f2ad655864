#include "host/gdb/packet.h"

#include <fmt/format.h>

#include <charconv>

namespace gpusim::host::gdb {
namespace {

constexpr size_t kChecksumDigits = 2;

uint8_t checksum(std::string_view payload) {
  uint8_t sum = 0;
  for (const char c : payload) sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(c));
  return sum;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string framed(std::string_view payload) {
  return fmt::format("${}#{:02x}", payload, checksum(payload));
}

std::string escaped(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c == '#' || c == '$' || c == '}' || c == '*') {
      text += '}';
      text += static_cast<char>(c ^ 0x20);
    } else {
      text += c;
    }
  }
  return text;
}

std::string unescaped(std::string_view payload) {
  std::string bytes;
  for (size_t i = 0; i < payload.size(); ++i) {
    if (payload[i] == '}' && i + 1 < payload.size())
      bytes += static_cast<char>(payload[++i] ^ 0x20);
    else
      bytes += payload[i];
  }
  return bytes;
}

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

std::string hex(std::string_view text) {
  return hex(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

std::optional<std::vector<uint8_t>> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::vector<uint8_t> bytes;
  bytes.reserve(digits.size() / 2);
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit(digits[i]), low = digit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<uint8_t>(high << 4 | low));
  }
  return bytes;
}

bool Words::take(std::string_view word) {
  if (!text_.starts_with(word)) return false;
  text_.remove_prefix(word.size());
  return true;
}

std::optional<uint64_t> Words::number() {
  uint64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(text_.data(), end, value, 16);
  if (error != std::errc{}) return std::nullopt;
  text_.remove_prefix(static_cast<size_t>(stop - text_.data()));
  return value;
}

std::string_view Words::until(char separator) {
  const size_t at = text_.find(separator);
  const std::string_view word = text_.substr(0, at);
  text_.remove_prefix(at == std::string_view::npos ? text_.size() : at + 1);
  return word;
}

PacketReader::Item PacketReader::next() {
  if (buffer_.empty()) return {};
  const auto one = [&](Kind kind) {
    buffer_.erase(0, 1);
    return Item{kind, {}};
  };
  switch (buffer_[0]) {
    case '+':
      return one(Kind::kAck);
    case '-':
      return one(Kind::kNak);
    case '\x03':
      return one(Kind::kInterrupt);
    case '$':
      break;
    default:
      return one(Kind::kGarbage);
  }
  const size_t end = buffer_.find('#');
  if (end == std::string::npos) {
    if (buffer_.size() <= kMostBytes) return {};
    buffer_.clear();
    return {Kind::kGarbage, {}};
  }
  if (buffer_.size() < end + 1 + kChecksumDigits) return {};
  Item item{Kind::kPacket, buffer_.substr(1, end - 1)};
  const int high = digit(buffer_[end + 1]), low = digit(buffer_[end + 2]);
  if (high < 0 || low < 0 || (high << 4 | low) != checksum(item.payload))
    item.kind = Kind::kDamaged;
  buffer_.erase(0, end + 1 + kChecksumDigits);
  return item;
}

}  // namespace gpusim::host::gdb
