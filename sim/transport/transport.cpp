// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/transport.h"

#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/transport/copy_carrier.h"
#include "sim/transport/ideal_carrier.h"
#include "sim/transport/nccl/nccl_carrier.h"

namespace reshard::sim {

TransportKind parse_transport(std::string_view word, std::string_view field) {
  if (std::optional<TransportKind> kind = find_transport(word)) return *kind;
  throw InputError(
      fmt::format("{}: expected {}, found {}", field, transport_names(), quoted(word)));
}

Switches switches_of(TransportKind kind) {
  return kind == TransportKind::Ideal ? Switches::Forward : Switches::Reduce;
}

Carriage::Carriage(std::shared_ptr<const Topology> topology, const TransportOptions& options)
    : topology_(std::move(topology)),
      kind_(options.kind.value_or(topology_->machine().transport.value_or(TransportKind::Ideal))),
      ideal_(std::make_unique<IdealCarrier>(*topology_)) {
  const std::string& version =
      options.nccl_version.empty() ? topology_->machine().nccl_version : options.nccl_version;
  const nccl::Constants& constants = nccl::constants_of(version);
  if (kind_ == TransportKind::Nccl)
    carrier_ = std::make_unique<nccl::NcclCarrier>(*topology_, constants);
  if (kind_ == TransportKind::CopyEngine)
    carrier_ = std::make_unique<CopyCarrier>(*topology_, constants);
}

}  // namespace reshard::sim
