// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/transport.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/transport/nccl_carrier.h"

namespace reshard::sim {
namespace {

constexpr std::array<TransportKind, 2> kKinds{TransportKind::Ideal, TransportKind::Nccl};

}  // namespace

std::string_view text(TransportKind kind) {
  constexpr std::array<std::string_view, 2> kNames{"ideal", "nccl"};
  return kNames[static_cast<std::size_t>(kind)];
}

TransportKind parse_transport(std::string_view word, std::string_view field) {
  for (TransportKind kind : kKinds)
    if (text(kind) == word) return kind;
  throw InputError(fmt::format("{}: expected ideal or nccl, found {}", field, quoted(word)));
}

Carriage::Carriage(std::shared_ptr<const Topology> topology, const TransportOptions& options)
    : kind_(options.kind), topology_(std::move(topology)) {
  const nccl::Constants& constants = nccl::constants_of(options.nccl_version);
  if (kind_ == TransportKind::Nccl)
    carrier_ = std::make_unique<nccl::NcclCarrier>(*topology_, constants);
}

}  // namespace reshard::sim
