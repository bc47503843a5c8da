// SPDX-License-Identifier: BSD-3-Clause
// The command line's own description as a manual page and as completion for bash: both are read off
// the commands themselves, so that neither can be out of date.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace reshard::tools {

// troff with the man macros.
std::string manual_page(const CLI::App& app);

// To be sourced by bash: commands, and the options of the command typed so far.
std::string bash_completion(const CLI::App& app);

}  // namespace reshard::tools
