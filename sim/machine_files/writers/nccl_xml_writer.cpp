// SPDX-License-Identifier: BSD-3-Clause
// Writes parts as NCCL's XML (format: nccl_xml.cpp), then reads it back and compares, so that
// nothing is written that describes another machine.
#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/core.h>
#include <pugixml.hpp>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/topology/machine_lines.h"
#include "sim/machine_files/formats.h"
#include "sim/machine_files/known_parts.h"
#include "sim/machine_files/writers/writers.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kMbit = 125'000;  // bytes/s
constexpr int kLanes = 16;

std::string exact(std::int64_t bytes_per_s) { return figure_text(FigureUnit::Rate, bytes_per_s); }

class XmlWriter {
 public:
  explicit XmlWriter(const NodeParts& parts)
      : parts_(parts), gpu_(gpu_class(*parts.machine.compute_capability)) {}

  std::string run() {
    pugi::xml_document document;
    document.append_child(pugi::node_comment)
        .set_value(
            fmt::format(" {}: one node; without latencies and NCCL figures ", parts_.name).c_str());
    pugi::xml_node system = document.append_child("system");
    set(system, "version", "1");
    for (std::size_t i = 0; i < parts_.gpus.size(); ++i) busids_.push_back(next_busid());
    switch_ = next_busid();
    std::map<std::int32_t, bool> sockets;
    for (const NodeParts::Gpu& gpu : parts_.gpus) sockets[gpu.place.socket] = true;
    for (auto [socket, is_there] : sockets) add_socket(system, socket, sockets.size() > 1);
    std::ostringstream out;
    document.save(out, "  ", pugi::format_indent | pugi::format_no_declaration);
    return out.str();
  }

 private:
  static void set(pugi::xml_node node, const char* name, const std::string& value) {
    node.append_attribute(name).set_value(value.c_str());
  }
  std::string next_busid() {
    int number = 0x10 + made_++;
    return fmt::format("{:04x}:{:02x}:00.0", number / 256, number % 256);
  }

  void add_socket(pugi::xml_node system, std::int32_t socket, bool several) {
    pugi::xml_node cpu = system.append_child("cpu");
    bool amd = parts_.machine.cpu == Cpu::Amd, arm = parts_.machine.cpu == Cpu::Other;
    set(cpu, "numaid", std::to_string(socket));
    set(cpu, "arch", arm ? "arm64" : "x86_64");
    set(cpu, "vendor", arm ? "ARM" : amd ? "AuthenticAMD" : "GenuineIntel");
    // AMD Milan; Intel Sapphire Rapids with Hopper and later, else Skylake.
    int family = amd ? 25 : 6, model = amd ? 1 : gpu_.compute_capability >= 90 ? 0x8F : 0x55;
    set(cpu, "familyid", std::to_string(family));
    set(cpu, "modelid", std::to_string(model));
    std::int64_t usual = 2 * socket_bytes_per_s(parts_.machine.cpu.value_or(Cpu::Intel),
                                                arm ? "arm64" : "x86_64", family, model);
    if (several && parts_.socket_bytes_per_s != usual)
      set(cpu, "reshard_rate", exact(parts_.socket_bytes_per_s));
    add_below(cpu, -1, socket);
  }

  void add_below(pugi::xml_node node, std::int32_t bridge, std::int32_t socket) {
    auto here = [&](NodeParts::AttachPoint place) {
      return place.bridge == bridge && place.socket == socket;
    };
    for (std::size_t i = 0; i < parts_.bridges.size(); ++i)
      if (here(parts_.bridges[i].above)) {
        pugi::xml_node below = add_pci(node, next_busid(), "0x060400");
        add_link(below, parts_.bridges[i].bytes_per_s);
        add_below(below, static_cast<std::int32_t>(i), socket);
      }
    for (std::size_t i = 0; i < parts_.gpus.size(); ++i)
      if (here(parts_.gpus[i].place)) add_gpu(node, static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < parts_.nics.size(); ++i)
      if (here(parts_.nics[i].place)) add_nic(node, static_cast<std::int32_t>(i));
  }

  static pugi::xml_node add_pci(pugi::xml_node above, const std::string& busid, const char* kind) {
    pugi::xml_node pci = above.append_child("pci");
    set(pci, "busid", busid);
    set(pci, "class", kind);
    return pci;
  }

