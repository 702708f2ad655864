#include "host/gdb/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "device_sim/base/escape_xml.h"
#include "device_sim/core/memory_view.h"

namespace gpusim::host::gdb {
namespace {

constexpr const char* kOk = "OK";
constexpr const char* kBadPacket = "E01";
constexpr const char* kNoMemory = "E14";
constexpr const char* kNoThread = "E03";
constexpr const char* kNotNow = "E16";

// GDB numbers signals in its own way (include/gdb/signals.def); those below 7, 8, 9, 11, 13, 14 and
// 15 are Linux's.
struct SignalPair {
  int linux, gdb;
};
constexpr SignalPair kSignals[] = {{7, 10},  {10, 30}, {12, 31}, {16, 143}, {17, 20},
                                   {18, 19}, {19, 17}, {20, 18}, {21, 21},  {22, 22},
                                   {23, 16}, {29, 23}, {30, 32}, {31, 12}};

int to_gdb(int signal) {
  for (const SignalPair& p : kSignals)
    if (p.linux == signal) return p.gdb;
  return signal;
}
int to_linux(int signal) {
  for (const SignalPair& p : kSignals)
    if (p.gdb == signal) return p.linux;
  return signal;
}

std::string text_of(std::string_view digits) {
  const auto bytes = from_hex(digits);
  return bytes ? std::string(bytes->begin(), bytes->end()) : std::string();
}

}  // namespace

Session::Session(Connection& connection, DebuggedRun& run, const MonitorSources& sources,
                 const std::string& program, bool is_first)
    : connection_(connection),
      run_(run),
      sources_(sources),
      program_(program),
      is_first_(is_first) {
  last_.core = run_.first_alive().value_or(0);
}

Session::End Session::serve() {
  for (;;) {
    const std::optional<std::string> packet = connection_.receive();
    if (!packet) return End::kLost;
    if (packet->starts_with('k') || packet->starts_with("vKill")) {
      if (packet->starts_with('v')) connection_.send(kOk);
      return End::kKill;
    }
    if (packet->starts_with('D')) {
      connection_.send(kOk);
      return End::kDetach;
    }
    const std::optional<std::string> reply = answer(*packet);
    if (!reply) return End::kResume;
    connection_.send(*reply);
    if (*packet == "QStartNoAckMode") connection_.stop_acknowledging();
  }
}

std::optional<std::string> Session::answer(std::string_view packet) {
  if (packet.empty()) return "";
  Words words(packet.substr(1));
  switch (packet[0]) {
    case '?':
      return stop_reply(last_);
    case 'g':
      return read_registers();
    case 'G':
      return write_registers(words);
    case 'p':
      return read_register(words);
    case 'P':
      return write_register(words);
    case 'm':
      return read_memory(words);
    case 'M':
    case 'X':
      return write_memory(words, packet[0] == 'X');
    case 'H':
      return set_thread(words);
    case 'T': {
      const ThreadId id = thread_id(words.rest());
      return id.is_valid && !id.is_all ? kOk : kNoThread;
    }
    case 'Z':
    case 'z':
      return set_point(words, packet[0] == 'Z');
    case 'c':
    case 'C':
    case 's':
    case 'S':
      return resume_one(packet);
    case 'v':
      if (words.take("Cont?")) return "vCont;c;C;s;S;r";
      if (words.take("Cont")) return resume_many(words);
      if (words.take("File:")) return program_.answer(words);
      return "";
    case 'q':
      return query(packet);
    case 'Q':
      return set(packet);
    default:
      return "";
  }
}

// --- threads

Session::ThreadId Session::thread_id(std::string_view text) const {
  if (text == "-1") return {.is_valid = true, .is_all = true};
  Words words(text);
  const auto number = words.number();
  if (!number || !words.at_end()) return {};
  if (*number == 0) {
    const uint32_t any = run_.is_alive(last_.core) ? last_.core : run_.first_alive().value_or(0);
    return {.is_valid = true, .core = any};
  }
  const uint64_t core = *number - 1;
  if (core >= run_.cores() || !run_.is_alive(static_cast<uint32_t>(core))) return {};
  return {.is_valid = true, .core = static_cast<uint32_t>(core)};
}

uint32_t Session::core() {
  const uint32_t wanted = general_.value_or(last_.core);
  return run_.is_alive(wanted) ? wanted : run_.first_alive().value_or(0);
}

std::string Session::set_thread(Words words) {
  const bool is_general = words.take("g");
  if (!is_general && !words.take("c")) return kBadPacket;
  const ThreadId id = thread_id(words.rest());
  if (!id.is_valid) return kNoThread;
  std::optional<uint32_t>& chosen = is_general ? general_ : running_;
  chosen = id.is_all ? std::nullopt : std::optional(id.core);
  return kOk;
}

// --- registers

std::string Session::read_registers() {
  const uint32_t c = core();
  const uint64_t pc = run_.pc(c);
  std::string all;
  for (size_t i = 0; i < run_.registers().count(); ++i) all += hex(run_.registers().read(c, i, pc));
  return all;
}

std::string Session::read_register(Words words) {
  const auto number = words.number();
  if (!number || *number >= run_.registers().count()) return kBadPacket;
  return hex(run_.registers().read(core(), *number, run_.pc(core())));
}

static bool write_one(DebuggedRun& run, uint32_t core, size_t number,
                      std::span<const uint8_t> bytes) {
  if (!run.registers().is_pc(number)) return run.registers().write(core, number, bytes);
  uint64_t pc = 0;
  for (size_t i = bytes.size(); i-- > 0;) pc = pc << 8 | bytes[i];
  return pc == run.pc(core) || run.set_pc(core, pc);
}

std::string Session::write_register(Words words) {
  const auto number = words.number();
  if (!number || *number >= run_.registers().count() || !words.take("=")) return kBadPacket;
  const auto bytes = from_hex(words.rest());
  if (!bytes || bytes->size() != run_.registers().size_bytes(*number)) return kBadPacket;
  return write_one(run_, core(), *number, *bytes) ? kOk : kNotNow;
}

std::string Session::write_registers(Words words) {
  const auto bytes = from_hex(words.rest());
  size_t all = 0;
  for (size_t i = 0; i < run_.registers().count(); ++i) all += run_.registers().size_bytes(i);
  if (!bytes || bytes->size() != all) return kBadPacket;
  std::span<const uint8_t> rest(*bytes);
  bool ok = true;
  for (size_t i = 0; i < run_.registers().count(); ++i) {
    const size_t size = run_.registers().size_bytes(i);
    ok &= write_one(run_, core(), i, rest.first(size));
    rest = rest.subspan(size);
  }
  return ok ? kOk : kNotNow;
}

// --- memory

std::string Session::read_memory(Words words) {
  const auto address = words.number();
  const bool has_comma = words.take(",");
  const auto size = words.number();
  if (!address || !has_comma || !size || !words.at_end()) return kBadPacket;
  std::vector<uint8_t> bytes(std::min<uint64_t>(*size, PacketReader::kMostBytes / 2));
  const uint32_t c = core();
  size_t done = 0;
  while (done < bytes.size()) {
    const uint64_t at = *address + done;
    const size_t piece =
        std::min<uint64_t>(bytes.size() - done, kPageSize - (at & (kPageSize - 1)));
    if (sources_.backend.permissions(c, at) == 0 ||
        !sources_.backend.read_memory(c, at, std::span(bytes).subspan(done, piece)))
      break;
    done += piece;
  }
  if (done == 0 && !bytes.empty()) return kNoMemory;
  return hex(std::span<const uint8_t>(bytes).first(done));
}

std::string Session::write_memory(Words words, bool is_binary) {
  const auto address = words.number();
  const bool has_comma = words.take(",");
  const auto size = words.number();
  if (!address || !has_comma || !size || !words.take(":")) return kBadPacket;
  std::vector<uint8_t> bytes;
  if (is_binary) {
    const std::string text = unescaped(words.rest());
    bytes.assign(text.begin(), text.end());
  } else if (auto digits = from_hex(words.rest())) {
    bytes = std::move(*digits);
  } else {
    return kBadPacket;
  }
  if (bytes.size() != *size) return kBadPacket;
  const uint32_t c = core();
  const CodeMap& code = sources_.translator.module().code;
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    const uint64_t at = *address + i;
    // Code was translated before: what is written there would do nothing.
    if (code.is_code(at)) return kNoMemory;
    if ((i == 0 || at % kPageSize == 0) && sources_.backend.permissions(c, at) == 0)
      return kNoMemory;
  }
  return bytes.empty() || sources_.backend.write_memory(c, *address, bytes) ? kOk : kNoMemory;
}

