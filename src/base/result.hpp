#pragma once

#include "base/errc.hpp"

#include <expected>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth {

// One invalid part of a given value, addressed by JSON pointer ("" is the whole value).
struct Issue {
  std::string path;
  std::string message;

  friend bool operator==(const Issue&, const Issue&) = default;
};

// Why an operation failed: for a program (code), a user (message) and the person who fixes it
// (remedy).
struct Error {
  Errc code = Errc::bug;
  std::string message =
      "no result";          // one sentence that names the object: "secret db-password: is disabled"
  std::string remedy = {};  // what to do about it, if anything can be done
  std::vector<Issue> issues =
      {};  // invalid fields, so that a form can show each issue at its field
  std::map<std::string, std::vector<std::string>> facts = {};  // lists that a program branches on

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Errc code, std::string message, std::string remedy = {}) {
  return std::unexpected(Error{code, std::move(message), std::move(remedy)});
}

}  // namespace berth

#define BERTH_JOIN_TOKENS(a, b) a##b
#define BERTH_JOIN(a, b) BERTH_JOIN_TOKENS(a, b)
#define BERTH_FRESH(prefix) BERTH_JOIN(prefix, __LINE__)

#define BERTH_TRY_AS(slot, leave, decl, ...)                 \
  auto slot = (__VA_ARGS__);                                 \
  if (!slot) leave std::unexpected(std::move(slot).error()); \
  decl = *std::move(slot)

#define BERTH_DO_AS(slot, leave, ...) \
  if (auto slot = (__VA_ARGS__); !slot) leave std::unexpected(std::move(slot).error())

// BERTH_TRY(const Run run, store.run(id)): binds the value or returns the error.
#define BERTH_TRY(decl, ...) BERTH_TRY_AS(BERTH_FRESH(try_), return, decl, __VA_ARGS__)
#define BERTH_CO_TRY(decl, ...) BERTH_TRY_AS(BERTH_FRESH(try_), co_return, decl, __VA_ARGS__)
// BERTH_DO(step()): the same for steps without a value.
#define BERTH_DO(...) BERTH_DO_AS(BERTH_FRESH(try_), return, __VA_ARGS__)
#define BERTH_CO_DO(...) BERTH_DO_AS(BERTH_FRESH(try_), co_return, __VA_ARGS__)
