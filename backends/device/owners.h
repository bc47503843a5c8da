// SPDX-License-Identifier: BSD-3-Clause
// Owners that free their device memory, stream or event. The device must outlive them.
#pragma once

#include <utility>

#include "backends/device/device.h"

namespace reshard::backends {

// Allocates nothing if `bytes` is 0.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::int64_t bytes)
      : device_(&device), data_(bytes > 0 ? device.allocate(bytes) : nullptr), bytes_(bytes) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, std::int64_t{0})) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_ != nullptr) device_->release(data_);
  }
  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  // Leaves the memory allocated until the process ends: on a device that does not respond, release
  // would wait for it.
  void abandon() { data_ = nullptr; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class StreamOwner {
 public:
  explicit StreamOwner(Device& device) : device_(&device), stream_(device.create_stream()) {}
  StreamOwner(StreamOwner&& other) noexcept
      : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
  StreamOwner& operator=(StreamOwner&&) = delete;
  ~StreamOwner() {
    if (stream_ != nullptr) device_->destroy(stream_);
  }
  Stream get() const { return stream_; }

 private:
  Device* device_;
  Stream stream_;
};

class EventOwner {
 public:
  explicit EventOwner(Device& device) : device_(&device), event_(device.create_event()) {}
  EventOwner(EventOwner&& other) noexcept
      : device_(other.device_), event_(std::exchange(other.event_, nullptr)) {}
  EventOwner& operator=(EventOwner&&) = delete;
  ~EventOwner() {
    if (event_ != nullptr) device_->destroy(event_);
  }
  Event get() const { return event_; }

 private:
  Device* device_;
  Event event_;
};

}  // namespace reshard::backends