// --- breakpoints and watchpoints

std::string Session::set_point(Words words, bool is_set) {
  const auto type = words.number();
  const bool has_comma = words.take(",");
  const auto address = words.number();
  if (!type || !has_comma || !address || !words.take(",")) return kBadPacket;
  const auto kind = words.number();
  if (!kind) return kBadPacket;
  if (*type <= 1) {
    if (!is_set) {
      breakpoints_.erase(*address);
    } else {
      if (!sources_.translator.instruction(*address)) return kNoMemory;
      DebuggedRun::Conditions conditions;
      words.take(";");
      while (words.take("X")) {
        const auto size = words.number();
        if (!size || !words.take(",") || *size > words.rest().size() / 2) return kBadPacket;
        const auto code = from_hex(words.rest().substr(0, *size * 2));
        if (!code) return kBadPacket;
        words.take(words.rest().substr(0, *size * 2));
        words.take(";");
        conditions.push_back(*code);
      }
      breakpoints_[*address] = std::move(conditions);
    }
    run_.set_breakpoints(breakpoints_);
    return kOk;
  }
  constexpr uint64_t kWidest = uint64_t{1} << 20;
  if (*type > 4) return "";
  if (*kind == 0 || *kind > kWidest || *address + *kind < *address) return kBadPacket;
  const Watch watch{.kind = *type == 2   ? WatchKind::kWrite
                            : *type == 3 ? WatchKind::kRead
                                         : WatchKind::kAccess,
                    .address = *address,
                    .size_bytes = *kind};
  std::erase(watches_, watch);
  if (is_set) watches_.push_back(watch);
  run_.set_watches(watches_);
  return kOk;
}

