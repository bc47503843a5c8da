// SPDX-License-Identifier: BSD-3-Clause
// The lines of a topology file that state facts other than links: reading and writing them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/topology/machine.h"
#include "core/topology/topology_words.h"

namespace reshard {

class MachineLines : public Words {
 public:
  using Words::Words;

 protected:
  // Reads the rest of a line that begins with `key`; false if that is not a machine line. Throws
  // InputError "FILE:LINE: ...", also for a second line of the same kind.
  bool read_machine_line(std::string_view key, Machine& machine);

 private:
  void read_gpu(Machine& machine);
  void read_cpu(Machine& machine);
  void read_transport(Machine& machine);
  void read_reduces(Machine& machine);
  void read_figure(Machine& machine);
  std::int64_t figure_value(FigureUnit unit, std::string_view value) const;
};

// As written in a file: "0.7us", "50GB/s".
std::string time_word(std::int64_t ps);
std::string rate_word(std::int64_t bytes_per_s);
// "4.7us", "360GB/s", "12MiB", "0.972".
std::string figure_text(FigureUnit unit, std::int64_t value);

// All stated facts, one per line.
std::string machine_lines(const Machine& machine);

}  // namespace reshard
