// SPDX-License-Identifier: BSD-3-Clause
// Flat buffers made from the contents of other buffers, divided among the ranks along some axes.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/stored/generators.h"

namespace reshard {
namespace {

// The contents of a rank's buffers, one after another.
struct Content {
  std::vector<const StoredBuffer*> buffers;
  std::vector<std::int64_t> begins;
  std::int64_t total = 0;

  bool is_same(const Content& other) const {
    return std::equal(buffers.begin(), buffers.end(), other.buffers.begin(), other.buffers.end(),
                      [](const StoredBuffer* a, const StoredBuffer* b) {
                        return a->name == b->name && a->shape == b->shape && same_parts(*a, *b);
                      });
  }

 private:
  static bool same_parts(const StoredBuffer& a, const StoredBuffer& b) {
    return std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                      [](const StoredPart& x, const StoredPart& y) {
                        return x.tensor == y.tensor && x.box == y.box && x.offset == y.offset &&
                               x.strides == y.strides;
                      });
  }
};

class SharedFlat {
 public:
  SharedFlat(Stored& to, const Stored& named, const SharedFlatBuffer& wanted)
      : to_(to), named_(named), wanted_(wanted) {}

  void add() {
    std::vector<StoredBuffer> made;
    for (Rank rank : named_.ranks())
      if (!to_.find(rank, wanted_.name))
        if (Content content = content_of(rank); !content.buffers.empty())
          made.push_back(share_of(rank, content));
    if (made.empty())
      throw InputError(fmt::format("flat_of: expected buffers of earlier lines, found {}",
                                   quoted(wanted_.buffers.front(), 200)));
    for (StoredBuffer& each : made)
      if (element_count(each.shape) > 0) to_.add(std::move(each));
  }

 private:
  Content content_of(Rank rank) const {
    Content out;
    auto round_up = [&](std::int64_t multiple) {
      out.total = ceil_div(out.total, multiple) * multiple;
      if (out.total > kMaxBytes / 2)
        throw InputError("flat_of: expected at most 2^61 elements, found more");
    };
    for (const std::string& name : wanted_.buffers) {
      std::optional<StoredBufferId> id = named_.find(rank, name);
      if (!id) continue;
      out.buffers.push_back(&named_.buffers()[*id]);
      round_up(wanted_.align);
      out.begins.push_back(out.total);
      out.total += element_count(out.buffers.back()->shape);
    }
    round_up(wanted_.pad);
    return out;
  }

  StoredBuffer share_of(Rank rank, const Content& content) const {
    const MeshRef& mesh = mesh_of(content);
    MeshCoordinate at = mesh->coordinate(mesh->position_of(rank).value()), first = at;
    std::int64_t ranks = 1, index = 0;
    for (int axis : axes_of(*mesh)) {
      ranks *= mesh->axis_size(axis);
      index = index * mesh->axis_size(axis) + at[to_index(axis)];
      first[to_index(axis)] = 0;
    }
    Rank leader = mesh->rank_at(mesh->position_at(first));
    if (!content.is_same(content_of(leader)))
      throw InputError(
          fmt::format("flat_of: expected the same on all ranks that share, found another on rank "
                      "{} than on rank {}",
                      to_int(rank), to_int(leader)));
    const std::int64_t share = ceil_div(content.total, ranks);
    StoredBuffer out{rank, wanted_.name, {share}, dtype_of(content), {}};
    out.converts = wanted_.dtype.has_value();
    out.mesh = mesh;
    add_parts(content, {index * share, {share}, {1}}, out);
    return out;
  }

  void add_parts(const Content& content, const StridedView& own, StoredBuffer& out) const {
    for (std::size_t i = 0; i < content.buffers.size(); ++i)
      for (const StoredPart& part : content.buffers[i]->parts) {
        StridedView view = part.view();
        view.offset += content.begins[i];
        std::vector<Meeting> meetings;
        std::int64_t budget = std::numeric_limits<std::int64_t>::max();  // an interval is one run
        find_meetings(own, view, budget, meetings);
        for (const Meeting& meeting : meetings) {
          Box box = meeting.box;
          for (int d = 0; d < box.dims(); ++d) {
            box.lo[d] += part.box.lo[d];
            box.hi[d] += part.box.lo[d];
          }
          out.parts.push_back({part.tensor, box, meeting.position, meeting.weights});
        }
      }
  }

  // The mesh of all its buffers.
  static const MeshRef& mesh_of(const Content& content) {
    const MeshRef& first = content.buffers.front()->mesh;
    for (const StoredBuffer* buffer : content.buffers)
      if (!buffer->mesh || !(*buffer->mesh == *first))
        throw InputError(fmt::format("flat_of: expected buffers on one mesh, found {}",
                                     quoted(buffer->name, 200)));
    return first;
  }

  std::vector<int> axes_of(const Mesh& mesh) const {
    std::vector<int> out;
    for (const std::string& name : wanted_.axes) {
      int axis = 0;
      while (axis < mesh.axes() && name != (mesh.names().empty() ? "" : mesh.names()[axis]) &&
             name != fmt::to_string(axis))
        ++axis;
      if (axis == mesh.axes() || std::find(out.begin(), out.end(), axis) != out.end())
        throw InputError(fmt::format("axis: expected axes of the mesh {}, each once, found {}",
                                     shape_text(mesh), quoted(name)));
      out.push_back(axis);
    }
    return out;
  }

  DType dtype_of(const Content& content) const {
    if (wanted_.dtype) return *wanted_.dtype;
    for (const StoredBuffer* buffer : content.buffers)
      if (!buffer->parts.empty()) return named_.tensors()[buffer->parts.front().tensor].dtype;
    return content.buffers.front()->dtype;
  }

  Stored& to_;
  const Stored& named_;
  const SharedFlatBuffer& wanted_;
};

}  // namespace

void add_shared_flat(Stored& to, const Stored& named, const SharedFlatBuffer& buffer) {
  SharedFlat(to, named, buffer).add();
}

}  // namespace reshard
