#include "qemu_bridge/daemon/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

namespace gpusim::daemon {
namespace {

using offload::LaunchOutcome;
using offload::LoadOutcome;
using offload::OffloadError;

[[noreturn]] void refuse(int number, const std::string& text) { throw OffloadError(number, text); }

void set_text(char* to, size_t size_bytes, std::string_view text) {
  const size_t length = std::min(text.size(), size_bytes - 1);
  std::memcpy(to, text.data(), length);
  std::memset(to + length, 0, size_bytes - length);
}

void set_text(gpusim_reply& reply, std::string_view text) {
  set_text(reply.text, sizeof reply.text, text);
}

std::string_view request_text(const gpusim_words& words) {
  return {words.text, strnlen(words.text, sizeof words.text)};
}

bool all_zero(const void* from, size_t size_bytes) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  return std::all_of(bytes, bytes + size_bytes, [](uint8_t b) { return b == 0; });
}

uint32_t number32(uint64_t word, const char* what) {
  if (word > UINT32_MAX) refuse(ENOENT, fmt::format("there is no {} {}", what, word));
  return static_cast<uint32_t>(word);
}

void check_version(uint64_t version) {
  if (version != GPUSIM_WIRE_VERSION)
    refuse(EPROTO, fmt::format("the driver speaks wire version {}, this simulator {}: take both "
                               "from one version of gpusim",
                               version, GPUSIM_WIRE_VERSION));
}

void check_launch(const gpusim_launch& launch) {
  if (!all_zero(launch.reserved, sizeof launch.reserved))
    refuse(EINVAL, "a reserved field of the launch is not zero");
  if (launch.flags & ~uint32_t{GPUSIM_LAUNCH_PROCESS})
    refuse(EINVAL, fmt::format("unknown flags {:#x}", launch.flags));
  if (launch.argument_count > GPUSIM_MOST_ARGUMENTS)
    refuse(EINVAL,
           fmt::format("{} arguments; at most {}", launch.argument_count, GPUSIM_MOST_ARGUMENTS));
  for (uint32_t i = 0; i < launch.argument_count; ++i) {
    const gpusim_argument& a = launch.arguments[i];
    if (a.kind > GPUSIM_ARGUMENT_COPY || a.is_float > 1 || !all_zero(a.reserved, sizeof a.reserved))
      refuse(EINVAL, fmt::format("argument {} is malformed", i));
  }
}

}  // namespace

// `words` of the request are used, and its text if `takes_text`; the rest is zero today.
struct Commands::Operation {
  uint16_t op;
  const char* name;
  uint8_t words;
  bool takes_text, in_context, takes_time;
  Answer (Commands::*serve)(const Request& request, const Label& label, gpusim_reply& reply);
};

constexpr uint8_t kWholeRequest = 255;

const Commands::Operation Commands::kOperations[] = {
    // clang-format off
    {GPUSIM_OP_HELLO,         "HELLO",         1, false, false, false, &Commands::hello},
    {GPUSIM_OP_CONTEXT_OPEN,  "CONTEXT_OPEN",  0, false, false, false, &Commands::context_open},
    {GPUSIM_OP_CONTEXT_CLOSE, "CONTEXT_CLOSE", 0, false, true,  false, &Commands::context_close},
    {GPUSIM_OP_MAP,           "MAP",           5, false, true,  false, &Commands::map},
    {GPUSIM_OP_UNMAP,         "UNMAP",         2, false, true,  false, &Commands::unmap},
    {GPUSIM_OP_LOAD,          "LOAD",          3, false, true,  true,  &Commands::load},
    {GPUSIM_OP_UNLOAD,        "UNLOAD",        1, false, true,  false, &Commands::unload},
    {GPUSIM_OP_SYMBOL,        "SYMBOL",        1, true,  true,  false, &Commands::symbol},
    {GPUSIM_OP_LAUNCH, "LAUNCH", kWholeRequest, false, true, true, &Commands::launch},
    {GPUSIM_OP_CANCEL,        "CANCEL",        1, false, true,  false, &Commands::cancel},
    {GPUSIM_OP_RESET,         "RESET",         0, false, true,  false, &Commands::reset},
    {GPUSIM_OP_COUNTERS,      "COUNTERS",      0, false, true,  false, &Commands::counters},
    {GPUSIM_OP_DIRECT,        "DIRECT",        1, false, true,  false, &Commands::direct},
    {GPUSIM_OP_CHECK,         "CHECK",         2, false, true,  false, &Commands::check_function},
    {GPUSIM_OP_CLASSES,       "CLASSES",       1, false, true,  false, &Commands::classes},
    // clang-format on
};

