// Charts of pages (page.h) as SVG files for documents: on white, as wide as a column of text, 88
// mm, with letters of 8 points. Programs such as rsvg-convert turn them into PDF of that size.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gpusim::page {

// Throws Error for what is no chart: a table, or a kind that page.h does not name.
std::string chart_svg(const nlohmann::ordered_json& chart);

// The colour of a share from 0 to 1 in heat maps: from dark blue to yellow.
std::string heat_colour(double share);

// A number as axes and tables of pages write it: `format` is one of page.h's.
std::string number_text(double value, const std::string& format, const std::string& unit,
                        int digits = 4);

}  // namespace gpusim::page
