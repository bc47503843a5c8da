// SPDX-License-Identifier: BSD-3-Clause
//
// What reshard.hpp is built on: the errors that the codes of reshard.h become, a view of a caller's
// memory, and the conversion of the library's handles, results and texts to values.
#pragma once
#ifndef RESHARD_RESHARD_BASE_HPP
#define RESHARD_RESHARD_BASE_HPP

#include <reshard/reshard.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace reshard {

// The base class of all errors of reshard.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// An argument, text or limit is wrong or cannot be met.
struct InputError : Error {
  using Error::Error;
};
// A bug in reshard.
struct CheckFailure : Error {
  using Error::Error;
};
// The system or the caller's exchange failed.
struct BackendError : Error {
  using Error::Error;
};
// A check that a command was asked to make did not hold; `text` is what the command printed.
struct Findings : Error {
  Findings(const std::string& what, std::string printed) : Error(what), text(std::move(printed)) {}
  std::string text;
};

// Contiguous elements in memory owned by someone else: std::span<T>, before C++20.
template <class T>
class View {
  // Accepts containers of T, const or not, but not of classes derived from T, which are larger.
  template <class Container>
  using IfFits = std::enable_if_t<
      std::is_convertible_v<
          std::remove_pointer_t<decltype(std::data(std::declval<Container&>()))> (*)[], T (*)[]> &&
      !std::is_same_v<std::decay_t<Container>, View>>;

 public:
  View() = default;
  View(T* data, std::size_t size) : data_(data), size_(size) {}
  template <class Container, class = IfFits<Container>>
  View(Container&& of) : data_(std::data(of)), size_(std::size(of)) {}

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {

inline void check(std::int32_t code) {
  if (code == RESHARD_OK) return;
  std::string what = reshard_last_error();
  if (code == RESHARD_INPUT_ERROR) throw InputError(what);
  if (code == RESHARD_BACKEND_ERROR) throw BackendError(what);
  throw CheckFailure(what);
}

// The handle that `create(&handle)` makes; freed with `free`.
template <class Handle, class Create>
std::shared_ptr<const Handle> made(Create&& create, void (*free)(Handle*)) {
  Handle* handle = nullptr;
  check(create(&handle));
  return {handle, free};
}

// The result that `ask(&result)` fills.
template <class Result, class Ask>
Result asked(Ask&& ask) {
  Result result = RESHARD_INIT(Result);
  check(ask(&result));
  return result;
}

// ask(0), ask(1), ... ask(count - 1).
template <class Ask>
auto listed(std::int32_t count, Ask&& ask) {
  std::vector<decltype(ask(std::int32_t{0}))> out;
  out.reserve(static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i) out.push_back(ask(i));
  return out;
}

// Copies and frees a text of the library; null is "".
inline std::string taken(char* text, std::int64_t bytes) {
  std::unique_ptr<char, void (*)(char*)> owner(text, reshard_text_free);
  return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(bytes));
}

// NULL, for an option that is not given, if the text is "".
inline const char* given(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace detail

}  // namespace reshard
#endif  // RESHARD_RESHARD_BASE_HPP