  // 0: the usual rate with such GPUs.
  void add_link(pugi::xml_node pci, std::int64_t bytes_per_s) const {
    int generation = gpu_.pcie_generation;
    for (int other = 1; other <= 6; ++other)
      if (pcie_bytes_per_s(other, kLanes) == bytes_per_s) generation = other;
    set(pci, "link_speed", pcie_speed_text(generation));
    set(pci, "link_width", std::to_string(kLanes));
    if (bytes_per_s > 0 && pcie_bytes_per_s(generation, kLanes) != bytes_per_s)
      set(pci, "reshard_rate", exact(bytes_per_s));
  }

  void add_gpu(pugi::xml_node node, std::int32_t number) {
    const NodeParts::Gpu& part = parts_.gpus[to_index(number)];
    pugi::xml_node pci = add_pci(node, busids_[to_index(number)], "0x030200");
    add_link(pci, part.pcie_bytes_per_s);
    pugi::xml_node gpu = pci.append_child("gpu");
    set(gpu, "dev", std::to_string(number));
    set(gpu, "sm", std::to_string(*parts_.machine.compute_capability));
    set(gpu, "rank", std::to_string(number));
    set(gpu, "gdr", "1");
    if (part.switch_bytes_per_s > 0) add_nvlink(gpu, switch_, part.switch_bytes_per_s, "0x068000");
    for (const NodeParts::NvLink& link : parts_.nvlinks)
      if (link.a == number || link.b == number)
        add_nvlink(gpu, busids_[to_index(link.a == number ? link.b : link.a)], link.bytes_per_s,
                   "0x030200");
  }

  void add_nvlink(pugi::xml_node gpu, const std::string& target, std::int64_t bytes_per_s,
                  const char* kind) const {
    std::int64_t each = gpu_.nvlink_bytes_per_s;
    std::int64_t count =
        each == 0 ? 1 : std::clamp<std::int64_t>((bytes_per_s + each / 2) / each, 1, gpu_.nvlinks);
    pugi::xml_node link = gpu.append_child("nvlink");
    set(link, "target", target);
    set(link, "count", std::to_string(count));
    set(link, "tclass", kind);
    if (count * each != bytes_per_s) set(link, "reshard_rate", exact(bytes_per_s));
  }

  void add_nic(pugi::xml_node node, std::int32_t number) {
    std::int64_t rate = parts_.nics[to_index(number)].bytes_per_s;
    pugi::xml_node pci = add_pci(node, next_busid(), "0x020700");
    int generation = gpu_.pcie_generation;
    while (generation < 6 && pcie_line_bytes_per_s(generation, kLanes) < rate) ++generation;
    set(pci, "link_speed", pcie_speed_text(generation));
    set(pci, "link_width", std::to_string(kLanes));
    if (pcie_line_bytes_per_s(generation, kLanes) < rate) set(pci, "reshard_rate", exact(rate));
    pugi::xml_node net = pci.append_child("nic").append_child("net");
    set(net, "name", fmt::format("mlx5_{}", number));
    set(net, "dev", std::to_string(number));
    set(net, "speed", std::to_string(rate / kMbit));
    set(net, "port", "1");
    set(net, "latency", "0.000000");
    set(net, "guid", fmt::format("{:#x}", 0x100 + number));
    set(net, "maxconn", "131072");
    set(net, "gdr", "1");
  }

  const NodeParts& parts_;
  const GpuClass& gpu_;
  int made_ = 0;
  std::vector<std::string> busids_;  // by GPU
  std::string switch_;
};

}  // namespace

std::string to_nccl_xml(const TopologyDescription& description, std::int32_t compute_capability) {
  if (description.devices > kMaxWrittenDevices)
    throw InputError(fmt::format("topology {}: expected at most {} devices per node, found {}",
                                 description.name, kMaxWrittenDevices, description.devices));
  NodeParts parts = parts_of(description);
  if (!parts.machine.compute_capability) parts.machine.compute_capability = compute_capability;
  std::string out = XmlWriter(parts).run();
  std::optional<std::string> other;
  try {
    other = difference(description, read_nccl_xml(out, description.name, std::nullopt).description);
  } catch (const InputError& error) {
    other = error.what();
  }
  if (other)
    throw InputError(
        fmt::format("topology {}: expected routes that NCCL's XML can express, found others: {}",
                    description.name, *other));
  return out;
}

}  // namespace reshard::sim
