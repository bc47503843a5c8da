// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/bounds_cases.h"

#include <algorithm>
#include <string>

#include "core/base/errors.h"
#include "core/topology/topology_text.h"

namespace reshard::test {

std::vector<Topology> machines() {
  std::string head = "reshard-topology 1\nname m\n";
  std::vector<std::pair<std::string, std::int64_t>> texts_and_nodes{
      {"devices 4\ncount nodes\nport a 5GB/s in 7GB/s\nport n 3GB/s in 2GB/s\ngroup low 0-1\ngroup "
       "high 2-3\ngroup first 0\n"
       "route within via a.out a.in latency 3us transport nvlink\nroute between via n.out n.in "
       "latency 9us transport network\n",
       3},
      {"devices 6\ncount nodes\nport a 5GB/s\nshared host 4GB/s\nshared nic 9GB/s\nfabric spine "
       "11GB/s\ngroup s0 0-2\ngroup s1 3-5\n"
       "route pairs 0-3 1-4 via a.out a.in latency 1us transport nvlink\nroute s0 to s1 via host "
       "latency 5us cap 1GB/s transport host\n"
       "route s1 to s0 via a.out host latency 7us transport host\nroute within via a.out host a.in "
       "latency 6us transport pcie\n"
       "route between via source.nic spine destination.nic latency 10us transport network\n",
       2},
      {"devices 3\ncount nodes\nport a 5GB/s\nshared host 4GB/s\nfabric spine 11GB/s\n"
       "route pairs 0-1 1-2 via host latency 1us transport host\nroute within via a.out spine "
       "latency 2us transport pcie\n"
       "route between via spine a.in latency 10us transport network\n",
       4},
      {"devices 4\ncount nodes\nport a 5GB/s\nport b 6GB/s\nshared host 40GB/s\ngroup odd 1 "
       "3\ngroup pair 0 3\n"
       "route odd via a.out b.in latency 1us transport pcie\nroute odd pair via b.out host latency "
       "2us transport pcie\n"
       "route within via a.out a.in latency 2us transport pcie\nroute between via source.host b.in "
       "latency 1us transport network\n",
       3},
      // The node's host memory is the first resource of routes of both kinds, by two names.
      {"devices 4\ncount nodes\nport a 90GB/s\nshared host 4GB/s\nroute pairs 0-1 via a.in a.out "
       "latency 1us transport pcie\n"
       "route within via host a.in latency 2us transport host\nroute between via destination.host "
       "a.in latency 4us transport network\n",
       3},
      // And the last.
      {"devices 4\ncount nodes\nport a 90GB/s\nshared host 4GB/s\nroute within via a.out host "
       "latency 2us transport host\n"
       "route between via a.out source.host latency 4us transport network\n",
       3},
      // Devices 1 and 2 are of one class, in groups that do not ascend with them.
      {"devices 4\ncount nodes\nport a 5GB/s\nshared host 90GB/s\ngroup even 0 2\ngroup odd 1 3\n"
       "route pairs 1-2 via host latency 1us transport host\n"
       "route within via a.out a.in latency 2us transport pcie\n"
       "route between via a.out a.in latency 4us transport network\n",
       3},
  };
  std::vector<Topology> out;
  for (const auto& [text, nodes] : texts_and_nodes)
    out.push_back(build_topology(parse_topology(head + text, "m.topo"), nodes));
  return out;
}

namespace {

Placement random_placement(Prng& prng, int dims, bool may_be_partial) {
  std::int64_t kind = prng.below(may_be_partial ? 5 : 4);
  if (kind == 4) return Placement::partial(ReduceOp::Sum);
  if (kind == 0 || dims == 0) return Placement::replicate();
  int dim = static_cast<int>(prng.below(dims));
  return kind == 3 ? Placement::strided_shard(dim, prng.between(2, 3)) : Placement::shard(dim);
}

MeshRef random_mesh(Prng& prng, std::int64_t devices) {
  std::vector<std::int32_t> shape;
  std::int64_t size = 1;
  for (std::int64_t axes = prng.between(1, 3); axes > 0; --axes) {
    shape.push_back(
        static_cast<std::int32_t>(prng.between(1, std::min<std::int64_t>(4, devices / size))));
    size *= shape.back();
  }
  std::vector<Rank> all;
  for (std::int64_t device = 0; device < devices; ++device)
    all.push_back(static_cast<Rank>(device));
  prng.shuffle(all);
  all.resize(static_cast<std::size_t>(size));
  return std::make_shared<const Mesh>(shape, all);
}

}  // namespace

Request random_request(Prng& prng, std::int64_t devices, std::int64_t scale) {
  for (;;) {
    Shape shape;
    for (std::int64_t dims = prng.below(4); dims > 0; --dims)
      shape.push_back(prng.below(7) * scale);
    MeshRef source = random_mesh(prng, devices),
            destination = prng.one_in(2) ? source : random_mesh(prng, devices);
    std::vector<Placement> from, to;
    for (int axis = 0; axis < source->axes(); ++axis)
      from.push_back(random_placement(prng, shape.size(), true));
    for (int axis = 0; axis < destination->axes(); ++axis)
      to.push_back(random_placement(prng, shape.size(), true));
    try {
      return Request(Layout(shape, DType::F32, source, from),
                     Layout(shape, DType::F32, destination, to));
    } catch (const InputError&) {
      // A forbidden transition: draw again.
    }
  }
}

Topology two_nodes() {
  return build_topology(
      parse_topology("reshard-topology 1\nname eights\ndevices 8\nnodes 2\n"
                     "port nvlink 450GB/s\nport nic 50GB/s\n"
                     "route within via nvlink.out nvlink.in latency 0 transport nvlink\n"
                     "route between via nic.out nic.in latency 0 transport network\n",
                     "eights.topo"),
      std::nullopt);
}

}  // namespace reshard::test
