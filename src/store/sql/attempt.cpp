#include "store/sql/attempt.hpp"

#include <algorithm>
#include <exception>

namespace berth::store {
namespace {

bool holds_nul(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && text->contains('\0');
}

}  // namespace

Result<Rows> Attempt::run(std::string_view sql, std::span<const Value> parameters) {
  if (failure_) return std::unexpected(*failure_);
  // PostgreSQL's text ends at a NUL. Both engines reject such text instead of truncating it.
  Result<Rows> rows = std::ranges::any_of(parameters, holds_nul)
                          ? fail(Errc::validation_failed, "a text with a NUL byte cannot be stored",
                                 "remove the character U+0000")
                          : execute(sql, parameters);
  if (!rows) failure_ = rows.error();
  return rows;
}

Result<> Attempt::perform(Database::Work& work) {
  Result<> result;
  try {
    result = work(*this);
  } catch (const std::exception& thrown) {
    return fail(Errc::bug, std::string{"a transaction threw: "} + thrown.what());
  }
  if (result && failure_) return std::unexpected(*failure_);
  return result;
}

}  // namespace berth::store
