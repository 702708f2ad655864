// Writes the C source behind energy/estimate.h: gpusim_energy_generate_table FILE.c
#include <fmt/format.h>

#include <exception>
#include <fstream>

#include "energy/target.h"

namespace {

std::string source_text() {
  using namespace gpusim;
  using namespace gpusim::energy;
  std::string names, rows;
  const auto add = [&](const std::string& name, const Target& t) {
    rows += fmt::format("\t{{ \"{}\",\n\t  {{", name);
    for (size_t c = 0; c < kInsnClassCount; ++c) {
      const bool memory = c == static_cast<size_t>(InsnClass::kOffChipMemory);
      const ClassCost& cost = memory ? t.unplaced_memory : t.classes[c];
      rows += fmt::format("{}{:.17g}",
                          c == 0       ? " "
                          : c % 5 == 0 ? ",\n\t    "
                                       : ", ",
                          cost.energy.value.value());
    }
    rows += " } },\n";
  };
  std::string last;
  for (const Target& t : builtin_targets()) {
    const std::string base = t.name.substr(0, t.name.find('/'));
    if (base != last && base != t.name) add(base, t);  // the default variant's short name
    last = base;
    add(t.name, t);
    names += (names.empty() ? "" : ", ") + t.name;
  }
  return fmt::format(R"(/* Generated from energy/targets. */
#include "energy/estimate.h"

#include <string.h>

static const struct {{
	const char *name;
	double joules[{}]; /* per instruction of a class */
}} targets[] = {{
{}}};

int gpusim_energy_joules(const char *target, const uint64_t *classes, double *joules)
{{
	unsigned long i;
	unsigned int c;

	for (i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {{
		if (strcmp(targets[i].name, target))
			continue;
		*joules = 0;
		for (c = 0; c < {}; c++)
			*joules += (double)classes[c] * targets[i].joules[c];
		return 0;
	}}
	return -1;
}}

const char *gpusim_energy_target_names(void)
{{
	return "{}";
}}
)",
                     kInsnClassCount, rows, kInsnClassCount, names);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("gpusim_energy_generate_table FILE.c");
    std::ofstream out(argv[1], std::ios::binary);
    out << source_text();
    out.close();
    if (!out) throw std::runtime_error(fmt::format("cannot write {}", argv[1]));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
