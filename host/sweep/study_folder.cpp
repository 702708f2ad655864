#include "host/sweep/study_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <regex>
#include <tuple>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "host/output_file.h"
#include "host/sweep/machine.h"

namespace gpusim::sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "gpusim-study-1";

Json read_json(const std::string& path) {
  Json json = Json::parse(read_text(path), nullptr, false);
  if (!json.is_object() || !json.contains("schema") || json["schema"] != kSchema)
    throw Error(fmt::format("{}: not a study of `gpusim sweep`, or a damaged one", path));
  return json;
}

std::string made_by(const Json& simulator) {
  return fmt::format("{}, build {:.8}", simulator.value("version", "?"),
                     simulator.value("sha256", "?"));
}

// A folder is a study's if it can be continued: the same simulator, and what is called the same is
// the same.
void check_same_study(const Json& stored, const Study& study, const Json& simulator,
                      const std::string& folder) {
  const auto refuse = [&](const std::string& what) {
    throw Error(
        fmt::format("-o {}: the study there {}; name another folder, or --restart to begin anew",
                    folder, what));
  };
  const JsonObject object(stored, folder + "/study.json");
  const JsonObject maker = object.object("simulator");
  if (maker.json() != simulator)
    refuse(fmt::format("was made by another gpusim ({}, build {:.8})",
                       maker.text_or("version", "?"), maker.text_or("sha256", "?")));
  const Study old = study_of_json(object.get("study"), object.at("study"));
  for (const Case& c : study.cases)
    for (const Case& o : old.cases) {
      if (o.label != c.label) continue;
      if (o.program_sha256 != c.program_sha256)
        refuse(fmt::format("ran another program as {}: {} has changed", c.label, c.program));
      if (o.args != c.args || o.options != c.options || o.scaling != c.scaling ||
          o.program != c.program)
        refuse(fmt::format("ran {} with another path, other options or arguments", c.label));
    }
}

// Of processes of one study: what is called `auto` was settled by the one that began it.
Study as_begun(const Study& asked, const Study& stored) {
  Study study = asked;
  if (study.backend_is_auto) study.backends = stored.backends;
  return study;
}

}  // namespace

std::string json_text(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw Error(fmt::format("-o {}: {}", folder, std::strerror(errno)));
  if (::flock(fd_, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    throw Error(fmt::format(
        "-o {}: another `gpusim sweep` works in this folder; `gpusim sweep --join {}` helps it",
        folder, folder));
  }
}

FolderLock::~FolderLock() { ::close(fd_); }

void make_study_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw Error(fmt::format("-o {}: {}", folder,
                            error ? error.message() : "a file of this name is in the way"));
  if (fs::exists(folder + "/study.json")) return;
  // A process that begins at the same time may have come further.
  static const std::regex ours(R"(\.lock|points|running|workers|claims|logs|study\.json.*)");
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename(); !std::regex_match(name, ours))
      throw Error(
          fmt::format("-o {}: the folder holds other files ({}); name a new one", folder, name));
}

// Only names that we make: "NAME.json.123-0.tmp", and "NAME.json.AbCdEf" of gpusim before
// 2026-11-24.
void remove_leftovers(const std::string& folder) {
  static const std::regex temporary(R"(.*\.json\.([0-9]+-[0-9]+\.tmp|[A-Za-z0-9]{6}))");
  std::error_code ignored;
  fs::remove_all(folder + "/running", ignored);
  for (const std::string& part : {folder, folder + "/points"})
    for (fs::directory_iterator at(part, ignored), end; !ignored && at != end;
         at.increment(ignored))
      if (std::regex_match(at->path().filename().string(), temporary))
        fs::remove(at->path(), ignored);
}

