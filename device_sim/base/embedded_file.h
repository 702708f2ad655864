// A file that is compiled in: a program finds it wherever it lies (cmake/GpusimEmbed.cmake).
#pragma once
#include <span>
#include <string>

namespace gpusim {

struct EmbeddedFile {
  const char* name;  // without its folder: "fermi.json"
  std::string text;
};

}  // namespace gpusim
