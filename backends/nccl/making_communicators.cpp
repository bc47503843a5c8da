// SPDX-License-Identifier: BSD-3-Clause
// Makes communicators: the parent, groups and pairs; split from the parent, or with their own
// unique ids.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/core.h>

#include "backends/nccl/communicators.h"
#include "core/base/errors.h"

namespace reshard::backends::nccl {

namespace {

// Kernels of all streams of a plan must be on the GPU at the same time, or they wait for each other
// for ever. The main stream's take what NCCL likes; those of further streams share the rest.
int most_blocks(const NcclCommunicator& communicator, const Device& device) {
  constexpr int kNcclBlocks = 32;  // a kernel of NCCL's own choice has no more
  if (!is_further_stream(communicator.stream_key)) return 0;
  return std::clamp((device.multiprocessors() - kNcclBlocks) / (kMaxStreams - 1), 1, kNcclBlocks);
}

}  // namespace

NcclCommunicator& Communicators::add(std::string key, std::string stream_key,
                                     std::vector<std::int32_t> members) {
  NcclCommunicator& out = communicators_.emplace_back();
  out.key = std::move(key);
  out.stream_key = std::move(stream_key);
  out.members = std::move(members);
  out.comms.assign(locals_.size(), nullptr);
  by_key_[out.key] = &out;
  return out;
}

std::vector<std::int32_t> Communicators::all_ranks() const {
  std::vector<std::int32_t> all(to_index(world_));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void Communicators::make_parent() {
  NcclCommunicator& parent = add(kParentKey, kMainStream, all_ranks());
  if (!caller_) return make_each({&parent});
  RESHARD_CHECK(locals_.size() == 1, "a lent communicator has one rank");
  parent.comms[0] = caller_->comm;
  streams_[0][kMainStream] = caller_->stream;
}

std::vector<const NcclCommunicator*> Communicators::groups(
    const std::vector<std::vector<std::int32_t>>& groups, std::int32_t stream) {
  ensure_usable();
  std::vector<const NcclCommunicator*> out;
  std::vector<NcclCommunicator*> missing;
  for (const std::vector<std::int32_t>& members : groups) {
    const NcclCommunicator* found = find_group(members, stream);
    bool parent = stream == 0 && policies_.parent_on_use && to_index(world_) == members.size();
    if (found == nullptr)
      found = missing.emplace_back(&add(parent ? kParentKey : key_on(group_key(members), stream),
                                        stream_key(stream), members));
    out.push_back(found);
  }
  make(missing);
  return out;
}

const NcclCommunicator& Communicators::all(std::int32_t stream) {
  ensure_usable();
  std::string key = key_on(kParentKey, stream);
  if (find(key) == nullptr) make({&add(key, stream_key(stream), all_ranks())});
  return *find(key);
}

// They have no rank in common.
void Communicators::make(const std::vector<NcclCommunicator*>& fresh) {
  if (fresh.empty()) return;
  if (can_split(fresh))
    split(fresh);
  else
    make_each(fresh);
}

void Communicators::connect(const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs) {
  ensure_usable();
  if (parent_for_messages() != nullptr) return;
  std::vector<NcclCommunicator*> missing;
  for (auto [low, high] : pairs) {
    std::string key = pair_key(low, high);
    if (find(key) == nullptr)
      missing.push_back(&add(key, policies_.stream_per_pair ? key : kMainStream, {low, high}));
  }
  if (missing.empty()) return;
  if (can_split(missing)) {
    // A rank may be in several pairs, so each pair takes its own split.
    for (NcclCommunicator* pair : missing) split({pair});
    return;
  }
  if (!warned_ && warn_)
    warn_(
        "NCCL: there is no communicator over all ranks, so exchanges use communicators of two "
        "ranks, each of which costs time and memory");
  warned_ = true;
  make_each(missing);
}

// True if the parent exists, is not one of `fresh`, and NCCL and the policies allow splits.
bool Communicators::can_split(const std::vector<NcclCommunicator*>& fresh) const {
  const NcclCommunicator* parent = find(kParentKey);
  return parent != nullptr && std::find(fresh.begin(), fresh.end(), parent) == fresh.end() &&
         policies_.split_from_parent && api_.version() >= kNcclSplit;
}

void Communicators::split(const std::vector<NcclCommunicator*>& children) {
  const NcclCommunicator& parent = *find(kParentKey);
  group("ncclCommSplit of the communicator over all ranks", [&] {
    for (std::size_t i = 0; i < locals_.size(); ++i) {
      int color = kNcclNoColor, key = 0;
      NcclComm* child = &no_child_;
      for (std::size_t c = 0; c < children.size(); ++c) {
        std::int32_t place = children[c]->place_of(locals_[i].rank);
        if (place == static_cast<std::int32_t>(children[c]->members.size())) continue;
        color = static_cast<int>(c);
        key = place;
        child = &children[c]->comms[i];
      }
      locals_[i].device->select();
      checked(api_.split(parent.comms[i], color, key, child,
                         most_blocks(*children.front(), *locals_[i].device)),
              "ncclCommSplit", locals_[i].rank, parent.comms[i]);
    }
  });
  for (const NcclCommunicator* child : children)
    for (std::size_t i = 0; i < locals_.size(); ++i)
      if ((child->comms[i] != nullptr) !=
          (child->place_of(locals_[i].rank) < static_cast<std::int32_t>(child->members.size())))
        fail("ncclCommSplit",
             fmt::format("no communicator for rank {} in group {}", locals_[i].rank, child->key));
}

void Communicators::make_each(const std::vector<NcclCommunicator*>& fresh) {
  std::vector<NcclUniqueId> ids = share_ids(fresh);
  for (std::size_t c = 0; c < fresh.size(); ++c) init(*fresh[c], ids[c]);
}

// The process that holds a communicator's first member makes its id; every process gets all ids.
std::vector<NcclUniqueId> Communicators::share_ids(const std::vector<NcclCommunicator*>& fresh) {
  std::vector<NcclUniqueId> ids(fresh.size());
  for (std::size_t c = 0; c < fresh.size(); ++c)
    if (is_local(fresh[c]->members.front()))
      checked(api_.get_unique_id(&ids[c]), "ncclGetUniqueId", fresh[c]->members.front(), nullptr);
  auto mine = std::as_writable_bytes(std::span(ids));
  std::vector<std::vector<std::byte>> all = meeting_.gather(mine);
  // An id that a process did not make is all zeros there.
  for (const std::vector<std::byte>& part : all) {
    RESHARD_CHECK(part.size() == mine.size(), "processes create different communicators");
    for (std::size_t b = 0; b < part.size(); ++b) mine[b] |= part[b];
  }
  std::vector<std::byte> joined = meeting_.broadcast(mine);
  RESHARD_CHECK(joined.size() == mine.size(), "processes create different communicators");
  std::memcpy(mine.data(), joined.data(), joined.size());
  return ids;
}

void Communicators::init(NcclCommunicator& communicator, const NcclUniqueId& id) {
  bool any = false;
  for (const LocalRank& local : locals_)
    any = any || communicator.place_of(local.rank) <
                     static_cast<std::int32_t>(communicator.members.size());
  if (!any) return;
  group(fmt::format("ncclCommInitRankConfig of communicator {}", communicator.key), [&] {
    for (std::size_t i = 0; i < locals_.size(); ++i) {
      std::int32_t place = communicator.place_of(locals_[i].rank),
                   size = static_cast<std::int32_t>(communicator.members.size());
      if (place == size) continue;
      locals_[i].device->select();
      checked(api_.init_rank(&communicator.comms[i], size, id, place,
                             most_blocks(communicator, *locals_[i].device)),
              "ncclCommInitRankConfig", locals_[i].rank, nullptr);
    }
  });
}

}  // namespace reshard::backends::nccl
