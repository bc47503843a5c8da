// SPDX-License-Identifier: BSD-3-Clause
// NCCL's topology as XML, version 1 (NCCL 2.30.7, src/graph/xml.cc):
//
//   <system version="1">
//     <cpu numaid arch vendor familyid modelid>      a socket, or a part of one
//       <pci busid class link_speed link_width>      a bridge, or the slot of what it holds:
//         <gpu dev sm> <nvlink target count tclass/>
//         <nic> <net name dev speed/>                Mb/s
//
// `reshard_rate` is ours: a rate that these words cannot say, as "22.5GB/s"; of a <pci> its link,
// of an <nvlink> all its links in one direction, of a <cpu> what lies between two sockets, both
// directions together. NCCL passes over it.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/base/units.h"
#include "sim/machine_files/formats.h"
#include "sim/machine_files/known_parts.h"
#include "sim/machine_files/node_parts.h"

namespace reshard::sim {
namespace {

// Dumps of the largest nodes have some 100 KB; a document takes up to 40 times its text.
constexpr std::size_t kMaxXmlBytes = std::size_t{4} << 20;
constexpr int kMaxXmlDepth = 64;
constexpr std::size_t kMaxXmlGpus = 256, kMaxXmlParts = 1024;
constexpr std::int64_t kMaxRate = 1'000'000'000'000'000;  // sums of them fit 64 bits

class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  ReadTopology read() {
    if (text_.size() > kMaxXmlBytes)
      throw InputError(fmt::format("{}: expected at most 4 MiB of XML, found more", file_));
    for (std::size_t i = 0; i < text_.size(); ++i)
      if (text_[i] == '\n') line_ends_.push_back(i);
    pugi::xml_document document;
    // No entity but the five of XML is ever replaced, and no other file is read.
    pugi::xml_parse_result result = document.load_buffer(text_.data(), text_.size());
    if (!result)
      throw InputError(fmt::format("{}:{}: expected XML, found: {}", file_,
                                   line_at(to_index(result.offset)), result.description()));
    pugi::xml_node system = document.document_element();
    if (std::string_view(system.name()) != "system")
      fail(system, "<system>, as NCCL_TOPO_DUMP_FILE writes it",
           fmt::format("<{}>", clean(system.name())));
    if (std::string_view version = system.attribute("version").value(); version != "1")
      fail(system, "version=\"1\"", quoted(version));
    for (pugi::xml_node cpu : system.children("cpu")) read_cpu(cpu);
    return finish(system);
  }

 private:
  // ---- places and attributes

  std::int64_t line_at(std::size_t offset) const {
    return std::lower_bound(line_ends_.begin(), line_ends_.end(), offset) - line_ends_.begin() + 1;
  }
  std::string place(pugi::xml_node node) const {
    std::ptrdiff_t offset = std::max<std::ptrdiff_t>(0, node.offset_debug());
    return fmt::format("{}:{}", file_, line_at(to_index(offset)));
  }
  static std::string clean(std::string_view word) {
    std::string out = quoted(word);
    return out.substr(1, out.size() - 2);
  }
  [[noreturn]] void fail(pugi::xml_node node, std::string_view expected,
                         const std::string& found) const {
    throw InputError(fmt::format("{}: expected {}, found {}", place(node), expected, found));
  }

  static std::optional<std::int64_t> number(std::string_view word) {
    std::int64_t value = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return value;
  }
  std::int64_t integer(pugi::xml_node node, const char* name, std::int64_t low,
                       std::int64_t high) const {
    std::string_view word = node.attribute(name).value();
    std::optional<std::int64_t> value = number(word);
    if (!value || *value < low || *value > high)
      fail(node, fmt::format("<{}> with {}, from {} to {}", node.name(), name, low, high),
           node.attribute(name) ? quoted(word) : "none");
    return *value;
  }
  std::optional<std::int64_t> own_rate(pugi::xml_node node) const {
    pugi::xml_attribute rate = node.attribute("reshard_rate");
    if (!rate) return std::nullopt;
    std::int64_t value = parse_bytes_per_s(rate.value(), place(node) + ": reshard_rate");
    if (value > kMaxRate) fail(node, "a reshard_rate of at most 1e15 B/s", quoted(rate.value()));
    return value;
  }
  void note(std::string what) {
    if (std::find(parts_.assumed.begin(), parts_.assumed.end(), what) == parts_.assumed.end())
      parts_.assumed.push_back(std::move(what));
  }

