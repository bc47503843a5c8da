// SPDX-License-Identifier: BSD-3-Clause
// The engine compared with SimGrid, which also shares links by max-min fairness: when flows end,
// and how long each program takes to compute that.
//
//   reshard_simgrid_peer           200 random networks and flows: every end within 10^-6 of
//                                  SimGrid's; exit code 1 if one is not
//   reshard_simgrid_peer speed N   16,256 flows of 128 ranks on a star, equal ones and ones of 97
//                                  sizes, both programs in turn; medians of N runs and their ratio
//
// SimGrid's model is CM02 with all corrections for TCP turned off. No link has the latency of a
// route, since SimGrid lets it affect the flow's share; the flow starts later instead. SimGrid can
// be set up only once per process, so every run has its own process.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <simgrid/s4u.hpp>

#include "core/base/errors.h"
#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"
#include "tests/support/prng.h"

namespace {

using namespace reshard;

struct Sending {
  std::int32_t source, destination;
  std::int64_t start_ps, bytes;
};

// When each flow ended, and how long the simulator computed.
struct Ends {
  std::vector<double> end_s;
  double cpu_s = 0;
};

// Of the processor: the machine may have other work.
double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// ---- SimGrid

namespace s4u = simgrid::s4u;

void configure() {
  for (const char* setting :
       {"network/model:CM02", "network/TCP-gamma:0", "network/bandwidth-factor:1",
        "network/latency-factor:1", "network/crosstraffic:0", "network/weight-S:0"})
    s4u::Engine::set_config(setting);
}

// Hosts by device, then two more for every sending that has a cap: a link of its own.
class Network {
 public:
  Network(const Topology& topology, const std::vector<Sending>& sendings)
      : topology_(topology), sendings_(sendings), zone_(s4u::create_full_zone("zone")) {
    for (std::int32_t id = 0; id < topology.resource_count(); ++id)
      add_link(topology.resource_bytes_per_s(ResourceId{id}));
    for (std::int32_t device = 0; device < topology.devices(); ++device) add_host();
    for (std::int32_t i = 0; i < topology.devices(); ++i)
      for (std::int32_t j = 0; j < topology.devices(); ++j)
        if (i != j) add_route(hosts_[to_index(i)], hosts_[to_index(j)], i, j, {});
    for (std::size_t i = 0; i < sendings.size(); ++i) add_sending(i);
    zone_->seal();
  }

  // The actor that sends all, in the order in which they begin to share.
  void send_all() {
    std::vector<std::size_t> order(sendings_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return begin_s(a) < begin_s(b); });
    for (std::size_t i : order) {
      s4u::this_actor::sleep_until(begin_s(i));
      comms_[i] = s4u::Comm::sendto_init(ends_[i].first, ends_[i].second);
      comms_[i]->set_payload_size(static_cast<std::uint64_t>(sendings_[i].bytes));
      comms_[i]->start();
    }
    for (const s4u::CommPtr& comm : comms_) comm->wait();
  }

  s4u::Host* first_host() const { return hosts_[0]; }
  std::vector<double> end_s() const {
    std::vector<double> out;
    for (const s4u::CommPtr& comm : comms_) out.push_back(comm->get_finish_time());
    return out;
  }

 private:
  const RouteRule& rule(std::size_t sending) const {
    return topology_.rule(Rank{sendings_[sending].source}, Rank{sendings_[sending].destination});
  }
  double begin_s(std::size_t sending) const {
    return static_cast<double>(sendings_[sending].start_ps + rule(sending).latency_ps) * 1e-12;
  }
  s4u::Link* add_link(std::int64_t bytes_per_s) {
    links_.push_back(
        zone_->create_link(fmt::format("link{}", links_.size()), static_cast<double>(bytes_per_s)));
    return links_.back()->set_latency(0)->seal();
  }
  s4u::Host* add_host() {
    hosts_.push_back(zone_->create_host(fmt::format("host{}", hosts_.size()), 1e9));
    return hosts_.back();
  }
  void add_route(s4u::Host* from, s4u::Host* to, std::int32_t source, std::int32_t destination,
                 std::vector<s4u::LinkInRoute> route) {
    for (ResourceId id : topology_.route(Rank{source}, Rank{destination}).resources)
      route.emplace_back(links_[to_index(id)]);
    zone_->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
  }
  void add_sending(std::size_t i) {
    std::int32_t source = sendings_[i].source, destination = sendings_[i].destination;
    ends_.emplace_back(hosts_[to_index(source)], hosts_[to_index(destination)]);
    comms_.emplace_back();
    if (!rule(i).cap_bytes_per_s) return;
    ends_[i] = {add_host(), add_host()};
    add_route(ends_[i].first, ends_[i].second, source, destination,
              {s4u::LinkInRoute(add_link(*rule(i).cap_bytes_per_s))});
  }

