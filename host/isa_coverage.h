// The file that --isa-coverage names.
#pragma once
#include <span>

#include "device_sim/core/backend.h"
#include "host/output_file.h"
#include "host/run/stop_record.h"

namespace gpusim::host {

/// Appends the rows that the run executed, those at which cores stopped included.
void write_isa_coverage(const OutputFile& file, const Module& module, Backend& backend,
                        std::span<const StopRecord> stops);

}  // namespace gpusim::host
