// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/odd_machine.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/topology/topology_text.h"

namespace reshard::test {
namespace {

std::string rate(Prng& prng) {
  std::int64_t billions = prng.between(1, 9), more = prng.below(1000);
  return std::to_string(billions * 1'000'000'000 + (prng.one_in(2) ? more : 0));
}

std::string latency(Prng& prng) {
  const std::vector<std::string> some{"0", "0.7ns", "2ns", "2ns", "9ns", "1us"};
  return prng.pick(some);
}

// Some of the first `devices`, at least one.
std::vector<std::int64_t> some_devices(Prng& prng, std::int64_t devices) {
  std::vector<std::int64_t> out;
  while (out.empty())
    for (std::int64_t device = 0; device < devices; ++device)
      if (prng.one_in(2)) out.push_back(device);
  return out;
}

// One to three different hops.
std::string via(Prng& prng, std::vector<std::string> hops) {
  std::string out = " via";
  prng.shuffle(hops);
  hops.resize(std::min(hops.size(), static_cast<std::size_t>(prng.between(1, 3))));
  for (const std::string& hop : hops) out += " " + hop;
  out += " latency " + latency(prng);
  if (prng.one_in(6)) out += " cap " + rate(prng);
  const std::vector<std::string> transports{"nvlink", "pcie", "host", "network"};
  return out + " transport " + prng.pick(transports) + "\n";
}

std::string machine_text(Prng& prng) {
  std::int64_t devices = prng.between(1, 6), nodes = prng.between(devices == 1 ? 2 : 1, 4);
  std::string out =
      fmt::format("reshard-topology 1\nname odd\ndevices {}\nnodes {}\n", devices, nodes);
  for (const char* switches : {"nvlink", "network"})
    if (prng.one_in(5)) out += fmt::format("reduces {}\n", switches);
  std::vector<std::string> inside, between;
  for (const char* port : {"a", "b"}) {
    if (*port == 'b' && prng.one_in(2)) continue;
    out += fmt::format("port {} {}", port, rate(prng));
    out += prng.one_in(2) ? " in " + rate(prng) + "\n" : "\n";
    for (std::vector<std::string>* hops : {&inside, &between})
      for (const char* way : {"out", "in"}) hops->push_back(fmt::format("{}.{}", port, way));
  }
  for (const char* shared : {"host", "nic"}) {
    if (prng.one_in(2)) continue;
    out += fmt::format("shared {} {}\n", shared, rate(prng));
    inside.push_back(shared);
    for (const char* end : {"source", "destination"})
      between.push_back(fmt::format("{}.{}", end, shared));
  }
  if (prng.one_in(3)) {
    out += fmt::format("fabric spine {}\n", rate(prng));
    inside.push_back("spine");
    between.push_back("spine");
  }
  std::vector<std::string> groups;
  for (std::int64_t count = prng.below(4); count > 0; --count) {
    groups.push_back(fmt::format("g{}", count));
    out += "group " + groups.back();
    for (std::int64_t device : some_devices(prng, devices)) out += fmt::format(" {}", device);
    out += "\n";
  }
  for (std::int64_t count = prng.below(3); count > 0 && devices > 1; --count) {
    std::int64_t first = prng.below(devices - 1), second = prng.between(first + 1, devices - 1);
    if (groups.empty() || prng.one_in(3)) {
      out += fmt::format("route pairs {}-{}", first, second);
    } else {
      out += "route " + prng.pick(groups);
      if (!prng.one_in(3)) {
        out += prng.one_in(2) ? " to " : " ";
        out += prng.pick(groups);
      }
    }
    out += via(prng, inside);
  }
  if (devices > 1) out += "route within" + via(prng, inside);
  return nodes == 1 ? out : out + "route between" + via(prng, between);
}

}  // namespace

Topology odd_machine(Prng& prng) {
  for (;;) {
    std::string text = machine_text(prng);
    try {
      return build_topology(parse_topology(text, "odd.topo"), {});
    } catch (const InputError&) {
      // A route that no pair takes, or whose hops contradict each other: draw again.
    }
  }
}

}  // namespace reshard::test
