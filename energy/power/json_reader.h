// Members of a JSON object, with messages that name what is wrong and where.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "energy/power/curve.h"

namespace gpusim::power {

class JsonReader {
 public:
  // Throws energy::Error unless `object` is one. It must outlive the reader.
  JsonReader(const nlohmann::json& object, std::string where);
  const nlohmann::json* find(const std::string& key);
  double number(const std::string& key, double otherwise, double least);
  std::optional<double> number(const std::string& key, double least);
  std::string text(const std::string& key, const std::string& otherwise);
  void seconds(const std::string& key, Seconds& to, double least = 0);
  void watts(const std::string& key, Watts& to, double least = 0);
  void boolean(const std::string& key, bool& to);
  void knots(const std::string& key, std::vector<Knot>& to);  // [[seconds, watts], ...]
  std::vector<std::string> texts(const std::string& key);
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;
  // Throws where the object has members that nobody asked for.
  void finish() const;

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> asked_;
};

// Throws energy::Error that names `origin`.
nlohmann::json parse_json(const std::string& text, const std::string& origin);

}  // namespace gpusim::power
