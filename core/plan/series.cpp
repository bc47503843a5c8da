// SPDX-License-Identifier: BSD-3-Clause
#include "core/plan/series.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/sort_once.h"

namespace reshard {
namespace {

bool can_be_in_series(const Request& request) {
  const FoldMeaning& fold = request.fold();
  return request.tensors() == 1 && request.shape().size() > 0 &&
         request.shape().size() < kMaxDims && !request.source().has_addends() &&
         !request.destination().has_addends() && fold.divisor == 1;
}

Stages stages_of_series(const SeriesJob& job, const Stages& stages, std::size_t tensors) {
  IndexVector<TensorId, TensorId> series_of(tensors, TensorId{0});
  for (std::size_t s = 0; s < job.tensors.size(); ++s)
    for (TensorId tensor : job.tensors[s]) series_of[tensor] = id_of<TensorId>(s);
  Stages out = stages;
  for (Stage& stage : out) {
    for (TensorId& tensor : stage.tensors) tensor = series_of[tensor];
    sort_once(stage.tensors);
  }
  return out;
}

}  // namespace

SeriesJob in_series(std::span<const Request> requests, const Stages& stages) {
  SeriesJob out;
  IndexVector<TensorId, std::int32_t> stage_of = stage_of_tensors(stages, requests.size());
  std::map<std::pair<Digest, std::int32_t>, std::size_t> known;
  for (std::size_t t = 0; t < requests.size(); ++t) {
    auto tensor = id_of<TensorId>(t);
    if (can_be_in_series(requests[t])) {
      auto [at, is_new] =
          known.try_emplace({requests[t].fingerprint(), stage_of[tensor]}, out.tensors.size());
      if (!is_new) {
        out.tensors[at->second].push_back(tensor);
        continue;
      }
    }
    out.tensors.push_back({tensor});
  }
  for (const std::vector<TensorId>& tensors : out.tensors) {
    const Request& first = requests[to_index(tensors.front())];
    out.requests.push_back(tensors.size() == 1 ? first : first.as_series(std::ssize(tensors)));
  }
  out.stages = stages_of_series(out, stages, requests.size());
  return out;
}

std::size_t SeriesJob::tensor_count() const {
  std::size_t out = 0;
  for (const std::vector<TensorId>& own : tensors) out += own.size();
  return out;
}

}  // namespace reshard
