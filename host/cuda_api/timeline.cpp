#include "host/cuda_api/timeline.h"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>

#include "host/cuda_api/launches.h"
#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {
namespace {

using Json = nlohmann::ordered_json;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json numbers(const Dim3& d) { return {d.x, d.y, d.z}; }

const char* type_name(NodeType type) {
  switch (type) {
    case NodeType::kKernel:
      return "kernel";
    case NodeType::kCopy:
      return "copy";
    case NodeType::kSet:
      return "set";
    case NodeType::kHost:
      return "host function";
    case NodeType::kRecordEvent:
      return "event";
    case NodeType::kAlloc:
      return "allocation";
    case NodeType::kFree:
      return "free";
    default:
      return "work";
  }
}

}  // namespace

struct Timeline::Thread {
  uint64_t number = 0;
  unsigned depth = 0;  // of calls within calls
  uint64_t call = 0;
  bool has_stream = false;
  uint64_t stream = 0, event = 0, other_event = 0;
  Polls polls;
  ~Thread() {
    if (polls.count != 0) runtime().timeline.add_polls(*this);
  }
};

Timeline::Thread& Timeline::thread() {
  thread_local Thread one;
  return one;
}

void Timeline::begin(const std::string& folder, int process, uint64_t most_bytes) {
  log_.begin(folder, process, most_bytes);
  if (!is_on()) return;
  log_.add(line({{"process", process}, {"program", ::program_invocation_short_name}}));
}

uint64_t Timeline::number_of(Thread& t) {
  if (t.number != 0) return t.number;
  t.number = ++threads_;
  const bool is_queue = runtime().queue.is_own_thread();
  log_.add(line({{"thread", t.number},
                 {"name", is_queue ? std::string("calls in host functions")
                                   : fmt::format("thread {} ({})", t.number, ::gettid())}}));
  return t.number;
}

Origin Timeline::origin(uint64_t stream) const {
  if (!is_on()) return {};
  return {.stream = stream, .call = thread().call, .submitted_ns = now_ns()};
}

void Timeline::note_stream(uint64_t stream) const {
  if (!is_on()) return;
  thread().has_stream = true;
  thread().stream = stream;
}

void Timeline::note_event(uint64_t event) const {
  if (!is_on()) return;
  Thread& t = thread();
  if (t.event == 0)
    t.event = event;
  else if (t.event != event)
    t.other_event = event;
}

uint64_t Timeline::begin_work(const Node& node, const Origin& origin) {
  if (!is_on() || log_.is_full() || (!node.call && !node.work)) return 0;
  const uint64_t work = ++last_;
  Json args = Json::object();
  std::string name = type_name(node.type);
  if (node.call) {
    const KernelFacts& facts = *node.call->function->facts;
    name = readable_name(facts.name);
    args = {{"symbol", facts.name},
            {"grid", numbers(node.call->grid)},
            {"block", numbers(node.call->block)},
            {"shared_bytes", facts.static_shared_bytes + node.call->shared_bytes}};
  }
  if (node.type == NodeType::kCopy) name = fmt::format("copy {}", node.direction);
  if (node.type == NodeType::kCopy || node.type == NodeType::kSet) args["bytes"] = node.size_bytes;
  if (node.type == NodeType::kRecordEvent) name = fmt::format("event {}", node.event);
  log_.add(line({{"work", work},
                 {"stream", origin.stream},
                 {"call", origin.call},
                 {"submitted_ns", origin.submitted_ns},
                 {"type", type_name(node.type)},
                 {"name", name},
                 {"args", args},
                 {"ns", now_ns()}}));
  return work;
}

void Timeline::end_work(uint64_t work) {
  if (work != 0) log_.add(line({{"end", work}, {"ns", now_ns()}}));
}

void Timeline::end_kernel(uint64_t work, uint64_t launch, const LaunchOutcome& outcome) {
  if (work == 0) return;
  const int64_t end = now_ns();
  Json args = {{"launch", launch},
               {"threads", outcome.threads},
               {"thread_instructions", outcome.thread_instructions}};
  if (outcome.fault) args["fault"] = outcome.fault->text;
  log_.add(line({{"end", work}, {"ns", end}, {"args", args}}));
}

