// Text as a part of SVG and HTML.
#pragma once
#include <string>
#include <string_view>

namespace gpusim {

// Control characters, which neither may hold, become spaces; line ends and tabs stay.
inline std::string escape_xml(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\n':
      case '\t': safe += c; break;
      default: safe += static_cast<unsigned char>(c) >= 0x20 ? c : ' ';
    }
  }
  return safe;
}

}  // namespace gpusim
