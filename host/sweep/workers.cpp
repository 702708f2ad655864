#include "host/sweep/workers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "device_sim/base/error.h"
#include "host/output_file.h"

namespace gpusim::sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "gpusim-worker-1";
constexpr std::chrono::milliseconds kLongestPause{500};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// When a process began, in ticks since the machine did: its number may be another's later. 0: there
// is none, or it has ended and was not waited for.
uint64_t start_of(int64_t pid) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = line.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return 0;
  if (const char state = line[name_end + 2]; state == 'Z' || state == 'X') return 0;
  size_t at = name_end + 1;
  for (int field = 3; field < 22 && at != std::string::npos; ++field) at = line.find(' ', at + 1);
  // Field 3 follows the first space.
  return at == std::string::npos ? 0 : std::strtoull(line.c_str() + at, nullptr, 10);
}

std::string pid_namespace() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/ns/pid", ignored).string();
}

// Nothing where the file is not there, or is being replaced.
std::optional<Json> card_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || json.value("schema", "") != kSchema) return std::nullopt;
  return json;
}

template <class T>
T value_or(const Json& json, const char* key, T otherwise) {
  try {
    return json.value(key, otherwise);
  } catch (const Json::exception&) {
    return otherwise;
  }
}

Workers::Card card_of(const Json& json, std::string id) {
  Workers::Card card;
  card.id = std::move(id);
  card.session = value_or<std::string>(json, "session", "");
  card.name = value_or<std::string>(json, "name", "");
  card.node = value_or<std::string>(json, "node", "");
  card.number = value_or<uint32_t>(json, "number", 0);
  card.is_opener = value_or(json, "is_opener", false);
  card.has_opened = value_or(json, "has_opened", false);
  if (json.contains("status") && json["status"].is_number_integer())
    card.status = json["status"].get<int>();
  return card;
}

}  // namespace

std::string Workers::Card::text() const { return fmt::format("{} at {}", name, node); }

Workers::Workers(std::string folder, const Launch& launch, bool is_opener, const Limits& limits)
    : folder_(std::move(folder)),
      launch_(launch),
      limits_(limits),
      boot_(first_line("/proc/sys/kernel/random/boot_id")),
      pids_(pid_namespace()),
      started_(start_of(::getpid())),
      is_opener_(is_opener) {
  std::random_device random;
  id_ = fmt::format("{}-{}-{:08x}{:08x}", launch.session.empty() ? "alone" : launch.session,
                    launch.number, random(), random());
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error(fmt::format("-o {}: {}", folder_, error.message()));
  write();
}

Workers::~Workers() {
  if (!status_) leave_no_trace();
}

void Workers::write() {
  Json json = {{"schema", kSchema},
               {"session", launch_.session},
               {"name", launch_.name},
               {"number", launch_.number},
               {"node", launch_.node},
               {"boot", boot_},
               {"pids", pids_},
               {"pid", ::getpid()},
               {"started", started_},
               {"is_opener", is_opener_},
               {"has_opened", has_opened_},
               {"beat", ++beats_}};
  if (status_) json["status"] = *status_;
  host::write_output_file("-o", path(id_),
                          json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(limits_.beat_seconds));
}

void Workers::beat() {
  if (is_gone_ || status_ || Clock::now() < next_) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  write();
}

void Workers::say_opened() {
  has_opened_ = true;
  write();
}

void Workers::end(int status) {
  if (is_gone_) return;
  status_ = status;
  try {
    write();
  } catch (const Error&) {  // the study is over, and whoever led it cleared up
  }
}

void Workers::leave_no_trace() {
  is_gone_ = true;
  std::error_code ignored;
  fs::remove(path(id_), ignored);
}

Workers::Life Workers::life(const std::string& id) {
  if (id == id_) return Life::kAlive;
  const std::optional<Json> json = card_json(path(id));
  if (json) {
    if (json->contains("status")) return Life::kEnded;
    // On this machine its process can be looked for.
    if (!boot_.empty() && value_or<std::string>(*json, "boot", "") == boot_ &&
        value_or<std::string>(*json, "pids", "") == pids_) {
      const auto started = value_or<uint64_t>(*json, "started", 0);
      return started != 0 && start_of(value_or<int64_t>(*json, "pid", 0)) == started ? Life::kAlive
                                                                                     : Life::kDead;
    }
  }
  // Else its count of signs has to rise while we look: no two clocks are compared.
  const uint64_t beat = json ? value_or<uint64_t>(*json, "beat", 0) : 0;
  const Clock::time_point now = Clock::now();
  const auto [at, is_new] = seen_.try_emplace(id, Seen{beat, now, false});
  Seen& seen = at->second;
  if (is_new) return Life::kUnknown;
  if (seen.beat != beat) seen = {beat, now, true};
  if (now - seen.since > std::chrono::duration<double>(limits_.silent_seconds)) return Life::kDead;
  return seen.has_changed ? Life::kAlive : Life::kUnknown;
}

std::vector<Workers::Card> Workers::cards(const std::string& beginning) const {
  std::vector<Card> list;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".json") continue;
    const std::string id = at->path().stem();
    if (id == id_ || !id.starts_with(beginning)) continue;
    if (const auto one = card(id)) list.push_back(*one);
  }
  std::ranges::sort(list, {}, &Card::id);
  return list;
}

std::optional<Workers::Card> Workers::card(const std::string& id) const {
  const std::optional<Json> json = card_json(path(id));
  if (!json) return std::nullopt;
  return card_of(*json, id);
}

std::vector<Workers::Card> Workers::working() {
  std::vector<Card> list;
  // Both times are of the machine that has the files, so their difference holds anywhere.
  write();
  struct stat own {};
  if (::stat(path(id_).c_str(), &own) != 0) return list;
  for (Card& card : cards()) {
    const Life now = life(card.id);
    struct stat other {};
    const bool is_recent =
        ::stat(path(card.id).c_str(), &other) == 0 &&
        static_cast<double>(own.st_mtim.tv_sec - other.st_mtim.tv_sec) < limits_.silent_seconds;
    if (now == Life::kAlive || (now == Life::kUnknown && is_recent))
      list.push_back(std::move(card));
  }
  return list;
}

bool Workers::opener_works() {
  return std::ranges::any_of(working(), [&](const Card& card) {
    return card.is_opener && (card.session.empty() || card.session != launch_.session);
  });
}

void Workers::wait_for_opener(const std::string& study_folder) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(limits_.open_seconds);
  const std::string rank_0 = launch_.session + "-0-";
  for (std::chrono::milliseconds pause(20);; pause = std::min(2 * pause, kLongestPause)) {
    for (const Card& card : cards(rank_0))
      if (card.has_opened && card.session == launch_.session && card.number == 0) return;
    if (Clock::now() > deadline)
      throw Error(fmt::format(
          "-o {}: {} at {} does not see there what rank 0 wrote, after {:g} s: the folder must be "
          "on a file system that all machines share",
          study_folder, launch_.name, launch_.node, limits_.open_seconds));
    std::this_thread::sleep_for(pause);
    beat();
  }
}

}  // namespace gpusim::sweep
