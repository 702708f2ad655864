// Packets of GDB's remote serial protocol (GDB manual, "Overview" of the protocol).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusim::host::gdb {

// "$PAYLOAD#xx"
std::string framed(std::string_view payload);
// Bytes that would end a packet or begin another, behind '}'.
std::string escaped(std::string_view bytes);
std::string unescaped(std::string_view payload);

std::string hex(std::span<const uint8_t> bytes);
std::string hex(std::string_view text);
// Nothing if there is an odd number of digits, or something else.
std::optional<std::vector<uint8_t>> from_hex(std::string_view digits);

// Takes words off the front of a packet.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}
  bool at_end() const { return text_.empty(); }
  std::string_view rest() const { return text_; }
  // Whether that came next; if so, it is taken.
  bool take(std::string_view word);
  // 1 to 16 hexadecimal digits.
  std::optional<uint64_t> number();
  // Up to the separator, which is taken, too, or to the end.
  std::string_view until(char separator);

 private:
  std::string_view text_;
};

// Takes a stream apart.
class PacketReader {
 public:
  enum class Kind : uint8_t {
    kNone,  // more bytes are needed
    kPacket,
    kInterrupt,  // Ctrl-C
    kAck,
    kNak,
    kDamaged,  // a packet with a wrong checksum
    kGarbage,  // no packet at all, or an endless one
  };
  struct Item {
    Kind kind = Kind::kNone;
    std::string payload;
  };
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  Item next();

  static constexpr size_t kMostBytes = size_t{1} << 17;  // of a payload

 private:
  std::string buffer_;
};

}  // namespace gpusim::host::gdb