const Commands::Operation* Commands::operation(uint16_t op) {
  for (const Operation& o : kOperations)
    if (o.op == op) return &o;
  return nullptr;
}

const char* operation_name(uint16_t op) { return Commands::name(op); }

const char* Commands::name(uint16_t op) {
  const Operation* o = operation(op);
  return o ? o->name : nullptr;
}

Commands::Commands(const GuestMemory& memory, offload::Simulator& service, CommandOptions options,
                   Log& log, std::function<void(uint64_t gpa)> done)
    : memory_(memory),
      service_(service),
      options_(std::move(options)),
      log_(log),
      done_(std::move(done)) {}

Commands::~Commands() { abandon(); }

void Commands::serve(uint64_t gpa) {
  if (in_flight_.contains(gpa)) return;
  if (gpa % 64 != 0) {
    log_.line("bell for {:#x}: not a multiple of 64", gpa);
    return;
  }
  const uint8_t* block = memory_.bytes(gpa, GPUSIM_COMMAND_BASE_BYTES, true);
  if (!block) {
    log_.line("bell for {:#x}: not guest RAM", gpa);
    return;
  }
  Request request;
  copy_once(&request, block, offsetof(gpusim_command, reply));
  const size_t size_bytes =
      request.version == GPUSIM_WIRE_VERSION ? sizeof(gpusim_command) : GPUSIM_COMMAND_BASE_BYTES;
  if (!memory_.bytes(gpa, size_bytes, true)) {
    log_.line("bell for {:#x}: its end is not guest RAM", gpa);
    return;
  }
  if (request.status != GPUSIM_PENDING) {
    log_.line("bell for {:#x}: no command waits there", gpa);
    return;
  }
  run(request, {gpa, request.ticket, request.context, request.op, size_bytes});
}

bool Commands::serve_posted() {
  bool found = false;
  for (const uint32_t number : direct_) {
    const Context& context = contexts_.at(number);
    gpusim_direct* const direct = direct_of(number);
    if (!direct || context.direct_runs) continue;
    const std::atomic_ref<uint32_t> state(direct->state);
    if (state.load(std::memory_order_acquire) != GPUSIM_DIRECT_POSTED) continue;
    state.store(GPUSIM_DIRECT_TAKEN, std::memory_order_relaxed);
    found = true;
    Request request;
    copy_once(&request, &direct->command, offsetof(gpusim_command, reply));
    request.context = number;
    request.generation = options_.generation;
    request.ticket |= GPUSIM_DIRECT_TICKET;
    run(request,
        {context.direct_address, request.ticket, number, request.op, sizeof(gpusim_command), true});
  }
  return found;
}

size_t Commands::in_flight() const {
  return in_flight_.size() +
         static_cast<size_t>(std::ranges::count_if(
             contexts_, [](const auto& entry) { return entry.second.direct_runs; }));
}

void Commands::listen(bool listens) {
  for (const uint32_t number : direct_)
    if (gpusim_direct* const direct = direct_of(number))
      std::atomic_ref<uint32_t>(direct->listening).store(listens);
}

void Commands::run(const Request& request, const Label& label) {
  ++served_;
  gpusim_reply reply{};
  int status = 0;
  try {
    if (dispatch(request, label, reply) == Answer::kLater) return;
  } catch (const OffloadError& error) {
    status = -error.number();
    reply = {};
    set_text(reply, error.what());
  } catch (const std::bad_alloc&) {
    status = -ENOMEM;
    reply = {};
    set_text(reply, "the simulator is out of memory");
  } catch (const std::exception& error) {
    status = -EREMOTEIO;
    reply = {};
    set_text(reply, error.what());
  }
  answer(label, status, reply);
}

