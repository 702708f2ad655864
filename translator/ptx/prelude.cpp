#include "translator/ptx/prelude.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "device_sim/base/error.h"

namespace gpusim::ptx {
namespace {

constexpr std::string_view kHead = R"(
.version 8.0
.target sm_90
.address_size 64
)";

// Changes a barrier's word (rows_async.cpp): arrivals come, the next phases wait for fewer, bytes
// are to come, or came. A phase in which nothing is to come any more ends.
constexpr std::string_view kChangeBarrier = R"(
AGAIN:
  ld.volatile.b64 %old, [%at];
  and.b64 %parity, %old, 0x8000000000000000;
  add.u64 %new, %old, %more;
  and.b64 %new, %new, 0x7fffffffffffffff;
  and.b64 %n, %new, 0x7fffff00000fffff;
  setp.eq.u64 %ends, %n, 0;
  shr.u64 %next, %new, 20;
  or.b64 %next, %next, %new;
  selp.b64 %new, %next, %new, %ends;
  selp.b64 %next, 0x8000000000000000, 0, %ends;
  xor.b64 %parity, %parity, %next;
  or.b64 %new, %new, %parity;
  atom.cas.b64 %seen, [%at], %old, %new;
  setp.ne.u64 %again, %seen, %old;
  @%again bra AGAIN;
)";
std::string barrier_text() {
  return fmt::format("{}{}{}", R"(
.func (.param .b64 old) barrier_change(.param .b64 barrier, .param .b64 arrivals,
                                       .param .b64 fewer, .param .b64 bytes,
                                       .param .b64 came)
{
  .reg .b64 %at, %old, %new, %seen, %parity, %next, %n, %less, %more;
  .reg .pred %ends, %again;
  ld.param.b64 %at, [barrier];
  ld.param.b64 %n, [arrivals];
  ld.param.b64 %less, [fewer];
  ld.param.b64 %more, [bytes];
  ld.param.b64 %seen, [came];
  sub.u64 %more, %more, %seen;
  shl.b64 %less, %less, 20;
  shl.b64 %more, %more, 40;
  sub.u64 %more, %more, %less;
  sub.u64 %more, %more, %n;)",
                     kChangeBarrier, R"(
  st.param.b64 [old], %old;
  ret;
}
)");
}

// Copies in bulk: %rest bytes, a multiple of 16, from %from to %to. What is no such copy is the
// host's to tell.
constexpr std::string_view kCheckBulk = R"(
  or.b64 %a, %to, %from;
  or.b64 %a, %a, %rest;
  and.b64 %a, %a, 15;
  setp.eq.u64 %is_fine, %a, 0;
  @%is_fine bra FINE;
  call __gpusim_bulk_misaligned, ();
FINE:
)";
constexpr std::string_view kCopyBulk = R"(
LONG:
  setp.lt.u64 %ends, %rest, 64;
  @%ends bra SHORT;
  ld.v2.b64 {%a, %b}, [%from];
  st.v2.b64 [%to], {%a, %b};
  ld.v2.b64 {%a, %b}, [%from+16];
  st.v2.b64 [%to+16], {%a, %b};
  ld.v2.b64 {%a, %b}, [%from+32];
  st.v2.b64 [%to+32], {%a, %b};
  ld.v2.b64 {%a, %b}, [%from+48];
  st.v2.b64 [%to+48], {%a, %b};
  add.u64 %from, %from, 64;
  add.u64 %to, %to, 64;
  sub.u64 %rest, %rest, 64;
  bra LONG;
SHORT:
  setp.eq.u64 %ends, %rest, 0;
  @%ends bra COPIED;
  ld.v2.b64 {%a, %b}, [%from];
  st.v2.b64 [%to], {%a, %b};
  add.u64 %from, %from, 16;
  add.u64 %to, %to, 16;
  sub.u64 %rest, %rest, 16;
  bra SHORT;
COPIED:
)";
std::string copy_text() {
  return fmt::format("{0}{1}{2}{3}{1}{2}{4}{5}{6}", R"(
.func bulk_copy(.param .b64 to, .param .b64 from, .param .b64 bytes)
{
  .reg .b64 %to, %from, %rest, %a, %b;
  .reg .pred %ends, %is_fine;
  ld.param.b64 %to, [to];
  ld.param.b64 %from, [from];
  ld.param.b64 %rest, [bytes];
)",
                     kCheckBulk, kCopyBulk, R"(
  ret;
}

// The same to each block of the cluster whose bit is set, each with a barrier of its own.
.func bulk_multicast(.param .b64 to, .param .b64 from, .param .b64 bytes, .param .b64 barrier,
                     .param .b64 mask)
{
  .reg .b64 %to, %from, %rest, %a, %b, %mask, %base;
  .reg .b64 %at, %old, %new, %seen, %parity, %next, %n, %more;
  .reg .b32 %rank;
  .reg .pred %ends, %is_fine, %again;
  ld.param.b64 %mask, [mask];
  and.b64 %mask, %mask, 0xffff;
NEXT:
  setp.eq.u64 %ends, %mask, 0;
  @%ends bra DONE;
  sub.u64 %a, %mask, 1;
  xor.b64 %base, %a, %mask;
  and.b64 %mask, %mask, %a;
  popc.b64 %rank, %base;
  sub.u32 %rank, %rank, 1;
  ld.param.b64 %to, [to];
  mapa.u64 %to, %to, %rank;
  ld.param.b64 %from, [from];
  ld.param.b64 %rest, [bytes];
)",
                     R"(
  ld.param.b64 %at, [barrier];
  mapa.u64 %at, %at, %rank;
  ld.param.b64 %more, [bytes];
  shl.b64 %more, %more, 40;
  neg.s64 %more, %more;
)",
                     kChangeBarrier, R"(
  bra NEXT;
