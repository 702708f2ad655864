// Prints docs/isa-support.md:  a64_support_page executed.tsv FOLDER_OF_ROWS
// What is supported is asked of the translator; what was executed, and by which suite, was measured
// (collect.py).
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "translator/a64/decode.h"
#include "translator/a64/cpus.h"
#include "translator/a64/translate.h"

namespace gpusim::a64 {
namespace {

using Suites = std::set<std::string>;

enum class Support { kNo, kInPart, kUndefined, kYes };

// Asks about words drawn from the row, always the same ones.
Support support_of(const Row& row) {
  if (!is_translated(row.op)) return Support::kNo;
  std::mt19937 rng(1);
  const int kWords = 4000;
  int refused = 0, undefined = 0;
  for (int i = 0; i < kWords; ++i) {
    BlockBuilder builder = make_block_builder();
    builder.set_cpu(static_cast<uint32_t>(cpus().size() - 1));  // that which has most
    builder.begin_block(0);
    const InsnResult t = translate_instruction(random_word(row, rng), 0, builder);
    if (t == InsnResult::kUnknown) ++refused;
    const Uop& last = builder.draft().uops.empty() ? Uop{} : builder.draft().uops.back();
    if (t == InsnResult::kEndsBlock && last.op == gpusim::Op::trap &&
        static_cast<Fault>(last.aux) == Fault::kUndefined)
      ++undefined;
  }
  if (undefined == kWords) return Support::kUndefined;
  // Of the system instructions there are few among random words.
  return refused == 0 ? Support::kYes : Support::kInPart;
}

const char* text_of(Support s) {
  switch (s) {
    case Support::kNo:
      return "**no**";
    case Support::kInPart:
      return "some";
    case Support::kUndefined:
      return "undefined";
    case Support::kYes:
      return "yes";
  }
  return "";
}

const char* text_of(Feature f) {
  switch (f) {
    case Feature::kBase:
      return "v8.0";
    case Feature::kFp:
      return "FP";
    case Feature::kSimd:
      return "AdvSIMD";
    case Feature::kCrc:
      return "CRC32";
    case Feature::kAes:
      return "AES";
    case Feature::kSha:
      return "SHA1, SHA256";
    case Feature::kSha3:
      return "SHA512, SHA3";
    case Feature::kSm:
      return "SM3, SM4";
    case Feature::kLse:
      return "LSE";
    case Feature::kLor:
      return "LOR";
    case Feature::kRdm:
      return "RDM";
    case Feature::kFp16:
      return "FP16";
    case Feature::kPauth:
      return "PAuth";
    case Feature::kRcpc:
      return "LRCPC";
    case Feature::kRcpc2:
      return "LRCPC2";
    case Feature::kJscvt:
      return "JSCVT";
    case Feature::kFcma:
      return "FCMA";
    case Feature::kDotProd:
      return "DotProd";
    case Feature::kFhm:
      return "FHM";
    case Feature::kFlagM:
      return "FlagM";
    case Feature::kFlagM2:
      return "FlagM2";
    case Feature::kFrintts:
      return "FRINTTS";
    case Feature::kSb:
      return "SB";
    case Feature::kBf16:
      return "BF16";
    case Feature::kI8mm:
      return "I8MM";
  }
  return "";
}

struct Section {
  Group group;
  const char* file;
  const char* title;
};
constexpr Section kSections[] = {
    {Group::kDataProcessingImmediate, "data_processing_immediate", "Data processing, immediate"},
    {Group::kDataProcessingRegister, "data_processing_register", "Data processing, register"},
    {Group::kLoadsStores, "loads_stores", "Loads and stores"},
    {Group::kBranchesSystem, "branches_system", "Branches, exceptions, system"},
    {Group::kFloat, "float", "Scalar floating point"},
    {Group::kSimd, "simd", "Advanced SIMD and cryptography"},
};

// The comments that head groups of rows, by the first row behind each.
std::map<std::string, std::string> headings(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::map<std::string, std::string> result;
  std::string heading;
  bool after_blank = true;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("//") && after_blank) heading = line.substr(3);
    after_blank = line.empty();
    if (!line.starts_with("A64_ROW")) continue;
    const size_t from = line.find('(') + 1;
    if (!heading.empty()) result[line.substr(from, line.find(',') - from)] = heading;
    heading.clear();
  }
  return result;
}

std::string first_sentence(const std::string& text) {
  const size_t end = text.find_first_of(".;");
  const size_t colon = text.find(": ");
  return text.substr(0, end == std::string::npos && colon != std::string::npos &&
                                text.compare(0, colon, "Scalar") != 0
                            ? colon
                            : end);
}

std::map<std::string, Suites> read_executed(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::map<std::string, Suites> result;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) throw std::runtime_error(path + ": no tab in: " + line);
    std::istringstream names(line.substr(tab + 1));
    Suites& suites = result[line.substr(0, tab)];
    for (std::string name; names >> name;) suites.insert(name);
  }
  return result;
}