void Commands::check(const Request& request, const Operation& o) const {
  if (!all_zero(request.reserved, sizeof request.reserved))
    refuse(EINVAL, "a reserved field of the command is not zero");
  if (o.op == GPUSIM_OP_HELLO) return;
  if (request.generation != options_.generation)
    refuse(EIO, fmt::format("this is for generation {} of the simulator; now it is {}",
                            request.generation, options_.generation));
  if (o.in_context && !contexts_.contains(request.context))
    refuse(ENOENT, fmt::format("there is no context {}", request.context));
  if (!o.in_context && request.context != 0)
    refuse(EINVAL, fmt::format("{} takes no context", o.name));
}

Commands::Answer Commands::dispatch(const Request& request, const Label& label,
                                    gpusim_reply& reply) {
  if (request.magic != GPUSIM_COMMAND_MAGIC) refuse(EINVAL, "this is no command: wrong magic");
  check_version(request.version);
  const Operation* o = operation(request.op);
  if (!o) refuse(ENOSYS, fmt::format("there is no operation {}", request.op));
  if (label.is_direct && o->op != GPUSIM_OP_LAUNCH)
    refuse(EPERM, fmt::format("{} cannot be posted; only LAUNCH can", o->name));
  check(request, *o);
  const gpusim_words& words = request.request.words;
  if (o->words != kWholeRequest) {
    if (!all_zero(words.word + o->words, sizeof words.word - o->words * sizeof words.word[0]))
      refuse(EINVAL, fmt::format("{} uses {} words; the others must be zero", o->name, o->words));
    if (!o->takes_text && !all_zero(words.text, sizeof words.text))
      refuse(EINVAL, fmt::format("{} takes no text", o->name));
  }
  if (o->takes_time && contexts_.at(request.context).tickets.contains(request.ticket))
    refuse(EEXIST, fmt::format("ticket {} is in use", request.ticket));
  if (log_ && o->takes_time)
    log_.line("{:#x} context {} ticket {}: {}", label.gpa, label.context, label.ticket, o->name);
  return (this->*o->serve)(request, label, reply);
}

// The status goes last: who sees it may read the rest.
void Commands::answer(const Label& label, int status, const gpusim_reply& reply) {
  if (log_) {
    const char* name = operation_name(label.op);
    log_.line("{:#x} context {} ticket {}: {} -> {}{}{}", label.gpa, label.context, label.ticket,
              name ? name : "?", status, status != 0 ? ": " : "",
              status != 0 ? std::string_view(reply.text) : std::string_view());
  }
  if (abandoned_) return;
  uint8_t* block;
  if (label.is_direct) {
    gpusim_direct* const direct =
        contexts_.contains(label.context) ? direct_of(label.context) : nullptr;
    if (!direct) return;
    block = reinterpret_cast<uint8_t*>(&direct->command);
  } else {
    block = memory_.bytes(label.gpa, label.size_bytes, true);
  }
  constexpr size_t kReply = offsetof(gpusim_command, reply);
  std::memcpy(block + kReply, &reply, label.size_bytes - kReply);
  auto* status_word = reinterpret_cast<int32_t*>(block + offsetof(gpusim_command, status));
  std::atomic_ref<int32_t>(*status_word).store(status, std::memory_order_release);
  if (!label.is_direct) done_(label.gpa);  // who posted it looks for itself
}

Commands::Answer Commands::hello(const Request& request, const Label&, gpusim_reply& reply) {
  check_version(request.request.words.word[0]);
  const offload::SimulatorOptions& options = service_.options();
  reply.word[0] = GPUSIM_WIRE_VERSION;
  reply.word[1] = options_.generation;
  reply.word[2] = options.most_cores;
  reply.word[3] = options.most_contexts;
  reply.word[4] = options.address_space_bytes;
  reply.word[5] = kPageSize;
  set_text(reply, options_.backends);
  return Answer::kNow;
}

Commands::Answer Commands::context_open(const Request&, const Label&, gpusim_reply& reply) {
  const uint32_t context = service_.open();
  contexts_.try_emplace(context);
  reply.word[0] = context;
  return Answer::kNow;
}

