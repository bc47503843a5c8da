// SPDX-License-Identifier: BSD-3-Clause
// The C API: the command line.
#include <fmt/ranges.h>

#include "tools/capi/guard.h"
#include "tools/cli/application.h"

using namespace reshard;
using namespace reshard::capi;

extern "C" {

int32_t reshard_command(const char* const* arguments, int32_t count, char** text,
                        int64_t* text_bytes) {
  return guarded([&] {
    given(arguments, "arguments");
    given(text, "text");
    given(text_bytes, "text_bytes");
    if (count < 1) throw InputError("count: expected 1 or more, found " + std::to_string(count));
    std::vector<std::string> words;
    for (int32_t i = 0; i < count; ++i) words.emplace_back(&given(arguments[i], "arguments"));
    tools::CommandOutput output = tools::output_of(std::move(words));
    give_text(output.text, text, text_bytes);
    if (!output.findings.empty())
      throw NotHeld(fmt::format("{}", fmt::join(output.findings, "\n")));
  });
}
}
