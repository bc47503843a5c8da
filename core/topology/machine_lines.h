// SPDX-License-Identifier: BSD-3-Clause
// The lines of a topology file that say what a machine is beside its links: read, and written.
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
  // The rest of a line that begins with `key`; false where that is no line of a machine. Throws
  // InputError "FILE:LINE: ...", for a second line of a kind too.
  bool read_machine_line(std::string_view key, Machine& machine);

 private:
  void read_gpu(Machine& machine);
  void read_cpu(Machine& machine);
  void read_transport(Machine& machine);
  void read_reduces(Machine& machine);
  void read_figure(Machine& machine);
  std::int64_t figure_value(FigureUnit unit, std::string_view value) const;
};

// As a file spells them: "0.7us", "50GB/s".
std::string time_word(std::int64_t ps);
std::string rate_word(std::int64_t bytes_per_s);
// "4.7us", "360GB/s", "12MiB", "0.972".
std::string figure_text(FigureUnit unit, std::int64_t value);

// All that is stated, a line each.
std::string machine_lines(const Machine& machine);

}  // namespace reshard
