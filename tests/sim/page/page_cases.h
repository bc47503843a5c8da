// SPDX-License-Identifier: BSD-3-Clause
// Pages of small runs, and functions to examine them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <catch2/catch.hpp>
#include <pugixml.hpp>

#include "sim/machines/presets.h"
#include "sim/page/pages.h"
#include "sim/report/run_report.h"
#include "sim/study/studies.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard::sim {

struct StudiedRun {
  std::shared_ptr<Study> study;
  RunReport report;
  std::string page() const { return run_page("simulation", report, *study); }
};

inline StudiedRun studied(const Request& request, std::string_view topology,
                          std::string_view planner = "auto") {
  StudyOptions options;
  options.explain = true;
  options.record.spans = true;
  Studies studies(std::make_shared<const Topology>(find_topology(topology)), find_planner(planner),
                  options);
  std::shared_ptr<Study> study = studies.of(request);
  RunReport report = report_on(*study);
  report.planner_asked = planner;
  report.path = study->critical_path();
  return {study, std::move(report)};
}

// The page as a tree; it must outlive its nodes.
struct ReadPage {
  explicit ReadPage(const std::string& text) {
    pugi::xml_parse_result result = document.load_string(text.c_str(), pugi::parse_full);
    INFO(result.description());
    CHECK(result);
  }
  pugi::xml_node panel(const std::string& id) const {
    return document.select_node(("//section[@id='" + id + "']").c_str()).node();
  }
  // The figure of this name at the top of the page, as text.
  std::string figure(const std::string& name) const {
    return document.select_node(("//dl/div[dt='" + name + "']/dd").c_str()).node().text().get();
  }
  std::size_t count(const char* path) const { return document.select_nodes(path).size(); }
  pugi::xml_document document;
};

}  // namespace reshard::sim
