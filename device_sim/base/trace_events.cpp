#include "device_sim/base/trace_events.h"

#include <utility>

namespace gpusim {
namespace {

std::string text_of(const TraceEvents::Json& json) {
  return json.dump(-1, ' ', false, TraceEvents::Json::error_handler_t::replace);
}

}  // namespace

TraceEvents::TraceEvents(const Json& about)
    : text_("{\"displayTimeUnit\":\"ns\",\n\"otherData\":" + text_of(about) +
            ",\n\"traceEvents\":[\n") {}

void TraceEvents::add(const Json& event) {
  if (!is_first_) text_ += ",\n";
  is_first_ = false;
  text_ += text_of(event);
}

void TraceEvents::name_process(int process, const std::string& name) {
  add({{"ph", "M"},
       {"pid", process},
       {"tid", 0},
       {"name", "process_name"},
       {"args", {{"name", name}}}});
}

void TraceEvents::name_track(int process, size_t track, const std::string& name, size_t place) {
  add({{"ph", "M"},
       {"pid", process},
       {"tid", track},
       {"name", "thread_name"},
       {"args", {{"name", name}}}});
  add({{"ph", "M"},
       {"pid", process},
       {"tid", track},
       {"name", "thread_sort_index"},
       {"args", {{"sort_index", place}}}});
}

void TraceEvents::counter(int process, const std::string& name, double microseconds, Json args) {
  add({{"ph", "C"},
       {"pid", process},
       {"name", name},
       {"ts", microseconds},
       {"args", std::move(args)}});
}

std::string TraceEvents::finish() {
  text_ += "\n]}\n";
  return std::move(text_);
}

}  // namespace gpusim
