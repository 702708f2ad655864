// Exit statuses that are gpusim's own; docs/cli.md lists them.
#pragma once

namespace gpusim::host {

inline constexpr int kExitUserError = 2;     // an Error: one line says what is wrong
inline constexpr int kExitFindings = 66;     // --check found some, and all else was well
inline constexpr int kExitCheckpoint = 123;  // --checkpoint-stop
inline constexpr int kExitLimit = 124;       // --max-instructions reached
inline constexpr int kExitDeadlock = 125;    // every core that is left waits
inline constexpr int kExitInterrupted = 130;

}  // namespace gpusim::host