  // ---- the tree

  void read_cpu(pugi::xml_node cpu) {
    std::int64_t numa = integer(cpu, "numaid", -1, 4096);
    std::string_view host = cpu.attribute("host_hash").value(),
                     vendor = cpu.attribute("vendor").value();
    if (!host_) host_ = std::string(host);
    if (*host_ != host) fail(cpu, "one host, by host_hash", "a second one");
    Cpu kind = vendor == "GenuineIntel"   ? Cpu::Intel
               : vendor == "AuthenticAMD" ? Cpu::Amd
                                          : Cpu::Other;
    parts_.machine.cpu = kind;
    std::string_view arch = cpu.attribute("arch").value();
    auto of = [&](const char* name) {
      return static_cast<std::int32_t>(
          std::clamp<std::int64_t>(number(cpu.attribute(name).value()).value_or(0), 0, 1 << 20));
    };
    std::optional<std::int64_t> stated = own_rate(cpu);
    parts_.socket_bytes_per_s =
        stated.value_or(2 * socket_bytes_per_s(kind, arch, of("familyid"), of("modelid")));
    socket_stated_ = stated.has_value();
    read_below(cpu, {-1, static_cast<std::int32_t>(numa)}, nullptr, 1);
  }

  struct Slot {
    pugi::xml_node node;
    std::int64_t reached, line;  // bytes/s
  };

  void read_below(pugi::xml_node node, NodeParts::Place where, const Slot* slot, int depth) {
    if (depth > kMaxXmlDepth)
      fail(node, fmt::format("at most {} levels of elements", kMaxXmlDepth), "more");
    for (pugi::xml_node child : node.children()) {
      std::string_view name = child.name();
      if (name == "pci")
        read_pci(child, where, depth);
      else if (name == "gpu")
        read_gpu(child, where, slot);
      else if (name == "nic")
        for (pugi::xml_node net : child.children("net")) read_net(net, where, slot);
    }
  }

  // The slot of a GPU or a NIC, else a bridge.
  void read_pci(pugi::xml_node pci, NodeParts::Place where, int depth) {
    Slot slot{pci, 0, 0};
    std::int64_t lanes = number(pci.attribute("link_width").value()).value_or(0);
    std::optional<int> generation = pcie_generation(pci.attribute("link_speed").value());
    if (lanes < 1 || lanes > 32) lanes = 16;
    if (!generation && pci.child("gpu"))
      generation = gpu_class(static_cast<std::int32_t>(integer(pci.child("gpu"), "sm", 30, 999)))
                       .pcie_generation;
    if (generation) slot.reached = pcie_bytes_per_s(*generation, lanes);
    if (generation) slot.line = pcie_line_bytes_per_s(*generation, lanes);
    if (std::optional<std::int64_t> stated = own_rate(pci))
      slot.reached = slot.line = *stated;
    else if (generation && pci.child("gpu"))
      pcie_.insert(fmt::format("PCIe: {} are reached over {} lanes of generation {}",
                               rate_text(slot.reached), lanes, *generation));
    if (!pci.child("gpu") && !pci.child("nic")) {
      if (parts_.bridges.size() == kMaxXmlParts) fail(pci, "at most 1024 bridges", "more");
      // A bridge of unknown speed does not narrow.
      parts_.bridges.push_back({where, slot.reached > 0 ? slot.reached : kMaxRate});
      where.bridge = static_cast<std::int32_t>(parts_.bridges.size()) - 1;
      return read_below(pci, where, nullptr, depth + 1);
    }
    read_below(pci, where, &slot, depth + 1);
  }

