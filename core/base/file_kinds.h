// SPDX-License-Identifier: BSD-3-Clause
// What a file is, by its content: said where a command is given one that it does not read.
#pragma once

#include <string>
#include <string_view>

namespace reshard {

struct FileKind {
  // "topology", "plan", "trace", "report", "measured", "matrices": what some command reads; "log"
  // may hold it, "json" and "xml" are of no known kind, "empty" is nothing; all others: "".
  std::string_view id;
  std::string_view what;  // "a Chrome trace, as torch.profiler writes it"
};
// By the first 64 KiB of a file; null where it has no form that is known.
const FileKind* file_kind(std::string_view text);

// "what looks like a Chrome trace ..", or the first line of a text, for "found ...".
std::string file_look(std::string_view text);

// The text of a file in UTF-8: UTF-16, as PowerShell writes it, behind its mark is recoded.
std::string utf8_text(std::string text);

}  // namespace reshard
