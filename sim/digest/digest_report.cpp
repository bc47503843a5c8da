// SPDX-License-Identifier: BSD-3-Clause
#include "sim/digest/digest_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/sort_once.h"
#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/report/facts.h"
#include "sim/report/json.h"
#include "sim/report/table.h"
#include "sim/trace/findings.h"

namespace reshard::sim {
namespace {

class Wording {
 public:
  explicit Wording(const DigestReport& report) : report_(report) {}

  // "ranks 1-4: k_proj[0:2,:] in 'qkv' has q_proj[4:6,:]".
  std::string example(const DigestFinding& finding) const {
    const DigestFault& fault = finding.faults.front();
    if (finding.tensor == ModelTensorId{-1})
      return fmt::format("{}: no digests of any buffer", ranks_words(finding.ranks));
    std::string out = fmt::format("{}: {}", ranks_words(ranks_as(finding, fault)),
                                  element_text(tensors()[finding.tensor], fault.box));
    out += fmt::format(" in '{}'", finding.buffer);
    switch (fault.kind) {
      case DigestFaultKind::WrongTensor:
      case DigestFaultKind::WrongIndex:
        return fmt::format("{} {} {}", out, fault.whole ? "has" : "begins with",
                           element_text(tensors()[fault.got], fault.got_box));
      case DigestFaultKind::Stale:
        return out + " is as it was before";
      case DigestFaultKind::Zeros:
        return out + " is all zeros";
      case DigestFaultKind::OtherData:
        return out + " has data of no known place";
      default:
        return out + " has no digests";
    }
  }

  Json json(const DigestFinding& finding) const {
    auto name = [&](ModelTensorId id) {
      return id == ModelTensorId{-1} ? Json(nullptr) : Json(tensors()[id].name);
    };
    return {{"kind", text(finding.kind)},
            {"side", text(finding.side)},
            {"tensor", name(finding.tensor)},
            {"buffer", or_null(finding.buffer)},
            {"got", name(finding.got)},
            {"elements", finding.elements},
            {"ranks", ranks_text(finding.ranks)},
            {"shift_rows", or_null(finding.shift)},
            {"swapped", finding.faults.front().swapped},
            {"example", example(finding)},
            {"mistake", or_null(finding.mistake)},
            {"places", list_json(finding.faults, [&](const DigestFault& fault) {
               const StoredBuffer& buffer = buffer_of(fault);
               const StoredPart& part = buffer.parts[to_index(fault.part)];
               bool has_got = fault.got != ModelTensorId{-1};
               return Json{
                   {"rank", to_int(buffer.rank)},
                   {"buffer", buffer.name},
                   {"elements", element_text(tensors()[part.tensor], fault.box)},
                   {"got", has_got ? Json(element_text(tensors()[fault.got], fault.got_box))
                                   : Json(nullptr)},
                   {"whole", fault.whole},
                   {"got_ranks", has_got ? Json(ranks_text(fault.got_ranks)) : Json(nullptr)}};
             })}};
  }

 private:
  const ModelTensors& tensors() const { return *report_.layouts->tensors; }
  const StoredBuffer& buffer_of(const DigestFault& fault) const {
    return side_of(*report_.layouts, fault.side).buffers()[fault.buffer];
  }
  // The ranks that have the same data at the same place.
  std::vector<Rank> ranks_as(const DigestFinding& finding, const DigestFault& fault) const {
    std::vector<Rank> out;
    for (const DigestFault& other : finding.faults)
      if (other.box == fault.box && other.got_box == fault.got_box)
        out.push_back(buffer_of(other).rank);
    sort_once(out);
    return out;
  }

  const DigestReport& report_;
};

std::vector<Rank> ranks_of(const DigestReport& report) {
  std::vector<Rank> out;
  for (DigestSide side : report.comparison.sides)
    for (Rank rank : side_of(*report.layouts, side).ranks()) out.push_back(rank);
  sort_once(out);
  return out;
}

}  // namespace

std::string verdict(const DigestReport& report) {
  const DigestComparison& found = report.comparison;
  if (found.findings.empty()) return "equal";
  std::string out = counted(static_cast<std::int64_t>(found.findings.size()), "finding");
  return found.all_places
             ? out
             : fmt::format("{}, of the first {} blocks", out, DigestComparison::kMostPlaces);
}

std::string digest_text(const DigestReport& report, std::size_t rows, std::size_t width) {
  const DigestComparison& found = report.comparison;
  Facts facts;
  facts.add("expected", report.expected);
  facts.add("found", report.wrote);
  facts.add("ranks", fmt::format("{} ({}): {}, {}", ranks_words(ranks_of(report)),
                                 joined(found.sides, ", ", [](auto side) { return text(side); }),
                                 counted(found.blocks, "block"), bytes_text(found.bytes)));
  facts.add("verdict",
            found.findings.empty() ? "equal: every rank has what it should" : verdict(report));
  std::string out = facts.text(width);
  if (found.findings.empty()) return out;
  Wording wording(report);
  Table table({"finding", ">elements", ">places", "for example"});
  for (std::size_t i = 0; i < found.findings.size() && i < rows; ++i) {
    const DigestFinding& finding = found.findings[i];
    table.add_row({std::string(text(finding.kind)), fmt::to_string(finding.elements),
                   fmt::to_string(finding.faults.size()), wording.example(finding)});
    if (!finding.mistake.empty()) table.add_note(fmt::format("looks like: {}", finding.mistake));
  }
  out += fmt::format("\n{}", table.text(width));
  if (found.findings.size() > rows)
    out +=
        fmt::format("and {} more findings (--verbose lists all)\n", found.findings.size() - rows);
  return out;
}

std::string digest_json(const DigestReport& report) {
  const DigestComparison& found = report.comparison;
  Wording wording(report);
  return written({{"schema", "reshard.digest/1"},
                  {"expected", report.expected},
                  {"found", report.wrote},
                  {"sides", list_json(found.sides, [](auto side) { return text(side); })},
                  {"ranks", ranks_text(ranks_of(report))},
                  {"blocks", found.blocks},
                  {"bytes", found.bytes},
                  {"equal", found.findings.empty()},
                  {"all_places", found.all_places},
                  {"findings", list_json(found.findings, [&](const DigestFinding& finding) {
                     return wording.json(finding);
                   })}});
}

}  // namespace reshard::sim
