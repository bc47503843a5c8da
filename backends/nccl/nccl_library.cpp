// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/nccl_library.h"

#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard::backends::nccl {
namespace {

// Asserts that the interface has nccl.h's values.
template <class A, class B>
constexpr bool same(A a, B b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(same(NcclResult::Success, ncclSuccess) &&
              same(NcclResult::UnhandledCudaError, ncclUnhandledCudaError));
static_assert(same(NcclResult::SystemError, ncclSystemError) &&
              same(NcclResult::InternalError, ncclInternalError));
static_assert(same(NcclResult::InvalidArgument, ncclInvalidArgument) &&
              same(NcclResult::InvalidUsage, ncclInvalidUsage));
static_assert(same(NcclResult::RemoteError, ncclRemoteError) &&
              same(NcclResult::InProgress, ncclInProgress));
static_assert(same(NcclType::Int8, ncclInt8) && same(NcclType::Uint8, ncclUint8) &&
              same(NcclType::Int32, ncclInt32) && same(NcclType::Int64, ncclInt64));
static_assert(same(NcclType::Float16, ncclFloat16) && same(NcclType::Float32, ncclFloat32) &&
              same(NcclType::Float64, ncclFloat64));
static_assert(same(NcclType::Bfloat16, ncclBfloat16));
static_assert(same(NcclOp::Sum, ncclSum) && same(NcclOp::Prod, ncclProd) &&
              same(NcclOp::Max, ncclMax) && same(NcclOp::Min, ncclMin));
static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));

ncclComm_t real(NcclComm comm) { return reinterpret_cast<ncclComm_t>(comm); }
ncclComm_t* real(NcclComm* comm) { return reinterpret_cast<ncclComm_t*>(comm); }
cudaStream_t real(Stream stream) { return reinterpret_cast<cudaStream_t>(stream); }
ncclDataType_t real(NcclType type) { return static_cast<ncclDataType_t>(type); }
ncclRedOp_t real(NcclOp op) { return static_cast<ncclRedOp_t>(op); }
std::size_t real(std::int64_t count) { return to_index(count); }
NcclResult ours(ncclResult_t result) { return static_cast<NcclResult>(result); }

class NcclLibrary : public NcclApi {
 public:
  explicit NcclLibrary(bool only_loaded) {
    only_loaded ? find_loaded() : open();
    find(get_version_, "ncclGetVersion", 0);
    if (get_version_(&version_) != ncclSuccess || version_ < kNcclOldest)
      throw BackendError("NCCL", "ncclGetVersion",
                         fmt::format("{} is NCCL {}; {} or newer is needed", file_,
                                     version_text(version_), version_text(kNcclOldest)),
                         -1);
    find_all();
  }

  int version() const override { return version_; }
  std::string error_text(NcclResult result) override {
    return get_error_string_(static_cast<ncclResult_t>(result));
  }
  std::string last_error(NcclComm comm) override {
    const char* text = get_last_error_(real(comm));
    return text == nullptr ? "" : text;
  }

  NcclResult get_unique_id(NcclUniqueId* id) override {
    return ours(get_unique_id_(reinterpret_cast<ncclUniqueId*>(id)));
  }
  NcclResult init_rank(NcclComm* comm, int size, const NcclUniqueId& id, int rank,
                       int most_blocks) override {
    ncclUniqueId value;
    std::memcpy(&value, id.bytes.data(), sizeof value);
    ncclConfig_t config = configuration(most_blocks);
    return ours(init_rank_(real(comm), size, value, rank, &config));
  }
  NcclResult split(NcclComm parent, int color, int key, NcclComm* child, int most_blocks) override {
    ncclConfig_t config = configuration(most_blocks);
    return ours(split_(real(parent), color, key, real(child), &config));
  }
  NcclResult finalize(NcclComm comm) override { return ours(finalize_(real(comm))); }
  NcclResult destroy(NcclComm comm) override { return ours(destroy_(real(comm))); }
  NcclResult abort(NcclComm comm) override { return ours(abort_(real(comm))); }
  NcclResult async_error(NcclComm comm, NcclResult* state) override {
    ncclResult_t found = ncclSuccess;
    NcclResult asked = ours(get_async_error_(real(comm), &found));
    *state = ours(found);
    return asked;
  }
  NcclResult count(NcclComm comm, int* count) override { return ours(count_(real(comm), count)); }
  NcclResult user_rank(NcclComm comm, int* rank) override {
    return ours(user_rank_(real(comm), rank));
  }
  NcclResult device(NcclComm comm, int* device) override {
    return ours(device_(real(comm), device));
  }
  NcclResult group_start() override { return ours(group_start_()); }
  NcclResult group_end() override { return ours(group_end_()); }

