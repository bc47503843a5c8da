// SPDX-License-Identifier: BSD-3-Clause
// Caches of tokens: sizes, a form and a table of blocks, one a line, and a config.json; refused, or
// layouts that both sides of a transfer can be read from.
#include <algorithm>
#include <sstream>

#include "core/base/cursor.h"
#include "sim/job/job_file.h"
#include "sim/models/kv/kv_transfer.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    std::string_view text = fuzz::text_of(data, size);
    sim::KvSpec spec;
    spec.tokens = 40;
    spec.from.parallel = std::string(take_line(text));
    spec.from.form = std::string(take_line(text));
    spec.from.table = std::string(take_line(text));
    spec.from.table_file = spec.from.table.empty() ? "" : "table.json";
    spec.from.block = 16;
    spec.to.parallel = "tp=1";
    spec.config_file = "config.json";
    spec.config = std::string(text);
    sim::KvTransfer transfer = sim::read_kv_transfer(spec);
    if (sim::kv_lines(sim::kv_facts(transfer)).empty()) fuzz::broken("a cache without words");
    // Layouts of more are read, too, but not hundreds of times a second.
    if (transfer.model.layers * transfer.from.parallel.ranks() > 256) return;
    std::istringstream lines(sim::kv_layouts(transfer));
    if (sim::parse_job(lines, "cache").requests.empty()) fuzz::broken("a cache without tensors");
  });
}
