// What the parser takes, and what it says of what it does not take.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "device_sim/base/error.h"
#include "host/ptx/engine.h"
#include "translator/ptx/program.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/unit.h"

using namespace gpusim;
using namespace gpusim::ptx;

namespace {

const std::string kHead = ".version 9.0\n.target sm_80\n.address_size 64\n";

std::string trouble_of_body(const std::string& body) {
  const Unit unit = parse(kHead +
                              ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<9>;\n"
                              ".reg .f32 %f<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n" +
                              body + "\nret;\n}\n",
                          "t.ptx");
  return unit.functions.at(0).trouble;
}

std::string error_of(const std::string& text) {
  try {
    parse(text, "t.ptx");
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("numbers of registers may have zeros before them, where a range declares them") {
  CHECK(trouble_of_body(".reg .b32 %a1<12>, %b5;\nadd.s32 %r01, %r0002, %a1011;\n"
                        "add.s32 %a100, %a1011, %b5;\n@%p00 st.global.u32 [%rd001], %a10;") == "");
  for (const char* name : {"%r09", "%b05", "%r0x1", "%0", "%a1012"})
    CHECK(trouble_of_body(fmt::format(".reg .b32 %a1<12>, %b5;\nmov.b32 %r1, {};", name))
              .find(" is neither a declared register") != std::string::npos);
}

TEST_CASE("modifiers may stand in any order") {
  CHECK(trouble_of_body("add.ftz.rn.f32 %f1, %f2, %f3;\nadd.f32.rn %f1, %f2, %f3;\n"
                        "ld.f32.global %f1, [%rd1];\nsetp.s32.lt %p1, %r1, %r2;") == "");
}

TEST_CASE("numbers may have any signs in front, as for ptxas") {
  CHECK(trouble_of_body("mov.u32 %r1, +5;\nmov.u32 %r1, - -5;\nmov.u32 %r1, +-5;\n"
                        "ld.global.u32 %r1, [%rd1+ +36];") == "");
}

TEST_CASE("what an instruction does not allow is said with its place and what it allows") {
  const std::string text = trouble_of_body("\nadd.rn.s32 %r1, %r2, %r3;");
  CHECK(text.find("t.ptx:10: 'add.rn.s32'") == 0);
  CHECK(text.find("(.rn)") != std::string::npos);
  CHECK(text.find("add {sat} .s32") != std::string::npos);
  CHECK(trouble_of_body("add.s32 %r1, %r2, %f1;").find("operands of 'add.s32' do not fit") !=
        std::string::npos);
  CHECK(trouble_of_body("frobnicate.b32 %r1, %r2;").find("'frobnicate' is not supported") !=
        std::string::npos);
  CHECK(trouble_of_body("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];") == "");
  CHECK(trouble_of_body("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1}];")
            .find("operands of 'tex.2d.v4.f32.f32' do not fit") != std::string::npos);
  CHECK(trouble_of_body("txd.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];")
            .find("'txd' is not supported") != std::string::npos);
  CHECK(trouble_of_body("wmma.mma.sync.aligned {%r1, %r2}, [%rd1];") != "");
}

TEST_CASE("types of operands agree as ptxas wants it") {
  CHECK(trouble_of_body("add.f32 %r1, %f2, %f3;") == "");
  CHECK(trouble_of_body("add.f32 %f1, %f2, 1.0;") == "");
  CHECK(trouble_of_body("mov.b32 %r1, 0f3F800000;") == "");
  CHECK(trouble_of_body("mov.pred %p1, 0;\nmov.pred %p1, -1;") == "");
  for (const char* wrong :
       {"add.s32 %f1, %r2, %r3;", "add.f32 %f1, %f2, 1;", "mov.u32 %r1, %f1;", "mov.f32 %f1, 1;",
        "shl.b32 %r1, %r2, %rd1;", "ld.global.f32 %f1, [%r1];", "popc.b64 %rd2, %rd1;",
        "setp.lt.b32 %p1, %r1, %r2;", "add.s32 %r1, %tid.x, %r2;", "mov.u64 %rd1, %tid.x;",
        "mul.s32 %r1, %r2, %r3;", "div.f32 %f1, %f2, %f3;", "neg.u32 %r1, %r2;"}) {
    CAPTURE(wrong);
    CHECK(trouble_of_body(wrong) != "");
  }
}

TEST_CASE("names of an inner scope hide those of an outer one") {
  const Unit unit = parse(kHead +
                              ".visible .entry k() {\n.reg .b32 %r;\nmov.b32 %r, 1;\n"
                              "{\n.reg .b64 %r;\nL: mov.b64 %r, 2;\nbra L;\n}\n"
                              "{\nL: bra L;\n}\nL: mov.b32 %r, 3;\nbra L;\nret;\n}\n",
                          "t.ptx");
  const Function& f = unit.functions.at(0);
  CHECK(f.trouble == "");
  CHECK(f.body.at(1).operands.at(0).reg != f.body.at(0).operands.at(0).reg);
  CHECK(f.body.at(4).operands.at(0).reg == f.body.at(0).operands.at(0).reg);
  CHECK(f.labels.size() == 3);
}

TEST_CASE("variables, initialisers and directives") {
  const Unit unit = parse(
      kHead +
          ".file 1 \"a.cu\"\n.global .align 4 .u32 a[3] = {1, 2};\n"
          ".const .align 8 .b8 c[16] = {1, 255};\n.global .align 8 .u64 p[2] = {generic(a), a+4};\n"
          ".visible .global .f32 x = 0f3F800000;\n.extern .shared .align 16 .b8 dyn[];\n"
          ".visible .entry k(.param .align 8 .b8 s[24]) .maxntid 64, 2, 1 .minnctapersm 2\n"
          "{\n.pragma \"nounroll\";\n.loc 1 7 3, function_name $L, inlined_at 1 9 2\nret;\n}\n"
          ".section .debug_str\n{\n$L:\n.b8 97,0\n}\n",
      "t.ptx");
  REQUIRE(unit.variables.size() == 5);
  CHECK(unit.variables[0].size == 12);
  CHECK(unit.variables[0].bytes == std::vector<uint8_t>{1, 0, 0, 0, 2, 0, 0, 0});
  CHECK(unit.variables[2].addresses.at(1).addend == 4);
  CHECK(unit.variables[4].is_unsized);
  CHECK(unit.functions.at(0).max_threads[1] == 2);
  CHECK(unit.functions.at(0).params.at(0).size == 24);
  CHECK(unit.functions.at(0).body.at(0).location.line == 7);
  CHECK(unit.files.at(1) == "a.cu");
}

TEST_CASE("lines of textures are those of the calls of CUDA's functions for them") {
  const Unit unit =
      parse(kHead +
                ".visible .entry k(.param .u64 t)\n{\n.reg .b64 %rd<2>;\n.reg .f32 %f<6>;\n"
                "ld.param.u64 %rd1, [t];\n"
                ".loc 1 5 1, function_name $L, inlined_at 3 20 1\n"
                ".loc 2 122 3, function_name $L, inlined_at 1 5 1\n"
                ".loc 2 115 4, function_name $L, inlined_at 2 122 3\n"
                "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}];\n"
                ".loc 1 6 1\nret;\n}\n"
                ".file 1 \"a.cu\"\n.file 2 \"x/texture_indirect_functions.h\"\n.file 3 \"b.cu\"\n",
            "t.ptx");
  CHECK(unit.functions.at(0).body.at(1).location.file == 1);
  CHECK(unit.functions.at(0).body.at(1).location.line == 5);
  CHECK(unit.functions.at(0).body.at(2).location.line == 6);
}

TEST_CASE("variables of textures do not keep other kernels from running") {
  const Unit unit = parse(kHead +
                              ".global .texref t;\n.global .surfref s[2];\n"
                              ".visible .entry k()\n{\nret;\n}\n",
                          "t.ptx");
  CHECK(unit.variables.at(0).size == 8);
  CHECK(unit.functions.at(0).trouble == "");
}

TEST_CASE("bad texts give one error with the line, whatever they are") {
  CHECK(error_of(kHead + "\n.entry k( {").find("t.ptx:5:") == 0);
  CHECK(error_of(kHead + ".global .u32 x = {1, 2;\n").find("t.ptx:4:") == 0);
  CHECK(error_of("\x01") != "");
  CHECK(error_of("/* no end") != "");
  CHECK(error_of(kHead + ".visible .entry k() {\nL:\nL:\nret;\n}").find("stands twice") !=
        std::string::npos);
  // Cut anywhere, a text is an error or less of a text, but never anything else.
  const std::string whole =
      kHead +
      ".const .b8 c[2] = {1, 2};\n.visible .entry k(.param .u64 p) {\n.reg .b64 %rd<3>;\n"
      ".reg .pred %q;\n{\n.reg .b32 %t;\nmov.b64 {%t, _}, %rd1;\n}\n@%q bra $L;\n"
      "ld.param.u64 %rd1, [p+0];\n$L:\nst.global.v2.f32 [%rd1+-8], {0f00000000, 1.5};\n"
      "ret;\n}\n";
  CHECK(error_of(whole) == "");
  for (size_t size = 0; size < whole.size(); ++size) {
    error_of(whole.substr(0, size));
    error_of(whole.substr(0, size) + whole.substr(std::min(size + 7, whole.size())));
  }
}

TEST_CASE("units are linked by their names") {
  const auto unit = [](const std::string& text) { return parse(kHead + text, "u"); };
  const std::string own = ".global .u32 mine = 1;\n.func f() { ret; }\n";
  std::vector<Unit> units;
  units.push_back(unit(own + ".extern .global .u32 shared;\n"));
  units.push_back(unit(own + ".visible .global .u32 shared = 7;\n.weak .global .u32 w = 1;\n"));
  units.push_back(unit(".weak .global .u32 w = 2;\n"));
  const Program p = link_units(std::move(units));
  CHECK(p.variables.size() == 4);
  CHECK(p.functions.size() == 2);
  std::vector<Unit> twice;
  for (int k = 0; k < 2; ++k) twice.push_back(unit(".visible .global .u32 shared = 7;\n"));
  CHECK_THROWS_WITH_AS(link_units(std::move(twice)), doctest::Contains("'shared' is defined twice"),
                       Error);
}

TEST_CASE("all rows of the table are well formed") {
  CHECK(all_rows().size() > 100);
  for (const Row* row : all_rows()) {
    CAPTURE(row->syntax);
    const std::string_view base =
        std::string_view(row->syntax).substr(0, std::string_view(row->syntax).find(' '));
    CHECK(is_known_opcode(base));
    const bool is_expanded = base == "call" || base == "brx" || base == "mbarrier" ||
                             base == "alloca" || base == "cp" || base == "mma" || base == "wmma" ||
                             base == "wgmma" ||
                             std::string_view(row->syntax).find("(async)") != std::string::npos;
    CHECK((row->emit != nullptr || is_expanded));
  }
}
