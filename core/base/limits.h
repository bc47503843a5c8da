// SPDX-License-Identifier: BSD-3-Clause
// Limits on input, so that none can crash the program, hang it or exhaust memory: anything beyond a
// limit is an InputError. Each limit is defined once, here; texts that mention one give the same
// number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reshard {

// ---- sizes

// Bytes or elements of a tensor, bytes per second of a link: a product of two still fits in 128
// bits.
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 62;
// Ranks of a job and devices of a topology.
inline constexpr std::int64_t kMaxRanks = std::int64_t{1} << 20;
// Dims of a tensor and axes of a mesh: index vectors are arrays of this size, without heap memory.
inline constexpr int kMaxDims = 8, kMaxAxes = 5;
// Pieces of one dim of a layout, of 24 bytes each: 1.6 GB.
inline constexpr std::size_t kMaxDimPieces = std::size_t{1} << 26;

// ---- texts

// Bytes of a line of any text, and of a topology file.
inline constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;
// Bytes of a plan's text: a plan of 10^6 messages takes about 100 MB.
inline constexpr std::size_t kMaxPlanTextBytes = std::size_t{4} << 30;
// Buffer and step numbers in a plan's text.
inline constexpr std::int64_t kMaxPlanNumber = std::int64_t{1} << 30;
// Extents of the temporaries in a plan's text, which are stored per rank: 1 GiB.
inline constexpr std::size_t kMaxPlanExtents = std::size_t{1} << 27;
// The longest duration that a text can give, in picoseconds: 10^6 seconds.
inline constexpr std::int64_t kMaxDurationPs = 1'000'000'000'000'000'000;
// Nesting depth of a line of JSON (header, meshes, one mesh, its ranks), and the number of values
// in it: a list of all ranks and the fields around it.
inline constexpr int kMaxJsonNesting = 4;
inline constexpr std::int64_t kMaxJsonValues = kMaxRanks + 64;

// ---- topologies

// Limits per node. No real machine comes near them, and tables of pairs stay small.
inline constexpr std::size_t kMaxPorts = 64, kMaxShared = 256, kMaxFabric = 1024, kMaxGroups = 1024,
                             kMaxRoutes = 256, kMaxHops = 16, kMaxNameLength = 64;
// Members of all groups and pair lists in total.
inline constexpr std::size_t kMaxGroupMembers = std::size_t{1} << 20;
// Device classes (their routing rules form a square table) and resources (flows are listed per
// resource).
inline constexpr std::int64_t kMaxDeviceClasses = 1024;
inline constexpr std::int64_t kMaxResources = std::int64_t{1} << 24;

// ---- traces and measurements

// Operations of a trace, and ranks named by all its operations and meshes in total: a few
// characters can name a million ranks. The latter also limits the groups of a measurements file.
inline constexpr std::size_t kMaxTraceOperations = std::size_t{1} << 24;
inline constexpr std::int64_t kMaxNamedRanks = std::int64_t{1} << 25;
// Outputs of one call: `split` and `unbind` can make as many as a dim has elements.
inline constexpr std::int64_t kMaxCallOutputs = std::int64_t{1} << 16;
// Ranks of an alltoallv matrix, which has a row and a column per rank.
inline constexpr std::int64_t kMaxMatrixRanks = 4096;
// Runs in a measurements file.
inline constexpr std::int64_t kMaxRuns = 1'000'000;
// Pairs of placements per mesh in a sweep: more than anyone reads.
inline constexpr std::int64_t kMaxSweepPairs = 1'000'000;

// ---- work

// Pairs of ranks in the list of a plan's traffic.
inline constexpr std::int64_t kMaxTrafficPairs = std::int64_t{1} << 26;
// Boxes that one step of a plan can carry: about 1 GiB, and more than any backend can issue.
inline constexpr std::size_t kMaxMoves = std::size_t{1} << 24;
// Ranks times group size above which planners do not work block by block: it would take seconds of
// planning and gigabytes of moves.
inline constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 28;
// Pairs of shards and holders that a bound visits: tens of seconds.
inline constexpr std::int64_t kMaxBoundWork = std::int64_t{1} << 33;
// Boxes that a proof can hold: a few GB.
inline constexpr std::int64_t kMaxProofPieces = std::int64_t{1} << 25;
// Bits of the table that records which of a rank's steps precede which others: 1 GiB.
inline constexpr std::size_t kMaxOrderBits = std::size_t{1} << 33;
// Transfers in flight at one time in a simulation, of about 300 bytes each, and transfers of one
// step in total: more would take hours.
inline constexpr std::int64_t kMaxInFlight = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxStepTransfers = std::int64_t{1} << 34;
// The latest simulated time: about 53 days.
inline constexpr std::int64_t kMaxTimePs = std::int64_t{1} << 62;

}  // namespace reshard