  struct ReadGpu {
    std::int64_t dev;
    std::string busid;
    pugi::xml_node node;
    NodeParts::Gpu part;
  };

  void read_gpu(pugi::xml_node gpu, NodeParts::Place where, const Slot* slot) {
    if (gpus_.size() == kMaxXmlGpus) fail(gpu, "at most 256 GPUs", "more");
    std::int64_t dev = integer(gpu, "dev", 0, kMaxRanks - 1), sm = integer(gpu, "sm", 30, 999);
    auto capability = static_cast<std::int32_t>(std::max<std::int64_t>(50, sm));
    std::optional<std::int32_t>& known = parts_.machine.compute_capability;
    known = known ? std::min(*known, capability) : capability;
    std::int64_t reached = slot != nullptr && slot->reached > 0
                               ? slot->reached
                               : pcie_bytes_per_s(gpu_class(capability).pcie_generation, 16);
    const char* busid = slot != nullptr ? slot->node.attribute("busid").value() : "";
    gpus_.push_back({dev, busid, gpu, {where, reached}});
  }

  void read_net(pugi::xml_node net, NodeParts::Place where, const Slot* slot) {
    if (parts_.nics.size() == kMaxXmlParts) fail(net, "at most 1024 NICs", "more");
    std::string_view word = net.attribute("speed").value();
    std::int64_t mbit = number(word).value_or(0);
    if (mbit > 100'000'000) fail(net, "a speed of at most 100000000 Mb/s", quoted(word));
    if (mbit <= 0) {
      mbit = 10'000;
      note("network: 10 Gb/s of a NIC that does not say its speed");
    }
    std::int64_t rate = mbit * 125'000;
    if (slot != nullptr && slot->line > 0 && slot->line < rate) {
      doubts_.push_back(
          fmt::format("{}: a NIC of {} is faster than its PCIe slot, which carries {}", place(net),
                      rate_text(rate), rate_text(slot->line)));
      rate = slot->line;
    }
    parts_.nics.push_back({where, rate});
  }

  // ---- NVLink, once all GPUs are known

  void read_nvlinks() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> said;
    std::map<std::string_view, std::int32_t> by_busid;
    for (std::size_t i = 0; i < gpus_.size(); ++i)
      by_busid.emplace(gpus_[i].busid, static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < gpus_.size(); ++i)
      for (pugi::xml_node link : gpus_[i].node.children("nvlink")) {
        std::int64_t count = integer(link, "count", 1, 1000);
        std::int64_t rate = own_rate(link).value_or(count * nvlink_rate(link, count));
        std::string_view target = link.attribute("target").value(),
                         kind = link.attribute("tclass").value();
        if (kind.starts_with("0x0680")) {
          // 0x068001: a processor.
          if (!kind.ends_with("01")) add_rate(link, gpus_[i].part.switch_bytes_per_s, rate);
          continue;
        }
        auto other = by_busid.find(target);
        if (other == by_busid.end())
          fail(link, "the busid of a GPU, or tclass=\"0x068000\", as target", quoted(target));
        if (other->second == static_cast<std::int32_t>(i))
          fail(link, "another GPU as target", quoted(target));
        add_rate(link, said[{static_cast<std::int32_t>(i), other->second}], rate);
      }
    for (auto [pair, rate] : said) {
      auto back = said.find({pair.second, pair.first});
      if (back == said.end() || back->second != rate)
        doubt_once(pair, fmt::format("{}: GPU {} says {} of NVLink to GPU {}, which says {} back",
                                     place(gpus_[to_index(pair.first)].node),
                                     gpus_[to_index(pair.first)].dev, rate_text(rate),
                                     gpus_[to_index(pair.second)].dev,
                                     rate_text(back == said.end() ? 0 : back->second)));
      if (pair.first < pair.second || back == said.end())
        parts_.nvlinks.push_back({std::min(pair.first, pair.second),
                                  std::max(pair.first, pair.second),
                                  back == said.end() ? rate : std::min(rate, back->second)});
    }
  }

