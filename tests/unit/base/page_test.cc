#include "device_sim/base/page.h"

#include <doctest/doctest.h>

#include <limits>

#include "device_sim/base/assets.h"

namespace gpusim::page {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("what a page is given cannot become markup or script") {
  Page page("<b>&\"");
  page.set_subtitle("</p><script>alert(1)</script>");
  page.add_section("<img src=x>");
  page.add_text("a < b");
  page.add_code("</pre><i>");
  page.add_chart({{"kind", "lines"}, {"title", "</script><script>alert(2)</script>"}});
  page.embed("mine", {{"text", "</script><!--"}});
  const std::string html = page.html();
  CHECK(has(html, "<title>&lt;b&gt;&amp;&quot;</title>"));
  CHECK_FALSE(has(html, "<script>alert"));
  CHECK_FALSE(has(html, "<img"));
  CHECK_FALSE(has(html, "<!--"));
  CHECK_FALSE(has(html, "<i>"));
  CHECK(has(html, "\\u003c/script>\\u003cscript>alert(2)"));
}

TEST_CASE("a page names no other files and no addresses") {
  Page page("title");
  page.add_section("one");
  const std::string html = page.html();
  CHECK(has(html, "default-src 'none'"));
  for (const std::string part :
       {"src=\"", "url(h", "@import", "https:", "fetch(", "XMLHttpRequest"}) {
    INFO(part);
    CHECK_FALSE(has(html, part));
  }
}

TEST_CASE("figures and sections stand in their order") {
  Page page("title");
  page.add_section("first");
  page.add_charts("program", {{"a", {{"title", "A"}}}, {"b", {{"title", "B"}}}});
  page.add_section("second");
  page.add_table({{"columns", Json::array()}, {"rows", Json::array()}}, "points", "all points");
  page.add_charts("nothing", {});
  const std::string html = page.html();
  CHECK(has(html, "<a href=\"#s1\">first</a>"));
  CHECK(html.find("data-figure=\"0\"") < html.find("id=\"s2\""));
  CHECK(html.find("<summary>all points</summary>") < html.find("data-figure=\"1\""));
  CHECK_FALSE(has(html, "data-figure=\"2\""));
  CHECK(has(html, "\"what\":\"program\",\"views\":[{\"name\":\"a\",\"view\":{\"title\":\"A\"}}"));
}

TEST_CASE("numbers keep what a picture needs") {
  CHECK(rounded(1.0 / 3).dump() == "0.333333");
  CHECK(rounded(65536).dump() == "65536");
  CHECK(rounded(123456789.25).dump() == "123457000.0");
  CHECK(rounded(0).dump() == "0");
  CHECK(rounded(std::numeric_limits<double>::infinity()).is_null());
  CHECK(rounded(std::numeric_limits<double>::quiet_NaN()).is_null());
}

TEST_CASE("script and style are built in whole") {
  CHECK(has(asset("page.js"), "\"use strict\""));
  CHECK(asset("page.js").ends_with("})();\n"));
  CHECK(has(asset("page.css"), "prefers-color-scheme"));
  CHECK(asset("nothing").empty());
}

}  // namespace
}  // namespace gpusim::page
