// What spellings of PTX count as, and the rows of Table I that price them.
#include "energy/ptx_opcodes.h"

#include <doctest/doctest.h>

#include "energy/activity.h"
#include "energy/model.h"
#include "energy/target.h"
#include "helpers.h"

namespace gpusim::energy {
namespace {

TEST_CASE("classes of spellings") {
  using enum InsnClass;
  struct Row {
    const char* spelling;
    InsnClass ours, thesis;
  };
  const Row rows[] = {
      {"mov.u32", kIntegerLogical, kIntegerArithmetic},
      {"mov.f64", kIntegerLogical, kDoubleArithmetic},
      {"cvt.s64.s32", kIntegerLogical, kIntegerArithmetic},
      {"cvt.rn.f32.s32", kFloatArithmetic, kFloatArithmetic},
      {"cvt.rzi.s32.f64", kIntegerArithmetic, kIntegerArithmetic},
      {"fma.rn.f32", kFloatArithmetic, kFloatArithmetic},
      {"mul.wide.s32", kIntegerArithmetic, kIntegerArithmetic},
      {"add.rn.f64", kDoubleArithmetic, kDoubleArithmetic},
      {"rem.u32", kIntegerDivision, kIntegerDivision},
      {"div.rn.f64", kDoubleDivision, kDoubleDivision},
      {"setp.ge.s32", kIntegerComparison, kIntegerComparison},
      {"set.lt.u32.f32", kFloatComparison, kFloatComparison},
      {"ld.shared.v4.f32", kOnChipMemory, kOnChipMemory},
      {"ld.param.u64", kOnChipMemory, kOnChipMemory},
      {"ld.global.nc.f32", kOffChipMemory, kOffChipMemory},
      {"st.volatile.shared::cta.u32", kOnChipMemory, kOnChipMemory},
      {"ld.u8", kOffChipMemory, kOffChipMemory},
      {"tex.2d.v4.f32.f32", kOffChipMemory, kOffChipMemory},
      {"txq.width.b32", kOffChipMemory, kOffChipMemory},
      {"suld.b.2d.b32.trap", kOffChipMemory, kOffChipMemory},
      {"sured.b.add.1d.u32.trap", kParallelism, kParallelism},
      {"bar.sync", kParallelism, kParallelism},
      {"shfl.sync.bfly.b32", kParallelism, kParallelism},
      {"ex2.approx.ftz.f32", kSpecialFunction, kSpecialFunction},
      {"bra.uni", kControlFlow, kControlFlow},
      {"cvta.to.global.u64", kOther, kOther},
      {"unheard.of.u32", kOther, kOther},
  };
  for (const Row& r : rows) {
    CAPTURE(r.spelling);
    CHECK(ptx_class(r.spelling) == r.ours);
    CHECK(ptx_class(r.spelling, PtxClasses::kThesis) == r.thesis);
  }
}

TEST_CASE("rows of spellings are rows of the targets") {
  const std::pair<const char*, const char*> rows[] = {
      {"add.s32", "int_add"},
      {"min.u64", "int_add"},
      {"mad.lo.s32", "int_mul"},
      {"div.s32", "int_div_signed"},
      {"rem.u64", "int_rem_unsigned"},
      {"abs.s32", "int_abs"},
      {"xor.b32", "logic"},
      {"shl.b32", "shift"},
      {"add.cc.u32", "multi_add"},
      {"subc.u32", "multi_subc"},
      {"madc.hi.u32", "multi_mad"},
      {"sub.f32", "fp32_add"},
      {"fma.rn.f32", "fp32_mul"},
      {"div.rn.f32", "fp32_div"},
      {"add.f64", "fp64_add"},
      {"mul.f16", "fp16"},
      {"sqrt.rn.f32", "sqrt"},
      {"sqrt.approx.f32", "sqrt_approx"},
      {"cos.approx.f32", "sin_cos"},
      {"mad24.lo.s32", "mul24"},
      {"popc.b64", "popc"},
      {"fma.rn.f64", ""},
      {"ld.global.u32", ""},
      {"mov.u32", ""},
  };
  const Target volta = find_targets("ptx-volta").front();
  for (const auto& [spelling, row] : rows) {
    CAPTURE(spelling);
    CHECK(ptx_row(spelling) == row);
    if (*row != '\0') CHECK(volta.ptx_rows.contains(row));
  }
  CHECK(find_targets("fermi").front().ptx_rows.empty());
}

TEST_CASE("statistics of kernels") {
  const char* const text = R"({"kernels": [
      {"name": "a", "launches": 2, "threads": 64, "instructions": 5,
       "opcodes": {"fma.rn.f32": 3, "mov.u32": 2}},
      {"name": "b", "launches": 1, "threads": 96, "instructions": 4,
       "opcodes": {"ld.global.u32": 4}}]})";
  const Activity a = parse_stats(text, "s");
  CHECK(a.instructions() == 9);
  CHECK(a.cores == 96);
  REQUIRE(a.functions.size() == 2);
  CHECK(a.functions[1].name == "b");
  CHECK(a.classes[static_cast<size_t>(InsnClass::kIntegerLogical)] == 2);
  const Activity thesis = parse_stats(text, "s", PtxClasses::kThesis);
  CHECK(thesis.classes[static_cast<size_t>(InsnClass::kIntegerArithmetic)] == 2);
  const Target volta = find_targets("ptx-volta").front();
  const Estimate e = estimate(volta, a, {});
  // fma by its row; moves and loads by their classes.
  const Joules expected = volta.ptx_rows.at("fp32_mul").value * 3 +
                          volta.cost(InsnClass::kIntegerLogical).energy.value * 2 +
                          volta.cost(InsnClass::kOffChipMemory).energy.value * 4;
  CHECK(e.dynamic.value.value() == doctest::Approx(expected.value()));
  REQUIRE(e.rows.size() == 2);
  CHECK(e.rows[0].instructions + e.rows[1].instructions == 9);
  CHECK(mentions(message_of([] {
                   parse_stats(
                       R"({"kernels": [{"name": "a", "instructions": 2, "opcodes": {"ret": 3}}]})",
                       "s");
                 }),
                 "opcodes add up to 3"));
  CHECK(mentions(message_of([] { parse_stats(R"({"kernels": []})", "s"); }), "empty"));
  CHECK(mentions(message_of([] { parse_stats(R"({"classes": {}})", "s", PtxClasses::kThesis); }),
                 "no \"kernels\""));
}

}  // namespace
}  // namespace gpusim::energy
