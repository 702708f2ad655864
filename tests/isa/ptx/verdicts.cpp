// Says of each kernel of a PTX text on standard input whether its instructions are taken: a line
// "NAME ok", "NAME operands" or "NAME unsupported". With --rows: the table's rows. With --translate
// FILE...: of each kernel of each file whether it can be translated, with its slots and micro-ops.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "translator/ptx/program.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/translate.h"
#include "translator/ptx/unit.h"

namespace {

using namespace gpusim;
using namespace gpusim::ptx;

void translate_file(const std::string& path) {
  std::vector<Unit> units;
  units.push_back(parse(read_text(path), path));
  const Program program = link_units(std::move(units));
  // Nothing runs: any addresses do.
  Places places;
  uint64_t at = 0x10000;
  for (const Variable& v : program.variables) places[v.name] = {v.space, at += v.size + 256};
  for (const Function* kernel : program.kernels) {
    try {
      const KernelCode code = translate_kernel(*kernel, program.functions, places, program.shared);
      std::printf("ok %s %u slots, %zu micro-ops\n", kernel->name.c_str(), code.module.slot_count,
                  code.module.uops.size());
    } catch (const Error& e) {
      const std::string what = e.what();
      std::printf("refused %s %s\n", kernel->name.c_str(), what.substr(0, what.find('\n')).c_str());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string option = argc > 1 ? argv[1] : "";
  if (option == "--rows") {
    for (const Row* row : all_rows()) std::printf("%s|%s\n", row->syntax, row->operands);
    return 0;
  }
  if (option == "--translate") {
    for (int k = 2; k < argc; ++k) {
      try {
        translate_file(argv[k]);
      } catch (const Error& e) {
        std::printf("error %s\n", e.what());
      }
    }
    return 0;
  }
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  for (const Function& f : parse(text, "stdin").functions) {
    const bool is_of_operands = f.trouble.find(" do not fit") != std::string::npos;
    std::printf("%s %s\n", f.name.c_str(),
                f.trouble.empty() ? "ok"
                : is_of_operands  ? "operands"
                                  : "unsupported");
  }
}
