// SPDX-License-Identifier: BSD-3-Clause
// Files of other tools that say how a model lies on ranks, told apart by how they begin: refused,
// or lines that files of layouts can have.
#include <sstream>

#include "sim/check/check_file.h"
#include "sim/models/files/dcp.h"
#include "sim/models/files/m2n.h"
#include "sim/models/files/placement_file.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

namespace {

sim::ForeignLayouts layouts_of(std::string_view input) {
  if (input.starts_with('\x80')) return sim::layouts_of(sim::parse_dcp(input, "input"), "from");
  // The two files of the M2N benchmark, with an empty line between.
  if (std::size_t end = input.find("\n\n"); end != std::string_view::npos)
    return sim::parse_m2n(input.substr(0, end), "model", input.substr(end + 2), "system");
  return sim::parse_placement(input, "input", "to", 7);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    const sim::ForeignLayouts layouts = layouts_of(fuzz::text_of(data, size));
    for (const std::string& note : layouts.notes)
      if (note.empty()) fuzz::broken("a note without words");
    if (layouts.end_rank > 4096) return;
    std::istringstream in(sim::layouts_text(layouts));
    sim::LineReader lines(in, "lines");
    try {
      const sim::ModelLayouts sides = sim::read_sides(lines, "lines");
      for (const sim::ForeignTensor& tensor : layouts.tensors)
        if (sides.tensors->find(tensor.name) == nullptr) fuzz::broken("a tensor without a line");
      for (const Stored* side : {sides.source.get(), sides.destination.get()})
        for (const StoredBuffer& buffer : side->buffers())
          if (to_int(buffer.rank) >= layouts.end_rank) fuzz::broken("a rank beyond the last");
    } catch (const InputError& error) {
      // A second buffer's name, w#2, can be that of another tensor.
      if (std::string_view(error.what()).find("buffer") == std::string_view::npos)
        fuzz::broken(error.what());
    }
  });
}
