// SPDX-License-Identifier: BSD-3-Clause
// Machines in other tools' formats, recognised by content. An accepted machine can also be written
// as our own text; what NCCL's XML can express is read back the same (the writer compares).
#include "sim/calibrate/links.h"
#include "sim/machine_files/formats.h"
#include "sim/machine_files/writers/writers.h"
#include "sim/machines/plausible.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    std::string_view text = fuzz::text_of(data, size);
    sim::ReadTopology read = sim::read_topology(text, "input");
    std::string written = to_text(read.description);
    if (to_text(parse_topology(written, "written.topo")) != written)
      fuzz::broken("a machine is not read back:\n" + written);
    if (read.description.devices > 16 || read.description.nodes > 4) return;
    sim::doubts_about(read.description, "input");
    sim::to_dot(read.description);
    if (sim::is_p2p_matrices(text))
      sim::fit_links(read.description, sim::parse_p2p_matrices(text, "input"), "input");
    sim::to_nccl_xml(read.description, 90);
  });
}