DONE:
  ret;
}
)");
}

// Reductions in bulk: the name of a function has the operation and the type, as in "add_noftz_f16".
std::string reduction_text() {
  struct Kind {
    const char *name, *operation, *type, *holds;
    int bytes;
  };
  static constexpr Kind kAll[] = {
      {"and_b32", "and.b32", "b32", "b32", 4},
      {"or_b32", "or.b32", "b32", "b32", 4},
      {"xor_b32", "xor.b32", "b32", "b32", 4},
      {"and_b64", "and.b64", "b64", "b64", 8},
      {"or_b64", "or.b64", "b64", "b64", 8},
      {"xor_b64", "xor.b64", "b64", "b64", 8},
      {"add_u32", "add.u32", "u32", "u32", 4},
      {"add_s32", "add.s32", "s32", "s32", 4},
      {"add_u64", "add.u64", "u64", "u64", 8},
      {"inc_u32", "inc.u32", "u32", "u32", 4},
      {"dec_u32", "dec.u32", "u32", "u32", 4},
      {"min_u32", "min.u32", "u32", "u32", 4},
      {"max_u32", "max.u32", "u32", "u32", 4},
      {"min_s32", "min.s32", "s32", "s32", 4},
      {"max_s32", "max.s32", "s32", "s32", 4},
      {"min_u64", "min.u64", "u64", "u64", 8},
      {"max_u64", "max.u64", "u64", "u64", 8},
      {"min_s64", "min.s64", "s64", "s64", 8},
      {"max_s64", "max.s64", "s64", "s64", 8},
      {"add_f32", "add.f32", "f32", "f32", 4},
      {"add_f64", "add.f64", "f64", "f64", 8},
      {"add_noftz_f16", "add.noftz.f16", "b16", "b16", 2},
      {"add_noftz_bf16", "add.noftz.bf16", "b16", "b16", 2},
  };
  std::string text;
  const auto function = [&](const std::string& name, const std::string& type, int bytes,
                            const std::string& step) {
    text += fmt::format(R"(
.func bulk_{0}(.param .b64 to, .param .b64 from, .param .b64 bytes)
{{
  .reg .b64 %to, %from, %rest, %a;
  .reg .{1} %x, %old, %new, %seen;
  .reg .pred %ends, %is_fine, %again;
  ld.param.b64 %to, [to];
  ld.param.b64 %from, [from];
  ld.param.b64 %rest, [bytes];
{2}
NEXT:
  setp.eq.u64 %ends, %rest, 0;
  @%ends bra DONE;
  ld.{1} %x, [%from];
{3}
  add.u64 %from, %from, {4};
  add.u64 %to, %to, {4};
  sub.u64 %rest, %rest, {4};
  bra NEXT;
DONE:
  ret;
}}
)",
                        name, type, kCheckBulk, step, bytes);
  };
  for (const Kind& k : kAll)
    function(k.name, k.type, k.bytes,
             fmt::format("  red.{}{} [%to], %x;", k.bytes == 2 || k.type[0] == 'f' ? "global." : "",
                         k.operation));
  for (const char* op : {"min", "max"})
    for (const char* type : {"f16", "bf16"})
      function(fmt::format("{}_{}", op, type), "b16", 2,
               fmt::format(R"(
  ld.volatile.b16 %old, [%to];
AGAIN:
  {}.{} %new, %old, %x;
  atom.cas.b16 %seen, [%to], %old, %new;
  setp.ne.b16 %again, %seen, %old;
  mov.b16 %old, %seen;
  @%again bra AGAIN;)",
                           op, type));
  return text;
}

// What a graph's conditional node looks at; the handle is its address.
constexpr std::string_view kSetCondition = R"(
.func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)
{
  .reg .b64 %at;
  .reg .b32 %value;
  ld.param.b64 %at, [handle];
  ld.param.b32 %value, [value];
  st.volatile.b32 [%at], %value;
  ret;
}
)";

}  // namespace

const Function& prelude_function(std::string_view name) {
  static const Unit barriers = parse(std::string(kHead) + barrier_text(), "prelude");
  const auto function_in = [&](const Unit& unit) -> const Function& {
    const auto found = std::find_if(unit.functions.begin(), unit.functions.end(),
                                    [&](const Function& f) { return f.name == name; });
    if (found == unit.functions.end()) throw Error("no such function of the prelude");
    return *found;
  };
  if (name.starts_with("barrier")) return function_in(barriers);
  if (name.starts_with("cuda")) {
    static const Unit conditions =
        parse(std::string(kHead) + std::string(kSetCondition), "prelude");
    return function_in(conditions);
  }
  // Few programs copy in bulk.
  static const Unit bulk = parse(std::string(kHead) + copy_text() + reduction_text(), "prelude");
  return function_in(bulk);
}

}  // namespace gpusim::ptx
