// What `gpusim energy validate` says of a sheet: text, JSON, a page.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "energy/accelwattch/accuracy.h"
#include "energy/accelwattch/sheet.h"

namespace gpusim::accelwattch {

// "MAPE 9.23 +- 3.12 % (...), maximum error ..., Pearson r ...": one line.
std::string accuracy_line(const Sheet& sheet, const Accuracy& accuracy);
std::string kernel_table(const Sheet& sheet);
std::string component_table(const Sheet& sheet);

nlohmann::ordered_json accuracy_json(const Sheet& sheet, const Accuracy& accuracy);
nlohmann::ordered_json validation_json(const Sheet& sheet, const Accuracy& accuracy);

// One file that needs no other, readable on light and dark ground.
std::string validation_page(const Sheet& sheet, const Accuracy& accuracy, const std::string& title);
// A chart and the tables of a sheet without measurements.
std::string prediction_page(const Sheet& sheet, const std::string& chart, const std::string& title);

}  // namespace gpusim::accelwattch