// The engine calls back for the context's commands before close() and reset() return.
Commands::Answer Commands::context_close(const Request& request, const Label&, gpusim_reply&) {
  silence(request.context);
  service_.close(request.context);
  const auto context = contexts_.find(request.context);
  forget_contents(request.context, context->second);
  contexts_.erase(context);
  return Answer::kNow;
}

Commands::Answer Commands::reset(const Request& request, const Label&, gpusim_reply&) {
  silence(request.context);
  service_.reset(request.context);
  forget_contents(request.context, contexts_.at(request.context));
  return Answer::kNow;
}

gpusim_direct* Commands::direct_of(uint32_t number) {
  const uint64_t address = contexts_.at(number).direct_address;
  if (address == 0) return nullptr;
  const auto bytes =
      service_.memory(number).bytes(address, sizeof(gpusim_direct), GPUSIM_READ | GPUSIM_WRITE);
  return bytes ? reinterpret_cast<gpusim_direct*>(bytes->data()) : nullptr;
}

// No more launches are taken, and one that was not taken yet never will be.
void Commands::silence(uint32_t number) {
  gpusim_direct* const direct = direct_of(number);
  if (!direct) return;
  std::atomic_ref<uint32_t>(direct->listening).store(0);
  if (contexts_.at(number).direct_runs ||
      std::atomic_ref<uint32_t>(direct->state).load() != GPUSIM_DIRECT_POSTED)
    return;
  std::atomic_ref<uint32_t>(direct->state).store(GPUSIM_DIRECT_TAKEN);
  std::memset(&direct->command.reply, 0, sizeof direct->command.reply);
  std::atomic_ref<int32_t>(direct->command.status).store(-ECANCELED, std::memory_order_release);
}

void Commands::forget_direct(uint32_t number, Context& context) {
  context.direct_address = 0;
  std::erase(direct_, number);
}

void Commands::forget_contents(uint32_t number, Context& context) {
  forget_direct(number, context);
  for (const auto& [address, mapping] : context.mappings) pieces_ -= mapping.pieces;
  context.mappings.clear();
  context.programs = 0;
}

Commands::Answer Commands::map(const Request& request, const Label&, gpusim_reply&) {
  const uint64_t* word = request.request.words.word;
  const uint64_t address = word[0], size = word[1], rights = word[2], table = word[3],
                 count = word[4];
  if (size == 0 || (address | size) % kPageSize != 0)
    refuse(EINVAL, fmt::format("{:#x}, {:#x} bytes: not whole pages of {} bytes", address, size,
                               kPageSize));
  if (rights == 0 || (rights & ~uint64_t{GPUSIM_READ | GPUSIM_WRITE}) != 0)
    refuse(EINVAL, fmt::format("unknown rights {:#x}", rights));
  // No more than pages: a count alone must not cost memory.
  if (count == 0 || count > GPUSIM_MOST_EXTENTS || count > size / kPageSize)
    refuse(EINVAL, fmt::format("{} extents for {} pages; at most {}", count, size / kPageSize,
                               GPUSIM_MOST_EXTENTS));
  std::vector<gpusim_extent> extents(count);
  if (!memory_.copy_out(
          table, {reinterpret_cast<uint8_t*>(extents.data()), count * sizeof(gpusim_extent)}))
    refuse(EFAULT, fmt::format("the table of extents at {:#x} is not in guest RAM", table));
  // A mapping splits what lies around it: one piece more.
  const uint64_t left = options_.most_pieces - std::min(options_.most_pieces, pieces_ + 1);
  const std::vector<offload::FilePiece> pieces =
      memory_.pieces(extents, size, (rights & GPUSIM_WRITE) != 0, left);
  Context& context = contexts_.at(request.context);
  const auto entry = context.mappings.try_emplace(address);
  if (!entry.second) refuse(EEXIST, fmt::format("{:#x} is mapped already", address));
  try {
    service_.map(request.context, address, pieces, static_cast<uint8_t>(rights));
  } catch (...) {
    context.mappings.erase(entry.first);
    throw;
  }
  entry.first->second = {size, pieces.size() + 1};
  pieces_ += pieces.size() + 1;
  return Answer::kNow;
}

