// SPDX-License-Identifier: BSD-3-Clause
// Models: the words of both sides, one a line, and a config.json; refused, or layouts that can be
// read.
#include <sstream>

#include "core/base/cursor.h"
#include "sim/check/check_file.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/transfer.h"
#include "sim/models/weights/config.h"
#include "sim/trace/line_reader.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

namespace {

// Larger ones are read, too, but not hundreds of times a second.
bool is_small(const sim::Model& model, const std::string& words) {
  sim::Parallelism options(words, "words");
  std::int64_t ranks = sim::framework_of(options).ranks(model, options);
  return ranks * std::ssize(model.layers) <= 64 && ranks * model.experts <= 256;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    std::string_view text = fuzz::text_of(data, size);
    sim::ModelTransfer transfer;
    transfer.from.parallelism = std::string(take_line(text));
    transfer.to.parallelism = std::string(take_line(text));
    sim::Model model = sim::parse_config(text, "config.json");
    if (!is_small(model, transfer.from.parallelism) || !is_small(model, transfer.to.parallelism))
      return;
    std::istringstream lines(sim::transfer_text(model, transfer).lines);
    sim::LineReader reader(lines, "layout");
    if (sim::read_sides(reader, "layout").source->buffers().empty())
      fuzz::broken("a model without buffers");
  });
}
