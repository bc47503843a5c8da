// SPDX-License-Identifier: BSD-3-Clause
// Reads NCCL's topology XML, version 1 (NCCL 2.30.7, src/graph/xml.cc):
//
//   <system version="1">
//     <cpu numaid arch vendor familyid modelid>      a socket, or a part of one
//       <pci busid class link_speed link_width>      a bridge, or the slot of what it holds:
//         <gpu dev sm> <nvlink target count tclass/>
//         <nic> <net name dev speed/>                Mb/s
//
// `reshard_rate` is our own attribute, which NCCL ignores: a rate that the other attributes cannot
// express, such as "22.5GB/s". On a <pci> it is the rate of its link, on an <nvlink> that of all
// its links in one direction, on a <cpu> that between two sockets, both directions together.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/core.h>
#include <pugixml.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/base/ids.h"
#include "core/base/units.h"
#include "sim/machine_files/formats.h"
#include "sim/machine_files/known_parts.h"
#include "sim/machine_files/node_parts.h"
#include "sim/machine_files/xml_places.h"

namespace reshard::sim {
namespace {

// Dumps of the largest nodes have some 100 KB; a parsed document takes up to 40 times its text.
constexpr std::size_t kMaxXmlBytes = std::size_t{4} << 20;
constexpr int kMaxXmlDepth = 64;
constexpr std::size_t kMaxXmlGpus = 256, kMaxXmlParts = 1024;

class XmlReader : private XmlPlaces {
 public:
  XmlReader(std::string_view text, const std::string& file, const std::optional<UsersGpu>& gpu)
      : XmlPlaces(text, file), users_gpu_(gpu) {}

  ReadTopology read() {
    if (text_.size() > kMaxXmlBytes)
      throw InputError(fmt::format("{}: expected at most 4 MiB of XML, found more", file_));
    pugi::xml_document document;
    // Only the five predefined entities of XML are replaced, and no other file is read.
    pugi::xml_parse_result result = document.load_buffer(text_.data(), text_.size());
    if (!result)
      throw InputError(fmt::format("{}:{}: expected XML, found: {}", file_,
                                   line_at(to_index(result.offset)), result.description()));
    pugi::xml_node system = document.document_element();
    const FileKind* kind = file_kind(text_);
    bool other = kind != nullptr && kind->id.empty();
    std::string look = other ? ": " + file_look(text_) : "";
    if (std::string_view(system.name()) != "system")
      fail(system, "<system>, as NCCL_TOPO_DUMP_FILE writes it",
           fmt::format("<{}>{}", clean(system.name()), look));
    if (std::string_view version = system.attribute("version").value(); version != "1" || other)
      fail(system, "version=\"1\"", quoted(version) + look);
    for (pugi::xml_node cpu : system.children("cpu")) read_cpu(cpu);
    return finish(system);
  }

 private:
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

  struct BareSlot {
    Slot slot;
    NodeParts::AttachPoint where;
  };

