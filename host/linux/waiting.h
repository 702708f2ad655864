// What calls have in common that wait for files: a timeout, and a signal mask for the time of the call.
#pragma once
#include "host/linux/kernel.h"

namespace gpusim::host {

// When the call's time is over, from a duration in guest memory; none at address 0. It counts from the
// first attempt. 0 or an error number.
int take_timeout(Thread& thread, const Call& call, uint64_t address);
bool is_over(const Thread& thread);
// For the time of the call another mask holds; false: a bad address.
bool take_mask(Thread& thread, const Call& call, uint64_t address);
// The end of an attempt that found nothing: 0 when the time is over, EINTR for a signal that the
// call's mask lets in, else another attempt later.
Reply wait_or_time_out(Kernel& kernel, const Call& call, bool from_outside);

}  // namespace gpusim::host