void Timeline::add_polls(Thread& t) {
  if (!is_on() || log_.is_full()) {
    t.polls = {};
    return;
  }
  const Polls& p = t.polls;
  Json args = {{"result", "cudaErrorNotReady"}, {"calls", p.count}};
  if (p.has_stream) args["stream"] = p.stream;
  if (p.event != 0) args["event"] = p.event;
  const uint64_t thread_number = number_of(t), call = ++last_;
  log_.add(line({{"call", call},
                 {"thread", thread_number},
                 {"name", p.function},
                 {"ns", p.begin_ns},
                 {"end_ns", p.end_ns},
                 {"args", args}}));
  t.polls = {};
}

RecordedCall::RecordedCall(const char* function) noexcept {
  try {
    begin(function);
  } catch (...) {
    // What runtime() throws, the call itself tells.
  }
}

void RecordedCall::begin(const char* function) {
  const std::string_view name = function;
  // The compiler's own calls, but for what a launch becomes.
  if (name.starts_with("__") && name != "__cudaLaunchKernel") return;
  Timeline& timeline = runtime().timeline;
  if (!timeline.is_on()) return;
  Timeline::Thread& t = Timeline::thread();
  timeline_ = &timeline;
  if (t.depth++ != 0) return;
  function_ = name.starts_with("__") ? function + 2 : function;
  t.has_stream = false;
  t.stream = t.event = t.other_event = t.call = 0;
  begin_ns_ = now_ns();
  is_query_ = name.ends_with("Query");
  if (is_query_ || timeline.log_.is_full()) return;
  if (t.polls.count != 0) timeline.add_polls(t);
  const uint64_t thread_number = timeline.number_of(t);
  t.call = ++timeline.last_;
  begin_ns_ = now_ns();
  timeline.log_.add(
      line({{"call", t.call}, {"thread", thread_number}, {"name", function_}, {"ns", begin_ns_}}));
}

int RecordedCall::end(int status) noexcept {
  if (timeline_ == nullptr) return status;
  try {
    Timeline::Thread& t = Timeline::thread();
    if (--t.depth != 0) return status;
    const int64_t end_ns = now_ns();
    if (is_query_ && status == kNotReady) {
      Timeline::Polls& p = t.polls;
      const bool is_same = p.count != 0 && std::string_view(p.function) == function_ &&
                           p.has_stream == t.has_stream && p.stream == t.stream &&
                           p.event == t.event;
      if (!is_same) {
        if (p.count != 0) timeline_->add_polls(t);
        p = {.function = function_,
             .stream = t.stream,
             .event = t.event,
             .count = 0,
             .has_stream = t.has_stream,
             .begin_ns = begin_ns_,
             .end_ns = 0};
      }
      ++p.count;
      p.end_ns = end_ns;
      return status;
    }
    if (t.call == 0 && timeline_->log_.is_full()) return status;
    Json args = Json::object();
    if (t.has_stream) args["stream"] = t.stream;
    if (t.event != 0) args["event"] = t.event;
    if (t.other_event != 0) args["other_event"] = t.other_event;
    if (status != kSuccess) {
      const bool is_driver = !std::string_view(function_).starts_with("cuda");
      const char* const name = error_name(status, is_driver);
      args["result"] = name != nullptr ? name : fmt::format("error {}", status);
    }
    if (is_query_) {
      if (t.polls.count != 0) timeline_->add_polls(t);
      const uint64_t thread_number = timeline_->number_of(t), call = ++timeline_->last_;
      timeline_->log_.add(line({{"call", call},
                                {"thread", thread_number},
                                {"name", function_},
                                {"ns", begin_ns_},
                                {"end_ns", end_ns},
                                {"args", args}}));
    } else if (t.call != 0) {
      timeline_->log_.add(line({{"end", t.call}, {"ns", end_ns}, {"args", args}}));
    }
    t.call = 0;
  } catch (...) {
    // Out of memory: the event is lost.
  }
  return status;
}

}  // namespace gpusim::cuda_api
