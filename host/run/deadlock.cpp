#include "host/run/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device_sim/uir/uop.h"
#include "host/run/source_lines.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

class Waits {
 public:
  Waits(const Module& module, Backend& backend, const Kernel& kernel, const std::string& program)
      : module_(module), backend_(backend), kernel_(kernel), lines_(program) {
    for (const Waiter& w : kernel.waits().all()) waiters_.emplace(w.core, w);
  }

  std::vector<std::string> text(uint32_t cores) {
    for (uint32_t core = 0; core < cores; ++core)
      if (kernel_.is_alive(core)) cores_of_[place_of(core)].push_back(core);
    // Where most cores wait comes first: the others are more often the reason.
    std::vector<std::pair<Place, std::vector<uint32_t>>> places;
    for (auto& [place, list] : cores_of_) places.emplace_back(place, std::move(list));
    std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
      return a.second.size() > b.second.size();
    });
    constexpr size_t kMostPlaces = 16;
    std::vector<std::string> text;
    for (const auto& [place, list] : places) {
      if (text.size() == kMostPlaces) {
        text.push_back(fmt::format("  and {} more places", places.size() - kMostPlaces));
        break;
      }
      text.push_back(line(place, list));
    }
    return text;
  }

 private:
  struct Place {
    enum class What : uint8_t { kWord, kEvent, kFutex, kSignal, kOutside };
    What what = What::kEvent;
    uint64_t address = 0;  // kWord, kFutex
    uint64_t pc = 0;       // of the instruction after the wait; 0: not known
    uint64_t caller = 0;   // what the link register holds
    auto operator<=>(const Place&) const = default;
  };

  Place place_of(uint32_t core) const {
    Place p;
    if (const auto w = waiters_.find(core); w != waiters_.end()) {
      p.what = w->second.address ? Place::What::kFutex : Place::What::kSignal;
      p.address = w->second.address;
      p.pc = uop_pc(module_, w->second.resume_uop);
    } else if (kernel_.is_parked(core)) {
      p.what = Place::What::kOutside;
    } else {
      const int monitor = module_.abi.monitor;
      const uint64_t marked =
          monitor == kNoSlot ? kNoMonitor : backend_.slot(core, static_cast<Slot>(monitor));
      if (marked != kNoMonitor && marked != kLocalEvent && backend_.permissions(core, marked)) {
        p.what = Place::What::kWord;
        p.address = marked;
      }
      const uint32_t uop = backend_.place(core);
      if (uop < module_.uops.size()) p.pc = uop_pc(module_, uop);
    }
    if (module_.abi.link != kNoSlot)
      p.caller = backend_.slot(core, static_cast<Slot>(module_.abi.link));
    return p;
  }

  // The function's name without the offset.
  std::string function(uint64_t pc) const {
    const std::string symbol = symbolize(module_, pc);
    return symbol.substr(0, symbol.find('+'));
  }
  std::string place_text(uint64_t pc) const {
    const std::string source = lines_.at(pc - 1);  // of the instruction before
    return source.empty() ? symbolize(module_, pc)
                          : fmt::format("{} ({})", function(pc - 1), source);
  }
  bool is_code(uint64_t address) const {
    return address - module_.code.text_base < uint64_t{module_.code.uop_at.size()}
                                                  << module_.code.pc_shift;
  }

  std::string line(const Place& place, const std::vector<uint32_t>& cores) const {
    std::string text = "  waiting for ";
    const auto object = [&](const char* what) {
      const std::string name = symbolize(module_, place.address);
      text += fmt::format("{} {:#x}", what, place.address);
      if (!name.starts_with("0x")) text += fmt::format(" ({})", name);
    };
    switch (place.what) {
      case Place::What::kWord:
        object("a store to");
        break;
      case Place::What::kEvent:
        text += "an event (busy-waiting)";
        break;
      case Place::What::kFutex:
        object("futex");
        break;
      case Place::What::kSignal:
        text += "a signal";
        break;
      case Place::What::kOutside:
        text += "a pipe or a signal";
        break;
    }
    if (place.pc) text += " in " + place_text(place.pc);
    if (place.pc && is_code(place.caller) && function(place.caller - 1) != function(place.pc - 1))
      text += ", called from " + place_text(place.caller);
    constexpr size_t kMostCores = 8;
    const auto shown = static_cast<std::ptrdiff_t>(std::min(cores.size(), kMostCores));
    text += fmt::format(": core{} {}", cores.size() == 1 ? "" : "s",
                        fmt::join(cores.begin(), cores.begin() + shown, ", "));
    if (cores.size() > kMostCores) text += fmt::format(", ... ({} cores)", cores.size());
    return text;
  }

  const Module& module_;
  Backend& backend_;
  const Kernel& kernel_;
  SourceLines lines_;
  std::map<uint32_t, Waiter> waiters_;  // in system calls, by core
  std::map<Place, std::vector<uint32_t>> cores_of_;
};

}  // namespace

std::vector<std::string> describe_waits(const Module& module, Backend& backend,
                                        const Kernel& kernel, const std::string& program) {
  return Waits(module, backend, kernel, program).text(kernel.plan().config.cores);
}

}  // namespace gpusim::host
