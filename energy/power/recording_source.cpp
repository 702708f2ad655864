// A recording as a source: every sample once, in virtual time.
#include "energy/power/sources.h"
#include "energy/power/trace.h"

namespace gpusim::power {
namespace {

class RecordingSource final : public PowerSource {
 public:
  explicit RecordingSource(const std::string& path)
      : name_("csv:" + path), trace_(read_trace(path)), now_(trace_.samples.front().time) {}

  std::string name() const override { return name_; }
  Seconds now() const override { return now_; }
  void sleep_until(Seconds time) override {
    if (time <= now_) return;
    now_ = time;
    while (next_ < trace_.samples.size() && trace_.samples[next_].time < time) ++next_;
  }
  bool is_virtual() const override { return true; }
  std::optional<Sample> poll() override {
    if (next_ == trace_.samples.size()) return std::nullopt;
    const Sample& s = trace_.samples[next_++];
    now_ = s.time;
    return s;
  }

 private:
  std::string name_;
  Trace trace_;
  size_t next_ = 0;
  Seconds now_;
};

}  // namespace

std::unique_ptr<PowerSource> open_recording(const std::string& path) {
  return std::make_unique<RecordingSource>(path);
}

}  // namespace gpusim::power
