// SPDX-License-Identifier: BSD-3-Clause
// The boundary of the C API: exceptions become a code and a text, structs of any version are
// converted to and from ours, and null pointers become input errors.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "tools/capi/reshard.h"

namespace reshard::capi {

// A check that the caller asked for did not hold; `what` describes it.
struct NotHeld : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Call while handling an exception: keeps its text for last_error_text and returns its code.
// Neither allocates nor throws.
std::int32_t code_of_current_exception() noexcept;

// The text of this thread's last failure; "" before the first.
const char* last_error_text() noexcept;

// Runs the body of an API function.
template <class Body>
std::int32_t guarded(Body&& body) noexcept {
  try {
    body();
    return RESHARD_OK;
  } catch (...) {
    return code_of_current_exception();
  }
}

template <class T>
T& given(T* pointer, std::string_view name) {
  if (pointer == nullptr) throw InputError(std::string(name) + ": expected a pointer, found NULL");
  return *pointer;
}

inline std::string text_of(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

// No struct will ever be larger than this, so a larger struct_size was never initialized.
inline constexpr std::uint32_t kMaxStructSize = 4096;

// Throws InputError unless the caller's struct is at least `least` bytes, the size in version 1.
void require_struct_size(std::uint32_t size, std::size_t least, const char* name);

// For fields reserved for later versions, which must be able to recognise that a caller set them.
inline void require_zero(std::uint32_t reserved, const char* name) {
  if (reserved != 0)
    throw InputError(std::string(name) + ": expected 0, found " + std::to_string(reserved));
}

// The size in version 1, for structs that have grown since.
template <class T>
inline constexpr std::size_t kLeastSize = sizeof(T);
template <>
inline constexpr std::size_t kLeastSize<reshard_request_texts> = offsetof(reshard_request_texts,
                                                                          name);
template <>
inline constexpr std::size_t kLeastSize<reshard_plan_options> = offsetof(reshard_plan_options,
                                                                         extra_memory_bytes);
template <>
inline constexpr std::size_t kLeastSize<reshard_run> = offsetof(reshard_run, tensors);
template <>
inline constexpr std::size_t kLeastSize<reshard_plan_facts> = offsetof(reshard_plan_facts,
                                                                       tensor_count);
template <>
inline constexpr std::size_t kLeastSize<reshard_buffer> = offsetof(reshard_buffer, tensor);
template <>
inline constexpr std::size_t kLeastSize<reshard_operation> = offsetof(reshard_operation, input_dim);

// The caller's struct as ours: fields missing from it are 0; fields that we do not know must be 0.
template <class T>
T taken(const T* from, const char* name, std::size_t least = kLeastSize<T>) {
  std::uint32_t size = given(from, name).struct_size;
  require_struct_size(size, least, name);
  T out{};
  std::memcpy(&out, from, size < sizeof(T) ? size : sizeof(T));
  const char* bytes = reinterpret_cast<const char*>(from);
  for (std::size_t i = sizeof(T); i < size; ++i)
    if (bytes[i] != 0)
      throw InputError(std::string(name) + ": sets a field unknown to this version of reshard");
  return out;
}

// The i-th of an array of the caller's structs, which all have the struct_size of the first.
template <class T>
T taken_at(const T* first, std::size_t i, const char* name) {
  std::uint32_t size = given(first, name).struct_size;
  T out = taken(reinterpret_cast<const T*>(reinterpret_cast<const char*>(first) + i * size), name);
  require_zero(out.reserved, (std::string(name) + ".reserved").c_str());
  if (out.struct_size != size)
    throw InputError(std::string(name) + ": expected the same struct_size in all, found " +
                     std::to_string(out.struct_size));
  return out;
}

// Writes our result to the caller's struct; fields that we do not know are set to 0.
template <class T>
void give(T value, T* to, const char* name, std::size_t least = kLeastSize<T>) {
  std::uint32_t size = given(to, name).struct_size;
  require_struct_size(size, least, name);
  value.struct_size = size;
  if (size > sizeof(T)) std::memset(reinterpret_cast<char*>(to) + sizeof(T), 0, size - sizeof(T));
  std::memcpy(to, &value, size < sizeof(T) ? size : sizeof(T));
}

// Stores a copy of the text, to be freed with reshard_text_free.
void give_text(const std::string& from, char** text, std::int64_t* text_bytes);

// `index` if it is below `count`; else throws InputError.
std::size_t checked_index(std::int64_t index, std::size_t count, const char* name);

}  // namespace reshard::capi
