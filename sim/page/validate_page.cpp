// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/validate_page.h"

#include <fmt/format.h>

#include "core/base/units.h"
#include "core/traffic/workload.h"
#include "sim/page/measured_picture.h"
#include "sim/page/run_page.h"
#include "sim/page/timeline_picture.h"
#include "sim/report/common_facts.h"

namespace reshard::sim {

namespace {

std::vector<Figure> figures_of(const ValidateReport& report) {
  const RunReport& predicted = report.predicted;
  const Spread& total = report.measured.total;
  const ValueFacts& values = report.values;
  return {{"measured", duration_text(total.median_ps),
           fmt::format("median of {}", counted(report.iterations, "run"))},
          {"predicted", duration_text(predicted.time_ps), "for " + predicted.topology},
          {"measured to predicted", ratio_of(total.median_ps, predicted.time_ps)},
          {"wrong elements", std::to_string(values.wrong()),
           fmt::format("of {}, compared bit for bit", values.elements())},
          {"received, fullest rank", bytes_text(predicted.bytes.received_max),
           bytes_text(predicted.bytes.received_total) + " in all"}};
}

}  // namespace

std::string validate_page(const ValidateReport& report, const Study& study,
                          const Timeline& median) {
  const RunReport& predicted = report.predicted;
  Page page("validation", run_title(predicted));
  draw_figures(page.header(), figures_of(report));
  std::vector<Fact> facts = run_facts(predicted);
  facts.insert(facts.begin(), {"backend", fmt::format("{}: {}", report.backend, report.library)});
  draw_facts(page.header(), facts);
  draw_measured(page.add_panel("measured", "Predicted and measured",
                               "By step, from the start of its first part to the end of its last."),
                report);
  if (median.end_ps > 0)
    draw_timeline(page.add_panel("measured-timeline", "Measured timeline",
                                 "What every rank did when, in the median run."),
                  {workload_of(study.shared_plan()), {}, median});
  add_run_panels(page, predicted, study, "Predicted timeline");
  return page.text();
}

}  // namespace reshard::sim