Commands::Answer Commands::unmap(const Request& request, const Label&, gpusim_reply&) {
  const uint64_t* word = request.request.words.word;
  Context& context = contexts_.at(request.context);
  const auto mapping = context.mappings.find(word[0]);
  if (mapping == context.mappings.end() || mapping->second.size_bytes != word[1])
    refuse(EINVAL, fmt::format("{:#x}, {:#x} bytes was not mapped so", word[0], word[1]));
  const bool has_direct = context.direct_address != 0 &&
                          context.direct_address < word[0] + word[1] &&
                          word[0] < context.direct_address + sizeof(gpusim_direct);
  if (has_direct && !context.direct_runs) silence(request.context);
  service_.unmap(request.context, word[0], word[1]);
  if (has_direct) forget_direct(request.context, context);
  pieces_ -= mapping->second.pieces;
  context.mappings.erase(mapping);
  return Answer::kNow;
}

void Commands::begin(const Label& label) {
  Context& context = contexts_.at(label.context);
  if (label.is_direct) {
    context.direct_runs = true;
    ++context.posted;
  } else {
    in_flight_.insert(label.gpa);
  }
  context.tickets.insert(label.ticket);
}

void Commands::end(const Label& label) {
  Context& context = contexts_.at(label.context);
  if (label.is_direct)
    context.direct_runs = false;
  else
    in_flight_.erase(label.gpa);
  context.tickets.erase(label.ticket);
}

Commands::Answer Commands::load(const Request& request, const Label& label, gpusim_reply&) {
  const uint64_t* word = request.request.words.word;
  if (word[1] == 0 || word[1] > options_.most_program_bytes)
    refuse(EINVAL,
           fmt::format("a program of {} bytes; at most {}", word[1], options_.most_program_bytes));
  if (word[2] & ~uint64_t{GPUSIM_LOAD_LIVE_DATA})
    refuse(EINVAL, fmt::format("unknown flags {:#x}", word[2]));
  const auto bytes = service_.memory(request.context).bytes(word[0], word[1], GPUSIM_READ);
  if (!bytes)
    refuse(EFAULT, fmt::format("{:#x}, {:#x} bytes is not mapped memory", word[0], word[1]));
  Context& context = contexts_.at(request.context);
  if (context.programs >= options_.most_programs)
    refuse(ENOSPC, fmt::format("{} programs are loaded already", context.programs));
  if (word[1] > options_.most_loading_bytes - loading_bytes_)
    refuse(EBUSY, "too many programs are being loaded");
  // The guest may change them while they are being read: the engine gets bytes that stand still.
  std::vector<uint8_t> copy(bytes->size());
  copy_once(copy.data(), bytes->data(), copy.size());
  const uint64_t size = copy.size();
  const auto ended = [this, label, size](bool loaded) {
    end(label);
    loading_bytes_ -= size;
    if (!loaded) --contexts_.at(label.context).programs;
  };
  begin(label);
  loading_bytes_ += size;
  ++context.programs;
  try {
    service_.load(label.context, label.ticket, copy, "program", static_cast<uint32_t>(word[2]),
                  [this, label, ended](const LoadOutcome& outcome) {
                    ended(outcome.status == 0);
                    gpusim_reply reply{};
                    reply.word[0] = outcome.program;
                    reply.word[1] = outcome.guest_instructions;
                    reply.word[2] = outcome.cached;
                    set_text(reply, outcome.status == 0 ? outcome.isa : outcome.text);
                    answer(label, outcome.status, reply);
                  });
  } catch (...) {
    ended(false);
    throw;
  }
  return Answer::kLater;
}

Commands::Answer Commands::unload(const Request& request, const Label&, gpusim_reply&) {
  service_.unload(request.context, number32(request.request.words.word[0], "program"));
  --contexts_.at(request.context).programs;
  return Answer::kNow;
}

