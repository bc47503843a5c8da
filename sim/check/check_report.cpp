// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/check_report.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/printable.h"
#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/report/facts.h"
#include "sim/report/json.h"
#include "sim/report/ratios.h"
#include "sim/report/table.h"
#include "sim/report/writers/job_writer.h"
#include "sim/trace/findings.h"

namespace reshard::sim {
namespace {

class Wording {
 public:
  explicit Wording(const CheckReport& report) : report_(report) {}

  // "rank 2: k_proj[0:4,:] in 'qkv' gets q_proj[4:8,:] of rank 0".
  std::string example(const Finding& finding) const {
    const CopyFault& fault = finding.faults.front();
    std::string out = fmt::format("rank {}", to_int(fault.to));
    if (fault.kind == CopyFaultKind::OutOfBuffer)
      return fmt::format("{}: {}", out, out_of_buffer(fault));
    if (fault.tensor == ModelTensorId{-1})
      return fmt::format("{}: '{}' is written, which the rank does not have", out, fault.why);
    out += fmt::format(": {}", element_text(tensor(fault.tensor), fault.box));
    if (fault.buffer != StoredBufferId{-1})
      out += fmt::format(
          " in '{}'{}", destination().buffers()[fault.buffer].name,
          is_there_again(fault) ? fmt::format(" at element {}", *first_element(fault)) : "");
    return out + what(fault);
  }

  // The index in the buffer of the box's first element.
  std::optional<std::int64_t> first_element(const CopyFault& fault) const {
    if (fault.part < 0) return std::nullopt;
    const StoredPart& part = destination()[{fault.buffer, fault.part}];
    std::int64_t out = part.offset;
    for (int d = 0; d < fault.box.dims(); ++d)
      out += (fault.box.lo[d] - part.box.lo[d]) * part.strides[d];
    return out;
  }

  std::string lines(const Finding& finding) const {
    constexpr std::size_t kShown = 6;
    if (finding.lines.empty()) return {};
    std::string out = finding.lines.size() == 1 ? "line" : "lines";
    for (std::size_t i = 0; i < finding.lines.size() && i < kShown; ++i)
      out += fmt::format("{} {}", i == 0 ? "" : ",", finding.lines[i]);
    return finding.lines.size() > kShown
               ? fmt::format("{}, .. ({} in total)", out, finding.lines.size())
               : out;
  }

 private:
  bool is_there_again(const CopyFault& fault) const {
    if (fault.part < 0) return false;
    std::span<const Stored::PartId> parts = destination().parts_of(fault.to, fault.tensor);
    return std::count_if(parts.begin(), parts.end(), [&](Stored::PartId id) {
             return id.buffer == fault.buffer &&
                    !intersect(destination()[id].box, fault.box).empty();
           }) > 1;
  }
  const Stored& destination() const { return *report_.copies.destination; }
  const ModelTensor& tensor(ModelTensorId id) const { return (*report_.copies.tensors)[id]; }

  std::string out_of_buffer(const CopyFault& fault) const {
    bool reads = fault.from != Rank{-1};
    return fmt::format("{} elements are {} '{}'{}", fault.elements,
                       reads ? "read from outside of" : "written outside of", fault.why,
                       reads ? fmt::format(" of rank {}", to_int(fault.from)) : "");
  }

  std::string what(const CopyFault& fault) const {
    switch (fault.kind) {
      case CopyFaultKind::WrongTensor:
      case CopyFaultKind::WrongIndex:
      case CopyFaultKind::WrongDtype:
        return got(fault);
      case CopyFaultKind::Padding:
        return fmt::format(" gets padding of rank {}", to_int(fault.from));
      case CopyFaultKind::NotHeld:
        return fault.from == Rank{-1} ? " is written, which the rank does not hold"
                                      : fmt::format(" is read from rank {}, which does not hold it",
                                                    to_int(fault.from));
      case CopyFaultKind::WrittenTwice:
        return " is written twice";
      case CopyFaultKind::Missing:
        return " is never written";
      case CopyFaultKind::Torn:
        return " " + fault.why;
      case CopyFaultKind::OutOfBuffer:
        break;
    }
    return {};
  }

  // The box of the tensor that arrives, if a box of the same extents fits it; otherwise where the
  // box begins.
  std::string got(const CopyFault& fault) const {
    if (fault.got == ModelTensorId{-1})
      return fmt::format(" gets padding of rank {}, which is {}", to_int(fault.from),
                         reshard::text(fault.got_dtype));
    const ModelTensor& other = tensor(fault.got);
    Box box{fault.got_lo, fault.got_lo};
    const bool fits = !fault.reordered && fault.box.dims() == box.dims();
    for (int d = 0; d < box.dims(); ++d) box.hi[d] += fits ? fault.box.extent(d) : 1;
    std::string dtype = fault.kind == CopyFaultKind::WrongDtype
                            ? fmt::format(", which is {}", reshard::text(fault.got_dtype))
                            : "";
    return fmt::format(" gets {}{} of rank {}{}", element_text(other, box),
                       fits                  ? ""
                       : fault.elements == 1 ? ""
                                             : " and on, in another order,",
                       to_int(fault.from), dtype);
  }

