// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/junit.h"

#include <cstdint>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "sim/picture/markup.h"

namespace reshard::sim {

std::vector<JUnitCase> junit_cases(const CheckReport& report) {
  const CheckedCopies& copies = report.copies;
  std::map<ModelTensorId, JUnitCase> by_tensor;
  JUnitCase others{"copies within their buffers"};
  for (const StoredBuffer& buffer : copies.destination->buffers())
    for (const StoredPart& part : buffer.parts)
      by_tensor.try_emplace(part.tensor, JUnitCase{(*copies.tensors)[part.tensor].name});
  for (const Finding& finding : report.findings) {
    auto found = by_tensor.find(finding.tensor);
    (found == by_tensor.end() ? others : found->second)
        .failures.push_back(finding_text(report, finding));
  }
  std::vector<JUnitCase> out{std::move(others)};
  for (auto& [tensor, each] : by_tensor) out.push_back(std::move(each));
  return out;
}

std::vector<JUnitCase> junit_cases(const std::vector<CheckedLimit>& limits) {
  std::vector<JUnitCase> out;
  for (const CheckedLimit& limit : limits) {
    out.push_back({limit.text});
    if (limit.is_passed) out.back().failures = {limit.found};
  }
  return out;
}

std::string junit_xml(std::string_view suite, const std::vector<JUnitCase>& cases) {
  std::int64_t failed = 0;
  for (const JUnitCase& each : cases) failed += each.failures.empty() ? 0 : 1;
  pugi::xml_document document;
  Node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  auto count = static_cast<std::int64_t>(cases.size());
  Node suites = add(document, "testsuites", {{"tests", count}, {"failures", failed}});
  Node list =
      add(suites, "testsuite",
          {{"name", suite}, {"tests", count}, {"failures", failed}, {"errors", 0}, {"skipped", 0}});
  for (const JUnitCase& each : cases) {
    Node node = add(list, "testcase", {{"classname", suite}, {"name", each.name}});
    if (each.failures.empty()) continue;
    add(node, "failure", {{"message", each.failures.front()}},
        fmt::format("{}", fmt::join(each.failures, "\n")));
  }
  std::ostringstream out;
  document.save(out, "  ");
  return out.str();
}

}  // namespace reshard::sim
