#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstdlib>

#include "device_sim/base/error.h"
#include "translator/ptx/token.h"

namespace gpusim::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool starts_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool goes_on(char c) { return starts_word(c) || is_digit(c); }

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  std::vector<Token> run() {
    for (;;) {
      const size_t before = at_;
      skip_space();
      if (at_ >= text_.size()) break;
      Token t = next();
      t.is_glued = at_before_ == before;
      tokens_.push_back(t);
    }
    tokens_.push_back({.kind = Token::Kind::kEnd, .text = {}, .line = line_});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", origin_, line_, what));
  }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '\n') ++line_;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) fail("a comment /* that does not end");
        for (; at_ < end + 2; ++at_)
          if (peek() == '\n') ++line_;
      } else {
        break;
      }
    }
  }

  Token next() {
    at_before_ = at_;
    const char c = peek();
    Token t{.text = {}, .line = line_};
    if (c == '.' && goes_on(peek(1))) {  // also .2d
      ++at_;
      t.kind = Token::Kind::kDotted;
      word();
      while (peek() == ':' && peek(1) == ':' && goes_on(peek(2))) {
        at_ += 2;
        word();
      }
      t.text = text_.substr(at_before_ + 1, at_ - at_before_ - 1);
      return t;
    }
    if (is_digit(c)) {
      number(t);
    } else if (starts_word(c)) {
      t.kind = Token::Kind::kWord;
      word();
    } else if (c == '"') {
      t.kind = Token::Kind::kString;
      const size_t end = text_.find_first_of("\"\n", at_ + 1);
      if (end == std::string_view::npos || text_[end] != '"') fail("a string that does not end");
      at_ = end + 1;
    } else if (std::string_view("{}()[],;:<>+-*/%!|@=&^~?").find(c) != std::string_view::npos) {
      t.kind = Token::Kind::kPunct;
      ++at_;
    } else {
      fail(fmt::format("character 0x{:02x} has no meaning in PTX",
                       static_cast<unsigned>(static_cast<unsigned char>(c))));
    }
    t.text = text_.substr(at_before_, at_ - at_before_);
    return t;
  }

  void word() {
    while (goes_on(peek())) ++at_;
  }

  void number(Token& t) {
    const char kind = peek(1);
    t.kind = Token::Kind::kInteger;
    if (peek() == '0' && (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D')) {
      const bool is_single = kind == 'f' || kind == 'F';
      at_ += 2;
      t.kind = Token::Kind::kFloat;
      t.bits = is_single ? 32 : 64;
      digits(t, 16, is_single ? 8 : 16);
      return;
    }
    if (peek() == '0' && (kind == 'x' || kind == 'X')) {
      at_ += 2;
      digits(t, 16, 0);
    } else if (peek() == '0' && (kind == 'b' || kind == 'B')) {
      at_ += 2;
      digits(t, 2, 0);
    } else if (is_decimal_float()) {
      t.kind = Token::Kind::kFloat;
      const std::string copy(text_.substr(at_, 400));
      char* end = nullptr;
      t.value = std::bit_cast<uint64_t>(std::strtod(copy.c_str(), &end));
      at_ += static_cast<size_t>(end - copy.c_str());
    } else {
      digits(t, peek() == '0' && is_digit(kind) ? 8 : 10, 0);
    }
    if (peek() == 'U') ++at_;
    if (goes_on(peek())) fail("a number with letters behind it");
  }

  bool is_decimal_float() const {
    size_t i = at_;
    while (i < text_.size() && is_digit(text_[i])) ++i;
    if (i >= text_.size()) return false;
    if (text_[i] == '.') return i + 1 < text_.size() ? !starts_word(text_[i + 1]) : true;
    return text_[i] == 'e' || text_[i] == 'E';
  }

  void digits(Token& t, int base, size_t exactly) {
    const size_t begin = at_;
    while (is_hex(peek()) && (base == 16 || is_digit(peek()))) ++at_;
    const auto [end, error] =
        std::from_chars(text_.data() + begin, text_.data() + at_, t.value, base);
    if (at_ == begin || error != std::errc{} || end != text_.data() + at_)
      fail("a number that is none, or has more than 64 bits");
    if (exactly != 0 && at_ - begin != exactly)
      fail(fmt::format("a float in hexadecimal has {} digits", exactly));
  }

  std::string_view text_, origin_;
  size_t at_ = 0, at_before_ = 0;
  uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(std::string_view text, std::string_view origin) {
  return Lexer(text, origin).run();
}

}  // namespace gpusim::ptx
