// SPDX-License-Identifier: BSD-3-Clause
// The part of NCCL that this backend uses, call by call, as a thin interface: either the
// library itself (nccl_library.h), or in tests a stand-in that checks how it is used.
//
// Names, values and meanings are NCCL's own (nccl_library.cpp asserts the values); counts are
// 64-bit. It needs no header of NCCL or CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/device/device.h"

namespace reshard::backends::nccl {

enum class NcclResult : int {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7
};
enum class NcclType : int {
  Int8 = 0,
  Uint8 = 1,
  Int32 = 2,
  Int64 = 4,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  Bfloat16 = 9
};
enum class NcclOp : int { Sum = 0, Prod = 1, Max = 2, Min = 3 };
inline constexpr int kNcclNoColor = -1;

struct NcclCommObject;
using NcclComm = NcclCommObject*;
struct NcclUniqueId {
  std::array<std::byte, 128> bytes{};
};

inline constexpr int kNcclOldest = 21400;     // communicators take a configuration
inline constexpr int kNcclSplit = 21800;      // ncclCommSplit
inline constexpr int kNcclAllToAll = 22800;   // ncclAlltoAll
inline constexpr int kNcclSharedGpu = 23000;  // several ranks per GPU

class NcclApi {
 public:
  virtual ~NcclApi() = default;

  virtual int version() const = 0;  // 22809 means 2.28.9
  virtual std::string error_text(NcclResult result) = 0;
  virtual std::string last_error(NcclComm comm) = 0;  // may be empty; comm may be null

  // All communicators made here are non-blocking: calls that take one may return InProgress; poll
  // async_error until it no longer does.
  virtual NcclResult get_unique_id(NcclUniqueId* id) = 0;
  // For the current device. The object that `comm` points to must stay valid until the communicator
  // is no longer in progress. most_blocks: thread blocks of each of its kernels, 0: as many as NCCL
  // likes.
  virtual NcclResult init_rank(NcclComm* comm, int size, const NcclUniqueId& id, int rank,
                               int most_blocks) = 0;
  // Shares no resources with the parent. *child stays null if the color is kNcclNoColor; it must
  // stay valid until the parent is no longer in progress.
  virtual NcclResult split(NcclComm parent, int color, int key, NcclComm* child,
                           int most_blocks) = 0;
  virtual NcclResult finalize(NcclComm comm) = 0;
  virtual NcclResult destroy(NcclComm comm) = 0;
  virtual NcclResult abort(NcclComm comm) = 0;
  virtual NcclResult async_error(NcclComm comm, NcclResult* state) = 0;
  virtual NcclResult count(NcclComm comm, int* count) = 0;
  virtual NcclResult user_rank(NcclComm comm, int* rank) = 0;
  virtual NcclResult device(NcclComm comm, int* device) = 0;  // numbered as by CUDA

  virtual NcclResult group_start() = 0;
  virtual NcclResult group_end() = 0;

  virtual NcclResult send(const std::byte* from, std::int64_t count, NcclType type, int peer,
                          NcclComm comm, Stream stream) = 0;
  virtual NcclResult receive(std::byte* to, std::int64_t count, NcclType type, int peer,
                             NcclComm comm, Stream stream) = 0;
  // `count`: elements of one member's contribution.
  virtual NcclResult all_gather(const std::byte* from, std::byte* to, std::int64_t count,
                                NcclType type, NcclComm comm, Stream stream) = 0;
  // `count`: elements of one member's result.
  virtual NcclResult reduce_scatter(const std::byte* from, std::byte* to, std::int64_t count,
                                    NcclType type, NcclOp op, NcclComm comm, Stream stream) = 0;
  virtual NcclResult all_reduce(const std::byte* from, std::byte* to, std::int64_t count,
                                NcclType type, NcclOp op, NcclComm comm, Stream stream) = 0;
  // `count`: elements from one member to another. Needs NCCL kNcclAllToAll or newer.
  virtual NcclResult all_to_all(const std::byte* from, std::byte* to, std::int64_t count,
                                NcclType type, NcclComm comm, Stream stream) = 0;
};

// 22809 -> "2.28.9".
std::string version_text(int version);

}  // namespace reshard::backends::nccl
