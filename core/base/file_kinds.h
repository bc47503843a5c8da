// SPDX-License-Identifier: BSD-3-Clause
// Detects from its content what kind of file a command was given, so that messages can name it.
#pragma once

#include <string>
#include <string_view>

namespace reshard {

struct FileKind {
  // Kinds that some command reads: "topology", "plan", "trace", "report", "measured", "matrices",
  // "copies".
  // "log" may contain one of them; "json" and "xml" are of no known kind; "empty" has no content.
  // "" for everything else.
  std::string_view id;
  std::string_view what;  // "a PyTorch flight recorder dump"
};
// Looks at the first 64 KiB of a file; null if the kind is unknown.
const FileKind* file_kind(std::string_view text);

// For "found ..." in messages: "what looks like a Chrome trace ...", or the quoted first line of a
// text of unknown kind.
std::string file_look(std::string_view text);

// The text of a file as UTF-8. UTF-16 with a byte order mark, as PowerShell writes it, is
// converted.
std::string utf8_text(std::string text);

}  // namespace reshard
