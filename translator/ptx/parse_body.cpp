// The parser: bodies of functions.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "device_sim/base/error.h"
#include "translator/ptx/parser.h"
#include "translator/ptx/rows.h"

namespace gpusim::ptx {

void Parser::fail(const std::string& what) const {
  throw Error(fmt::format("{}:{}: {}", origin_, peek().line, what));
}

void Parser::expect(char c) {
  if (!accept(c))
    fail(at_end() ? fmt::format("the text ends where '{}' should stand", c)
                  : fmt::format("expected '{}', not '{}'", c, peek().text));
}

std::string Parser::name() {
  if (peek().kind != Token::Kind::kWord)
    fail(fmt::format("expected a name, not '{}'", peek().text));
  return std::string(next().text);
}

std::string Parser::string() {
  if (peek().kind != Token::Kind::kString) fail("expected a string");
  const std::string_view text = next().text;
  return std::string(text.substr(1, text.size() - 2));
}

uint64_t Parser::integer() {
  if (peek().kind != Token::Kind::kInteger)
    fail(fmt::format("expected a number, not '{}'", peek().text));
  return next().value;
}

// Signs in front of a number, as many as there are: whether they make it negative.
bool Parser::sign() {
  bool minus = false;
  for (;;) {
    if (accept('-'))
      minus = !minus;
    else if (!accept('+'))
      return minus;
  }
}

uint64_t Parser::signed_integer() { return sign() ? 0 - integer() : integer(); }

Operand Parser::literal() {
  const bool minus = sign();
  const Token& t = next();
  if (t.kind == Token::Kind::kInteger)
    return {.kind = Operand::Kind::kInteger, .value = minus ? 0 - t.value : t.value};
  if (t.kind != Token::Kind::kFloat) {
    --at_;
    fail(fmt::format("expected a number, not '{}'", peek().text));
  }
  const uint64_t sign = minus ? uint64_t{1} << (t.bits - 1) : 0;
  return {.kind = Operand::Kind::kFloat, .bits = t.bits, .value = t.value ^ sign};
}

uint64_t Parser::float_bits(const Operand& number, int bits) {
  if (number.bits == bits) return number.value;
  if (bits == 32)
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(number.value)));
  const auto single = std::bit_cast<float>(static_cast<uint32_t>(number.value));
  return std::bit_cast<uint64_t>(static_cast<double>(single));
}

void Parser::block() {
  expect('{');
  scopes_.emplace_back();
  ++scope_count_;
  if (scopes_.size() > 1) collect_labels();
  while (!accept('}')) {
    if (at_end()) fail(fmt::format("the body of '{}' does not end", function_->name));
    statement();
  }
  scopes_.pop_back();
}

// Labels may be named before they stand there: each name of a scope is one of the function. Those
// of nested scopes get a number, so that inline assembly that is repeated does not clash.
void Parser::collect_labels() {
  int depth = 0;
  for (size_t i = at_; i + 1 < tokens_.size(); ++i) {
    depth += tokens_[i].is('{') - tokens_[i].is('}');
    if (depth < 0) return;
    if (depth == 0 && tokens_[i].kind == Token::Kind::kWord && tokens_[i + 1].is(':'))
      scopes_.back().labels[std::string(tokens_[i].text)] =
          fmt::format("{}#{}", tokens_[i].text, scope_count_);
  }
}

std::string Parser::label_name(std::string_view text) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i].labels.find(text);
    if (found != scopes_[i].labels.end()) return found->second;
  }
  return std::string(text);
}

void Parser::statement() {
  const Token& t = peek();
  if (t.is('{')) return block();
  if (t.is(';')) {
    next();
    return;
  }
  if (t.kind == Token::Kind::kDotted) return body_directive();
  if (t.kind == Token::Kind::kWord && peek(1).is(':')) {
    const std::string label(next().text);
    next();
    const std::string unique = label_name(label);
    if (accept_dotted("branchtargets")) return name_list(function_->branch_targets[unique]);
    if (accept_dotted("calltargets")) return name_list(function_->call_targets[unique]);
    if (accept_dotted("callprototype")) return call_prototype(unique);
    const auto place = static_cast<uint32_t>(function_->body.size());
    if (!function_->labels.emplace(unique, place).second)
      fail(fmt::format("label '{}' stands twice in '{}'", label, function_->name));
    return;
  }
  instruction();
}

void Parser::name_list(std::vector<std::string>& out) {
  do out.push_back(label_name(name()));
  while (accept(','));
  expect(';');
}

// [(results)] _ [(parameters)] [.noreturn] ;
void Parser::call_prototype(const std::string& label) {
  Prototype& p = function_->prototypes[label];
  if (peek().is('(')) p.returns = parameters();
  name();
  if (peek().is('(')) p.params = parameters();
  while (peek().kind == Token::Kind::kDotted) {
    next();
    if (peek().kind == Token::Kind::kInteger) next();
  }
  expect(';');
}