  void read_below(pugi::xml_node node, NodeParts::AttachPoint where, const Slot* slot, int depth) {
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

  // The slot of a GPU or a NIC, otherwise a bridge.
  void read_pci(pugi::xml_node pci, NodeParts::AttachPoint where, int depth) {
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
      pcie_.insert(fmt::format("PCIe: {} achieved over {} lanes of generation {}",
                               rate_text(slot.reached), lanes, *generation));
    if (!pci.child("gpu") && !pci.child("nic") && !pci.child("pci") && keep_bare(slot, where))
      return;
    if (!pci.child("gpu") && !pci.child("nic")) {
      if (parts_.bridges.size() == kMaxXmlParts) fail(pci, "at most 1024 bridges", "more");
      // A bridge of unknown speed is taken not to limit rates.
      parts_.bridges.push_back({where, slot.reached > 0 ? slot.reached : kMaxRate});
      where.bridge = static_cast<std::int32_t>(parts_.bridges.size()) - 1;
      return read_below(pci, where, nullptr, depth + 1);
    }
    read_below(pci, where, &slot, depth + 1);
  }

  // Files for NCCL_TOPO_FILE may leave out what a slot holds; the class of the slot identifies it.
  bool keep_bare(const Slot& slot, NodeParts::AttachPoint where) {
    std::string_view kind = slot.node.attribute("class").value();
    bool gpu = kind.starts_with("0x0302") || kind.starts_with("0x0300"),
         nic = kind.starts_with("0x0200") || kind.starts_with("0x0207");
    if (!gpu && !nic) return false;
    std::vector<BareSlot>& slots = gpu ? bare_gpus_ : bare_nics_;
    if (slots.size() == (gpu ? kMaxXmlGpus : kMaxXmlParts))
      fail(slot.node, "at most 256 GPUs and 1024 NICs", "more");
    slots.push_back({slot, where});
    return true;
  }

  // Adds the GPUs and NICs of slots that state only their class.
  void take_bare(pugi::xml_node system) {
    constexpr std::string_view kWhole =
        "dump the whole topology with NCCL_TOPO_DUMP_FILE on the machine";
    if (bare_gpus_.empty())
      fail(system, "a <gpu> below <cpu> and <pci>",
           fmt::format("none, nor a <pci> of a GPU's class: this is a file for NCCL_TOPO_FILE; {}",
                       kWhole));
    pugi::xml_node first = bare_gpus_.front().slot.node;
    std::string_view device = gpu_of_device(first.attribute("device").value());
    if (!users_gpu_ && !device.empty()) users_gpu_ = users_gpu(device);
    if (!users_gpu_)
      fail(first, "a <gpu> within",
           fmt::format("none in {} GPU slots: this is a file for NCCL_TOPO_FILE; name the GPU "
                       "({},gpu=h100), or {}",
                       bare_gpus_.size(), file_, kWhole));
    std::int32_t sm = users_gpu_->compute_capability;
    parts_.machine.compute_capability = sm;
    note(fmt::format("GPUs: {}; the file gives only the slots of GPUs", users_gpu_->name));
    for (const BareSlot& bare : bare_gpus_) {
      std::int64_t reached = bare.slot.reached > 0
                                 ? bare.slot.reached
                                 : pcie_bytes_per_s(gpu_class(sm).pcie_generation, 16);
      gpus_.push_back({static_cast<std::int64_t>(gpus_.size()),
                       bare.slot.node.attribute("busid").value(),
                       bare.slot.node,
                       {bare.where, reached}});
    }
    for (const BareSlot& bare : bare_nics_) {
      std::int64_t rate = gpu_class(sm).nic_bytes_per_s;
      if (bare.slot.line > 0) rate = std::min(rate, bare.slot.line);
      parts_.nics.push_back({bare.where, rate});
      note(fmt::format("NICs: {} each, as usual with such GPUs", rate_text(rate)));
    }
  }

  // For a file without any <nvlink>: NCCL would add the links that it detects, which this reader
  // cannot.
  void assume_nvlinks() {
    std::int32_t sm = *parts_.machine.compute_capability;
    if (!parts_.nvlinks.empty() || gpus_.size() < 2) return;
    for (const ReadGpu& gpu : gpus_)
      if (gpu.node.child("nvlink")) return;
    if (users_gpu_ && users_gpu_->switch_bytes_per_s > 0) {
      for (ReadGpu& gpu : gpus_) gpu.part.switch_bytes_per_s = users_gpu_->switch_bytes_per_s;
      return note(assumed_switches(*users_gpu_));
    }
    if (!mostly_linked(sm)) return;
    note(
        fmt::format("NVLink: none, as no GPU of {} has an <nvlink>; NCCL adds the links that it "
                    "detects when it loads such a file",
                    file_));
    if (!users_gpu_)
      doubts_.push_back(
          fmt::format("{}: {} GPUs of sm{} without an <nvlink>; if the machine has NVLink, name "
                      "the GPU ({},gpu=h100) or dump the whole topology with NCCL_TOPO_DUMP_FILE",
                      place(gpus_.front().node), gpus_.size(), sm, file_));
  }

  struct ReadGpu {
    std::int64_t dev;
    std::string busid;
    pugi::xml_node node;
    NodeParts::Gpu part;
  };

  void read_gpu(pugi::xml_node gpu, NodeParts::AttachPoint where, const Slot* slot) {
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

  void read_net(pugi::xml_node net, NodeParts::AttachPoint where, const Slot* slot) {
    if (parts_.nics.size() == kMaxXmlParts) fail(net, "at most 1024 NICs", "more");
    std::string_view word = net.attribute("speed").value();
    std::int64_t mbit = number(word).value_or(0);
    if (mbit > 100'000'000) fail(net, "a speed of at most 100000000 Mb/s", quoted(word));
    if (mbit <= 0) {
      mbit = 10'000;
      note("network: 10 Gb/s for a NIC that does not state its speed");
    }
    std::int64_t rate = mbit * 125'000;
    if (slot != nullptr && slot->line > 0 && slot->line < rate) {
      doubts_.push_back(
          fmt::format("{}: a NIC of {} is faster than its PCIe slot, which carries {}", place(net),
                      rate_text(rate), rate_text(slot->line)));
      rate = slot->line;
    }
    parts_.nics.push_back({where, rate, clean(net.attribute("name").value())});
  }

  // ---- NVLink, once all GPUs are known

  void read_nvlinks() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> rates;
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
          // 0x068001 is a CPU.
          if (!kind.ends_with("01")) add_rate(link, gpus_[i].part.switch_bytes_per_s, rate);
          continue;
        }
        auto other = by_busid.find(target);
        if (other == by_busid.end())
          fail(link, "the busid of a GPU, or tclass=\"0x068000\", as target", quoted(target));
        if (other->second == static_cast<std::int32_t>(i))
          fail(link, "another GPU as target", quoted(target));
        add_rate(link, rates[{static_cast<std::int32_t>(i), other->second}], rate);
      }
    for (auto [pair, rate] : rates) {
      auto back = rates.find({pair.second, pair.first});
      if (back == rates.end() || back->second != rate)
        doubt_once(pair, fmt::format("{}: GPU {} has {} of NVLink to GPU {}, which has {} back",
                                     place(gpus_[to_index(pair.first)].node),
                                     gpus_[to_index(pair.first)].dev, rate_text(rate),
                                     gpus_[to_index(pair.second)].dev,
                                     rate_text(back == rates.end() ? 0 : back->second)));
      if (pair.first < pair.second || back == rates.end())
        parts_.nvlinks.push_back({std::min(pair.first, pair.second),
                                  std::max(pair.first, pair.second),
                                  back == rates.end() ? rate : std::min(rate, back->second)});
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
      fail(link, fmt::format("no NVLink on GPUs of sm{}, or a reshard_rate", sm),
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
      if (gpu.part.switch_bytes_per_s == 0 && most > 0)
        doubts_.push_back(fmt::format(
            "{}: GPU {} has no NVLink to switches, but others have {}; assumed to have none",
            place(gpu.node), gpu.dev, rate_text(most)));
      else if (gpu.part.switch_bytes_per_s != most)
        doubts_.push_back(fmt::format(
            "{}: GPU {} has {} of NVLink to switches, but others have {}; all are assumed to have "
            "the least",
            place(gpu.node), gpu.dev, rate_text(gpu.part.switch_bytes_per_s), rate_text(most)));
  }

  ReadTopology finish(pugi::xml_node system) {
    if (gpus_.empty()) take_bare(system);
    if (users_gpu_ && users_gpu_->compute_capability != *parts_.machine.compute_capability)
      fail(gpus_.front().node,
           fmt::format("GPUs of sm{}, as given by gpu={}", users_gpu_->compute_capability,
                       users_gpu_->name),
           fmt::format("sm{}", *parts_.machine.compute_capability));
    std::stable_sort(gpus_.begin(), gpus_.end(),
                     [](const ReadGpu& a, const ReadGpu& b) { return a.dev < b.dev; });
    for (std::size_t i = 1; i < gpus_.size(); ++i)
      if (gpus_[i].dev == gpus_[i - 1].dev)
        fail(gpus_[i].node, "each dev once", fmt::format("a second GPU with dev {}", gpus_[i].dev));
    read_nvlinks();
    assume_nvlinks();
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
      description.assumed.push_back(fmt::format(
          "between sockets: {}, both directions together, as NCCL assumes for this processor",
          rate_text(parts_.socket_bytes_per_s)));
    return {std::move(description), std::move(doubts_)};
  }

  std::optional<std::string> host_;
  bool socket_stated_ = false;
  std::set<std::string> pcie_;  // assumptions about PCIe, reported if a route crosses it
  std::optional<UsersGpu> users_gpu_;
  std::vector<BareSlot> bare_gpus_, bare_nics_;
  std::vector<ReadGpu> gpus_;
  std::map<std::pair<std::int32_t, std::int32_t>, bool> doubted_;
  NodeParts parts_;
  std::vector<std::string> doubts_;
};

}  // namespace

bool is_nccl_xml(std::string_view text) {
  std::string_view body = after_byte_order_mark(text);
  std::size_t first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && body[first] == '<';
}

ReadTopology read_nccl_xml(std::string_view text, const std::string& file,
                           const std::optional<UsersGpu>& gpu) {
  return XmlReader(text, file, gpu).read();
}

}  // namespace reshard::sim
