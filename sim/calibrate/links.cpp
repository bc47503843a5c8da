// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/links.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"

namespace reshard::sim {
namespace {

using Pair = std::pair<std::int32_t, std::int32_t>;

// Rounded to four digits, the most that measurements justify.
std::int64_t in_short(std::int64_t value) {
  std::int64_t unit = 1;
  while (value / unit >= 10'000) unit *= 10;
  return (value + unit / 2) / unit * unit;
}

// A port, or a shared resource.
struct Resource {
  bool is_port;
  std::int32_t index;
  auto operator<=>(const Resource&) const = default;
};

class LinkFitter {
 public:
  LinkFitter(const TopologyDescription& base, const P2pMatrices& measured, const std::string& file)
      : measured_(measured) {
    out_.machine = base;
    if (measured.gpus > base.devices)
      throw InputError(
          fmt::format("{}: expected a topology of at least {} devices per node, found "
                      "{}",
                      file, measured.gpus, base.devices));
    if (!measured.rate(0, 1))
      throw InputError(file + ": expected a unidirectional bandwidth matrix, found none");
  }

  LinkFit run() {
    sort_pairs();
    for (Group& group : groups_) measure(group);
    set_links();
    for (const Group& group : groups_) {
      set_cap(group);
      set_latency(group);
      out_.pairs.push_back({group.path_class, static_cast<std::int64_t>(group.pairs.size()),
                            group.one_way, group.before, rate(lines()[*group.lines.begin()].rule)});
    }
    return std::move(out_);
  }

 private:
  struct Group {
    PathClass path_class;
    std::int64_t before;  // rate of its routes
    std::set<std::size_t> lines;
    std::vector<Pair> pairs;  // lower device first
    std::int64_t one_way = 0, latency_ps = 0;
    std::optional<std::int64_t> both_ways;
  };

  std::vector<RouteLine>& lines() { return out_.machine.routes; }
  const std::vector<RouteLine>& lines() const { return out_.machine.routes; }

  std::int64_t& rate_of(Resource resource) {
    return resource.is_port ? out_.machine.ports[resource.index].out_bytes_per_s
                            : out_.machine.shared[resource.index].bytes_per_s;
  }
  static std::vector<Resource> resources(const RouteRule& rule) {
    std::vector<Resource> out;
    for (const Hop& hop : rule.hops)
      if (hop.kind == Hop::Kind::SourceOut || hop.kind == Hop::Kind::SourceNodeShared)
        out.push_back({hop.kind == Hop::Kind::SourceOut, hop.index});
    return out;
  }
  std::int64_t carried(const RouteRule& rule) {
    std::int64_t least = kMaxBytes;
    for (Resource resource : resources(rule)) least = std::min(least, rate_of(resource));
    return least;
  }
  std::int64_t rate(const RouteRule& rule) {
    return std::min(carried(rule), rule.cap_bytes_per_s.value_or(kMaxBytes));
  }

  // Groups the pairs by their route lines, and finds the shared resources that both directions
  // cross.
  void sort_pairs() {
    RouteTable table = make_route_table(out_.machine);
    auto class_of = [&](std::int32_t device) {
      return table.class_of.empty() ? 0 : table.class_of[device];
    };
    std::int32_t classes = 1;
    for (std::int32_t c : table.class_of) classes = std::max(classes, c + 1);
    auto line_of = [&](std::int32_t a, std::int32_t b) {
      return to_index(table.rule_within[class_of(a) * classes + class_of(b)]);
    };
    std::map<std::tuple<PathClass, std::int64_t, std::int64_t>, std::size_t> known;
    for (std::int32_t a = 0; a < measured_.gpus; ++a)
      for (std::int32_t b = a + 1; b < measured_.gpus; ++b) {
        std::size_t there = line_of(a, b), back = line_of(b, a);
        const RouteRule& rule = lines()[there].rule;
        auto [entry, is_new] =
            known.try_emplace({rule.path_class(), rate(rule), carried(rule)}, groups_.size());
        if (is_new) groups_.push_back({rule.path_class(), rate(rule), {}, {}, 0, 0, {}});
        Group& group = groups_[entry->second];
        group.lines.insert({there, back});
        group.pairs.push_back({a, b});
        std::vector<Resource> out = resources(rule), in = resources(lines()[back].rule);
        for (Resource resource : out)
          if (!resource.is_port && std::find(in.begin(), in.end(), resource) != in.end())
            both_cross_.insert(resource);
      }
  }

  template <class Of>
  static std::int64_t mean(const std::vector<Pair>& pairs, Of&& of) {
    Int128 sum = 0;
    for (Pair pair : pairs) sum += of(pair);
    return static_cast<std::int64_t>(sum / static_cast<Int128>(pairs.size()));
  }

  void measure(Group& group) const {
    group.one_way =
        in_short(mean(group.pairs, [&](Pair p) { return *measured_.rate(p.first, p.second); }));
    if (measured_.rate_of_both(0, 1))
      group.both_ways = in_short(
          mean(group.pairs, [&](Pair p) { return *measured_.rate_of_both(p.first, p.second); }));
    if (measured_.latency_ps(0, 1))
      group.latency_ps = in_short(
          mean(group.pairs, [&](Pair p) { return *measured_.latency_ps(p.first, p.second); }));
  }

  void set_links() {
    std::map<Resource, std::int64_t> reached;
    for (const Group& group : groups_) {
      if (group.path_class <= PathClass::NVB) continue;
      for (std::size_t line : group.lines)
        for (Resource resource : resources(lines()[line].rule)) {
          std::int64_t here = both_cross_.contains(resource)
                                  ? std::max(group.one_way, group.both_ways.value_or(0))
                                  : group.one_way;
          reached[resource] = std::max(reached[resource], here);
        }
    }
    for (auto [resource, rate] : reached) {
      std::int64_t& now = rate_of(resource);
      note(resource.is_port ? "port " + out_.machine.ports[resource.index].name
                            : "shared " + out_.machine.shared[resource.index].name,
           "rate of these links", FigureUnit::Rate, now, rate);
      now = rate;
      if (resource.is_port) out_.machine.ports[resource.index].in_bytes_per_s = rate;
    }
  }

  // Equal changes are reported together.
  void note(const std::string& name, const std::string& meaning, FigureUnit unit,
            std::int64_t before, std::int64_t after) {
    if (before == after) return;
    for (Fitted& fitted : out_.fitted)
      if (fitted.meaning == meaning && fitted.before == before && fitted.after == after) {
        fitted.name += ", " + name;
        return;
      }
    out_.fitted.push_back({name, meaning, unit, before, after});
  }

  void set_cap(const Group& group) {
    for (std::size_t line : group.lines) {
      RouteRule& rule = lines()[line].rule;
      rule.cap_bytes_per_s.reset();
      if (group.one_way < carried(rule)) rule.cap_bytes_per_s = group.one_way;
    }
    note(fmt::format("class {}", text(group.path_class)), "rate that a copy achieves",
         FigureUnit::Rate, group.before, rate(lines()[*group.lines.begin()].rule));
  }

  void set_latency(const Group& group) {
    if (group.latency_ps == 0) return;
    std::int64_t before = lines()[*group.lines.begin()].rule.latency_ps;
    for (std::size_t line : group.lines) lines()[line].rule.latency_ps = group.latency_ps;
    note(fmt::format("class {}", text(group.path_class)), "latency before a copy's first byte",
         FigureUnit::Time, before, group.latency_ps);
  }

  const P2pMatrices& measured_;
  std::vector<Group> groups_;
  std::set<Resource> both_cross_;
  LinkFit out_;
};

}  // namespace

LinkFit fit_links(const TopologyDescription& base, const P2pMatrices& measured,
                  const std::string& file) {
  return LinkFitter(base, measured, file).run();
}

}  // namespace reshard::sim