void Parser::body_directive() {
  if (accept_dotted("reg")) return registers();
  if (accept_dotted("loc")) return location();
  if (accept_dotted("pragma")) {
    next();
    return expect(';');
  }
  const auto space = variable_space();
  if (!space) fail(fmt::format("'.{}' in a function is not supported", peek().text));
  std::vector<Variable> list;
  variables(*space, Linkage::kLocal, list);
  for (Variable& v : list) {
    // Static variables of a function keep their names; those of call sequences recur.
    std::string unique = v.name;
    if (*space == Space::kParam || scopes_.size() > 1)
      unique = fmt::format("{}#{}", v.name, scope_count_);
    scopes_.back().variables[v.name] = unique;
    v.name = unique;
    if (*space == Space::kGlobal || *space == Space::kConst)
      unit_.variables.push_back(std::move(v));
    else
      function_->variables.push_back(std::move(v));
  }
}

void Parser::registers() {
  if (peek().is_dotted("v2") || peek().is_dotted("v4"))
    fail("registers of vector types are not supported");
  const Type t = type();
  do {
    const std::string stem = name();
    const auto add = [&](std::string text) {
      const auto number = static_cast<uint32_t>(function_->registers.size());
      scopes_.back().registers[text] = number;
      function_->registers.push_back({text, t});
      if (t.bits == 128) function_->registers.push_back({text + ".high", {Kind::kBits, 64}});
    };
    if (!accept('<')) {
      add(stem);
      continue;
    }
    const uint64_t count = integer();
    constexpr uint64_t kMost = 1 << 20;
    if (count + function_->registers.size() > kMost) fail("more than 2^20 registers");
    scopes_.back().numbered.insert(stem);
    for (uint64_t i = 0; i < count; ++i) add(fmt::format("{}{}", stem, i));
    expect('>');
  } while (accept(','));
  expect(';');
}

// .loc file line column [, function_name label {+ n}, inlined_at file line column]
void Parser::location() {
  location_.file = static_cast<uint32_t>(integer());
  location_.line = static_cast<uint32_t>(integer());
  location_.caller = 0;
  integer();
  while (accept(',')) {
    const std::string what = name();
    if (what == "function_name") {
      name();
      if (accept('+')) integer();
      continue;
    }
    Location caller;
    caller.file = static_cast<uint32_t>(integer());
    caller.line = static_cast<uint32_t>(integer());
    integer();
    // Which may have been put into another's place itself, as was said before.
    const auto known = caller_of_.find({caller.file, caller.line});
    if (known != caller_of_.end()) caller.caller = known->second;
    callers_.push_back(caller);
    location_.caller = static_cast<uint32_t>(callers_.size());
  }
  caller_of_[{location_.file, location_.line}] = location_.caller;
}

// What is not supported concerns only the functions that have it: others can be launched.
void Parser::skip_statement(const std::string& trouble) {
  if (function_->trouble.empty())
    function_->trouble = fmt::format("{}:{}: {}", origin_, peek().line, trouble);
  while (!peek().is(';')) {
    if (at_end() || peek().is('}')) expect(';');
    if (accept('{'))
      while (!accept('}') && !at_end()) next();
    else
      next();
  }
  next();
}

void Parser::instruction() {
  Instruction insn{.line = peek().line, .location = location_};
  if (accept('@')) {
    insn.guard_is_negated = accept('!');
    const Operand p = named(name());
    if (!p.is(Operand::Kind::kRegister) || !function_->registers[p.reg].type.is_predicate())
      fail("a guard is a predicate register");
    insn.guard = p.reg;
  }
  insn.base = name();
  insn.opcode = insn.base;
  if (!is_known_opcode(insn.base))
    return skip_statement(fmt::format("instruction '{}' is not supported", insn.base));
  while (peek().kind == Token::Kind::kDotted) {
    insn.modifiers.emplace_back(next().text);
    insn.opcode += "." + insn.modifiers.back();
  }
  if (insn.base == "call") {
    call_operands(insn);
  } else if (!peek().is(';')) {
    const bool is_of_video = is_video(insn.base);
    do insn.operands.push_back(is_of_video ? video_operand() : operand());
    while (accept(','));
  }
  if (!peek().is(';'))
    fail(fmt::format("expected ';' behind '{}', not '{}'", insn.opcode, peek().text));
  if (const std::string trouble = match(insn, *function_); !trouble.empty())
    return skip_statement(trouble);
  expect(';');
  function_->body.push_back(std::move(insn));
}