  NcclResult send(const std::byte* from, std::int64_t count, NcclType type, int peer, NcclComm comm,
                  Stream stream) override {
    return ours(send_(from, real(count), real(type), peer, real(comm), real(stream)));
  }
  NcclResult receive(std::byte* to, std::int64_t count, NcclType type, int peer, NcclComm comm,
                     Stream stream) override {
    return ours(recv_(to, real(count), real(type), peer, real(comm), real(stream)));
  }
  NcclResult all_gather(const std::byte* from, std::byte* to, std::int64_t count, NcclType type,
                        NcclComm comm, Stream stream) override {
    return ours(all_gather_(from, to, real(count), real(type), real(comm), real(stream)));
  }
  NcclResult reduce_scatter(const std::byte* from, std::byte* to, std::int64_t count, NcclType type,
                            NcclOp op, NcclComm comm, Stream stream) override {
    return ours(
        reduce_scatter_(from, to, real(count), real(type), real(op), real(comm), real(stream)));
  }
  NcclResult all_reduce(const std::byte* from, std::byte* to, std::int64_t count, NcclType type,
                        NcclOp op, NcclComm comm, Stream stream) override {
    return ours(all_reduce_(from, to, real(count), real(type), real(op), real(comm), real(stream)));
  }
  NcclResult all_to_all(const std::byte* from, std::byte* to, std::int64_t count, NcclType type,
                        NcclComm comm, Stream stream) override {
    if (all_to_all_ == nullptr) return NcclResult::InvalidUsage;
    return ours(all_to_all_(from, to, real(count), real(type), real(comm), real(stream)));
  }

 private:
  template <class Function>
  void find(Function*& function, const char* name, int since) {
    if (version_ < since) return;
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
    if (function != nullptr) return;
    std::string version = version_ == 0 ? "" : ", NCCL " + version_text(version_);
    throw BackendError("NCCL", fmt::format("dlsym(\"{}\")", name),
                       fmt::format("not in {}{}", file_, version), -1);
  }