void open_study(const Study& study, const std::string& folder, const Json& simulator,
                bool restart) {
  const std::string path = folder + "/study.json";
  std::string begun = utc_now();
  Json machine = machine_json();
  if (fs::exists(path)) {
    if (restart) {
      fs::remove_all(folder + "/points");
    } else {
      const Json stored = read_json(path);
      check_same_study(stored, study, simulator, folder);
      const JsonObject object(stored, path);
      begun = object.text_or("begun", begun);
      machine = object.object("machine").json();
    }
  }
  fs::create_directories(folder + "/points");
  host::write_output_file("-o", path,
                          json_text({{"schema", kSchema},
                                     {"simulator", simulator},
                                     {"machine", machine},
                                     {"begun", begun},
                                     {"study", study_json(study)}}));
}

bool is_same_study(const std::string& folder, const Json& simulator, const Study& asked) {
  const std::string path = folder + "/study.json";
  if (!fs::exists(path)) return false;
  const Json stored = read_json(path);
  const JsonObject object(stored, path);
  const Study old = study_of_json(object.get("study"), object.at("study"));
  return object.get("simulator") == simulator &&
         study_json(as_begun(asked, old)) == study_json(old);
}

Study joined_study(const std::string& folder, const Json& simulator, const std::string& node,
                   const Study* asked) {
  const std::string path = folder + "/study.json";
  if (!fs::exists(path))
    throw Error(
        fmt::format("{}: there is no study, as {} sees it: it is begun by `gpusim sweep ... -o "
                    "{}`, and all machines must share the folder",
                    folder, node, folder));
  const Json stored = read_json(path);
  const JsonObject object(stored, path);
  if (object.get("simulator") != simulator)
    throw Error(
        fmt::format("{}: the study was begun by another gpusim ({}) than there is at {} "
                    "({}): all machines need the same file",
                    folder, made_by(object.get("simulator")), node, made_by(simulator)));
  Study study = study_of_json(object.get("study"), object.at("study"));
  for (const Case& c : study.cases)
    if (sha256_file(c.program) != c.program_sha256)
      throw Error(
          fmt::format("{}: the program of {}, {}, is another file at {} than where the study began",
                      folder, c.label, c.program, node));
  if (asked && study_json(as_begun(*asked, study)) != study_json(study))
    throw Error(
        fmt::format("-o {}: {} was asked for another study than the one that others run there; "
                    "name another folder, or give all the same command",
                    folder, node));
  return study;
}

StoredStudy load_stored_study(const std::string& folder) {
  if (!fs::is_directory(folder)) throw Error(fmt::format("{}: no folder of a study", folder));
  const std::string path = folder + "/study.json";
  const Json json = read_json(path);
  const JsonObject object(json, path);
  StoredStudy stored;
  const JsonObject simulator = object.object("simulator"), machine = object.object("machine");
  for (const char* key : {"version", "sha256"}) (void)simulator.text_or(key, "");
  for (const char* key : {"processor", "system"}) (void)machine.text_or(key, "");
  for (const char* key : {"host_threads", "memory_bytes"}) (void)machine.number_or(key, 0);
  stored.simulator = simulator.json();
  stored.machine = machine.json();
  object.read("begun", stored.begun);
  stored.study = study_of_json(object.get("study"), object.at("study"));
  // By what stands in them and not by name: the study may come from another machine.
  std::vector<std::pair<size_t, Point>> found;
  std::error_code error;
  for (fs::directory_iterator at(folder + "/points", error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() != ".json") continue;
    const Json point = Json::parse(read_text(at->path()), nullptr, false);
    if (!point.is_object() || !point.contains("identity")) continue;
    const Json& identity = point["identity"];
    const auto is = [&](const char* key, const Json& value) {
      return identity.is_object() && identity.contains(key) && identity[key] == value;
    };
    for (size_t c = 0; c < stored.study.cases.size(); ++c) {
      const Case& one = stored.study.cases[c];
      if (is("label", one.label) && is("program_sha256", one.program_sha256) &&
          is("simulator", stored.simulator))
        found.emplace_back(c, point_of_json(point, at->path()));
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    const auto key = [](const auto& f) {
      return std::tie(f.first, f.second.backend_asked, f.second.cores, f.second.repeat,
                      f.second.started);
    };
    return key(a) < key(b);
  });
  for (auto& [c, point] : found) stored.points.push_back(std::move(point));
  return stored;
}

}  // namespace gpusim::sweep
