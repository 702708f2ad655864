// The words of a PTX text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpusim::ptx {

struct Token {
  enum class Kind : uint8_t {
    kWord,    // add, %r1, $L__BB0_1
    kDotted,  // .s32, .shared::cta: text without the dot
    kInteger,
    kFloat,  // 0f3F800000, 0d…, 1.5: `value` has the bits, `bits` 32 or 64
    kString,
    kPunct,  // one character
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string_view text;  // of the source
  uint64_t value = 0;
  uint8_t bits = 64;
  uint32_t line = 0;
  bool is_glued = false;  // nothing stands between it and the token before

  bool is(char c) const { return kind == Kind::kPunct && text[0] == c; }
  bool is_word(std::string_view s) const { return kind == Kind::kWord && text == s; }
  bool is_dotted(std::string_view s) const { return kind == Kind::kDotted && text == s; }
};

/// Ends in a kEnd. Tokens point into `text`. Throws Error that names `origin` and the line.
std::vector<Token> lex(std::string_view text, std::string_view origin);

}  // namespace gpusim::ptx
