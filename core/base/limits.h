// SPDX-License-Identifier: BSD-3-Clause
// What no input may ask for, so that none crashes, hangs or takes memory without bound: beyond is
// an InputError. Each limit once; texts that name one say the same number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reshard {

// ---- sizes

// Bytes of a tensor, elements of it, bytes per second of a link: products of two still fit 128
// bits.
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 62;
// Ranks of a job and devices of a topology.
inline constexpr std::int64_t kMaxRanks = std::int64_t{1} << 20;
// Dims of a tensor and axes of a mesh: indices are held without heap memory.
inline constexpr int kMaxDims = 8, kMaxAxes = 5;
// Pieces of one dim of a layout: 24 bytes each, 1.6 GB.
inline constexpr std::size_t kMaxDimPieces = std::size_t{1} << 26;

// ---- texts

// Bytes of a line of any text, and of a topology file.
inline constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;
// Bytes of a plan's text: one of 10^6 messages has about 100 MB.
inline constexpr std::size_t kMaxPlanTextBytes = std::size_t{4} << 30;
// Numbers of buffers and steps in a plan's text.
inline constexpr std::int64_t kMaxPlanNumber = std::int64_t{1} << 30;
// Extents of a plan text's temporaries, which are kept per rank: 1 GiB.
inline constexpr std::size_t kMaxPlanExtents = std::size_t{1} << 27;
// Picoseconds that a text may give: 10^6 seconds.
inline constexpr std::int64_t kMaxDurationPs = 1'000'000'000'000'000'000;
// Levels of brackets in a line of JSON (header, meshes, one mesh, its ranks), and values in it: a
// list of all ranks, and the fields around it.
inline constexpr int kMaxJsonNesting = 4;
inline constexpr std::int64_t kMaxJsonValues = kMaxRanks + 64;

// ---- topologies

// What a node may have: such machines do not exist, and tables of pairs stay small.
inline constexpr std::size_t kMaxPorts = 64, kMaxShared = 256, kMaxFabric = 1024, kMaxGroups = 1024,
                             kMaxRoutes = 256, kMaxHops = 16, kMaxNameLength = 64;
// Members of all groups and pair lists together.
inline constexpr std::size_t kMaxGroupMembers = std::size_t{1} << 20;
// Classes of devices, whose rules are a square table, and resources, which flows are listed by.
inline constexpr std::int64_t kMaxDeviceClasses = 1024;
inline constexpr std::int64_t kMaxResources = std::int64_t{1} << 24;

// ---- traces and measurements

// Operations of a trace, and ranks that all its operations and meshes name together: a few letters
// stand for a million ranks. The same of the groups of a measurements file.
inline constexpr std::size_t kMaxTraceOperations = std::size_t{1} << 24;
inline constexpr std::int64_t kMaxNamedRanks = std::int64_t{1} << 25;
// Outputs of one call: `split` and `unbind` make as many as a tensor is long.
inline constexpr std::int64_t kMaxCallOutputs = std::int64_t{1} << 16;
// Ranks of an alltoallv matrix, which is a square.
inline constexpr std::int64_t kMaxMatrixRanks = 4096;
// Runs in a measurements file.
inline constexpr std::int64_t kMaxRuns = 1'000'000;
// Pairs of placements of a sweep per mesh: more than anyone reads.
inline constexpr std::int64_t kMaxSweepPairs = 1'000'000;

// ---- work

// Pairs of ranks that a plan's traffic is listed by.
inline constexpr std::int64_t kMaxTrafficPairs = std::int64_t{1} << 26;
// Boxes that a step of a plan may carry: about a GiB, and nobody can issue more.
inline constexpr std::size_t kMaxMoves = std::size_t{1} << 24;
// Ranks times group size above which a planner works nothing out block by block: seconds of
// planning and gigabytes of moves.
inline constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 28;
// Pairs of shards and holders that a bound looks at: tens of seconds.
inline constexpr std::int64_t kMaxBoundWork = std::int64_t{1} << 33;
// Boxes that a proof may hold: a few GB.
inline constexpr std::int64_t kMaxProofPieces = std::int64_t{1} << 25;
// Bits of the table of which step of a rank comes before which: 1 GiB.
inline constexpr std::size_t kMaxOrderBits = std::size_t{1} << 33;
// Transfers of a simulation at one time, of about 300 bytes each, and of one step in all: hours of
// work beyond.
inline constexpr std::int64_t kMaxInFlight = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxStepTransfers = std::int64_t{1} << 34;
// No simulated instant is later: about 53 days.
inline constexpr std::int64_t kMaxTimePs = std::int64_t{1} << 62;

}  // namespace reshard
