#include "translator/ptx/program.h"

#include <fmt/format.h>

#include <set>

#include "device_sim/base/error.h"

namespace gpusim::ptx {
namespace {

using Names = std::map<std::string, std::string, std::less<>>;

void rename(std::string& name, const Names& names) {
  const auto found = names.find(name);
  if (found != names.end()) name = found->second;
}
void rename(Operand& o, const Names& names) {
  if (o.is(Operand::Kind::kSymbol)) rename(o.symbol, names);
  for (Operand& e : o.elements) rename(e, names);
}

class UnitLinker {
 public:
  Program run(std::vector<Unit> units) {
    program_.units = std::move(units);
    for (size_t k = 0; k < program_.units.size(); ++k) separate(program_.units[k], k);
    for (Unit& u : program_.units) {
      for (const Variable& v : u.variables) add(v, u);
      for (const Function& f : u.functions) add(f, u);
    }
    find_addressed();
    return std::move(program_);
  }

 private:
  void find_addressed() {
    std::set<std::string> names;
    const auto look = [&](const std::string& name) {
      if (program_.functions.contains(name)) names.insert(name);
    };
    for (const Variable& v : program_.variables)
      for (const AddressPart& a : v.addresses) look(a.symbol);
    for (const Unit& u : program_.units)
      for (const Function& f : u.functions)
        for (const Instruction& i : f.body)
          for (const Operand& o : i.operands)
            if (i.base != "call" && o.is(Operand::Kind::kSymbol)) look(o.symbol);
    program_.addressed.assign(names.begin(), names.end());
  }

  // Names of the unit's own get its number where another unit has them, too.
  void separate(Unit& unit, size_t number) {
    Names names;
    const auto look = [&](const std::string& name, Linkage linkage) {
      const bool is_own = linkage == Linkage::kLocal;
      const auto [it, is_new] = owners_.try_emplace(name, number);
      if (is_own && (!is_new && it->second != number))
        names[name] = fmt::format("{}#unit{}", name, number);
    };
    for (const Variable& v : unit.variables) look(v.name, v.linkage);
    for (const Function& f : unit.functions)
      if (!f.is_entry) look(f.name, f.linkage);
    if (names.empty()) return;
    for (Variable& v : unit.variables) {
      rename(v.name, names);
      for (AddressPart& a : v.addresses) rename(a.symbol, names);
    }
    for (Function& f : unit.functions) {
      if (!f.is_entry) rename(f.name, names);
      for (Instruction& i : f.body)
        for (Operand& o : i.operands) rename(o, names);
    }
  }

  [[noreturn]] static void twice(const std::string& name, const std::string& a,
                                 const std::string& b) {
    throw Error(fmt::format("'{}' is defined twice: in {} and in {}", name, a, b));
  }

  // Whether a definition counts, `before` being the one that there is.
  struct Definition {
    Linkage linkage;
    const Unit* unit;
    size_t index;
  };

  void add(const Variable& v, const Unit& unit) {
    if (v.linkage == Linkage::kExtern && !v.is_unsized) return;
    std::vector<Variable>& list = v.space == Space::kShared ? program_.shared : program_.variables;
    const auto [it, is_new] =
        variables_.try_emplace(v.name, Definition{v.linkage, &unit, list.size()});
    if (is_new) {
      list.push_back(v);
      return;
    }
    if (v.linkage == Linkage::kExtern) return;  // dynamic shared memory, declared again
    const bool is_strong = v.linkage == Linkage::kVisible || v.linkage == Linkage::kLocal;
    const bool was_strong =
        it->second.linkage == Linkage::kVisible || it->second.linkage == Linkage::kLocal;
    if (is_strong && was_strong) twice(v.name, it->second.unit->origin, unit.origin);
    if (!is_strong) return;
    it->second.linkage = v.linkage;
    it->second.unit = &unit;
    list[it->second.index] = v;
  }

  void add(const Function& f, const Unit& unit) {
    if (!f.has_body) return;
    const auto [it, is_new] =
        definitions_.try_emplace(f.name, Definition{f.linkage, &unit, program_.kernels.size()});
    if (!is_new) {
      if (f.linkage == Linkage::kWeak) return;
      if (it->second.linkage != Linkage::kWeak) twice(f.name, it->second.unit->origin, unit.origin);
      it->second = {f.linkage, &unit, it->second.index};
      if (f.is_entry) program_.kernels[it->second.index] = &f;
    } else if (f.is_entry) {
      program_.kernels.push_back(&f);
    }
    if (!f.is_entry) program_.functions[f.name] = &f;
  }

  Program program_;
  std::map<std::string, size_t> owners_;  // the first unit that has the name
  std::map<std::string, Definition> variables_, definitions_;
};

}  // namespace

Program link_units(std::vector<Unit> units) { return UnitLinker().run(std::move(units)); }

}  // namespace gpusim::ptx
