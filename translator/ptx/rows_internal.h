// Rows that no text has: what instructions become when functions are put in their callers' place.
#pragma once
#include "translator/ptx/rows.h"

namespace gpusim::ptx {

// ld.param and st.param whose address is a register that stands for the parameter.
extern const Row kLoadParamRegister, kStoreParamRegister;
// Accesses to spilled registers (spill.h).
extern const Row kLoadSpilled, kStoreSpilled;
// Parts of st.async and red.async.
extern const Row kStoreNow, kReduceNow;
// What stands for an instruction that others do: of its class.
extern const Row kMemoryInPlace, kParallelInPlace, kOtherInPlace;
// The generic address that an operand names.
extern const Row kAddressOf;
// call: nothing is left to do (of brx.idx likewise); the functions of the run-time that the host
// does (HostCall), with what they take as operands, and where their result goes.
extern const Row kCallInPlace, kCallHost, kHostResult;
// A function of the runtime on the device (device_call.h): its number, the pieces of its arguments.
extern const Row kCallDevice;
// A copy of a tensor's box: a TensorOp (tensor_op.h), then the words that the host reads.
extern const Row kCallTensor;
// Calls that stay calls (frames.h). Operands: see rows_calls.cpp.
// A product of matrices: what the warp hands over, and what it gets.
extern const Row kMatrixProduct, kMatrixResult;
extern const Row kWarpgroupProduct, kWarpgroupResult;
extern const Row kBranchIfBelow;  // label, register, number: a part of brx.idx
extern const Row kSetStackAbove;  // instead of kSetStack, where the kernel has alloca
// Parts of alloca, and of returns of functions that have it (rows_stack.cpp).
extern const Row kStackRoom, kSetStackTop, kSaveStackTop;
extern const Row kSetStack, kFrameAddress, kClearRegisters, kCallOut, kAfterCall, kReturn;

}  // namespace gpusim::ptx
