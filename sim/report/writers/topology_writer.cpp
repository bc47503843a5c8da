// SPDX-License-Identifier: BSD-3-Clause
// Writes topologies as tables and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "core/topology/gpu_figures.h"
#include "sim/report/json.h"
#include "sim/report/table.h"
#include "sim/report/writers/topology_writer.h"
#include "sim/transport/nccl/nccl_costs.h"

namespace reshard::sim {

namespace {

// For larger nodes, the matrix shows only the first devices.
constexpr std::int32_t kMatrixDevices = 16;

std::vector<std::string> hops_text(const RouteRule& rule, const Topology& topology) {
  std::vector<std::string> out;
  for (const Hop& hop : rule.hops)
    out.push_back(topology.hop_name(hop) +
                  (hop.kind == Hop::Kind::DestinationNodeShared ? " (there)" : ""));
  return out;
}

// Index of the rule between two devices of one node.
std::size_t rule_index(const Topology& topology, std::int32_t a, std::int32_t b) {
  return to_index(&topology.rule(Rank{a}, Rank{b}) - topology.node().rules.data());
}

// The rate of a single flow without others.
std::int64_t rate_of(const RouteRule& rule, const Topology& topology) {
  std::int64_t least = rule.cap_bytes_per_s.value_or(kMaxBytes);
  const NodeTemplate& node = topology.node();
  for (const Hop& hop : rule.hops) switch (hop.kind) {
      case Hop::Kind::SourceOut:
        least = std::min(least, node.ports[hop.index].out_bytes_per_s);
        break;
      case Hop::Kind::DestinationIn:
        least = std::min(least, node.ports[hop.index].in_bytes_per_s);
        break;
      case Hop::Kind::SourceNodeShared:
      case Hop::Kind::DestinationNodeShared:
        least = std::min(least, node.shared[hop.index].bytes_per_s);
        break;
      case Hop::Kind::Fabric:
        least = std::min(least, topology.fabric()[hop.index].bytes_per_s);
        break;
    }
  return least;
}

// All pairs of one class, in all nodes.
struct ClassRow {
  std::int64_t pairs = 0;
  std::int64_t least_rate = kMaxBytes, most_rate = 0;
  std::int64_t least_latency_ps = kMaxDurationPs, most_latency_ps = 0;
  std::vector<std::string> paths;  // the distinct ones, without digits
};

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

void add_pairs(ClassRow& row, std::int64_t pairs, const RouteRule& rule, const Topology& topology) {
  row.pairs += pairs;
  std::int64_t rate = rate_of(rule, topology);
  row.least_rate = std::min(row.least_rate, rate);
  row.most_rate = std::max(row.most_rate, rate);
  row.least_latency_ps = std::min(row.least_latency_ps, rule.latency_ps);
  row.most_latency_ps = std::max(row.most_latency_ps, rule.latency_ps);
  std::string path = without_digits(fmt::format("{}", fmt::join(hops_text(rule, topology), " > ")));
  if (std::find(row.paths.begin(), row.paths.end(), path) == row.paths.end())
    row.paths.push_back(std::move(path));
}

std::map<PathClass, ClassRow> classes_of(const Topology& topology) {
  const NodeTemplate& node = topology.node();
  std::vector<std::int64_t> sizes(to_index(topology.classes()), 0);
  for (std::int32_t device = 0; device < node.devices; ++device)
    ++sizes[to_index(topology.class_of(Rank{device}))];
  // Counts pairs by rule first, since there are fewer rules than pairs of classes.
  std::map<std::int32_t, std::int64_t> pairs;
  for (std::size_t a = 0; a < sizes.size(); ++a)
    for (std::size_t b = a; b < sizes.size(); ++b) {
      std::int64_t count = a == b ? sizes[a] * (sizes[a] - 1) / 2 : sizes[a] * sizes[b];
      if (count > 0) pairs[node.rule_within[a * sizes.size() + b]] += count * topology.nodes();
    }
  std::map<PathClass, ClassRow> out;
  for (auto [rule, count] : pairs)
    add_pairs(out[node.rules[rule].path_class()], count, node.rules[rule], topology);
  std::int64_t nodes = topology.nodes();
  if (node.rule_between >= 0 && nodes > 1) {
    const RouteRule& rule = node.rules[node.rule_between];
    add_pairs(out[rule.path_class()], nodes * (nodes - 1) / 2 * node.devices * node.devices, rule,
              topology);
  }
  return out;
}

std::string range_text(std::int64_t least, std::int64_t most, std::string (*text)(std::int64_t)) {
  return least == most ? text(most) : fmt::format("{} .. {}", text(least), text(most));
}

std::string classes_table(const Topology& topology, std::size_t width) {
  Table table({"class", ">pairs", ">rate", ">latency", "path"});
  for (const auto& [path_class, row] : classes_of(topology))
    table.add_row({std::string(text(path_class)), std::to_string(row.pairs),
                   range_text(row.least_rate, row.most_rate, rate_text),
                   range_text(row.least_latency_ps, row.most_latency_ps, duration_text),
                   fmt::format("{}", fmt::join(row.paths, "; "))});
  return table.text(width);
}

Json classes_json(const Topology& topology) {
  Json out = Json::array();
  for (const auto& [path_class, row] : classes_of(topology))
    out.push_back({{"class", text(path_class)},
                   {"pairs", row.pairs},
                   {"least_bytes_per_s", row.least_rate},
                   {"most_bytes_per_s", row.most_rate},
                   {"least_latency_ps", row.least_latency_ps},
                   {"most_latency_ps", row.most_latency_ps},
                   {"paths", row.paths}});
  return out;
}

std::string matrix(const Topology& topology, std::size_t width) {
  std::int32_t shown = std::min(topology.node().devices, kMatrixDevices);
  std::vector<std::string> titles{"route"};
  for (std::int32_t b = 0; b < shown; ++b) titles.push_back(fmt::format(">{}", b));
  Table table(titles);
  for (std::int32_t a = 0; a < shown; ++a) {
    std::vector<std::string> cells{fmt::format("gpu{}", a)};
    for (std::int32_t b = 0; b < shown; ++b)
      cells.push_back(a == b ? "X" : std::to_string(rule_index(topology, a, b)));
    table.add_row(std::move(cells));
  }
  std::string note =
      shown < topology.node().devices
          ? fmt::format("(the first {} of {} devices of a node)\n", shown, topology.node().devices)
          : "";
  return table.text(width) + note;
}

std::string links_table(const Topology& topology, std::size_t width) {
  Table table({"link", "per", ">out", ">in"});
  for (const Port& port : topology.node().ports)
    table.add_row(
        {port.name, "device", rate_text(port.out_bytes_per_s), rate_text(port.in_bytes_per_s)});
  for (const SharedResource& shared : topology.node().shared)
    table.add_row({shared.name, "node", rate_text(shared.bytes_per_s), "(shared)"});
  for (const SharedResource& fabric : topology.fabric())
    table.add_row({fabric.name, "machine", rate_text(fabric.bytes_per_s), "(shared)"});
  return table.text(width);
}

std::string routes_table(const Topology& topology, std::size_t width) {
  Table table({"route", "transport", "class", ">latency", ">cap per flow", "crosses"});
  for (std::size_t i = 0; i < topology.node().rules.size(); ++i) {
    const RouteRule& rule = topology.node().rules[i];
    std::string name = std::to_string(i);
    if (static_cast<std::int32_t>(i) == topology.node().rule_between) name += " (between nodes)";
    table.add_row({name, std::string(text(rule.transport)), std::string(text(rule.path_class())),
                   duration_text(rule.latency_ps),
                   rule.cap_bytes_per_s ? rate_text(*rule.cap_bytes_per_s) : "-",
                   fmt::format("{}", fmt::join(hops_text(rule, topology), " > "))});
  }
  return table.text(width);
}

// A figure of the transports: as stated by the topology, else the default for its class of GPU.
struct FigureNow {
  const FigureRow* row;
  std::optional<std::int64_t> value;  // none: depends on the links between the ranks involved
  bool stated;
};
std::vector<FigureNow> figures_of(const Topology& topology) {
  int gpu = nccl::gpus_of(topology).compute_capability;
  std::vector<FigureNow> out;
  for (std::size_t i = 0; i < figure_rows().size(); ++i) {
    auto which = static_cast<Figure>(i);
    std::optional<std::int64_t> stated = topology.machine().figure(which);
    std::int64_t usual = std::max(nccl::default_figure(which, gpu), usual_figure(which, gpu));
    out.push_back({&figure_rows()[i],
                   stated      ? stated
                   : usual > 0 ? std::optional(usual)
                               : std::nullopt,
                   stated.has_value()});
  }
  return out;
}

std::string figure_cell(const FigureNow& figure) {
  if (!figure.value) return "-";
  switch (figure.row->unit) {
    case FigureUnit::Time:
      return duration_text(*figure.value);
    case FigureUnit::Rate:
      return rate_text(*figure.value);
    case FigureUnit::Size:
      return bytes_text(*figure.value);
    case FigureUnit::Ratio:
      return decimal_text(*figure.value, kRatioOne, 3);
  }
  return {};
}

std::string figures_table(const Topology& topology, std::size_t width) {
  Table table({"figure", ">value", "from", "meaning"});
  for (const FigureNow& figure : figures_of(topology))
    table.add_row({std::string(figure.row->name), figure_cell(figure),
                   figure.stated  ? "stated"
                   : figure.value ? "GPU"
                                  : "links",
                   std::string(figure.row->meaning)});
  return table.text(width);
}

std::string reduces_text(const Machine& machine) {
  if (!machine.nvls && !machine.sharp) return "not in switches";
  return fmt::format("in switches of {}", machine.nvls && machine.sharp ? "NVLink and the network"
                                          : machine.nvls                ? "NVLink"
                                                                        : "the network");
}

bool has_nvlink(const NodeTemplate& node) {
  return std::any_of(node.rules.begin(), node.rules.end(),
                     [](const RouteRule& rule) { return rule.path_class() == PathClass::NVL; });
}

}  // namespace

std::string topology_table(const Topology& topology, std::size_t width) {
  const NodeTemplate& node = topology.node();
  Facts head;
  head.add("topology", topology.name());
  head.add("devices", fmt::format("{}: {} node{} of {}", topology.devices(), topology.nodes(),
                                  topology.nodes() == 1 ? "" : "s", node.devices));
  nccl::Gpus gpus = nccl::gpus_of(topology);
  head.add("GPUs", fmt::format("sm{}{}", gpus.compute_capability,
                               gpus.stated                   ? ""
                               : has_nvlink(topology.node()) ? ", inferred from link rates"
                                                             : ", assumed, as no type is stated"));
  head.add("reductions", reduces_text(topology.machine()));
  head.add("transport",
           std::string(text(topology.machine().transport.value_or(TransportKind::Ideal))));
  for (const DeviceGroup& group : node.groups) {
    std::vector<Rank> devices;
    for (std::int32_t device : group.devices) devices.push_back(Rank{device});
    head.add("group " + group.name, fmt::format("devices {} of a node", ranks_text(devices)));
  }
  for (const std::string& assumed : node.assumed) head.add("assumed", assumed);
  std::string classes = topology.devices() > 1 ? classes_table(topology, width) + "\n" : "";
  return fmt::format("{}\n{}{}\n{}\n{}\n{}", head.text(width), classes,
                     links_table(topology, width), routes_table(topology, width),
                     matrix(topology, width), figures_table(topology, width));
}

std::string topology_json(const Topology& topology) {
  const NodeTemplate& node = topology.node();
  Json links = Json::array();
  for (const Port& port : node.ports)
    links.push_back({{"name", port.name},
                     {"per", "device"},
                     {"out_bytes_per_s", port.out_bytes_per_s},
                     {"in_bytes_per_s", port.in_bytes_per_s}});
  for (const SharedResource& shared : node.shared)
    links.push_back({{"name", shared.name}, {"per", "node"}, {"bytes_per_s", shared.bytes_per_s}});
  for (const SharedResource& fabric : topology.fabric())
    links.push_back(
        {{"name", fabric.name}, {"per", "machine"}, {"bytes_per_s", fabric.bytes_per_s}});
  Json rows = Json::array();
  std::int32_t shown = std::min(node.devices, kMatrixDevices);
  for (std::int32_t a = 0; a < shown; ++a) {
    Json& row = rows.emplace_back(Json::array());
    for (std::int32_t b = 0; b < shown; ++b)
      row.push_back(a == b ? Json(nullptr) : Json(rule_index(topology, a, b)));
  }
  return written(
      {{"schema", "reshard.topology/1"},
       {"name", topology.name()},
       {"devices", topology.devices()},
       {"nodes", topology.nodes()},
       {"devices_per_node", node.devices},
       {"fingerprint", topology.fingerprint().hex()},
       {"machine",
        {{"compute_capability", nccl::gpus_of(topology).compute_capability},
         {"stated", nccl::gpus_of(topology).stated},
         {"transport", text(topology.machine().transport.value_or(TransportKind::Ideal))},
         {"reduces_in_nvlink", topology.machine().nvls},
         {"reduces_in_network", topology.machine().sharp},
         {"figures", list_json(figures_of(topology),
                               [](const FigureNow& figure) -> Json {
                                 return {{"name", figure.row->name},
                                         {"value", or_null(figure.value)},
                                         {"stated", figure.stated}};
                               })}}},
       {"assumed", node.assumed},
       {"classes", classes_json(topology)},
       {"links", std::move(links)},
       {"routes", list_json(node.rules,
                            [&](const RouteRule& rule) -> Json {
                              return {{"transport", text(rule.transport)},
                                      {"class", text(rule.path_class())},
                                      {"bytes_per_s", rate_of(rule, topology)},
                                      {"latency_ps", rule.latency_ps},
                                      {"cap_bytes_per_s", or_null(rule.cap_bytes_per_s)},
                                      {"crosses", hops_text(rule, topology)}};
                            })},
       {"route_between_nodes", node.rule_between >= 0 ? Json(node.rule_between) : Json(nullptr)},
       {"route_matrix", std::move(rows)}});
}

}  // namespace reshard::sim
