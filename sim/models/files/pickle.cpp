// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/files/pickle.h"

#include <fmt/format.h>

#include "core/base/cursor.h"

namespace reshard::sim {

using Kind = PickleValue::Kind;

std::span<const PickleId> Pickle::entries(PickleId id) const { return lists_[values_[id].list]; }

std::optional<PickleId> Pickle::find(PickleId dict, std::string_view key) const {
  if (values_[dict].kind != Kind::Dict) return std::nullopt;
  std::span<const PickleId> list = entries(dict);
  std::optional<PickleId> out;
  for (std::size_t i = 0; i < list.size(); i += 2)
    if (values_[list[i]].kind == Kind::Text && values_[list[i]].text == key) out = list[i + 1];
  return out;
}

std::optional<PickleId> Pickle::state(PickleId object) const {
  std::span<const PickleId> list = entries(object);
  return list.size() > 1 ? std::optional(list[1]) : std::nullopt;
}

std::string Pickle::shown(PickleId id) const {
  const PickleValue& value = values_[id];
  switch (value.kind) {
    case Kind::None:
      return "None";
    case Kind::Bool:
      return value.number != 0 ? "True" : "False";
    case Kind::Int:
      return fmt::to_string(value.number);
    case Kind::Float:
      return "a float";
    case Kind::Text:
      return reshard::quoted(value.text);
    case Kind::Bytes:
      return fmt::format("{} bytes", value.text.size());
    case Kind::List:
      return fmt::format("a list of {}", entries(id).size());
    case Kind::Tuple:
      return fmt::format("a tuple of {}", entries(id).size());
    case Kind::Dict:
      return fmt::format("a dict of {}", entries(id).size() / 2);
    case Kind::Global:
      return std::string(value.text);
    case Kind::Object:
      return fmt::format("a {}", value.text);
  }
  return "";
}

}  // namespace reshard::sim
