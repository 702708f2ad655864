// The parser's state; parser.cpp has what stands outside of functions, parse_body.cpp the rest.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "translator/ptx/token.h"
#include "translator/ptx/unit.h"

namespace gpusim::ptx {

class Parser {
 public:
  Parser(std::string_view text, const std::string& origin)
      : origin_(origin), tokens_(lex(text, origin)) {
    unit_.origin = origin;
  }
  Unit run();

 private:
  // Names of a { } of a function's body; inner ones hide outer ones.
  struct Scope {
    std::map<std::string, uint32_t, std::less<>> registers;
    std::set<std::string, std::less<>> numbered;  // %r of %r<9>
    std::optional<uint32_t> find_register(std::string_view name) const;
    std::map<std::string, std::string, std::less<>> variables;  // to their unique names
    std::map<std::string, std::string, std::less<>> labels;
  };

  [[noreturn]] void fail(const std::string& what) const;
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& next() {
    const Token& t = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  bool at_end() const { return peek().kind == Token::Kind::kEnd; }
  bool accept(char c) {
    if (!peek().is(c)) return false;
    next();
    return true;
  }
  bool accept_dotted(std::string_view s) {
    if (!peek().is_dotted(s)) return false;
    next();
    return true;
  }
  void expect(char c);
  std::string name();
  std::string string();
  uint64_t integer();
  bool sign();
  uint64_t signed_integer();
  uint64_t integer_sum();
  Operand literal();
  static uint64_t float_bits(const Operand& number, int bits);

  void top_level();
  void file();
  void skip_braces();
  void declaration();
  std::optional<Space> variable_space();
  Type type();
  Variable variable(Space space, Linkage linkage);
  void variables(Space space, Linkage linkage, std::vector<Variable>& out);
  void initialiser(Variable& v);
  void initialiser_list(Variable& v);
  std::vector<Variable> parameters();
  void function(Linkage linkage, bool is_entry);
  void triple(uint32_t* out);

  void block();
  void collect_labels();
  void skip_statement(const std::string& trouble);
  void statement();
  void body_directive();
  void registers();
  void location();
  void leave_headers(Location& location) const;
  void name_list(std::vector<std::string>& out);
  void call_prototype(const std::string& label);
  void instruction();
  void call_operands(Instruction& insn);
  Operand operand();
  Operand video_operand();
  Operand one_operand();
  Operand address();
  Operand named(std::string_view text);
  std::string label_name(std::string_view text);

  std::string origin_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  Unit unit_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  uint32_t scope_count_ = 0;
  Location location_;
  std::vector<Location> callers_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> caller_of_;  // by file and line, the last one
};

}  // namespace gpusim::ptx