// --- running

std::optional<std::string> Session::resume_one(std::string_view packet) {
  Words words(packet.substr(1));
  const bool steps = packet[0] == 's' || packet[0] == 'S';
  int signal = 0;
  if (packet[0] == 'C' || packet[0] == 'S') {
    const auto number = words.number();
    if (!number) return kBadPacket;
    signal = to_linux(static_cast<int>(*number));
  }
  const uint32_t c = running_.value_or(last_.core);
  resume_ = {.others = running_ ? Action::kStand : Action::kGo,
             .ones = {{.core = c, .action = steps ? Action::kStep : Action::kGo, .signal = signal}},
             .focus = c};
  return std::nullopt;
}

std::optional<std::string> Session::resume_many(Words words) {
  Resume resume{.others = Action::kStand, .ones = {}, .focus = running_.value_or(last_.core)};
  bool has_default = false, any = false;
  while (words.take(";")) {
    std::string_view word = words.rest();
    word = word.substr(0, word.find(';'));
    words.take(word);
    Words one(word);
    Resume::One action;
    if (one.take("c") || one.take("C")) {
      action.action = Action::kGo;
    } else if (one.take("s") || one.take("S")) {
      action.action = Action::kStep;
    } else if (one.take("r")) {
      action.action = Action::kStep;
      const auto begin = one.number();
      const bool has_comma = one.take(",");
      const auto end = one.number();
      if (!begin || !has_comma || !end) return kBadPacket;
      action.range_begin = *begin;
      action.range_end = *end;
    } else {
      return kBadPacket;
    }
    if (word[0] == 'C' || word[0] == 'S') {
      const auto number = one.number();
      if (!number) return kBadPacket;
      action.signal = to_linux(static_cast<int>(*number));
    }
    any = true;
    const bool has_thread = one.take(":");
    const ThreadId id = has_thread ? thread_id(one.rest()) : ThreadId{true, true, 0};
    if (!has_thread && !one.at_end()) return kBadPacket;
    if (!id.is_valid) return kNoThread;
    if (id.is_all) {
      if (std::exchange(has_default, true)) continue;
      resume.others = Action::kGo;
      if (action.action == Action::kGo && action.signal == 0) continue;
      action.core = resume.focus;  // nobody steps all cores at once
    } else {
      action.core = id.core;
    }
    if (std::ranges::none_of(resume.ones,
                             [&](const Resume::One& o) { return o.core == action.core; }))
      resume.ones.push_back(action);
  }
  if (!any || !words.at_end()) return kBadPacket;
  if (!resume.ones.empty() && resume.others == Action::kStand)
    resume.focus = resume.ones.front().core;
  resume_ = std::move(resume);
  return std::nullopt;
}

std::string Session::stop_reply(const Stop& stop) {
  const uint32_t c = run_.is_alive(stop.core) ? stop.core : run_.first_alive().value_or(0);
  std::string text = fmt::format("T{:02x}thread:{:x};core:{:x};", to_gdb(stop.signal), c + 1, c);
  if (stop.why == Stop::Why::kBreakpoint && knows_swbreak_) text += "swbreak:;";
  if (stop.why == Stop::Why::kWatch) {
    constexpr const char* kNames[] = {"watch", "rwatch", "awatch"};
    text += fmt::format("{}:{:x};", kNames[static_cast<size_t>(stop.watch.kind)], stop.address);
  }
  const uint64_t pc = run_.pc(c);
  for (const size_t number : run_.registers().at_each_stop())
    text += fmt::format("{:02x}:{};", number, hex(run_.registers().read(c, number, pc)));
  return text;
}

