// Chrome's trace events as JSON, which Perfetto and chrome://tracing open.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace gpusim {

class TraceEvents {
 public:
  using Json = nlohmann::ordered_json;
  // `about`: the program, what time means, and the like.
  explicit TraceEvents(const Json& about);
  void add(const Json& event);
  void name_process(int process, const std::string& name);
  // Tracks are shown in the order of `place`.
  void name_track(int process, size_t track, const std::string& name, size_t place);
  void counter(int process, const std::string& name, double microseconds, Json args);
  // The whole file; nothing can be added afterwards.
  std::string finish();

 private:
  std::string text_;
  bool is_first_ = true;
};

}  // namespace gpusim
