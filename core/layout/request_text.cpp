// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/request_text.h"

#include <memory>

namespace reshard {

Request parse_request(const RequestTexts& texts, std::string_view prefix) {
  std::string start(prefix);
  auto source_mesh =
      std::make_shared<const Mesh>(parse_mesh(texts.mesh, texts.ranks, start + "mesh"));
  MeshRef destination_mesh = source_mesh;
  if (!texts.to_mesh.empty() || !texts.to_ranks.empty())
    destination_mesh = std::make_shared<const Mesh>(parse_mesh(
        texts.to_mesh.empty() ? texts.mesh : texts.to_mesh, texts.to_ranks, start + "to-mesh"));
  // Shape and dtype are read by parse_layout again; here they are read under their own names.
  parse_shape(texts.shape, start + "shape");
  std::string dtype = texts.dtype.empty() ? "f32" : texts.dtype;
  parse_dtype(dtype);
  return Request(parse_layout(texts.shape, dtype, source_mesh, texts.from, start + "from"),
                 parse_layout(texts.shape, dtype, destination_mesh, texts.to, start + "to"));
}

}  // namespace reshard
