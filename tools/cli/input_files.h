// SPDX-License-Identifier: BSD-3-Clause
// The files that a command reads. "-" is standard input, which is read once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/cli/output_paths.h"

namespace reshard::tools {

// Both outputs and inputs. Call before long work.
void require_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

// Throws InputError where two inputs are one that can be read only once: standard input, a pipe, a
// device. Says on a terminal what it waits for, where reading one may wait: a pipe, a terminal.
// Call before any is read.
void require_inputs(const std::vector<NamedFile>& inputs);

// "-", /dev/stdin and their like.
bool is_standard_input(const std::string& path);

// As messages call it: "<stdin>", or the path.
std::string input_name(const std::string& path);

// Throws InputError where standard input cannot be read, as where it is closed or a directory.
void require_standard_input();

// The whole text. Throws InputError as sim::read_text_file.
std::string read_input(const std::string& path, std::size_t limit_bytes);

}  // namespace reshard::tools
