// SPDX-License-Identifier: BSD-3-Clause
#include "core/topology/machine_lines.h"

#include <array>
#include <utility>

#include "core/base/cursor.h"
#include "core/base/ids.h"
#include "core/base/limits.h"
#include "core/base/units.h"

namespace reshard {
namespace {

std::string without_zeros(std::string number) {
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

}  // namespace

bool MachineLines::read_machine_line(std::string_view key, Machine& machine) {
  using Read = void (MachineLines::*)(Machine&);
  constexpr std::array<std::pair<std::string_view, Read>, 5> kLines{
      {{"gpu", &MachineLines::read_gpu},
       {"cpu", &MachineLines::read_cpu},
       {"transport", &MachineLines::read_transport},
       {"reduces", &MachineLines::read_reduces},
       {"figure", &MachineLines::read_figure}}};
  for (const auto& [name, read] : kLines) {
    if (name != key) continue;
    (this->*read)(machine);
    return true;
  }
  return false;
}

// gpu sm90
void MachineLines::read_gpu(Machine& machine) {
  if (machine.compute_capability) contradict("one line 'gpu'", "a second one");
  std::string_view word = token();
  std::string where = place();
  Cursor cursor(word, where);
  if (!word.starts_with("sm")) fail("a class of GPU such as sm90", word);
  cursor.expect("sm");
  machine.compute_capability =
      static_cast<std::int32_t>(cursor.integer("a compute capability, times ten", 50, 999));
  cursor.expect_end();
}

void MachineLines::read_cpu(Machine& machine) {
  if (machine.cpu) contradict("one line 'cpu'", "a second one");
  std::string_view word = token();
  for (Cpu cpu : {Cpu::Intel, Cpu::Amd, Cpu::Other})
    if (text(cpu) == word) machine.cpu = cpu;
  if (!machine.cpu) fail("intel, amd or other", word);
}

// transport ideal; transport nccl [VERSION]
void MachineLines::read_transport(Machine& machine) {
  if (machine.transport) contradict("one line 'transport'", "a second one");
  std::string_view word = token();
  machine.transport = find_transport(word);
  if (!machine.transport) fail(transport_names(), word);
  if (machine.transport != TransportKind::Nccl) return;
  machine.nccl_version = token();
  if (machine.nccl_version.size() > kMaxNameLength)
    fail("a version such as 2.28", machine.nccl_version);
}

// reduces nvlink; reduces network
void MachineLines::read_reduces(Machine& machine) {
  std::string_view word = token();
  if (word != "nvlink" && word != "network") fail("nvlink or network", word);
  bool& flag = word == "nvlink" ? machine.nvls : machine.sharp;
  if (flag) contradict(fmt::format("one line 'reduces {}'", word), "a second one");
  flag = true;
}

std::int64_t MachineLines::figure_value(FigureUnit unit, std::string_view value) const {
  switch (unit) {
    case FigureUnit::Time:
      return parse_duration_ps(value, place());
    case FigureUnit::Rate:
      return parse_bytes_per_s(value, place());
    case FigureUnit::Size:
      return parse_bytes(value, place());
    case FigureUnit::Ratio:
      return parse_ratio(value, place());
  }
  return 0;
}

// figure NAME VALUE
void MachineLines::read_figure(Machine& machine) {
  std::string_view word = token();
  std::optional<Figure> which = find_figure(word);
  if (!which) {
    std::string names;
    for (const FigureRow& row : figure_rows())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    fail(fmt::format("one of {}", names), word);
  }
  const FigureRow& row = figure_rows()[to_index(*which)];
  if (machine.figure(*which))
    contradict(fmt::format("one line 'figure {}'", row.name), "a second one");
  std::string_view value = token();
  std::int64_t number = figure_value(row.unit, value);
  if (number < row.least || number > row.most)
    fail(fmt::format("{} from {} to {}", row.name, figure_text(row.unit, row.least),
                     figure_text(row.unit, row.most)),
         value);
  machine.set(*which, number);
}

// The shortest exact text: "450GB/s", "6.887GB/s", "1B/s".
std::string rate_word(std::int64_t rate) {
  if (rate % 1'000'000 != 0) return fmt::format("{}B/s", rate);
  return without_zeros(decimal_text(rate, 1'000'000'000, 3)) + "GB/s";
}

std::string time_word(std::int64_t ps) {
  return ps % 1'000 == 0 && ps > 0 ? without_zeros(decimal_text(ps, 1'000'000, 3)) + "us"
                                   : fmt::format("{}ps", ps);
}

std::string size_word(std::int64_t bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  return bytes > 0 && bytes % kMiB == 0 ? fmt::format("{}MiB", bytes / kMiB)
                                        : fmt::format("{}B", bytes);
}

std::string figure_text(FigureUnit unit, std::int64_t value) {
  switch (unit) {
    case FigureUnit::Time:
      return time_word(value);
    case FigureUnit::Rate:
      return rate_word(value);
    case FigureUnit::Size:
      return size_word(value);
    case FigureUnit::Ratio:
      return without_zeros(decimal_text(value, kRatioOne, 6));
  }
  return {};
}

std::string machine_lines(const Machine& machine) {
  std::string out;
  if (machine.compute_capability) out += fmt::format("gpu sm{}\n", *machine.compute_capability);
  if (machine.cpu) out += fmt::format("cpu {}\n", text(*machine.cpu));
  if (machine.transport)
    out += fmt::format("transport {}{}{}\n", text(*machine.transport),
                       machine.nccl_version.empty() ? "" : " ", machine.nccl_version);
  if (machine.nvls) out += "reduces nvlink\n";
  if (machine.sharp) out += "reduces network\n";
  for (std::size_t i = 0; i < machine.figures.size(); ++i)
    if (machine.figures[i])
      out += fmt::format("figure {} {}\n", figure_rows()[i].name,
                         figure_text(figure_rows()[i].unit, *machine.figures[i]));
  return out;
}

}  // namespace reshard
