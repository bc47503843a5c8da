// SPDX-License-Identifier: BSD-3-Clause
// Random redistributions on existing machines, and the same ones expressed differently or changed a
// little: how the times of the two are related is known without knowing either.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/layout/request.h"
#include "core/topology/topology.h"
#include "tests/support/prng.h"

namespace reshard::test {

// Where a tensor lies. Placements by axis as the text forms have them, but with the place in the
// order of its dim where several axes cut one.
struct Side {
  std::vector<std::int32_t> mesh;
  std::vector<Rank> ranks;  // row-major
  struct Axis {
    char kind;         // 'R', 'S', 'P'
    int dim = 0;       // of S
    std::string op{};  // of P
  };
  std::vector<Axis> axes;
  std::vector<int> order;  // axes, in the order in which they cut

  // On a tensor of `shape`; throws InputError where there is no such layout.
  Layout layout(const Shape& shape, DType dtype) const;
};

struct DrawnMove {
  std::shared_ptr<const Topology> machine;
  Shape shape;
  DType dtype;
  Side from, to;

  Request request() const { return {from.layout(shape, dtype), to.layout(shape, dtype)}; }
  std::string text() const { return machine->name() + " " + request().text(); }
};

// One that is a request: at most 16 ranks, the same mesh on both sides or two, kilobytes to
// hundreds of megabytes, even and uneven.
DrawnMove draw_move(Prng& prng);

// The ranks are called by the names of others of their class and group: nodes change places, and in
// each node devices that nothing tells apart.
DrawnMove renumbered(const DrawnMove& move, Prng& prng);
// The axes of both meshes in another order.
DrawnMove with_axes_turned(const DrawnMove& move, Prng& prng);
// Another axis of one rank.
DrawnMove with_another_axis(const DrawnMove& move, Prng& prng);
// The dims of the tensor in another order.
DrawnMove with_dims_turned(const DrawnMove& move, Prng& prng);
// Another dim of one element, which nothing cuts.
DrawnMove with_another_dim(const DrawnMove& move, Prng& prng);
// Elements of twice the bytes.
DrawnMove of_twice_the_bytes(const DrawnMove& move);
// Back again.
DrawnMove reversed(const DrawnMove& move);
// An axis of the source that cuts last what it cuts replicates instead: more is held at the
// beginning. The same where there is none.
DrawnMove made_easier(const DrawnMove& move, Prng& prng);
// To the source's own mesh, placed some other way.
Side somewhere_else(const DrawnMove& move, Prng& prng);
// On a machine whose links all carry twice as much, or wait for half as long.
DrawnMove on_wider_links(const DrawnMove& move);
DrawnMove on_quicker_links(const DrawnMove& move);

}  // namespace reshard::test
