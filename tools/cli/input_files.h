// SPDX-License-Identifier: BSD-3-Clause
// The files that a command reads. "-" is standard input, which can be read only once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/cli/output/output_paths.h"

namespace reshard::tools {

// require_outputs and require_inputs. Call before long work.
void require_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

// Throws InputError if two inputs are the same and can be read only once: standard input, a pipe or
// a device. If standard error is a terminal, prints which input (a pipe, a terminal) reading has to
// wait for. Call before any input is read.
void require_inputs(const std::vector<NamedFile>& inputs);

// "-", /dev/stdin and similar names.
bool is_standard_input(const std::string& path);

// The name used in messages: "<stdin>", or the path.
std::string input_name(const std::string& path);

// Throws InputError if standard input cannot be read, for instance because it is closed or a
// directory.
void require_standard_input();

// Reads the whole text. Throws InputError like sim::read_text_file.
std::string read_input(const std::string& path, std::size_t limit_bytes);

}  // namespace reshard::tools