  const Topology& topology_;
  const std::vector<Sending>& sendings_;
  s4u::NetZone* zone_;
  std::vector<s4u::Link*> links_;
  std::vector<s4u::Host*> hosts_;
  std::vector<std::pair<s4u::Host*, s4u::Host*>> ends_;  // by sending
  std::vector<s4u::CommPtr> comms_;
};

Ends simgrid_here(const Topology& topology, const std::vector<Sending>& sendings) {
  int argc = 2;
  char name[] = "peer", quiet[] = "--log=root.thres:error";
  char* argv[] = {name, quiet, nullptr};
  s4u::Engine engine(&argc, argv);
  configure();
  Network network(topology, sendings);
  s4u::Actor::create("all", network.first_host(), [&] { network.send_all(); });
  auto start = std::clock();
  engine.run();
  return {network.end_s(), seconds_since(start)};
}

void write_all(int file, const std::vector<double>& values) {
  const char* bytes = reinterpret_cast<const char*>(values.data());
  for (std::size_t left = values.size() * sizeof(double); left > 0;) {
    ssize_t written = write(file, bytes, left);
    if (written <= 0) std::_Exit(1);
    bytes += written;
    left -= to_index(written);
  }
}

// In a process of its own, which writes its ends and its time into a pipe.
Ends simgrid(const Topology& topology, const std::vector<Sending>& sendings) {
  int ends[2];
  RESHARD_CHECK(pipe(ends) == 0, "no pipe");
  pid_t child = fork();
  RESHARD_CHECK(child >= 0, "no process");
  if (child == 0) {
    Ends out = simgrid_here(topology, sendings);
    out.end_s.push_back(out.cpu_s);
    write_all(ends[1], out.end_s);
    std::_Exit(0);
  }
  close(ends[1]);
  Ends out;
  out.end_s.resize(sendings.size() + 1);
  char* bytes = reinterpret_cast<char*>(out.end_s.data());
  std::size_t left = out.end_s.size() * sizeof(double);
  for (ssize_t got; left > 0 && (got = read(ends[0], bytes, left)) > 0; bytes += got)
    left -= to_index(got);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  RESHARD_CHECK(left == 0 && status == 0, "SimGrid ended before it had an answer");
  out.cpu_s = out.end_s.back();
  out.end_s.pop_back();
  return out;
}

// ---- the engine

// A compute on streams of the flow's own says when it starts.
Workload workload_of(const std::vector<Sending>& sendings) {
  Workload workload;
  for (std::size_t i = 0; i < sendings.size(); ++i) {
    const Sending& sending = sendings[i];
    auto stream = static_cast<std::int32_t>(2 * i), index = stream + 1;
    workload.operations.push_back(
        {Compute{{Rank{sending.source}, Rank{sending.destination}}, sending.start_ps}, stream, {}});
    workload.operations.push_back(test::message(sending.source, sending.destination, sending.bytes,
                                                index, {}, stream, stream));
  }
  return workload;
}

Ends engine(const Topology& topology, const std::vector<Sending>& sendings) {
  Timeline timeline = sim::run(workload_of(sendings), topology, {.record_flows = true});
  Ends out;
  out.end_s.resize(sendings.size());
  for (const FlowSpan& flow : timeline.flows)
    out.end_s[to_index(flow.op) / 2] = static_cast<double>(flow.end_ps) * 1e-12;
  return out;
}

// ---- 200 random networks

constexpr std::int64_t kGB = 1'000'000'000;

RouteRule random_rule(test::Prng& prng, const NodeTemplate& node, bool between) {
  RouteRule rule;
  auto port = [&] { return static_cast<std::int32_t>(prng.below(std::ssize(node.ports))); };
  rule.hops.push_back({Hop::Kind::SourceOut, port()});
  if (prng.one_in(2)) rule.hops.push_back({Hop::Kind::SourceNodeShared, 0});
  if (between && prng.one_in(2)) rule.hops.push_back({Hop::Kind::Fabric, 0});
  if (between && prng.one_in(2)) rule.hops.push_back({Hop::Kind::DestinationNodeShared, 1});
  rule.hops.push_back({Hop::Kind::DestinationIn, port()});
  rule.latency_ps = prng.one_in(2) ? 0 : prng.between(1, 50) * 1'000'000'000;
  if (prng.one_in(3)) rule.cap_bytes_per_s = prng.between(1, 200) * kGB / 10;
  return rule;
}

