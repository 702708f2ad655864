// An error of the user's making or of the machine's: one clear line, exit status 2.
#pragma once
#include "translator/common/error.h"

namespace gpusim::host {

using UserError = gpusim::Error;

// Exit statuses that are gpusim's own; docs/cli.md lists them.
inline constexpr int kExitUserError = 2;
inline constexpr int kExitCheckpoint = 123;  // --checkpoint-stop
inline constexpr int kExitLimit = 124;     // --max-instructions reached
inline constexpr int kExitDeadlock = 125;  // every core that is left waits
inline constexpr int kExitInterrupted = 130;

}  // namespace gpusim::host
