#include "energy/power/meter.h"

#include <fmt/format.h>

#include <filesystem>

#include "device_sim/base/csv.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file.h"

namespace gpusim::power {
namespace {

constexpr size_t kRecordBytes = 18;
constexpr double kTicksPerSecond = 2933500;
constexpr double kVoltsPerStep = 0.007568, kAmperesPerStep = 0.0488;

}  // namespace

Trace parse_meter(const std::string& data, Seconds start, const std::string& origin) {
  if (data.size() < 2 * kRecordBytes)
    throw Error(fmt::format("{}: {} bytes: records of {} bytes of a meter are expected", origin,
                            data.size(), kRecordBytes));
  Trace trace;
  trace.source = origin;
  if (data.size() % kRecordBytes != 0) {
    trace.is_partial = true;
    trace.notes.push_back(
        fmt::format("{} bytes at the end are no whole record", data.size() % kRecordBytes));
  }
  const auto word = [&](size_t at) {
    return static_cast<unsigned>(static_cast<unsigned char>(data[at])) |
           static_cast<unsigned>(static_cast<unsigned char>(data[at + 1])) << 8;
  };
  uint64_t ticks = 0;
  unsigned last = word(0);
  for (size_t at = 0; at + kRecordBytes <= data.size(); at += kRecordBytes) {
    const unsigned now = word(at);
    ticks += (now - last) & 0xffff;
    last = now;
    Watts power;
    for (size_t rail = 0; rail < 4; ++rail) {
      const int volts = static_cast<int>(word(at + 2 + 4 * rail) >> 4);
      int amperes = static_cast<int>(word(at + 4 + 4 * rail) >> 4);
      if (amperes >= 2048) amperes -= 4096;
      power += Watts(volts * kVoltsPerStep * amperes * kAmperesPerStep);
    }
    trace.samples.push_back(
        {.time = start + Seconds(static_cast<double>(ticks) / kTicksPerSecond), .power = power});
  }
  return trace;
}

Trace read_trace_or_meter(const std::string& path, TimeOrder order) {
  std::filesystem::path data = path;
  std::error_code ignored;
  if (std::filesystem::is_directory(data, ignored)) data /= "PMD_data.bin";
  if (data.extension() != ".bin") return read_trace(path, order);
  const std::string start_file = (data.parent_path() / "PMD_start_ts.txt").string();
  const std::string text = read_text(start_file);
  const auto micros = parse_number(trim(text));
  if (!micros || !(*micros >= 0))
    throw Error(start_file + ": microseconds from the epoch are expected");
  return parse_meter(read_text(data.string()), Seconds(*micros * 1e-6), data.string());
}

}  // namespace gpusim::power
