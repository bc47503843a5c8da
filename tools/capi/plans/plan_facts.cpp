// SPDX-License-Identifier: BSD-3-Clause
// The C API: the library's version, what a plan costs and what each rank holds.
#include <algorithm>
#include <cstring>

#include "core/base/digest.h"
#include "core/text/plan_difference.h"
#include "core/text/plan_text.h"
#include "tools/capi/guard.h"
#include "tools/capi/handles.h"
#include "tools/cli/commands/commands.h"

namespace reshard::capi {

Slot slot_of(const Plan& plan, std::int32_t rank) {
  auto found = std::lower_bound(plan.ranks.begin(), plan.ranks.end(), Rank{rank});
  if (found == plan.ranks.end() || *found != Rank{rank})
    throw InputError("rank: expected one of " + ranks_text(plan.ranks) +
                     ", which the plan has, found " + std::to_string(rank));
  return static_cast<Slot>(found - plan.ranks.begin());
}

std::int32_t element_bytes_of(const Plan& plan) {
  std::int64_t bytes = size_bytes(plan.tensors.front().dtype());
  for (const Request& request : plan.tensors)
    if (size_bytes(request.dtype()) != bytes) return 0;
  return static_cast<std::int32_t>(bytes);
}

reshard_buffer buffer_of(const Plan& plan, Slot slot, std::int32_t buffer) {
  const Buffer& found = plan.buffers[checked_index(buffer, plan.buffers.size(), "buffer")];
  reshard_buffer out{};
  out.arena_offset = -1;
  if (!found.exists(slot)) return out;
  out.exists = 1;
  out.tensor = static_cast<std::int32_t>(found.tensor());
  out.element_bytes = static_cast<std::int32_t>(size_bytes(plan.request(found.tensor()).dtype()));
  out.bytes = found.elements(slot) * out.element_bytes;
  for (int d = 0; d < found.dims(); ++d) out.shape[d] = found.extent(slot, d);
  return out;
}

}  // namespace reshard::capi

using namespace reshard;
using namespace reshard::capi;

extern "C" {

int32_t reshard_api_version(void) { return RESHARD_API_VERSION; }
const char* reshard_version(void) { return tools::kVersion; }
const char* reshard_last_error(void) { return last_error_text(); }

int32_t reshard_plan_get_facts(const reshard_plan* plan, reshard_plan_facts* facts) {
  return guarded([&] {
    const reshard_plan& handle = given(plan, "plan");
    reshard_plan_facts out{};
    out.rank_count = static_cast<std::int32_t>(handle.plan->slot_count());
    out.buffer_count = static_cast<std::int32_t>(handle.plan->buffers.size());
    out.step_count = static_cast<std::int32_t>(handle.plan->steps.size());
    out.dims = handle.plan->dims();
    out.element_bytes = element_bytes_of(*handle.plan);
    out.peak_bytes_max = handle.study.bytes().peak_max;
    out.received_bytes_max = handle.study.bytes().received_max;
    out.received_bytes_total = handle.study.bytes().received_total;
    out.padding_bytes_total = handle.study.padding_total();
    out.tensor_count = static_cast<std::int32_t>(handle.plan->tensors.size());
    give(out, facts, "facts");
  });
}

const char* reshard_plan_planner(const reshard_plan* plan) {
  return plan == nullptr ? "" : plan->plan->planner.c_str();
}
const char* reshard_plan_request(const reshard_plan* plan) {
  return plan == nullptr ? "" : plan->request_text.c_str();
}

int32_t reshard_plan_get_digest(const reshard_plan* plan, char* digest) {
  return guarded([&] {
    std::string hex = digest_of(to_text(*given(plan, "plan").plan)).hex();
    std::memcpy(&given(digest, "digest"), hex.c_str(), hex.size() + 1);
  });
}

int32_t reshard_plan_compare(const reshard_plan* plan, const char* text, int64_t text_bytes,
                             char** difference, int64_t* difference_bytes) {
  return guarded([&] {
    std::string mine = to_text(*given(plan, "plan").plan);
    given(text, "text");
    if (text_bytes < 0)
      throw InputError("text_bytes: expected at least 0, found " + std::to_string(text_bytes));
    std::optional<PlanDifference> found =
        difference_of(mine, std::string_view(text, to_index(text_bytes)));
    give_text(
        found ? found->what + " " + found->here + ", where the other one has " + found->there : "",
        difference, difference_bytes);
  });
}

int32_t reshard_plan_get_rank(const reshard_plan* plan, int32_t index, int32_t* rank) {
  return guarded([&] {
    const std::vector<Rank>& ranks = given(plan, "plan").plan->ranks;
    given(rank, "rank") = to_int(ranks[checked_index(index, ranks.size(), "index")]);
  });
}

int32_t reshard_plan_get_tensor(const reshard_plan* plan, int32_t tensor, reshard_tensor* result) {
  return guarded([&] {
    const reshard_plan& handle = given(plan, "plan");
    std::size_t index = checked_index(tensor, handle.plan->tensors.size(), "tensor");
    const Request& request = handle.plan->tensors[index];
    reshard_tensor out{};
    out.dims = request.source().dims();
    for (int d = 0; d < out.dims; ++d) out.shape[d] = request.shape()[d];
    out.element_bytes = static_cast<std::int32_t>(size_bytes(request.dtype()));
    out.dtype = text(request.dtype()).data();  // of a literal, with its NUL
    out.name = request.name().c_str();
    out.request = handle.request_texts()[index].c_str();
    give(out, result, "result");
  });
}

int32_t reshard_plan_get_rank_bytes(const reshard_plan* plan, int32_t rank,
                                    reshard_rank_bytes* bytes) {
  return guarded([&] {
    const reshard_plan& handle = given(plan, "plan");
    Slot slot = slot_of(*handle.plan, rank);
    reshard_rank_bytes out{};
    for (std::size_t t = 0; t < handle.plan->tensors.size(); ++t) {
      TensorId tensor{static_cast<std::int32_t>(t)};
      out.source_bytes += handle.plan->buffer_bytes(source_of(tensor), slot);
      out.destination_bytes += handle.plan->buffer_bytes(destination_of(tensor), slot);
    }
    out.peak_bytes = handle.study.bytes().peak_per_slot[to_index(slot)];
    out.received_bytes = handle.study.bytes().received_per_slot[to_index(slot)];
    give(out, bytes, "bytes");
  });
}

int32_t reshard_plan_get_buffer(const reshard_plan* plan, int32_t rank, int32_t buffer,
                                reshard_buffer* result) {
  return guarded([&] {
    const Plan& found = *given(plan, "plan").plan;
    give(buffer_of(found, slot_of(found, rank), buffer), result, "result");
  });
}
}
