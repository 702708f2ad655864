#include "translator/ptx/prelude.h"

#include <algorithm>

#include "device_sim/base/error.h"

namespace gpusim::ptx {
namespace {

constexpr std::string_view kText = R"(
.version 8.0
.target sm_80
.address_size 64

// Changes a barrier's word (rows_async.cpp): arrivals come, the next phases wait for fewer, bytes
// are to come, or came. A phase in which nothing is to come any more ends.
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
  sub.u64 %more, %more, %n;
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
  st.param.b64 [old], %old;
  ret;
}
)";

}  // namespace

const Function& prelude_function(std::string_view name) {
  static const Unit unit = parse(kText, "prelude");
  const auto found = std::find_if(unit.functions.begin(), unit.functions.end(),
                                  [&](const Function& f) { return f.name == name; });
  if (found == unit.functions.end()) throw Error("no such function of the prelude");
  return *found;
}

}  // namespace gpusim::ptx
