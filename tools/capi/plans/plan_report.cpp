// SPDX-License-Identifier: BSD-3-Clause
// The C API: reports of a plan, written from what planning found out.
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "sim/job/job.h"
#include "sim/page/pages.h"
#include "sim/report/run_report.h"
#include "sim/report/writers/perfetto.h"
#include "sim/store/data_check.h"
#include "tools/capi/guard.h"
#include "tools/capi/handles.h"
#include "tools/cli/output/output.h"

using namespace reshard;
using namespace reshard::capi;

namespace {

struct ReportForm {
  std::string_view name;
  std::string (*write)(sim::Job& job);
};

std::string table(sim::Job& job, bool explain) {
  return sim::plan_table(job.report_with_torch(explain), explain, false, tools::screen_width());
}

std::string simulation(sim::Job& job, sim::DataReport&& data) {
  sim::RunReport report = job.report(true);
  report.data = std::move(data);
  return sim::simulate_json(report);
}

constexpr ReportForm kForms[] = {
    {"table", [](sim::Job& job) { return table(job, false); }},
    {"explanation", [](sim::Job& job) { return table(job, true); }},
    {"json", [](sim::Job& job) { return sim::plan_json(job.report_with_torch(true)); }},
    {"html",
     [](sim::Job& job) { return sim::run_page("plan", job.report_with_torch(true), job.study()); }},
    {"perfetto",
     [](sim::Job& job) {
       std::ostringstream out;
       sim::write_perfetto(out, job.study());
       return out.str();
     }},
    {"simulation",
     [](sim::Job& job) { return simulation(job, job.moved(sim::kDefaultDataBudgetBytes)); }},
    {"simulation-proof",
     [](sim::Job& job) {
       return simulation(job, sim::not_moved(job.study().tensors(), "--data proof"));
     }},
};

const ReportForm& find_form(std::string_view name) {
  std::string names;
  for (const ReportForm& form : kForms) {
    if (form.name == name) return form;
    names += (names.empty() ? "" : ", ") + std::string(form.name);
  }
  throw InputError(fmt::format("form: expected one of {}, found {}", names, quoted(name)));
}

}  // namespace

extern "C" {

int32_t reshard_plan_report(const reshard_plan* plan, const char* form, char** text,
                            int64_t* text_bytes) {
  return guarded([&] {
    const reshard_plan& handle = given(plan, "plan");
    const ReportForm& wanted = find_form(&given(form, "form"));
    given(text, "text");
    given(text_bytes, "text_bytes");
    give_text(handle.with_job(wanted.write), text, text_bytes);
  });
}
}
