// SPDX-License-Identifier: BSD-3-Clause
#include "backends/launch/place.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard::backends::launch {
namespace {

// One item per line: the node; two numbers and a count; then the GPUs.
std::string packed(const ProcessFacts& facts) {
  std::string out =
      fmt::format("{}\n{} {} {}\n", facts.node, facts.local_rank, facts.device, facts.gpus.size());
  for (const std::string& gpu : facts.gpus) out += gpu + "\n";
  return out;
}

ProcessFacts unpacked(std::istream& in) {
  ProcessFacts out;
  std::size_t gpus = 0;
  std::getline(in, out.node);
  in >> out.local_rank >> out.device >> gpus >> std::ws;
  for (std::string line; out.gpus.size() < gpus && std::getline(in, line);)
    out.gpus.push_back(line);
  if (out.gpus.size() != gpus)
    throw BackendError("system", "sharing what each process sees", "half a message", -1);
  return out;
}

int device_of(const ProcessFacts& facts, std::int32_t rank, std::int32_t local_rank) {
  auto gpus = static_cast<std::int32_t>(facts.gpus.size());
  if (gpus == 0) throw InputError(fmt::format("device: rank {} sees no GPU", rank));
  if (facts.device >= gpus)
    throw InputError(fmt::format("device: expected one of the {} GPU{} that rank {} sees, found {}",
                                 gpus, gpus == 1 ? "" : "s", rank, facts.device));
  return facts.device >= 0 ? facts.device : local_rank % gpus;
}

}  // namespace

std::string this_node() {
  std::string out;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> out;
  if (!out.empty()) return out;
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<ProcessFacts> share_facts(Meeting& meeting, const ProcessFacts& mine) {
  std::string text = packed(mine), all;
  for (const std::vector<std::byte>& one : meeting.gather(std::as_bytes(std::span(text))))
    all.append(reinterpret_cast<const char*>(one.data()), one.size());
  std::vector<std::byte> joined = meeting.broadcast(std::as_bytes(std::span(all)));
  std::istringstream in(std::string(reinterpret_cast<const char*>(joined.data()), joined.size()));
  std::vector<ProcessFacts> out;
  for (int p = 0; p < meeting.count(); ++p) out.push_back(unpacked(in));
  return out;
}

Placement place(const std::vector<ProcessFacts>& facts, std::int32_t ranks) {
  Placement out;
  std::map<std::string, std::int32_t> processes_of_node, ranks_of_gpu;
  for (std::size_t p = 0; p < facts.size(); ++p) {
    std::int32_t before = processes_of_node[facts[p].node]++;
    std::int32_t count = facts.size() == 1 ? ranks : 1;
    std::vector<int>& devices = out.devices.emplace_back();
    for (std::int32_t r = 0; r < count; ++r) {
      std::int32_t local_rank = facts.size() == 1          ? r
                                : facts[p].local_rank >= 0 ? facts[p].local_rank
                                                           : before;
      devices.push_back(device_of(facts[p], static_cast<std::int32_t>(p) + r, local_rank));
      std::int32_t& sharing = ranks_of_gpu[facts[p].gpus[to_index(devices.back())]];
      out.most_on_one = std::max(out.most_on_one, ++sharing);
      ++out.ranks;
    }
  }
  out.gpus = static_cast<std::int32_t>(ranks_of_gpu.size());
  return out;
}

}  // namespace reshard::backends::launch
