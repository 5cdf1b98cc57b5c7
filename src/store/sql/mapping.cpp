#include "store/sql/mapping.hpp"

namespace berth::store::mapping_detail {

std::unexpected<Error> misread(std::string_view table, std::string_view column) {
  return fail(
      Errc::store_corrupt,
      std::string{table} + "." + std::string{column} + " holds a value that Berth did not write",
      "restore the database from a backup, or correct the row by hand");
}

Result<std::int64_t> to_integer(const Value& value, std::string_view table,
                                std::string_view column) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return misread(table, column);
  std::int64_t number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc{} || stop != end) return misread(table, column);
  return number;
}

Result<std::string> to_text(const Value& value, std::string_view table, std::string_view column) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return misread(table, column);
}

std::string places(std::size_t count) {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i) text += (i > 1 ? ", $" : "$") + std::to_string(i);
  return text;
}

}  // namespace berth::store::mapping_detail
