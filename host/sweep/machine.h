// Where a study ran and of what: so that another person can repeat it.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include <sha2.h>

namespace gpusim::sweep {

class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  std::string hex();  // once, at the end

 private:
  SHA2_CTX context_;
};

std::string sha256_of(std::string_view text);
// Throws Error.
std::string sha256_file(const std::string& path);

// Of this program: {"version", "sha256"}.
nlohmann::ordered_json simulator_json(const std::string& version);
// {"processor", "host_threads", "memory_bytes", "system"}; no names of users or hosts.
nlohmann::ordered_json machine_json();
double load_average();    // of the last minute; negative if not known
std::string utc_now();    // "2026-11-22T01:02:03Z"
// As a shell would take it.
std::string quoted(const std::string& word);

}  // namespace gpusim::sweep
