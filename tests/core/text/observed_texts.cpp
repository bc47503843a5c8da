// SPDX-License-Identifier: BSD-3-Clause
#include "tests/core/text/observed_texts.h"

#include <fmt/format.h>

#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/layout/request.h"
#include "core/text/plan_text.h"
#include "core/topology/gpu_figures.h"
#include "core/topology/machine_lines.h"
#include "core/topology/topology_text.h"
#include "tests/support/layout_facts.h"

namespace reshard::test {

std::string observed_shape(const std::string& text) {
  Shape shape = parse_shape(text, "--shape");
  CHECK(parse_shape(reshard::text(shape)) == shape);
  return fmt::format("{}|{}", shape.size(), reshard::text(shape));
}

std::string observed_dtype(const std::string& text) {
  DType dtype = parse_dtype(text, "--dtype");
  CHECK(parse_dtype(reshard::text(dtype)) == dtype);
  std::string out = fmt::format(
      "{} {}{}{}{}", reshard::text(dtype), size_bytes(dtype), is_floating(dtype) ? " floating" : "",
      is_integer(dtype) ? " integer" : "", can_divide(dtype) ? " divides" : "");
  for (int op = 0; op < kReduceOpCount; ++op)
    if (can_reduce(static_cast<ReduceOp>(op), dtype))
      out += fmt::format(" {}", reshard::text(static_cast<ReduceOp>(op)));
  for (std::uint64_t bits : {std::uint64_t{0}, std::uint64_t{0xa5}, ~std::uint64_t{0}})
    out += " " + bits_text(bits, dtype);
  return out;
}

std::string observed_operator(const std::string& text) {
  ReduceOp op = parse_reduce_op(text, "op");
  CHECK(parse_reduce_op(reshard::text(op)) == op);
  return std::string(reshard::text(op));
}

std::string observed_bytes(const std::string& text) {
  std::int64_t bytes = parse_bytes(text, "--size");
  return fmt::format("{} {} {}", bytes, bytes_text(bytes), figure_text(FigureUnit::Size, bytes));
}

std::string observed_rate(const std::string& text) {
  std::int64_t rate = parse_bytes_per_s(text, "rate");
  CHECK(parse_bytes_per_s(rate_word(rate), "rate") == rate);
  return fmt::format("{} {} {}", rate, rate_text(rate), rate_word(rate));
}

std::string observed_duration(const std::string& text) {
  std::int64_t ps = parse_duration_ps(text, "time");
  CHECK(parse_duration_ps(time_word(ps), "time") == ps);
  return fmt::format("{} {} {}", ps, duration_text(ps), time_word(ps));
}

std::string observed_ratio(const std::string& text) {
  std::int64_t ratio = parse_ratio(text, "ratio");
  CHECK(parse_ratio(figure_text(FigureUnit::Ratio, ratio), "ratio") == ratio);
  return fmt::format("{} {}", ratio, figure_text(FigureUnit::Ratio, ratio));
}

std::string observed_mesh(std::string text) {
  std::string first = take_line(text);
  Mesh mesh = parse_mesh(first, text, "--mesh");
  std::string shape = shape_text(mesh), ranks = ranks_text(mesh.ranks());
  CHECK(parse_mesh(shape, ranks) == mesh);
  CHECK(parse_ranks(ranks, "ranks") == mesh.ranks());
  std::string out = fmt::format("{} {}{}", shape, ranks, mesh.counts_from_zero() ? " all" : "");
  for (std::int32_t position = 0; position < std::min(mesh.size(), 50); ++position) {
    MeshCoordinate coordinate = mesh.coordinate(position);
    CHECK(mesh.position_at(coordinate) == position);
    CHECK(mesh.position_of(mesh.rank_at(position)) == position);
    out += fmt::format(" {}", coordinate[0]);
    for (int axis = 1; axis < mesh.axes(); ++axis)
      out += fmt::format(",{}", coordinate[to_index(axis)]);
    // A rank beside one that it has: most often there as well, else not at all.
    std::int32_t beside = to_int(mesh.rank_at(position)) + 1;
    std::optional<std::int32_t> there = mesh.position_of(Rank{beside});
    out += there ? fmt::format("<{}", *there) : "";
  }
  return out;
}

std::string observed_placements(std::string text) {
  int axes = take_line(text).front() - '0', dims = take_line(text).front() - '0';
  std::vector<std::string> names{"a", "b", "c", "d", "e"};
  names.resize(to_index(axes));
  auto mesh = std::make_shared<const Mesh>(
      Mesh::row_major(std::vector<std::int32_t>(to_index(axes), 2), Rank{0}, names));
  std::string shape = reshard::text(Shape(dims, 6));
  Layout layout = parse_layout(shape, "f32", mesh, text, "--from");
  std::string out = layout.text();
  CHECK(parse_layout(shape, "f32", mesh, layout.placements_text()) == layout);
  for (const Placement& placement : layout.placements()) out += " " + repr(placement);
  out += fmt::format(" {}{}", layout.has_strided(), layout.has_default_order());
  for (std::int32_t position = 0; position < mesh->size(); ++position) {
    out += fmt::format(" {}@{}", reshard::text(layout.local_shape(position)),
                       reshard::text(test::global_offset(layout, position)));
    for (const Box& box : layout.boxes(position)) out += reshard::text(box);
  }
  return out;
}

std::string observed_request(std::string text, Fingerprints& fingerprints) {
  RequestTexts texts;
  for (std::string* field : {&texts.mesh, &texts.ranks, &texts.to_mesh, &texts.to_ranks,
                             &texts.shape, &texts.dtype, &texts.from, &texts.to})
    *field = take_line(text);
  Request request = parse_request(texts, "--");
  const FoldMeaning& fold = request.fold();
  std::string out = request.text() + fmt::format(" {} {} {} {}", reshard::text(fold.op),
                                                 fold.addend_count, fold.divisor, fold.fold_count);
  for (const FoldMeaning::Axis& axis : fold.axes)
    out += fmt::format(" {}:{}{}", axis.axis, axis.size, axis.folded ? "f" : "k");
  for (int axis : fold.zero_axes) out += fmt::format(" zero {}", axis);
  out += " of " + ranks_text(request.ranks());
  const Mesh &from = request.source().mesh(), &to = request.destination().mesh();
  if (from.size() > 64 || to.size() > 64) return out;
  for (std::int32_t position = 0; position < from.size(); ++position)
    out += fmt::format(" {}", request.addend_of(position));
  for (std::int32_t first : first_replicas(request)) out += fmt::format(" {}", first);
  for (std::int32_t position = 0; position < to.size(); ++position) {
    out += fmt::format(" {}<", request.zero_coordinate(position));
    for (std::int64_t addend : request.addends_wanted(position)) out += fmt::format("{},", addend);
  }
  // Names of axes are no part of the identity.
  std::string content =
      fmt::format("{} {}", reshard::text(request.dtype()), reshard::text(request.shape()));
  for (const Layout* layout : {&request.source(), &request.destination()}) {
    for (std::int32_t extent : layout->mesh().shape()) content += fmt::format(" {}", extent);
    content += fmt::format("/{}/{}", ranks_text(layout->mesh().ranks()), layout->placements_text());
  }
  fingerprints.add(content, request.fingerprint());
  return out;
}

namespace {

std::string topology_content(const Topology& topology) {
  const NodeTemplate& node = topology.node();
  std::string out = fmt::format("{} {} {}\n{}", topology.name(), topology.nodes(), node.devices,
                                machine_lines(topology.machine()));
  for (const Port& port : node.ports)
    out += fmt::format("{} {} {}\n", port.name, port.out_bytes_per_s, port.in_bytes_per_s);
  for (const SharedResource& shared : node.shared)
    out += fmt::format("{} {}\n", shared.name, shared.bytes_per_s);
  for (const SharedResource& shared : topology.fabric())
    out += fmt::format("fabric {} {}\n", shared.name, shared.bytes_per_s);
  for (const DeviceGroup& group : node.groups)
    out += fmt::format("{} {}\n", group.name, fmt::join(group.devices, " "));
  for (const RouteRule& rule : node.rules) {
    for (const Hop& hop : rule.hops)
      out += fmt::format("{}:{} ", static_cast<int>(hop.kind), topology.hop_name(hop));
    out += fmt::format("{} {} {} {}{}\n", rule.latency_ps, rule.cap_bytes_per_s.value_or(0),
                       text(rule.transport), text(rule.path_class()),
                       rule.stated_class ? " stated" : "");
  }
  return out + fmt::format("{}\n{} {}", fmt::join(node.class_of, " "),
                           fmt::join(node.rule_within, " "), node.rule_between);
}

}  // namespace

std::string observed_topology(const std::string& text, Fingerprints& fingerprints) {
  TopologyDescription description = parse_topology(text, "m.topo");
  std::string out = to_text(description);
  TopologyDescription again = parse_topology(out, "m.topo");
  CHECK(to_text(again) == out);
  for (std::optional<std::int64_t> count :
       {std::optional<std::int64_t>(), std::optional<std::int64_t>(0),
        std::optional<std::int64_t>(2), std::optional<std::int64_t>(1 << 20)}) {
    if (count == 1 << 20 && description.devices == 1) continue;
    try {
      Topology topology = build_topology(description, count);
      out += fmt::format("{}: {} of {}, {} resources\n", topology.name(), topology.devices(),
                         topology.nodes(), topology.resource_count());
      if (topology.devices() > 64 || topology.resource_count() > 5000) continue;
      std::string content = topology_content(topology);
      fingerprints.add(content, topology.fingerprint());
      out += content;
      for (std::int32_t id = 0; id < topology.resource_count(); ++id)
        out += fmt::format("{} {} {}\n", topology.resource_name(ResourceId{id}),
                           topology.hop_name(topology.hop_of(ResourceId{id})),
                           topology.resource_bytes_per_s(ResourceId{id}));
      for (std::int32_t a = 0; a < topology.devices(); ++a)
        for (std::int32_t b = 0; b < topology.devices(); ++b) {
          if (a == b) continue;
          Route route = topology.route(Rank{a}, Rank{b});
          out += fmt::format("{} {} {} {}:", route.latency_ps, route.cap_bytes_per_s.value_or(0),
                             reshard::text(route.transport),
                             reshard::text(topology.rule(Rank{a}, Rank{b}).path_class()));
          for (ResourceId id : route.resources)
            out += fmt::format(" {}", static_cast<std::int32_t>(id));
        }
      for (const NamedGroup& group : topology.groups())
        out += fmt::format("{} {}\n", group.name, ranks_text(group.devices));
      if (std::optional<GpuFigures> gpu = gpu_figures(topology.machine()))
        out += fmt::format("{} {} {} {}\n", gpu->memory_bytes_per_s, gpu->mega_f64, gpu->mega_f32,
                           gpu->mega_f16);
    } catch (const InputError& error) {
      out += error.what();
    }
  }
  return out;
}

std::string observed_plan(const std::string& text) {
  Plan plan = parse_plan(text, "a.plan");
  std::string out = to_text(plan);
  CHECK(to_text(parse_plan(out, "a.plan")) == out);
  out += requests_text(plan);
  for (const Step& step : plan.steps)
    for (Slot slot : slots_of(step)) out += fmt::format(" {}", to_int(plan.rank_of(slot)));
  return out;
}

}  // namespace reshard::test
