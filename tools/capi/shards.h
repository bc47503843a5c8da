// SPDX-License-Identifier: BSD-3-Clause
// Turns the memory that callers lend for a run into spans.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/errors.h"
#include "core/plan/executor.h"
#include "core/text/plan_text.h"
#include "tools/capi/guard.h"
#include "tools/capi/reshard.h"

namespace reshard::capi {

// `first` is an array of one entry per tensor; all must have the same struct_size.
inline std::vector<CallerShards> shards_of(const reshard_shards* first, std::size_t tensors) {
  std::vector<CallerShards> out;
  for (std::size_t t = 0; t < tensors; ++t) {
    reshard_shards mine = taken_at(first, t, "shards");
    for (auto [data, bytes, name] : {std::tuple{mine.source, mine.source_bytes, "source"},
                                     {mine.destination, mine.destination_bytes, "destination"}})
      if (bytes < 0 || (bytes > 0 && data == nullptr))
        throw InputError(std::string(name) + ": expected memory of " + std::to_string(bytes) +
                         " bytes, found NULL");
    out.push_back({{static_cast<const std::byte*>(mine.source), to_index(mine.source_bytes)},
                   {static_cast<std::byte*>(mine.destination), to_index(mine.destination_bytes)}});
  }
  return out;
}

// ---- A plan of libreshard, used in another library. It is passed as text, because two libraries
// of different versions share only what the public header declares.

inline Plan copy_of(const reshard_plan* plan) {
  char* text = nullptr;
  std::int64_t bytes = 0;
  if (reshard_plan_write(plan, &text, &bytes) != RESHARD_OK) throw InputError(reshard_last_error());
  std::unique_ptr<char, void (*)(char*)> owner(text, reshard_text_free);
  return parse_plan(std::string_view(text, to_index(bytes)), "plan");
}

}  // namespace reshard::capi
