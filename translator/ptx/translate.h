// A kernel's text to a module of micro-ops.
#pragma once
#include "translator/ptx/emitter.h"
#include "translator/ptx/inline.h"
#include "translator/ptx/kernel.h"
#include "translator/ptx/notes.h"

namespace gpusim::ptx {

/// `places`: of the module's variables in global and constant memory. `shared`: those of all of the
/// program's .shared variables that stand outside of functions. `notes`: of journals that its
/// threads write. Throws Error.
KernelCode translate_kernel(const Function& kernel, const Functions& functions,
                            const Places& places, const std::vector<Variable>& shared,
                            Notes notes = Notes::kNone);

}  // namespace gpusim::ptx
