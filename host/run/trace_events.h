// Chrome's trace events, which Perfetto and chrome://tracing open.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace gpusim::host {

class TraceEvents {
 public:
  using Json = nlohmann::ordered_json;

  // `about`: what the file says of itself.
  explicit TraceEvents(const Json& about) {
    out_ = "{\"displayTimeUnit\":\"ns\",\n\"otherData\":" + text(about) + ",\n\"traceEvents\":[\n";
  }

  void add(const Json& event) {
    if (!is_first_) out_ += ",\n";
    is_first_ = false;
    out_ += text(event);
  }
  // `what`: "process_name" or "thread_name".
  void name(const char* what, int pid, size_t tid, const std::string& name) {
    add({{"ph", "M"}, {"pid", pid}, {"tid", tid}, {"name", what}, {"args", {{"name", name}}}});
  }
  void sort_thread(int pid, size_t tid, size_t index) {
    add({{"ph", "M"},
         {"pid", pid},
         {"tid", tid},
         {"name", "thread_sort_index"},
         {"args", {{"sort_index", index}}}});
  }
  void counter(int pid, const std::string& name, double microseconds, Json args) {
    add({{"ph", "C"},
         {"pid", pid},
         {"name", name},
         {"ts", microseconds},
         {"args", std::move(args)}});
  }
  // The whole file. Nothing may be added any more.
  std::string finish() {
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  static std::string text(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  std::string out_;
  bool is_first_ = true;
};

}  // namespace gpusim::host
