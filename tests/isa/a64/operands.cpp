#include "tests/isa/a64/operands.h"

#include <cctype>
#include <cstring>

namespace gpusim::a64 {

std::vector<unsigned> registers_in(const std::string& operands) {
  std::vector<unsigned> result;
  size_t first_of_list = 0;
  for (size_t i = 0; i < operands.size();) {
    const char c = operands[i];
    if (c == '{') {
      first_of_list = result.size();
    }
    if (c == '}') {
      if (result.size() > first_of_list + 1) result.resize(first_of_list + 1);
    }
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '#') {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < operands.size() &&
           (std::isalnum(static_cast<unsigned char>(operands[end])) != 0 || operands[end] == '_')) {
      ++end;
    }
    const std::string word = operands.substr(i, end - i);
    const bool after_dot = i > 0 && operands[i - 1] == '.';  // an arrangement: ".16b"
    i = end;
    if (after_dot) continue;
    if (word == "sp" || word == "wsp" || word == "xzr" || word == "wzr") {
      result.push_back(31);
    } else if (word.size() >= 2 && word.size() <= 3 &&
               std::strchr("wxbhsdqv", word[0]) != nullptr &&
               word.find_first_not_of("0123456789", 1) == std::string::npos) {
      result.push_back(static_cast<unsigned>(std::stoul(word.substr(1))));
    }
  }
  return result;
}

}  // namespace gpusim::a64
