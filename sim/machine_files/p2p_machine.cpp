// SPDX-License-Identifier: BSD-3-Clause
// Derives a machine from the matrices of p2pBandwidthLatencyTest. The rate of a single copy is
// measured; what concurrent copies share is not, and is assumed:
//
//   NVLink   rates above the PCIe rate of such GPUs. One port per GPU if there must be switches or
//            bridges (the pairs together would need more links than a GPU has), else a link per
//            pair.
//   PCIe     one port per GPU. If some pairs are slower by a fifth or more, GPUs with fast pairs
//            form an island, and an island's uplink carries in each direction the rate of one slow
//            pair.
//   staged   pairs without peer access: through host memory. Traffic into and out of a GPU shares
//            the rate that a pair reaches in both directions together; each copy also has a cap.
#include <algorithm>
#include <functional>
#include <map>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/integers.h"
#include "core/base/units.h"
#include "sim/machine_files/formats.h"
#include "sim/machine_files/known_parts.h"
#include "sim/machine_files/node_parts.h"
#include "sim/machine_files/p2p_matrices.h"

namespace reshard::sim {
namespace {

using Index = std::int32_t;
using Pair = std::pair<Index, Index>;  // lower GPU first
using Where = RouteLine::Where;

constexpr std::int64_t kSlowerPercent = 80;  // of the fastest: slower pairs use another kind of
                                             // path
constexpr std::int64_t kClearPercent = 5;    // of the fastest: a wider gap is not noise

std::int64_t to_four_digits(std::int64_t value) {
  std::int64_t unit = 1;
  while (value / unit >= 10'000) unit *= 10;
  return (value + unit / 2) / unit * unit;
}

class P2pDescriber {
 public:
  P2pDescriber(const P2pMatrices& matrices, const std::string& file,
               const std::optional<UsersGpu>& gpu)
      : in_(matrices), file_(file), users_gpu_(gpu) {}

  ReadTopology run() {
    out_.name = machine_name(file_);
    out_.devices = in_.gpus;
    conclude_gpu();
    sort_pairs();
    compare_directions();
    join_by_nvlink();
    join_by_pcie();
    join_by_host();
    out_.assumed.push_back(
        "sharing between copies: unknown, as a matrix measures one pair at a time");
    if (!in_.latency && !in_.latency_off) assume_latencies(out_);
    return {std::move(out_), std::move(doubts_)};
  }

 private:
  void conclude_gpu() {
    for (const std::string& name : in_.names) {
      std::optional<std::int32_t> sm = gpu_named(name);
      std::optional<std::int32_t>& known = out_.machine.compute_capability;
      if (sm) known = known ? std::min(*known, *sm) : *sm;
    }
    if (!out_.machine.compute_capability && users_gpu_)
      out_.machine.compute_capability = users_gpu_->compute_capability;
    if (!out_.machine.compute_capability && !in_.names.empty())
      out_.assumed.push_back(fmt::format("GPUs: {} is not known", quoted(in_.names.front())));
  }

  // The lowest rate of a fast pair. Two clusters of rates are two kinds of path, however close, if
  // the gap between them is clear and much wider than either cluster.
  std::int64_t least_fast() const {
    std::vector<std::int64_t> rates;
    for (Pair pair : pcie_) rates.push_back(rate(pair));
    std::sort(rates.begin(), rates.end());
    std::int64_t usual = rates.back() / 100 * kSlowerPercent;
    if (rates.front() < usual) return usual;
    std::size_t above = 0;
    std::int64_t widest = 0;
    for (std::size_t i = 1; i < rates.size(); ++i)
      if (rates[i] - rates[i - 1] > widest) {
        widest = rates[i] - rates[i - 1];
        above = i;
      }
    std::int64_t spread =
        above == 0 ? 0 : std::max(rates[above - 1] - rates.front(), rates.back() - rates[above]);
    bool clear = above > 0 && widest > rates.back() / 100 * kClearPercent && widest > 3 * spread;
    return clear ? rates[above] : rates.front();
  }

  // One direction. If only both directions together were measured: half of that or, if the host
  // stages, all of it.
  std::int64_t rate(Pair pair) const {
    if (std::optional<std::int64_t> one = in_.rate(pair.first, pair.second)) return *one;
    std::int64_t both = *in_.rate_of_both(pair.first, pair.second);
    return std::max<std::int64_t>(1, in_.direct(pair.first, pair.second) ? both / 2 : both);
  }

  void sort_pairs() {
    std::int32_t sm = out_.machine.compute_capability.value_or(90);
    const GpuClass& gpu = gpu_class(sm);
    std::int64_t pcie =
        gpu.nvlinks > 0 ? pcie_line_bytes_per_s(gpu.pcie_generation, 16) : kMaxBytes;
    if (!in_.one_way && !in_.one_way_off)
      out_.assumed.push_back(
          "one direction: half of what both achieve together, except through the host");
    for (Index a = 0; a < in_.gpus; ++a)
      for (Index b = a + 1; b < in_.gpus; ++b) {
        std::vector<Pair>& kind = !in_.direct(a, b)     ? staged_
                                  : rate({a, b}) > pcie ? linked_
                                                        : pcie_;
        kind.push_back({a, b});
      }
    if (!in_.reaches && staged_.empty())
      out_.assumed.push_back("every GPU reaches every other directly: no connectivity matrix");
  }

  void compare_directions() {
    const std::optional<P2pMatrix>& matrix = in_.one_way ? in_.one_way : in_.one_way_off;
    if (!matrix) return;
    for (Index a = 0; a < in_.gpus; ++a)
      for (Index b = a + 1; b < in_.gpus; ++b) {
        auto [least, most] = std::minmax({matrix->at(a, b), matrix->at(b, a)});
        if (least < most * kSlowerPercent / 100)
          doubts_.push_back(fmt::format("{}:{}: {} from GPU {} to {}, but {} back", file_,
                                        matrix->line + 2 + a, rate_text(matrix->at(a, b)), a, b,
                                        rate_text(matrix->at(b, a))));
      }
  }

  std::int64_t mean(const std::vector<Pair>& pairs,
                    const std::function<std::int64_t(Pair)>& of) const {
    Int128 sum = 0;
    for (Pair pair : pairs) sum += of(pair);
    return static_cast<std::int64_t>(sum / static_cast<Int128>(pairs.size()));
  }
  std::int64_t mean_rate(const std::vector<Pair>& pairs) const {
    return to_four_digits(mean(pairs, [&](Pair pair) { return rate(pair); }));
  }
  std::int64_t latency(const std::vector<Pair>& pairs, PathClass path_class) const {
    if (!in_.latency && !in_.latency_off) return usual_latency_ps(path_class);
    std::int64_t ps =
        mean(pairs, [&](Pair pair) { return *in_.latency_ps(pair.first, pair.second); });
    return (ps + 5'000) / 10'000 * 10'000;  // with as many digits as the matrix has
  }

  Index add_port(std::string name, std::int64_t bytes_per_s) {
    out_.ports.push_back({std::move(name), bytes_per_s, bytes_per_s});
    return static_cast<Index>(out_.ports.size()) - 1;
  }
  Index add_shared(std::string name, std::int64_t bytes_per_s) {
    out_.shared.push_back({std::move(name), bytes_per_s});
    return static_cast<Index>(out_.shared.size()) - 1;
  }
  Index add_group(std::string name, std::vector<Index> devices) {
    for (std::size_t i = 0; i < out_.groups.size(); ++i)
      if (out_.groups[i].name == name) return static_cast<Index>(i);
    out_.groups.push_back({std::move(name), std::move(devices)});
    return static_cast<Index>(out_.groups.size()) - 1;
  }
  Index gpu_group(Index gpu) { return add_group(fmt::format("gpu{}", gpu), {gpu}); }

  RouteLine& add_line(Where where, const std::vector<Pair>& pairs, std::vector<Hop> hops,
                      Transport transport, PathClass path_class) {
    RouteLine route;
    route.where = where;
    if (where == Where::Pairs) route.pairs = pairs;
    route.rule = {std::move(hops), latency(pairs, path_class), {}, transport, {}};
    if (route.rule.path_class() != path_class) route.rule.stated_class = path_class;
    out_.routes.push_back(std::move(route));
    return out_.routes.back();
  }
  // All pairs of a machine need no list.
  Where where(const std::vector<Pair>& pairs) const {
    auto all = to_index(in_.gpus) * to_index(in_.gpus - 1) / 2;
    return pairs.size() == all ? Where::Within : Where::Pairs;
  }
  static std::vector<Hop> ports_of(Index port) {
    return {{Hop::Kind::SourceOut, port}, {Hop::Kind::DestinationIn, port}};
  }

  // Line rate of links over which copies reach `reached`, about nine tenths of it; for unknown GPUs
  // `reached` itself.
  std::int64_t nvlink_line(std::int64_t reached) {
    if (!out_.machine.compute_capability) return reached;
    const GpuClass& gpu = gpu_class(*out_.machine.compute_capability);
    std::int64_t link = std::max<std::int64_t>(1, gpu.nvlink_bytes_per_s), all = link * gpu.nvlinks;
    std::int64_t links = (reached * 10 / 9 + link / 2) / link;
    std::int64_t line = reached * 4 >= all * 3 && reached <= all ? all : links * link;
    if (line < reached) return reached;
    std::string what = fmt::format("NVLink: {} links x {}, as copies achieve {}", line / link,
                                   rate_text(link), rate_text(reached));
    if (out_.assumed.empty() || out_.assumed.back() != what) out_.assumed.push_back(what);
    return line;
  }

  // Caps a flow at the rate of single copies, if that is less than the links carry.
  void cap(RouteLine& line, std::int64_t reached) const {
    const Hop& hop = line.rule.hops.front();
    std::int64_t carried = hop.kind == Hop::Kind::SourceOut ? out_.ports[hop.index].out_bytes_per_s
                                                            : out_.shared[hop.index].bytes_per_s;
    if (reached < carried) line.rule.cap_bytes_per_s = reached;
  }

  void join_by_nvlink() {
    if (linked_.empty()) return;
    std::vector<Int128> sum(to_index(in_.gpus), 0);
    bool one_each = true;
    for (Pair pair : linked_)
      for (Index gpu : {pair.first, pair.second}) {
        one_each = one_each && sum[to_index(gpu)] == 0;
        sum[to_index(gpu)] += rate(pair);
      }
    const GpuClass& gpu = gpu_class(out_.machine.compute_capability.value_or(90));
    bool switched =
        *std::max_element(sum.begin(), sum.end()) > Int128{gpu.nvlink_bytes_per_s} * gpu.nvlinks;
    if (one_each || switched) {
      std::int64_t each = mean_rate(linked_);
      for (Pair pair : linked_)
        if (rate(pair) < each * kSlowerPercent / 100)
          doubts_.push_back(
              fmt::format("{}: GPUs {} and {} achieve {} over NVLink, but the mean is {}", file_,
                          pair.first, pair.second, rate_text(rate(pair)), rate_text(each)));
      Index port = add_port("nvlink", nvlink_line(each));
      cap(add_line(where(linked_), linked_, ports_of(port), Transport::NVLink, PathClass::NVL),
          each);
      out_.machine.nvls = switched && out_.machine.compute_capability.value_or(0) >= 90;
      return;
    }
    for (Pair pair : linked_)
      for (auto [from, to] : {pair, Pair{pair.second, pair.first}}) {
        std::int64_t each = to_four_digits(rate(pair));
        Index link = add_shared(fmt::format("link{}{}{}", from, in_.gpus > 10 ? "-" : "", to),
                                nvlink_line(each));
        RouteLine& line = add_line(Where::FromTo, linked_, {{Hop::Kind::SourceNodeShared, link}},
                                   Transport::NVLink, PathClass::NVL);
        cap(line, each);
        line.a = gpu_group(from);
        line.b = gpu_group(to);
      }
  }

  void join_by_pcie() {
    if (pcie_.empty()) return;
    std::int64_t least = least_fast();
    std::vector<Pair> fast, slow;
    std::vector<Index> island(to_index(in_.gpus));
    for (Index gpu = 0; gpu < in_.gpus; ++gpu) island[to_index(gpu)] = gpu;
    for (Pair pair : pcie_) {
      bool is_fast = rate(pair) >= least;
      (is_fast ? fast : slow).push_back(pair);
      if (!is_fast) continue;
      Index from = island[to_index(pair.second)], to = island[to_index(pair.first)];
      std::replace(island.begin(), island.end(), std::max(from, to), std::min(from, to));
    }
    bool islands = std::none_of(slow.begin(), slow.end(), [&](Pair pair) {
      return island[to_index(pair.first)] == island[to_index(pair.second)];
    });
    Index port = add_port("pcie", mean_rate(fast));
    add_line(where(fast), fast, ports_of(port), Transport::PCIe, PathClass::PIX);
    if (slow.empty()) return;
    if (!islands) {
      add_line(where(slow), slow, ports_of(port), Transport::PCIe, PathClass::PHB)
          .rule.cap_bytes_per_s = mean_rate(slow);
      return;
    }
    join_islands(port, island, slow);
  }

  void join_islands(Index port, const std::vector<Index>& island, const std::vector<Pair>& slow) {
    std::map<Index, std::vector<Index>> members;
    for (Index gpu = 0; gpu < in_.gpus; ++gpu) members[island[to_index(gpu)]].push_back(gpu);
    std::map<Pair, std::vector<Pair>> between;  // islands -> pairs of GPUs
    for (Pair pair : slow)
      between[std::minmax(island[to_index(pair.first)], island[to_index(pair.second)])].push_back(
          pair);
    std::map<Index, Index> group, out, in;
    std::int64_t each = mean_rate(slow);
    for (const auto& [first, gpus] : members) {
      std::size_t number = group.size();
      group[first] = add_group(fmt::format("island{}", number), gpus);
      out[first] = add_shared(fmt::format("uplink{}-out", number), each);
      in[first] = add_shared(fmt::format("uplink{}-in", number), each);
    }
    for (const auto& [islands, pairs] : between)
      for (auto [from, to] : {islands, Pair{islands.second, islands.first}}) {
        RouteLine& line = add_line(Where::FromTo, slow,
                                   {{Hop::Kind::SourceOut, port},
                                    {Hop::Kind::SourceNodeShared, out[from]},
                                    {Hop::Kind::SourceNodeShared, in[to]},
                                    {Hop::Kind::DestinationIn, port}},
                                   Transport::PCIe, PathClass::PHB);
        line.a = group[from];
        line.b = group[to];
      }
  }

  void join_by_host() {
    if (staged_.empty()) return;
    std::int64_t cap = mean_rate(staged_), both = cap;
    if (in_.both_ways || in_.both_ways_off)
      both = to_four_digits(
          mean(staged_, [&](Pair pair) { return *in_.rate_of_both(pair.first, pair.second); }));
    both = std::max(both, cap);
    // One line per pair, unless there would be too many lines.
    if (staged_.size() + out_.routes.size() > kMaxRoutes) {
      add_line(Where::Pairs, staged_, {{Hop::Kind::SourceNodeShared, add_shared("staging", both)}},
               Transport::Host, PathClass::SYS)
          .rule.cap_bytes_per_s = cap;
      return;
    }
    std::map<Index, Index> host;
    for (Pair pair : staged_)
      for (Index gpu : {pair.first, pair.second}) host[gpu] = 0;
    for (auto& [gpu, resource] : host) {
      resource = add_shared(fmt::format("host{}", gpu), both);
      gpu_group(gpu);
    }
    for (Pair pair : staged_) {
      RouteLine& line = add_line(Where::Groups, staged_,
                                 {{Hop::Kind::SourceNodeShared, host[pair.first]},
                                  {Hop::Kind::SourceNodeShared, host[pair.second]}},
                                 Transport::Host, PathClass::SYS);
      line.a = gpu_group(pair.first);
      line.b = gpu_group(pair.second);
      line.rule.cap_bytes_per_s = cap;
    }
  }

  const P2pMatrices& in_;
  const std::string& file_;
  const std::optional<UsersGpu>& users_gpu_;
  std::vector<Pair> linked_, pcie_, staged_;
  TopologyDescription out_;
  std::vector<std::string> doubts_;
};

}  // namespace

ReadTopology read_p2p_machine(std::string_view text, const std::string& file,
                              const std::optional<UsersGpu>& gpu) {
  P2pMatrices matrices = parse_p2p_matrices(text, file);
  ReadTopology out = P2pDescriber(matrices, file, gpu).run();
  require_sayable(out.description, file);
  return out;
}

}  // namespace reshard::sim