std::string joined(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "" : between) + n;
  return text;
}

struct Count {
  unsigned rows = 0, supported = 0, undefined = 0;
  std::map<std::string, unsigned> by_suite;
};

void print_page(const std::map<std::string, Suites>& executed, const std::string& folder) {
  std::vector<Support> support;
  for (const Row& row : rows()) support.push_back(support_of(row));
  Suites all_suites;
  for (const auto& [row, suites] : executed) all_suites.insert(suites.begin(), suites.end());
  const auto suites_of = [&](const Row& row) -> Suites {
    const auto found = executed.find(std::string(row.name));
    return found == executed.end() ? Suites{} : found->second;
  };

  std::map<Feature, Count> counts;
  Count total;
  std::vector<std::string> unsupported, never;
  for (size_t i = 0; i < rows().size(); ++i) {
    const Row& row = rows()[i];
    const Suites suites = suites_of(row);
    for (Count* c : {&counts[row.feature], &total}) {
      ++c->rows;
      c->supported += support[i] == Support::kYes || support[i] == Support::kInPart;
      c->undefined += support[i] == Support::kUndefined;
      for (const std::string& s : suites) ++c->by_suite[s];
    }
    if (support[i] == Support::kNo)
      unsupported.push_back("`" + std::string(row.name) + "`");
    else if (suites.empty())
      never.push_back("`" + std::string(row.name) + "`");
  }

  std::printf(
      "# AArch64 instructions\n\n"
      "Generated from the decode table (`translator/a64/rows`), the translator and\n"
      "`tests/isa/a64/coverage/executed.tsv`; `tests/isa/a64/coverage/README.md` says how. Not to "
      "be\n"
      "edited. A row is an instruction page of the Arm ARM: it covers all sizes, widths and index\n"
      "modes of that page. Its name is the mnemonic and, where pages share one, a suffix: `_imm`\n"
      "`_reg` `_shift` `_ext` operands; `_v` vector, `_s` scalar in a SIMD register, `_h` half\n"
      "precision, `_elt` by element, `_fix` `_int` fixed point and integer; `_uimm` `_prepost` "
      "`_lit`\n"
      "addresses.\n\n"
      "- Supported: *yes*; *some* of its encodings, the others being UNDEFINED for user code or "
      "of\n"
      "  extensions that the simulated processor lacks; *undefined*: raises SIGILL as a processor\n"
      "  does in user mode; **no**: SIGILL though a processor with the extension would execute "
      "it.\n"
      "- Executed by: the test suites in which at least one instruction of the row was executed,\n"
      "  measured block by block.\n\n");

  std::printf("## Summary\n\n| extension | rows | supported | undefined in user mode |");
  for (const std::string& s : all_suites) std::printf(" %s |", s.c_str());
  std::printf("\n|---|---|---|---|");
  for (size_t i = 0; i < all_suites.size(); ++i) std::printf("---|");
  const auto print_count = [&](const char* name, const Count& c) {
    std::printf("\n| %s | %u | %u | %u |", name, c.rows, c.supported, c.undefined);
    for (const std::string& s : all_suites) {
      const auto found = c.by_suite.find(s);
      std::printf(" %u |", found == c.by_suite.end() ? 0 : found->second);
    }
  };
  for (const auto& [feature, count] : counts) print_count(text_of(feature), count);
  print_count("**all**", total);
  std::printf("\n\nNot supported: %s.\n\nSupported, but executed by no test: %s.\n",
              unsupported.empty() ? "none" : joined(unsupported, ", ").c_str(),
              never.empty() ? "none" : joined(never, ", ").c_str());

  for (const Section& section : kSections) {
    std::printf("\n## %s\n", section.title);
    const auto heads = headings(folder + "/" + section.file + ".def");
    bool in_table = false;
    for (size_t i = 0; i < rows().size(); ++i) {
      const Row& row = rows()[i];
      if (row.group != section.group) continue;
      const auto head = heads.find(std::string(row.name));
      if (head != heads.end()) std::printf("\n**%s**\n", first_sentence(head->second).c_str());
      if (head != heads.end() || !in_table)
        std::printf("\n| row | extension | supported | executed by |\n|---|---|---|---|\n");
      in_table = true;
      const Suites suites = suites_of(row);
      const std::string list = joined({suites.begin(), suites.end()}, ", ");
      std::printf("| %.*s | %s | %s | %s |\n", static_cast<int>(row.name.size()), row.name.data(),
                  text_of(row.feature), text_of(support[i]),
                  list.empty() ? "no test" : list.c_str());
    }
  }
}

}  // namespace
}  // namespace gpusim::a64

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: a64_support_page executed.tsv FOLDER_OF_ROWS\n";
    return 2;
  }
  try {
    gpusim::a64::print_page(gpusim::a64::read_executed(argv[1]), argv[2]);
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
  return 0;
}