void Session::report(const Stop& stop) {
  last_ = stop;
  general_ = stop.core;
  running_.reset();
  if (stop.why == Stop::Why::kWaiting)
    say("gpusim: none of the cores that may run can go on:\n" + deadlock_text());
  if (stop.why == Stop::Why::kGone) say("gpusim: the cores that were to run have ended\n");
  connection_.send(stop_reply(stop));
}

void Session::say(const std::string& text) {
  constexpr size_t kPiece = 4096;
  for (size_t at = 0; at < text.size(); at += kPiece)
    connection_.send("O" + hex(std::string_view(text).substr(at, kPiece)));
}

// --- questions

std::string Session::query(std::string_view packet) {
  Words words(packet.substr(1));
  if (words.take("Supported")) return supported(words);
  if (words.take("fThreadInfo")) return threads(true);
  if (words.take("sThreadInfo")) return threads(false);
  if (words.take("ThreadExtraInfo,")) {
    const ThreadId id = thread_id(words.rest());
    if (!id.is_valid || id.is_all) return kNoThread;
    return hex(fmt::format("core {}: {}", id.core, run_.state(id.core)));
  }
  if (words.take("Xfer:")) return transfer(words);
  if (words.take("Rcmd,")) {
    say(monitor(text_of(words.rest())));
    return kOk;
  }
  if (words.take("Attached")) return is_first_ ? "0" : "1";
  if (words.take("Offsets")) return "Text=0;Data=0;Bss=0";
  if (words.take("Symbol")) return kOk;
  if (packet == "qC") return fmt::format("QC{:x}", last_.core + 1);
  return "";
}

std::string Session::set(std::string_view packet) {
  Words words(packet.substr(1));
  if (packet == "QStartNoAckMode") return kOk;
  if (words.take("NonStop:")) return words.rest() == "0" ? kOk : kBadPacket;
  if (words.take("PassSignals:")) return pass_signals(words);
  return "";
}

std::string Session::supported(Words words) {
  knows_swbreak_ = words.rest().find("swbreak+") != std::string_view::npos;
  return fmt::format(
      "PacketSize={:x};QStartNoAckMode+;QPassSignals+;qXfer:features:read+;qXfer:threads:read+;"
      "{}swbreak+;hwbreak+;vContSupported+;ConditionalBreakpoints+",
      PacketReader::kMostBytes, program_.path().empty() ? "" : "qXfer:exec-file:read+;");
}

std::string Session::transfer(Words words) {
  const std::string_view object = words.until(':');
  if (words.until(':') != "read") return "";
  const std::string_view annex = words.until(':');
  const auto offset = words.number();
  const bool has_comma = words.take(",");
  const auto size = words.number();
  if (!offset || !has_comma || !size) return kBadPacket;
  std::string text;
  if (object == "features" && annex == "target.xml") {
    text = run_.registers().description();
  } else if (object == "features") {
    return "E00";
  } else if (object == "exec-file") {
    text = program_.path();
  } else if (object == "threads") {
    if (*offset == 0) list_ = thread_list();
    text = list_;
  } else {
    return "";
  }
  if (*offset > text.size()) return kBadPacket;
  const std::string_view piece = std::string_view(text).substr(
      *offset, std::min<uint64_t>(*size, PacketReader::kMostBytes / 2));
  return (*offset + piece.size() < text.size() ? "m" : "l") + escaped(piece);
}

std::string Session::threads(bool begins) {
  constexpr size_t kMost = 4096;  // characters
  if (begins) next_thread_ = 0;
  std::string list;
  for (; list.size() < kMost; ++next_thread_) {
    const std::optional<uint32_t> c = run_.first_alive(next_thread_);
    if (!c) break;
    next_thread_ = *c;
    list += fmt::format("{}{:x}", list.empty() ? "m" : ",", *c + 1);
  }
  return list.empty() ? "l" : list;
}

std::string Session::thread_list() const {
  std::string xml = "<?xml version=\"1.0\"?><threads>";
  for (auto c = run_.first_alive(); c; c = run_.first_alive(*c + 1))
    xml += fmt::format("<thread id=\"{:x}\" core=\"{}\">{}</thread>", *c + 1, *c,
                       escape_xml(run_.state(*c)));
  return xml + "</threads>";
}

std::string Session::pass_signals(Words words) {
  std::set<int> passed;
  while (!words.at_end()) {
    Words one(words.until(';'));
    const auto number = one.number();
    if (!number || !one.at_end()) return kBadPacket;
    passed.insert(to_linux(static_cast<int>(*number)));
  }
  run_.pass_signals(std::move(passed));
  return kOk;
}

}  // namespace gpusim::host::gdb