// call{.uni} [(ret), ] f [, (args)] [, prototype]: three operands or four, two of them vectors.
void Parser::call_operands(Instruction& insn) {
  const auto list = [&] {
    Operand all{.kind = Operand::Kind::kVector};
    expect('(');
    if (accept(')')) return all;
    do all.elements.push_back(operand());
    while (accept(','));
    expect(')');
    return all;
  };
  Operand returns{.kind = Operand::Kind::kVector}, arguments = returns;
  if (peek().is('(')) {
    returns = list();
    expect(',');
  }
  Operand callee = operand();
  const bool is_indirect = callee.is(Operand::Kind::kRegister);
  std::string prototype;
  if (accept(',')) {
    if (peek().is('(')) {
      arguments = list();
      if (accept(',')) prototype = label_name(name());
    } else {
      prototype = label_name(name());
    }
  }
  if (is_indirect && prototype.empty())
    fail("an indirect call without a .callprototype or .calltargets");
  insn.operands = {std::move(returns), std::move(callee), std::move(arguments)};
  if (is_indirect)
    insn.operands.push_back({.kind = Operand::Kind::kSymbol, .symbol = std::move(prototype)});
}

Operand Parser::operand() {
  Operand first = one_operand();
  if (!accept('|')) return first;
  Operand pair{.kind = Operand::Kind::kPair};
  pair.elements.push_back(std::move(first));
  pair.elements.push_back(one_operand());
  return pair;
}

// [-]name[.part], or what others have.
Operand Parser::video_operand() {
  const bool is_negated = peek().is('-') && peek(1).kind == Token::Kind::kWord && accept('-');
  Operand o = operand();
  o.is_negated |= is_negated;
  if (!o.is(Operand::Kind::kRegister) || peek().kind != Token::Kind::kDotted) return o;
  const std::string_view part = next().text;
  const bool is_byte = part.size() == 2 && part[0] == 'b' && part[1] >= '0' && part[1] <= '3';
  if (!is_byte && part != "h0" && part != "h1")
    fail(fmt::format("'.{}' is no part of a register: .b0 to .b3, .h0, .h1", part));
  o.part_bits = is_byte ? 8 : 16;
  o.part_at = static_cast<uint8_t>((part[1] - '0') * o.part_bits);
  return o;
}

Operand Parser::one_operand() {
  if (peek().is('[')) return address();
  if (accept('{')) {
    Operand vector{.kind = Operand::Kind::kVector};
    do vector.elements.push_back(one_operand());
    while (accept(','));
    expect('}');
    return vector;
  }
  if (accept('!')) {
    Operand negated = named(name());
    negated.is_negated = true;
    return negated;
  }
  if (peek().kind == Token::Kind::kWord) {
    Operand o = named(next().text);
    if (o.is(Operand::Kind::kSymbol) && (peek().is('+') || peek().is('-'))) o.value = integer_sum();
    return o;
  }
  return literal();
}

// Numbers may have zeros before them, as ptxas takes them: %r01 is %r1 of %r<9>.
std::optional<uint32_t> Parser::Scope::find_register(std::string_view name) const {
  const auto exact = registers.find(name);
  if (exact != registers.end()) return exact->second;
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  for (size_t zero = digits; zero + 1 < name.size(); ++zero) {
    if (name[zero] != '0') continue;
    const auto found = numbered.find(name.substr(0, zero));
    if (found == numbered.end()) continue;
    const size_t first = std::min(name.find_first_not_of('0', zero), name.size() - 1);
    const auto number = registers.find(fmt::format("{}{}", *found, name.substr(first)));
    if (number != registers.end()) return number->second;
  }
  return std::nullopt;
}

Operand Parser::named(std::string_view text) {
  if (text == "_") return {.kind = Operand::Kind::kSink};
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (const std::optional<uint32_t> reg = scopes_[i].find_register(text))
      return {.kind = Operand::Kind::kRegister, .reg = *reg};
    const auto variable = scopes_[i].variables.find(text);
    if (variable != scopes_[i].variables.end())
      return {.kind = Operand::Kind::kSymbol, .symbol = variable->second};
  }
  if (text[0] == '%' || text == "WARP_SZ") {
    std::string whole(text);
    if (peek().kind == Token::Kind::kDotted && peek().is_glued)
      whole += "." + std::string(next().text);
    if (!is_special_register(whole) && function_->trouble.empty())
      function_->trouble = fmt::format(
          "{}:{}: '{}' is neither a declared register nor a special register that is supported",
          origin_, peek().line, whole);
    return {.kind = Operand::Kind::kSpecial, .symbol = std::move(whole)};
  }
  return {.kind = Operand::Kind::kSymbol, .symbol = label_name(text)};
}

Operand Parser::address() {
  expect('[');
  Operand a{.kind = Operand::Kind::kAddress};
  if (peek().kind == Token::Kind::kWord) {
    a.elements.push_back(named(next().text));
    a.value = integer_sum();
    while (accept(',')) {  // coordinates of a texture, with its sampler before them
      Operand part = one_operand();
      if (!part.is(Operand::Kind::kVector)) {
        Operand row{.kind = Operand::Kind::kVector};
        row.elements.push_back(std::move(part));
        part = std::move(row);
      }
      a.elements.push_back(std::move(part));
    }
  } else {
    a.elements.push_back({.kind = Operand::Kind::kInteger});
    a.value = signed_integer();
  }
  expect(']');
  return a;
}

}  // namespace gpusim::ptx
