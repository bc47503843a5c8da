// SPDX-License-Identifier: BSD-3-Clause
// A plan of libreshard in another library. It comes out as text: two libraries of different
// versions share no object but what the public header says.
#pragma once

#include <memory>
#include <string_view>

#include "core/base/errors.h"
#include "core/text/plan_text.h"
#include "tools/capi/reshard.h"

namespace reshard::capi {

inline Plan copy_of(const reshard_plan* plan) {
  char* text = nullptr;
  std::int64_t bytes = 0;
  if (reshard_plan_write(plan, &text, &bytes) != RESHARD_OK) throw InputError(reshard_last_error());
  std::unique_ptr<char, void (*)(char*)> owner(text, reshard_text_free);
  return parse_plan(std::string_view(text, static_cast<std::size_t>(bytes)), "plan");
}

}  // namespace reshard::capi