Commands::Answer Commands::symbol(const Request& request, const Label&, gpusim_reply& reply) {
  const gpusim_words& words = request.request.words;
  const offload::Simulator::Symbol symbol = service_.symbol(
      request.context, number32(words.word[0], "program"), std::string(request_text(words)));
  reply.word[0] = symbol.address;
  reply.word[1] = symbol.size_bytes;
  return Answer::kNow;
}

Commands::Answer Commands::check_function(const Request& request, const Label&, gpusim_reply&) {
  const uint64_t* word = request.request.words.word;
  service_.check(request.context, number32(word[0], "program"), word[1]);
  return Answer::kNow;
}

Commands::Answer Commands::launch(const Request& request, const Label& label, gpusim_reply&) {
  check_launch(request.request.launch);
  begin(label);
  try {
    service_.launch(label.context, label.ticket, request.request.launch,
                    [this, label](const LaunchOutcome& outcome) {
                      end(label);
                      gpusim_reply reply{};
                      reply.report = outcome.report;
                      reply.classes = outcome.classes;
                      set_text(reply, outcome.text);
                      answer(label, outcome.status, reply);
                    });
  } catch (...) {
    end(label);
    throw;
  }
  return Answer::kLater;
}

Commands::Answer Commands::cancel(const Request& request, const Label&, gpusim_reply&) {
  const uint64_t ticket = request.request.words.word[0];
  if (ticket & GPUSIM_DIRECT_TICKET) serve_posted();  // it may be this one that waits there
  if (!contexts_.at(request.context).tickets.contains(ticket))
    refuse(ENOENT, fmt::format("ticket {} does not wait", ticket));
  service_.cancel(request.context, ticket);
  return Answer::kNow;
}

Commands::Answer Commands::counters(const Request& request, const Label&, gpusim_reply& reply) {
  const offload::Counters counters = service_.counters(request.context);
  reply.word[0] = counters.copied_bytes;
  reply.word[1] = counters.mapped_bytes;
  reply.word[2] = counters.kernels;
  reply.word[3] = counters.translations;
  reply.word[4] = counters.cached_programs;
  reply.word[5] = contexts_.at(request.context).posted;
  return Answer::kNow;
}

Commands::Answer Commands::classes(const Request& request, const Label&, gpusim_reply& reply) {
  std::string names;
  reply.word[0] = kInsnClassCount;
  for (uint64_t c = request.request.words.word[0]; c < kInsnClassCount; ++c) {
    if (names.size() + std::strlen(kInsnClassNames[c]) + 1 >= sizeof reply.text) break;
    names.append(kInsnClassNames[c]).append("\n");
    ++reply.word[1];
  }
  set_text(reply, names);
  return Answer::kNow;
}

Commands::Answer Commands::direct(const Request& request, const Label&, gpusim_reply&) {
  const uint64_t address = request.request.words.word[0];
  Context& context = contexts_.at(request.context);
  if (context.direct_runs) refuse(EBUSY, "a launch that was posted runs or waits");
  if (address % 64 != 0) refuse(EINVAL, fmt::format("{:#x} is not a multiple of 64", address));
  if (address != 0 && !service_.memory(request.context)
                           .bytes(address, sizeof(gpusim_direct), GPUSIM_READ | GPUSIM_WRITE))
    refuse(EFAULT, fmt::format("{:#x} is not memory that is mapped for writing", address));
  silence(request.context);
  forget_direct(request.context, context);
  if (address == 0) return Answer::kNow;
  context.direct_address = address;
  direct_.push_back(request.context);
  std::atomic_ref<uint32_t>(direct_of(request.context)->listening).store(1);
  return Answer::kNow;
}

void Commands::close_all() {
  if (!abandoned_) std::ranges::for_each(direct_, [this](uint32_t number) { silence(number); });
  direct_.clear();
  while (!contexts_.empty()) {
    const uint32_t context = contexts_.begin()->first;
    try {
      service_.close(context);
    } catch (const std::exception& error) {
      log_.line("context {}: {}", context, error.what());
    }
    contexts_.erase(context);
  }
  pieces_ = 0;
}

void Commands::abandon() {
  abandoned_ = true;
  close_all();
}

}  // namespace gpusim::daemon