  // Tries the file that the user names; else what the system finds, then the library found next to
  // nccl.h when this was built. Never closed: NCCL has its own threads, and registers functions to
  // run at exit.
  void open() {
    std::vector<std::string> files{"libnccl.so.2"};
#ifdef RESHARD_NCCL_FILE
    files.push_back(RESHARD_NCCL_FILE);
#endif
    if (const char* named = std::getenv("RESHARD_NCCL_LIBRARY")) files = {named};
    std::string why;
    for (const std::string& file : files) {
      file_ = file;
      library_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library_ != nullptr) return;
      const char* text = ::dlerror();
      if (why.empty() && text != nullptr) why = text;
    }
    throw BackendError("system", fmt::format("dlopen(\"{}\")", files[0]), why, -1);
  }

  // Finds the library by NCCL's soname, wherever the file is. RESHARD_NCCL_LIBRARY may name another
  // library that contains NCCL.
  void find_loaded() {
    const char* named = std::getenv("RESHARD_NCCL_LIBRARY");
    file_ = named == nullptr ? "libnccl.so.2" : named;
    library_ = ::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library_ == nullptr)
      throw BackendError("system", fmt::format("dlopen(\"{}\", RTLD_NOLOAD)", file_),
                         "this process has not loaded it, and a communicator works only with the "
                         "library that created it; set RESHARD_NCCL_LIBRARY to that library",
                         -1);
  }

  void find_all() {
    find(get_error_string_, "ncclGetErrorString", 0);
    find(get_last_error_, "ncclGetLastError", 0);
    find(get_unique_id_, "ncclGetUniqueId", 0);
    find(init_rank_, "ncclCommInitRankConfig", 0);
    find(split_, "ncclCommSplit", kNcclSplit);
    find(finalize_, "ncclCommFinalize", 0);
    find(destroy_, "ncclCommDestroy", 0);
    find(abort_, "ncclCommAbort", 0);
    find(get_async_error_, "ncclCommGetAsyncError", 0);
    find(count_, "ncclCommCount", 0);
    find(user_rank_, "ncclCommUserRank", 0);
    find(device_, "ncclCommCuDevice", 0);
    find(group_start_, "ncclGroupStart", 0);
    find(group_end_, "ncclGroupEnd", 0);
    find(send_, "ncclSend", 0);
    find(recv_, "ncclRecv", 0);
    find(all_gather_, "ncclAllGather", 0);
    find(reduce_scatter_, "ncclReduceScatter", 0);
    find(all_reduce_, "ncclAllReduce", 0);
    find(all_to_all_, "ncclAlltoAll", kNcclAllToAll);
  }

  // Non-blocking, with nothing shared with a parent. NCCL reads the fields that `size` covers and
  // uses its own defaults for the rest, so an older library must not be given fields that it does
  // not know.
  ncclConfig_t configuration(int most_blocks) const {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (most_blocks > 0 && version_ >= 21700) config.maxCTAs = most_blocks;
    if (version_ >= kNcclSplit) config.splitShare = 0;
    config.version = static_cast<unsigned>(std::min(version_, NCCL_VERSION_CODE));
    config.size = version_ < 21700        ? offsetof(ncclConfig_t, cgaClusterSize)
                  : version_ < kNcclSplit ? offsetof(ncclConfig_t, splitShare)
                                          : offsetof(ncclConfig_t, trafficClass);
    return config;
  }

  std::string file_;
  void* library_ = nullptr;
  int version_ = 0;
  decltype(::ncclGetVersion)* get_version_ = nullptr;
  decltype(::ncclGetErrorString)* get_error_string_ = nullptr;
  decltype(::ncclGetLastError)* get_last_error_ = nullptr;
  decltype(::ncclGetUniqueId)* get_unique_id_ = nullptr;
  decltype(::ncclCommInitRankConfig)* init_rank_ = nullptr;
  decltype(::ncclCommSplit)* split_ = nullptr;
  decltype(::ncclCommFinalize)* finalize_ = nullptr;
  decltype(::ncclCommDestroy)* destroy_ = nullptr;
  decltype(::ncclCommAbort)* abort_ = nullptr;
  decltype(::ncclCommGetAsyncError)* get_async_error_ = nullptr;
  decltype(::ncclCommCount)* count_ = nullptr;
  decltype(::ncclCommUserRank)* user_rank_ = nullptr;
  decltype(::ncclCommCuDevice)* device_ = nullptr;
  decltype(::ncclGroupStart)* group_start_ = nullptr;
  decltype(::ncclGroupEnd)* group_end_ = nullptr;
  decltype(::ncclSend)* send_ = nullptr;
  decltype(::ncclRecv)* recv_ = nullptr;
  decltype(::ncclAllGather)* all_gather_ = nullptr;
  decltype(::ncclReduceScatter)* reduce_scatter_ = nullptr;
  decltype(::ncclAllReduce)* all_reduce_ = nullptr;
#if NCCL_VERSION_CODE >= 22800
  decltype(::ncclAlltoAll)* all_to_all_ = nullptr;
#else
  ncclResult_t (*all_to_all_)(const void*, void*, std::size_t, ncclDataType_t, ncclComm_t,
                              cudaStream_t) = nullptr;
#endif
};

}  // namespace

std::unique_ptr<NcclApi> open_nccl() { return std::make_unique<NcclLibrary>(false); }

std::unique_ptr<NcclApi> loaded_nccl() { return std::make_unique<NcclLibrary>(true); }

}  // namespace reshard::backends::nccl
