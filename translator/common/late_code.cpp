// Code that comes to be in memory while a program runs, as Translator sees it.
#include <algorithm>
#include <iterator>

#include "translator/common/discover.h"
#include "translator/common/draft.h"
#include "translator/common/link.h"
#include "translator/common/on_demand.h"
#include "translator/common/translator.h"

namespace gpusim {
namespace {

uint64_t end_of(const Segment& s) { return s.address + s.bytes.size(); }

Segment part_of(const Segment& s, uint64_t begin, uint64_t end) {
  const auto from = s.bytes.begin() + static_cast<ptrdiff_t>(begin - s.address);
  return {.address = begin,
          .size_bytes = end - begin,
          .flags = s.flags,
          .bytes = {from, from + static_cast<ptrdiff_t>(end - begin)}};
}

}  // namespace

void Translator::add_shared_object(SharedObject object, std::vector<Symbol> symbols) {
  std::vector<SharedObject>& objects = module_.shared_objects;
  if (std::ranges::find(objects, object) != objects.end()) return;  // another segment of it
  const auto lies_in = [](const SharedObject& o) {
    return [&o](const Symbol& s) { return o.contains(s.address); };
  };
  std::erase_if(objects, [&](const SharedObject& o) {
    if (o.end <= object.begin || o.begin >= object.end) return false;
    std::erase_if(module_.symbols, lies_in(o));
    return true;
  });
  std::erase_if(module_.symbols, lies_in(object));
  module_.symbols.insert(
      std::ranges::lower_bound(module_.symbols, object.begin, {}, &Symbol::address),
      std::make_move_iterator(symbols.begin()), std::make_move_iterator(symbols.end()));
  objects.insert(std::ranges::lower_bound(objects, object.begin, {}, &SharedObject::begin),
                 std::move(object));
}

void Translator::set_code_source(CodeSource source) { code_source_ = std::move(source); }

// What is known stays; neighbours become one, so that an instruction may cross from one to another.
void Translator::add_late_code(Segment code) {
  CodeMap& map = module_.code;
  const uint64_t begin = code.address, end = end_of(code);
  if (begin >= end || begin < map.text_base || end - map.text_base > kCodeLimit) return;
  std::vector<Segment>& late = module_.late_code;
  std::erase_if(late, [&](const Segment& s) {
    if (end_of(s) < begin || s.address > end) return false;
    if (s.address < code.address) {
      Segment head = part_of(s, s.address, std::min(end_of(s), code.address));
      code.bytes.insert(code.bytes.begin(), head.bytes.begin(), head.bytes.end());
      code.address = s.address;
    }
    if (end_of(s) > end_of(code)) {
      const Segment tail = part_of(s, std::max(s.address, end_of(code)), end_of(s));
      code.bytes.insert(code.bytes.end(), tail.bytes.begin(), tail.bytes.end());
    }
    const uint64_t first = std::max(s.address, begin), last = std::min(end_of(s), end);
    if (first < last)
      std::copy_n(s.bytes.begin() + static_cast<ptrdiff_t>(first - s.address), last - first,
                  code.bytes.begin() + static_cast<ptrdiff_t>(first - code.address));
    return true;
  });
  code.size_bytes = code.bytes.size();
  const size_t units = (end - map.text_base + (uint64_t{1} << map.pc_shift) - 1) >> map.pc_shift;
  if (units > map.uop_at.size()) {
    map.uop_at.resize(units, kNoUop);
    map.insn_class.resize(units, CodeMap::kNotCode);
  }
  for (uint64_t unit = map.unit_of(begin); unit < map.unit_of(end); ++unit)
    if (map.insn_class[unit] == CodeMap::kNotCode)
      map.insn_class[unit] = static_cast<uint8_t>(InsnClass::kOther);
  if (on_demand_) {
    on_demand_->open.takes_all = true;
    on_demand_->leaders.resize(map.uop_at.size());
    add_leaders(*isa_, map, part_of(code, begin, end), on_demand_->leaders);
  }
  late.insert(std::ranges::upper_bound(late, code.address, {}, &Segment::address), std::move(code));
}

void Translator::forget_late_code(uint64_t address, uint64_t size_bytes) {
  const uint64_t end = address + size_bytes;
  std::vector<Segment> left;
  for (const Segment& s : module_.late_code) {
    const uint64_t first = std::max(s.address, address), last = std::min(end_of(s), end);
    if (first >= last) {
      left.push_back(s);
      continue;
    }
    if (s.address < first) left.push_back(part_of(s, s.address, first));
    if (last < end_of(s)) left.push_back(part_of(s, last, end_of(s)));
    const CodeMap& map = module_.code;
    std::fill(module_.code.insn_class.begin() + static_cast<ptrdiff_t>(map.unit_of(first)),
              module_.code.insn_class.begin() + static_cast<ptrdiff_t>(map.unit_of(last)),
              CodeMap::kNotCode);
  }
  module_.late_code = std::move(left);
  forget_blocks();
  if (on_demand_) on_demand_->reads_flags.clear();
}

void Translator::refresh_late_code(uint64_t address, std::span<const uint8_t> bytes) {
  for (Segment& s : module_.late_code) {
    if (address < s.address || address + bytes.size() > end_of(s)) continue;
    std::ranges::copy(bytes, s.bytes.begin() + static_cast<ptrdiff_t>(address - s.address));
    if (!on_demand_) return;
    add_leaders(*isa_, module_.code, part_of(s, address, address + bytes.size()),
                on_demand_->leaders);
    on_demand_->reads_flags.clear();
    return;
  }
}

}  // namespace gpusim