  void add_rate(pugi::xml_node link, std::int64_t& sum, std::int64_t rate) const {
    sum += rate;
    if (sum > kMaxRate) fail(link, "NVLinks of at most 1e15 B/s in all", rate_text(sum));
  }

  std::int64_t nvlink_rate(pugi::xml_node link, std::int64_t count) {
    std::int32_t sm = *parts_.machine.compute_capability;
    std::int64_t rate = gpu_class(sm).nvlink_bytes_per_s;
    if (rate == 0)
      fail(link, fmt::format("no NVLink of GPUs of sm{}, or its reshard_rate", sm),
           fmt::format("{} links", count));
    note(fmt::format("NVLink: {} per link and direction, line rate of sm{}", rate_text(rate), sm));
    return rate;
  }

  void doubt_once(std::pair<std::int32_t, std::int32_t> pair, std::string what) {
    auto [a, b] = std::minmax(pair.first, pair.second);
    if (doubted_.emplace(std::pair(a, b), true).second) doubts_.push_back(std::move(what));
  }

  void compare_switch_links() {
    std::int64_t most = 0;
    for (const ReadGpu& gpu : gpus_) most = std::max(most, gpu.part.switch_bytes_per_s);
    for (const ReadGpu& gpu : gpus_)
      if (gpu.part.switch_bytes_per_s != most)
        doubts_.push_back(fmt::format(
            "{}: GPU {} has NVLinks of {} to switches, others of {}; all are taken to have as few",
            place(gpu.node), gpu.dev, rate_text(gpu.part.switch_bytes_per_s), rate_text(most)));
  }

  ReadTopology finish(pugi::xml_node system) {
    if (gpus_.empty()) fail(system, "a <gpu> below <cpu> and <pci>", "none");
    std::stable_sort(gpus_.begin(), gpus_.end(),
                     [](const ReadGpu& a, const ReadGpu& b) { return a.dev < b.dev; });
    for (std::size_t i = 1; i < gpus_.size(); ++i)
      if (gpus_[i].dev == gpus_[i - 1].dev)
        fail(gpus_[i].node, "each dev once", fmt::format("a second GPU with dev {}", gpus_[i].dev));
    read_nvlinks();
    compare_switch_links();
    bool switches = false;
    for (const ReadGpu& gpu : gpus_) {
      parts_.gpus.push_back(gpu.part);
      switches = switches || gpu.part.switch_bytes_per_s > 0;
    }
    if (switches && *parts_.machine.compute_capability >= 90) {
      parts_.machine.nvls = true;
      note("NVLink switches reduce (NVLS), as those of sm90 and later do");
    }
    parts_.name = machine_name(file_);
    TopologyDescription description = describe(parts_, file_);
    if (std::any_of(description.ports.begin(), description.ports.end(),
                    [](const Port& port) { return port.name == "pcie"; }))
      description.assumed.insert(description.assumed.end(), pcie_.begin(), pcie_.end());
    bool crosses_sockets = std::any_of(
        description.shared.begin(), description.shared.end(),
        [](const SharedResource& shared) { return shared.name.starts_with("socket-link"); });
    if (crosses_sockets && !socket_stated_)
      description.assumed.push_back(
          fmt::format("between sockets: {}, both directions together, as NCCL takes it for this "
                      "processor",
                      rate_text(parts_.socket_bytes_per_s)));
    return {std::move(description), std::move(doubts_)};
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<std::size_t> line_ends_;
  std::optional<std::string> host_;
  bool socket_stated_ = false;
  std::set<std::string> pcie_;  // what is assumed of it, where a route crosses it
  std::vector<ReadGpu> gpus_;
  std::map<std::pair<std::int32_t, std::int32_t>, bool> doubted_;
  NodeParts parts_;
  std::vector<std::string> doubts_;
};

}  // namespace

bool is_nccl_xml(std::string_view text) {
  std::string_view body = behind_mark(text);
  std::size_t first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && body[first] == '<';
}

ReadTopology read_nccl_xml(std::string_view text, const std::string& file) {
  return XmlReader(text, file).read();
}

}  // namespace reshard::sim
