// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/what_if.h"

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/models/parallelism.h"
#include "sim/models/report/pipeline_stages.h"
#include "sim/study/tensors/job_facts.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMostVariants = 64;

WhatIf variant_of(std::string_view key, std::string_view value, const WhatIf& base,
                  std::string_view field) {
  WhatIf out = base;
  out.name = fmt::format("{}={}", key, value);
  const std::string place = fmt::format("{}: {}", field, key);
  if (key == "stages") {
    if (value != "in-turn" && value != "at-once")
      throw InputError(
          fmt::format("{}: expected in-turn or at-once, found {}", place, quoted(value)));
    out.is_in_turn = value == "in-turn";
  } else if (key == "buckets") {
    out.is_in_turn = false;
    out.bucket_bytes = parse_bytes(value, place);
    if (out.bucket_bytes < 1) throw InputError(fmt::format("{}: expected at least 1 byte", place));
  } else if (key == "memory") {
    out.extra_bytes = parse_bytes(value, place);
  } else {
    const bool is_source = key.starts_with("from.");
    SideSpec& side = is_source ? out.transfer.from : out.transfer.to;
    Parallelism words(side.parallelism, field);
    words.set(is_source ? key.substr(5) : key, value);
    side.parallelism = words.text();
    // The number of ranks may differ from the one given: the side gets as many from the first on.
    side.ranks_may_change = true;
  }
  return out;
}

void put_in_turn(Stages& stages, std::vector<TensorId> tensors) {
  Stage stage{std::move(tensors), {}};
  if (!stages.empty()) stage.after = {static_cast<std::int32_t>(stages.size()) - 1};
  stages.push_back(std::move(stage));
}

}  // namespace

std::vector<WhatIf> parse_what_ifs(std::string_view text, const WhatIf& base,
                                   std::string_view field) {
  std::vector<WhatIf> out;
  for (std::size_t at = text.find_first_not_of(' '); at != std::string_view::npos;
       at = text.find_first_not_of(' ', at)) {
    std::string_view word = text.substr(at, text.find(' ', at) - at);
    at += word.size();
    std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == word.size())
      throw InputError(
          fmt::format("{}: expected words such as tp=8,16, found {}", field, quoted(word)));
    std::string_view key = word.substr(0, equals), values = word.substr(equals + 1);
    // The numbers of layers of stages are one value.
    const bool is_list = key == "layers" || key == "from.layers";
    for (std::size_t begin = 0; begin <= values.size();) {
      std::size_t end = is_list ? values.size() : std::min(values.find(',', begin), values.size());
      out.push_back(variant_of(key, values.substr(begin, end - begin), base, field));
      if (out.size() > kMostVariants)
        throw InputError(fmt::format("{}: expected at most {} variants", field, kMostVariants));
      begin = end + 1;
    }
  }
  return out;
}

Stages stages_of(const WhatIf& variant, const std::vector<Request>& requests) {
  Stages out;
  if (variant.is_in_turn) {
    std::vector<const Request*> all;
    for (const Request& request : requests) all.push_back(&request);
    for (const PipelineStage& stage : pipeline_stages(all, true)) {
      std::vector<TensorId> tensors;
      for (std::size_t tensor : stage.tensors) tensors.push_back(id_of<TensorId>(tensor));
      put_in_turn(out, std::move(tensors));
    }
  } else if (variant.bucket_bytes > 0) {
    std::vector<TensorId> bucket;
    Int128 bytes = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      bucket.push_back(id_of<TensorId>(i));
      bytes += bytes_of(requests[i]);
      if (bytes < variant.bucket_bytes && i + 1 < requests.size()) continue;
      if (out.size() == kMaxStages)
        throw InputError(fmt::format("buckets: expected at most {}, found more", kMaxStages));
      put_in_turn(out, std::move(bucket));
      bucket.clear();
      bytes = 0;
    }
  }
  return out.size() < 2 ? Stages{} : out;
}

}  // namespace reshard::sim