// One to four nodes, in two classes of devices; every capacity, route, latency and cap by chance.
Topology random_topology(test::Prng& prng) {
  NodeTemplate node;
  node.devices = static_cast<std::int32_t>(prng.between(2, 8));
  for (std::int64_t port = prng.between(1, 3); port > 0; --port)
    node.ports.push_back({fmt::format("port{}", port), prng.between(1, 400) * kGB / 10,
                          prng.between(1, 400) * kGB / 10});
  for (const char* name : {"memory", "uplink"})
    node.shared.push_back({name, prng.between(1, 800) * kGB / 10});
  for (std::int32_t device = 0; device < node.devices; ++device)
    node.class_of.push_back(device < 2 ? device : static_cast<std::int32_t>(prng.below(2)));
  for (std::int32_t pair = 0; pair < 4; ++pair) {
    node.rules.push_back(random_rule(prng, node, false));
    node.rule_within.push_back(pair);
  }
  node.rules.push_back(random_rule(prng, node, true));
  node.rule_between = 4;
  return Topology("random", node, {{"spine", prng.between(1, 1000) * kGB / 10}},
                  static_cast<std::int32_t>(prng.between(1, 4)));
}

std::vector<Sending> random_sendings(test::Prng& prng, const Topology& topology) {
  std::vector<Sending> out;
  bool together = prng.one_in(3), alike = prng.one_in(3);
  for (std::int64_t count = prng.between(1, 120); count > 0; --count) {
    auto source = static_cast<std::int32_t>(prng.below(topology.devices()));
    auto other = static_cast<std::int32_t>(prng.between(1, topology.devices() - 1));
    out.push_back({source, (source + other) % topology.devices(),
                   together ? 0 : prng.between(0, 40) * 10'000'000'000,
                   alike ? kGB / 2 : prng.between(1, 1000) * kGB / 1000});
  }
  return out;
}

int compare() {
  constexpr double kTolerance = 1e-6;
  double worst = 0;
  std::size_t flows = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    test::Prng prng(seed);
    Topology topology = random_topology(prng);
    std::vector<Sending> sendings = random_sendings(prng, topology);
    std::vector<double> ours = engine(topology, sendings).end_s,
                        theirs = simgrid(topology, sendings).end_s;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      double off = std::abs(ours[i] - theirs[i]) / theirs[i];
      worst = std::max(worst, off);
      if (off > kTolerance)
        fmt::print("network {} flow {}: ends at {:.9f} s, by SimGrid at {:.9f} s\n", seed, i,
                   ours[i], theirs[i]);
    }
    flows += ours.size();
  }
  fmt::print("200 networks, {} flows: ends differ from SimGrid's by at most {:.2g} of them\n",
             flows, worst);
  return worst <= kTolerance ? 0 : 1;
}

// ---- speed

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The same traffic as our benchmarks: one message per pair, or one all-to-all of equal blocks.
int race(std::string_view what, const Workload& workload, const std::vector<Sending>& sendings,
         int runs) {
  Topology topology = test::switched(128, 25 * kGB);
  std::vector<double> ours, theirs;
  double end_s = 0, end_by_simgrid_s = 0;
  for (int i = 0; i < runs; ++i) {
    auto start = std::clock();
    Timeline timeline = sim::run(workload, topology, {.record_spans = false});
    ours.push_back(seconds_since(start));
    end_s = static_cast<double>(timeline.end_ps) * 1e-12;
    Ends peer = simgrid(topology, sendings);
    theirs.push_back(peer.cpu_s);
    end_by_simgrid_s = *std::max_element(peer.end_s.begin(), peer.end_s.end());
  }
  double ratio = median(theirs) / median(ours);
  fmt::print("{:<34} engine {:8.4f} s   SimGrid {:8.3f} s   {:6.1f} times; end {:.6f}, {:.6f} s\n",
             what, median(ours), median(theirs), ratio, end_s, end_by_simgrid_s);
  std::fflush(stdout);
  return ratio >= 100 ? 0 : 1;
}

int speed(int runs) {
  auto equal = [](std::int32_t, std::int32_t) { return std::int64_t{25'000'000}; };
  auto of = [](const Workload& workload) {
    std::vector<Sending> out;
    for (const Operation& operation : workload.operations) {
      const auto& message = std::get<PointToPoint>(operation.body);
      out.push_back({to_int(message.source), to_int(message.destination), 0, message.bytes});
    }
    return out;
  };
  Workload alike = test::all_pairs(128, equal), uneven = test::all_pairs(128, test::uneven_bytes),
           collective;
  collective.operations.push_back(
      {BareCollective{CollectiveKind::AllToAll, Algorithm::Direct, test::ranks(128), 25'000'000},
       0,
       {}});
  return race("all-to-all of 128, 16,256 flows", collective, of(alike), runs) |
         race("16,256 equal messages", alike, of(alike), runs) |
         race("16,256 messages of 97 sizes", uneven, of(uneven), runs);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return compare();
  if (std::string_view(argv[1]) == "speed") return speed(argc > 2 ? std::atoi(argv[2]) : 3);
  fmt::print(stderr, "usage: reshard_simgrid_peer [speed [RUNS]]\n");
  return 2;
}
