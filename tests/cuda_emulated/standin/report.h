// What the emulation found. A report becomes the text of a CUDA error that stays.
#pragma once
#include <cstdint>
#include <string>

namespace cuda_emulated {

// Status of a process that ends after a report, whatever its own was.
inline constexpr int kReportedStatus = 99;

// Prints the sentence, with the seed that replays it, and makes the error of `code` stay.
void report(int code, const std::string& sentence);
int sticky_error();
const char* sticky_text();
// For tests of the stand-in, which expect a report.
void forget_reports();
// An error that stays until cudaDeviceReset(), because the environment asked for it: no report.
void lose_device(int code);
bool is_lost();

// What the environment says, or `otherwise`.
uint64_t setting(const char* name, uint64_t otherwise);

}  // namespace cuda_emulated
