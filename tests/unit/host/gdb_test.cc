// GDB's packets, and conditions of breakpoints, without a debugger.
#include <doctest/doctest.h>

#include <array>
#include <map>

#include "host/gdb/condition.h"
#include "host/gdb/packet.h"

namespace gpusim::host::gdb {
namespace {

using Bytes = std::vector<uint8_t>;

std::optional<uint64_t> value_of(const Bytes& code) {
  const ConditionContext context{.read_register = [](uint32_t number) -> std::optional<uint64_t> {
                                   if (number > 3) return std::nullopt;
                                   return 100 + number;
                                 },
                                 .read_memory =
                                     [](uint64_t address, std::span<uint8_t> out) {
                                       for (size_t i = 0; i < out.size(); ++i)
                                         out[i] = static_cast<uint8_t>(address + i);
                                       return address >= 16;
                                     }};
  return evaluate_condition(code, context);
}

}  // namespace

TEST_CASE("packets come in any pieces") {
  const std::string stream = "+" + framed("qC") + "\x03-" + framed("X0,1:}\x03") + "$bad#00x";
  for (size_t piece = 1; piece < stream.size(); ++piece) {
    PacketReader reader;
    std::vector<PacketReader::Kind> kinds;
    std::string payloads;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      for (auto item = reader.next(); item.kind != PacketReader::Kind::kNone;
           item = reader.next()) {
        kinds.push_back(item.kind);
        payloads += item.payload + "|";
      }
    }
    using Kind = PacketReader::Kind;
    CHECK(kinds == std::vector{Kind::kAck, Kind::kPacket, Kind::kInterrupt, Kind::kNak,
                               Kind::kPacket, Kind::kDamaged, Kind::kGarbage});
    CHECK(payloads == "|qC|||X0,1:}\x03|bad||");
  }
}

TEST_CASE("packets that never end are garbage") {
  PacketReader reader;
  reader.feed("$" + std::string(PacketReader::kMostBytes, 'a'));
  CHECK(reader.next().kind == PacketReader::Kind::kGarbage);
  CHECK(reader.next().kind == PacketReader::Kind::kNone);
}

TEST_CASE("digits and escapes") {
  CHECK(framed("OK") == "$OK#9a");
  CHECK(unescaped(escaped("a#b$c}d*e")) == "a#b$c}d*e");
  CHECK(escaped("#") == "}\x03");
  CHECK(from_hex("00fF") == Bytes{0, 255});
  CHECK_FALSE(from_hex("0"));
  CHECK_FALSE(from_hex("0g"));
  Words words("12,ab:rest");
  CHECK(words.number() == 0x12);
  CHECK(words.take(","));
  CHECK(words.until(':') == "ab");
  CHECK(words.rest() == "rest");
  CHECK_FALSE(words.number());
  CHECK_FALSE(Words("fffffffffffffffff").number());  // more than 64 bits
}

TEST_CASE("conditions are what GDB's bytecode says") {
  // GDB manual, "Bytecode Descriptions": const8 0x22, const16 0x23, reg 0x26, end 0x27, ref8 0x17 …
  CHECK(value_of({0x22, 5, 0x27}) == 5);
  CHECK(value_of({0x23, 1, 2, 0x27}) == 0x102);
  CHECK(value_of({0x26, 0, 2, 0x22, 102, 0x13, 0x27}) == 1);         // register 2 == 102
  CHECK(value_of({0x22, 32, 0x18, 0x27}) == 0x2120);                 // two bytes at 32
  CHECK(value_of({0x22, 0xff, 0x16, 8, 0x22, 0, 0x14, 0x27}) == 1);  // (signed char)0xff < 0
  CHECK(value_of({0x22, 7, 0x22, 3, 0x03, 0x27}) == 4);
  CHECK(value_of({0x22, 7, 0x22, 0, 0x05, 0x27}) == std::nullopt);      // division by zero
  CHECK(value_of({0x22, 1, 0x20, 0, 7, 0x22, 9, 0x22, 8, 0x27}) == 8);  // if_goto 7
  CHECK(value_of({0x22, 1, 0x22, 2, 0x2b, 0x27}) == 1);                 // swap
  CHECK(value_of({0x22, 1, 0x22, 2, 0x22, 3, 0x33, 0x27}) == 2);        // rot: a b c => c a b
  CHECK(value_of({0x22, 1, 0x22, 2, 0x32, 1, 0x27}) == 1);              // pick 1
}

TEST_CASE("conditions that cannot be evaluated have no value") {
  CHECK_FALSE(value_of({}));
  CHECK_FALSE(value_of({0x27}));                 // nothing on the stack
  CHECK_FALSE(value_of({0x22}));                 // cut short
  CHECK_FALSE(value_of({0x26, 0, 9, 0x27}));     // no such register
  CHECK_FALSE(value_of({0x22, 0, 0x17, 0x27}));  // no such memory
  CHECK_FALSE(value_of({0x21, 0, 0, 0x27}));     // a loop
  CHECK_FALSE(value_of({0x28, 0x27}));           // dup of nothing
  CHECK_FALSE(value_of({0x21, 0xff, 0xff}));     // out of the code
  CHECK_FALSE(value_of({0xff, 0x27}));
}

}  // namespace gpusim::host::gdb
