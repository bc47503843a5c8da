// SPDX-License-Identifier: BSD-3-Clause
// Shared by the tests of topology texts: a small machine, its errors, and the example of the page.
#pragma once

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>
#include <string>

#include "core/base/errors.h"
#include "core/topology/topology_text.h"

namespace reshard::test {

inline const std::string kHead =
    "reshard-topology 1\nname m\ndevices 4\nport a 5GB/s\nshared host 4GB/s\nfabric spine "
    "11GB/s\n";  // 6 lines
inline const std::string kWithin = "route within via a.out a.in latency 1us transport nvlink\n";

inline std::string error_of(const std::string& text) {
  try {
    build_topology(parse_topology(text, "m.topo"), std::nullopt);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

inline std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The example of traces/topologies/README.md, read from there, so that the page stays true.
inline std::string readme_example() {
  std::string page = file_text("traces/topologies/README.md");
  std::size_t begin = page.find("reshard-topology 1\n# Two");
  REQUIRE(begin != std::string::npos);
  return page.substr(begin, page.find("```", begin) - begin);
}

}  // namespace reshard::test
