// A recursive-descent parser: directives, then statements `[label:] [@[!]p] opcode operands ;`.
#include "translator/ptx/parser.h"

#include <fmt/format.h>

#include "translator/ptx/rows.h"

namespace gpusim::ptx {

Unit Parser::run() {
  while (!at_end()) top_level();
  for (Function& f : unit_.functions)
    for (Instruction& insn : f.body) leave_headers(insn.location);
  return std::move(unit_);
}

// Textures and surfaces are functions of CUDA's headers: the program's line is that of the call.
void Parser::leave_headers(Location& location) const {
  const auto is_header = [&](uint32_t file) {
    const auto found = unit_.files.find(file);
    return found != unit_.files.end() && (found->second.ends_with("texture_indirect_functions.h") ||
                                          found->second.ends_with("surface_indirect_functions.h"));
  };
  while (location.caller != 0 && is_header(location.file)) location = callers_[location.caller - 1];
}

void Parser::top_level() {
  if (peek().kind != Token::Kind::kDotted)
    fail(fmt::format("expected a directive such as .entry, not '{}'", peek().text));
  const std::string_view name = next().text;
  if (name == "version") {
    next();
  } else if (name == "target") {
    unit_.target = next().text;
    while (accept(',')) next();
  } else if (name == "address_size") {
    if (next().value != 64) fail(".address_size 32: only 64-bit programs are supported");
  } else if (name == "file") {
    file();
  } else if (name == "section") {
    skip_braces();
  } else if (name == "pragma") {
    next();
    expect(';');
  } else if (name == "alias") {
    fail(".alias is not supported");
  } else {
    --at_;
    declaration();
  }
}

void Parser::file() {
  const uint64_t number = integer();
  unit_.files[static_cast<uint32_t>(number)] = string();
  while (accept(',')) integer();
}

void Parser::skip_braces() {
  while (!peek().is('{')) {
    if (at_end()) fail("a section without { }");
    next();
  }
  int depth = 0;
  do {
    if (at_end()) fail("a section that does not end");
    const Token& t = next();
    depth += t.is('{') - t.is('}');
  } while (depth != 0);
}

void Parser::declaration() {
  Linkage linkage = Linkage::kLocal;
  for (;;) {
    if (accept_dotted("visible"))
      linkage = Linkage::kVisible;
    else if (accept_dotted("extern"))
      linkage = Linkage::kExtern;
    else if (accept_dotted("weak"))
      linkage = Linkage::kWeak;
    else if (accept_dotted("common"))
      linkage = Linkage::kCommon;
    else
      break;
  }
  if (accept_dotted("entry")) return function(linkage, true);
  if (accept_dotted("func")) return function(linkage, false);
  if (auto space = variable_space()) return variables(*space, linkage, unit_.variables);
  fail(fmt::format("'.{}' is not a directive that is supported here", peek().text));
}

std::optional<Space> Parser::variable_space() {
  if (accept_dotted("global")) return Space::kGlobal;
  if (accept_dotted("const")) return Space::kConst;
  if (accept_dotted("shared")) return Space::kShared;
  if (accept_dotted("local")) return Space::kLocal;
  if (accept_dotted("param")) return Space::kParam;
  return std::nullopt;
}

Type Parser::type() {
  // Of the host's: what kernels do with them is refused where they do it.
  for (const char* opaque : {"texref", "samplerref", "surfref"})
    if (accept_dotted(opaque)) return {Kind::kBits, 64};
  const auto found = peek().kind == Token::Kind::kDotted ? type_of(peek().text) : std::nullopt;
  if (!found) fail(fmt::format("expected a type such as .b32, not '{}'", peek().text));
  next();
  return *found;
}

// After the space: [.align n] [.ptr …] [.v2] .type name [n]… [= …]
Variable Parser::variable(Space space, Linkage linkage) {
  Variable v{.space = space, .linkage = linkage, .line = peek().line};
  uint32_t elements = 1;
  uint64_t align = 0;
  bool has_type = false;
  while (peek().kind == Token::Kind::kDotted) {
    if (accept_dotted("align")) {
      const uint64_t n = integer();
      if (has_type) continue;  // of what a .ptr points at
      if (n == 0 || (n & (n - 1)) != 0 || n > 4096) fail(".align: a power of two up to 4096");
      align = n;
    } else if (accept_dotted("attribute")) {
      expect('(');
      while (!accept(')')) next();
    } else if (accept_dotted("v2")) {
      elements = 2;
    } else if (accept_dotted("v4")) {
      elements = 4;
    } else if (has_type) {
      // .ptr .global and the like say what a parameter points at.
      if (!accept_dotted("ptr") && !variable_space())
        fail(fmt::format("'.{}' behind a type", peek().text));
    } else {
      v.type = type();
      has_type = true;
    }
  }
  if (!has_type) fail("a variable without a type");
  if (v.type.is_predicate() || v.type.bits == 0) fail("a variable cannot have this type");
  v.name = name();
  uint64_t count = elements;
  while (accept('[')) {
    if (accept(']')) {
      v.is_unsized = true;
      count = 0;
      continue;
    }
    const uint64_t n = integer();
    if (n > (uint64_t{1} << 32) || count * n > (uint64_t{1} << 36))
      fail(fmt::format("'{}' is too large", v.name));
    count *= n;
    expect(']');
  }
  v.size = count * v.type.bytes();
  v.align = static_cast<uint32_t>(align != 0 ? align : v.type.bytes() * elements);
  return v;
}

void Parser::variables(Space space, Linkage linkage, std::vector<Variable>& out) {
  do {
    Variable v = variable(space, linkage);
    if (accept('=')) {
      if (space != Space::kGlobal && space != Space::kConst)
        fail("only .global and .const variables can have initialisers");
      if (peek().is('{'))
        initialiser_list(v);
      else
        initialiser(v);
      if (v.is_unsized) v.size = v.bytes.size();
      if (v.bytes.size() > v.size) fail(fmt::format("'{}' has too many initialisers", v.name));
      v.is_unsized = false;
    }
    out.push_back(std::move(v));
  } while (accept(','));
  expect(';');
}

void Parser::initialiser_list(Variable& v) {
  expect('{');
  if (accept('}')) return;
  do {
    if (peek().is('{'))
      initialiser_list(v);
    else
      initialiser(v);
  } while (accept(','));
  expect('}');
}

// One element: a number, or an address: symbol, generic(symbol), mask(0xff00)(symbol), each with
// + n.
void Parser::initialiser(Variable& v) {
  const uint32_t bytes = v.type.bytes();
  const auto put = [&](uint64_t value) {
    for (uint32_t i = 0; i < bytes; ++i)
      v.bytes.push_back(i < 8 ? static_cast<uint8_t>(value >> 8 * i) : 0);
  };
  if (peek().kind == Token::Kind::kWord) {
    if (peek().is_word("mask")) fail("mask() in an initialiser is not supported");
    AddressPart part{.offset = v.bytes.size(), .bytes = bytes};
    if (bytes != 8) fail("an address in an initialiser whose elements have not 64 bits");
    if (peek().is_word("generic") && peek(1).is('(')) {
      next();
      expect('(');
      part.symbol = name();
      if (peek().is('+') || peek().is('-')) part.addend = static_cast<int64_t>(integer_sum());
      expect(')');
    } else {
      part.symbol = name();
    }
    if (peek().is('+') || peek().is('-')) part.addend += static_cast<int64_t>(integer_sum());
    put(0);
    v.addresses.push_back(part);
    return;
  }
  Operand number = literal();
  if (v.type.is_float() && number.is(Operand::Kind::kFloat))
    number.value = float_bits(number, v.type.bits);
  put(number.value);
}

uint64_t Parser::integer_sum() {
  uint64_t sum = 0;
  while (peek().is('+') || peek().is('-')) {
    const bool minus = next().is('-');
    const uint64_t n = signed_integer();
    sum += minus ? 0 - n : n;
  }
  return sum;
}

std::vector<Variable> Parser::parameters() {
  std::vector<Variable> out;
  expect('(');
  if (accept(')')) return out;
  do {
    if (accept_dotted("reg")) fail("functions with .reg parameters are not supported");
    if (!accept_dotted("param")) fail("expected .param");
    out.push_back(variable(Space::kParam, Linkage::kLocal));
  } while (accept(','));
  expect(')');
  return out;
}

void Parser::function(Linkage linkage, bool is_entry) {
  Function f{.is_entry = is_entry, .linkage = linkage, .line = peek().line};
  while (accept_dotted("attribute")) {
    expect('(');
    while (!accept(')')) next();
  }
  if (!is_entry && peek().is('(')) f.returns = parameters();
  f.name = name();
  if (peek().is('(')) f.params = parameters();
  while (peek().kind == Token::Kind::kDotted) {
    const std::string_view directive = next().text;
    if (directive == "maxntid")
      triple(f.max_threads);
    else if (directive == "reqntid")
      triple(f.required_threads);
    else if (directive == "reqnctapercluster")
      triple(f.cluster);
    else if (directive == "maxclusterrank")
      f.max_cluster_rank = static_cast<uint32_t>(integer());
    else if (directive == "explicitcluster")
      f.is_explicit_cluster = true;
    else if (directive == "minnctapersm" || directive == "maxnreg")
      integer();
    else if (directive == "noreturn" || directive == "abi_preserve")
      continue;
    else if (directive == "pragma") {
      next();
      expect(';');
    } else {
      fail(fmt::format("'.{}' of a function is not supported", directive));
    }
  }
  if (accept(';')) {
    unit_.functions.push_back(std::move(f));
    return;
  }
  f.has_body = true;
  function_ = &f;
  scopes_.clear();
  location_ = {};
  block();
  function_ = nullptr;
  unit_.functions.push_back(std::move(f));
}

void Parser::triple(uint32_t* out) {
  for (int i = 0; i < 3; ++i) out[i] = 1;
  out[0] = static_cast<uint32_t>(integer());
  for (int i = 1; i < 3 && accept(','); ++i) out[i] = static_cast<uint32_t>(integer());
}

Unit parse(std::string_view text, const std::string& origin) {
  // The driver takes texts that end in zeros.
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  return Parser(text, origin).run();
}

}  // namespace gpusim::ptx
