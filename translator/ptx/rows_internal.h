// Rows that no text has: what instructions become when functions are put in their callers' place.
#pragma once
#include "translator/ptx/rows.h"

namespace gpusim::ptx {

// ld.param and st.param whose address is a register that stands for the parameter.
extern const Row kLoadParamRegister, kStoreParamRegister;
// call: nothing is left to do; the functions of the run-time that the host does: vprintf and
// __assertfail, with what they take and give as operands.
extern const Row kCallInPlace, kCallHost;

}  // namespace gpusim::ptx