  const CheckReport& report_;
};

std::string sides_text(const CheckedCopies& copies) {
  return fmt::format("{} to {}", ranks_words(copies.source->ranks()),
                     ranks_words(copies.destination->ranks()));
}

void add_cost(const CopiesCost& cost, Facts& facts) {
  const RunReport& given = cost.given;
  std::int64_t bound_ps = given.bound.time_ps();
  facts.add("topology", fmt::format("{} ({} of {} devices)", given.topology, given.ranks.size(),
                                    given.topology_devices));
  for (const std::string& assumed : given.assumed) facts.add("assumed", assumed);
  facts.add("received", fmt::format("{}, {} by the rank that receives most",
                                    bytes_text(given.bytes.received_total),
                                    bytes_text(given.bytes.received_max)));
  facts.add("time", fmt::format("{} ({}), all copies at once", duration_text(given.time_ps),
                                given.transport));
  facts.add("bound", fmt::format("{}, limited by {}", duration_text(bound_ps),
                                 text(given.bound.limited_by())));
  facts.add("ratio to bound", ratio_of(given.time_ps, bound_ps));
  if (given.job) add_limits(given.job->facts, given.job->lost, given.time_ps, facts);
  facts.add("ours takes", fmt::format("{} ({}), {} x the bound", duration_text(cost.ours_ps),
                                      cost.plan_by, ratio_of(cost.ours_ps, bound_ps)));
}

std::string without_text(const CheckReport& report, std::size_t rows, std::size_t width) {
  const std::vector<LostRank>& lost = *report.without;
  std::size_t ranks = report.copies.source->ranks().size();
  std::string out =
      fmt::format("\nwithout one rank: {} of {} hold what no other rank does\n", lost.size(),
                  counted(static_cast<std::int64_t>(ranks), "source rank"));
  if (lost.empty()) return out;
  Table table({">rank", ">tensors", ">bytes", "for example"});
  for (std::size_t i = 0; i < lost.size() && i < rows; ++i) {
    const LostTensor& first = lost[i].tensors.front();
    const ModelTensor* tensor = report.copies.tensors->find(first.name);
    table.add_row({fmt::to_string(to_int(lost[i].rank)), fmt::to_string(lost[i].tensors.size()),
                   bytes_text(lost[i].bytes), element_text(*tensor, first.first)});
  }
  out += table.text(width);
  if (lost.size() > rows)
    out += fmt::format("and {} more ranks (--verbose lists all)\n", lost.size() - rows);
  return out;
}

Json without_json(const std::vector<LostRank>& lost) {
  return list_json(lost, [](const LostRank& rank) {
    return Json{{"rank", to_int(rank.rank)},
                {"bytes", rank.bytes},
                {"tensors", list_json(rank.tensors, [](const LostTensor& tensor) {
                   return Json{{"name", tensor.name},
                               {"elements", tensor.elements},
                               {"first_box", text(tensor.first)}};
                 })}};
  });
}

Json cost_json(const CopiesCost& cost) {
  const RunReport& given = cost.given;
  std::int64_t bound_ps = given.bound.time_ps();
  return {{"topology", given.topology},
          {"transport", given.transport},
          {"time_ps", given.time_ps},
          {"bytes_received_total", given.bytes.received_total},
          {"bytes_received_max", given.bytes.received_max},
          {"bound_ps", bound_ps},
          {"limited_by", text(given.bound.limited_by())},
          {"ratio_to_bound", decimal_json(ratio_e4(given.time_ps, bound_ps))},
          {"ours",
           {{"plan_by", cost.plan_by},
            {"time_ps", cost.ours_ps},
            {"ratio_to_bound", decimal_json(ratio_e4(cost.ours_ps, bound_ps))}}}};
}

// Every place of a finding; only the first ones if there are thousands.
Json boxes_json(const Finding& finding, const Wording& wording, const CheckedCopies& copies) {
  constexpr std::size_t kMostBoxes = 256;
  Json out = Json::array();
  for (std::size_t i = 0; i < finding.faults.size() && i < kMostBoxes; ++i) {
    const CopyFault& fault = finding.faults[i];
    bool has_buffer = fault.buffer != StoredBufferId{-1};
    auto at = wording.first_element(fault);
    out.push_back(
        {{"rank", to_int(fault.to)},
         {"buffer", has_buffer ? Json(copies.destination->buffers()[fault.buffer].name) : nullptr},
         {"offset", at ? Json(*at) : nullptr},
         {"lo", values_json(fault.box.lo)},
         {"extents", values_json(fault.box.extents())},
         {"from_rank", fault.from != Rank{-1} ? Json(to_int(fault.from)) : nullptr},
         {"got_lo", fault.got != ModelTensorId{-1} ? values_json(fault.got_lo) : nullptr},
         {"lines", fault.lines}});
  }
  return out;
}

// False if every tensor is empty, so that no rank needs a buffer; a file without tensors is none.
bool has_something(const ModelTensors& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (element_count(tensors[id_of<ModelTensorId>(i)].shape) > 0) return true;
  return tensors.size() == 0;
}

}  // namespace

CheckReport report_of(CheckedCopies copies) {
  if (copies.destination->buffers().empty() && has_something(*copies.tensors))
    throw InputError(fmt::format("{}: expected buffers of side \"to\", found none", copies.file));
  CheckReport out;
  out.findings = findings_of(copies.faults, *copies.source, *copies.destination);
  out.copies = std::move(copies);
  return out;
}

std::string verdict(const CheckReport& report) {
  if (report.findings.empty()) return "proved";
  std::string out = counted(static_cast<std::int64_t>(report.findings.size()), "finding");
  return report.copies.has_more ? fmt::format("{}, of the first {} places", out, Judge::kMostFaults)
                                : out;
}

std::string check_text(const CheckReport& report, std::size_t rows, std::size_t width) {
  const CheckedCopies& copies = report.copies;
  Facts facts;
  facts.add("copies",
            fmt::format("{}: {} of {}, {}", copies.file, copies.copies,
                        counted(static_cast<std::int64_t>(copies.tensors->size()), "tensor"),
                        bytes_text(copies.bytes)));
  facts.add("ranks", sides_text(copies));
  facts.add("verdict",
            report.findings.empty()
                ? "proved: every element of the destination is written once, and is right"
                : verdict(report));
  if (report.cost) add_cost(*report.cost, facts);
  if (!report.no_cost.empty()) facts.add("cost", report.no_cost);
  std::string out = facts.text(width);
  if (report.without) out += without_text(report, rows, width);
  if (report.findings.empty()) return out;
  Wording wording(report);
  Table table({"finding", ">elements", ">places", "for example"});
  for (std::size_t i = 0; i < report.findings.size() && i < rows; ++i) {
    const Finding& finding = report.findings[i];
    std::string where = wording.example(finding);
    if (std::string lines = wording.lines(finding); !lines.empty())
      where += fmt::format("; {}", lines);
    table.add_row({std::string(text(finding.kind)), fmt::to_string(finding.elements),
                   fmt::to_string(finding.faults.size()), where});
    if (!finding.mistake.empty()) table.add_note(fmt::format("looks like: {}", finding.mistake));
  }
  out += fmt::format("\n{}", table.text(width));
  if (report.findings.size() > rows)
    out +=
        fmt::format("and {} more findings (--verbose lists all)\n", report.findings.size() - rows);
  return out;
}

std::string finding_text(const CheckReport& report, const Finding& finding) {
  Wording wording(report);
  std::string out = fmt::format("{}: {}", text(finding.kind), wording.example(finding));
  if (std::string lines = wording.lines(finding); !lines.empty()) out += "; " + lines;
  if (!finding.mistake.empty()) out += fmt::format("; looks like: {}", finding.mistake);
  if (finding.faults.size() > 1) out += fmt::format("; {} places", finding.faults.size());
  return out;
}

std::string check_json(const CheckReport& report) {
  const CheckedCopies& copies = report.copies;
  Wording wording(report);
  auto numbers = [](const std::vector<Rank>& ranks) {
    return list_json(ranks, [](Rank rank) { return to_int(rank); });
  };
  return written(
      {{"schema", "reshard.check/1"},
       {"file", copies.file},
       {"tensors", copies.tensors->size()},
       {"from_ranks", numbers(copies.source->ranks())},
       {"to_ranks", numbers(copies.destination->ranks())},
       {"copies", copies.copies},
       {"bytes", copies.bytes},
       {"proved", report.findings.empty()},
       {"all_places", !copies.has_more},
       {"cost", report.cost ? cost_json(*report.cost) : Json(nullptr)},
       {"without_each", report.without ? without_json(*report.without) : Json(nullptr)},
       {"findings", list_json(report.findings, [&](const Finding& finding) {
          bool has_tensor = finding.tensor != ModelTensorId{-1};
          bool has_got = finding.got != ModelTensorId{-1};
          return Json{
              {"kind", text(finding.kind)},
              {"tensor", has_tensor ? Json((*copies.tensors)[finding.tensor].name) : Json(nullptr)},
              {"got", has_got ? Json((*copies.tensors)[finding.got].name) : Json(nullptr)},
              {"elements", finding.elements},
              {"places", finding.faults.size()},
              {"to_ranks", numbers(finding.to)},
              {"from_ranks", numbers(finding.from)},
              {"lines", finding.lines},
              {"example", wording.example(finding)},
              {"boxes", boxes_json(finding, wording, copies)},
              {"mistake", or_null(finding.mistake)}};
        })}});
}

}  // namespace reshard::sim
