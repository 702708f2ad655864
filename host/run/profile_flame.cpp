// The stacks of a profile as a flame graph.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "device_sim/base/digits.h"
#include "device_sim/base/escape_xml.h"
#include "device_sim/base/svg.h"
#include "host/run/profile_report.h"

namespace gpusim::host {
namespace {

constexpr double kWidth = 1100, kMargin = 4, kRow = 17, kLetter = 6.6, kLeastWidth = 0.3;
constexpr const char* kColours[] = {"#f3b562", "#f2a65a", "#ee964b", "#f5c77e",
                                    "#e8a87c", "#f0bd8b", "#eab464", "#f6d08a"};

// A function with the same callers. The innermost ones have what was executed in them.
struct Flame {
  double cycles = 0;
  uint64_t instructions = 0;
  std::map<uint32_t, std::unique_ptr<Flame>> callees;  // by their names' order
};

class Picture {
 public:
  explicit Picture(const ProfileReport& r) : r_(r) {
    for (const auto& [stack, use] : r.stacks) {
      const double cycles = r.table.of(use.classes);
      add_to(root_, cycles, use.instructions());
      Flame* at = &root_;
      for (const uint32_t function : stack.functions) {
        std::unique_ptr<Flame>& next = at->callees[function];
        if (!next) next = std::make_unique<Flame>();
        at = next.get();
        add_to(*at, cycles, use.instructions());
      }
    }
  }

  std::string draw() {
    if (root_.cycles <= 0) return {};
    const double height = kRow * (rows(root_) + 1) + 2 * kMargin;
    floor_ = height - kMargin - kRow;
    Svg svg(kWidth, height, "Flame graph: functions stand on their callers");
    draw(svg, root_, "all", kMargin, 0);
    return embedded_svg(svg.finish());
  }

 private:
  static void add_to(Flame& flame, double cycles, uint64_t instructions) {
    flame.cycles += cycles;
    flame.instructions += instructions;
  }
  double width_of(const Flame& flame) const {
    return flame.cycles / root_.cycles * (kWidth - 2 * kMargin);
  }
  // Above this one.
  int rows(const Flame& flame) const {
    int most = 0;
    for (const auto& [function, callee] : flame.callees)
      if (width_of(*callee) >= kLeastWidth) most = std::max(most, 1 + rows(*callee));
    return most;
  }

  void draw(Svg& svg, const Flame& flame, const std::string& name, double x, int depth) const {
    const double width = width_of(flame), y = floor_ - depth * kRow;
    const size_t colour =
        depth == 0 ? 0 : 1 + std::hash<std::string>()(name) % (std::size(kColours) - 1);
    const std::string tip = fmt::format(
        "{}: {:.2f} % ({} cycles, {} instructions)", name, 100 * flame.cycles / root_.cycles,
        grouped(static_cast<uint64_t>(std::llround(flame.cycles))), grouped(flame.instructions));
    svg.raw("<g class=\"flame\">");
    svg.raw(fmt::format("<title>{}</title>\n", escape_xml(tip)));
    svg.raw(
        fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
                    "rx=\"1.5\" fill=\"{}\"/>\n",
                    x, y, std::max(width - 0.5, 0.2), kRow - 1, kColours[colour]));
    const auto letters = static_cast<size_t>(std::max(0.0, (width - 6) / kLetter));
    if (letters >= 3) svg.label(x + 3, y + 12, shortened(name, letters));
    svg.raw("</g>\n");
    for (const auto& [function, callee] : flame.callees) {
      if (width_of(*callee) >= kLeastWidth) draw(svg, *callee, name_of(function), x, depth + 1);
      x += width_of(*callee);
    }
  }
  std::string name_of(uint32_t function) const {
    const std::string& name = r_.names[function];
    return name.empty() ? "(unknown)" : name;
  }
  // Of UTF-8, no half letters.
  static std::string shortened(const std::string& name, size_t letters) {
    if (name.size() <= letters) return name;
    size_t end = letters - 1;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
    return name.substr(0, end) + "…";
  }

  const ProfileReport& r_;
  Flame root_;
  double floor_ = 0;  // of the lowest row
};

}  // namespace

std::string flame_graph_svg(const ProfileReport& r) { return Picture(r).draw(); }

}  // namespace gpusim::host
