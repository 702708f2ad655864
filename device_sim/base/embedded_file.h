// A file that is compiled in: a program finds it wherever it lies (cmake/GpusimEmbed.cmake).
#pragma once
#include <span>
#include <string>

namespace gpusim {

struct EmbeddedFile {
  const char* name;  // without its folder, "fermi.json"; or its path from one that was given
  std::string text;
};

}  // namespace gpusim
