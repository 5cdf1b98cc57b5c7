#include "store/sql/paging.hpp"

namespace berth::store {

Filter& Filter::contains(std::initializer_list<std::string_view> columns, std::string_view text) {
  std::string pattern = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '!') pattern += '!';
    pattern += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  values_.emplace_back(pattern + "%");
  std::string any;
  for (const std::string_view column : columns) {
    any += (any.empty() ? "(" : " or ") + ("lower(" + std::string{column} + ") like $") +
           std::to_string(values_.size()) + " escape '!'";
  }
  return also(any + ")");
}

namespace paging_detail {

std::string tail(const Filter& filter, std::string_view time_column) {
  const std::string time{time_column};
  const std::size_t given = filter.values().size();
  const auto place = [&](std::size_t nth) { return "$" + std::to_string(given + nth); };
  const std::string conditions = filter.text().empty() ? "" : filter.text() + " and ";
  return "where " + conditions + "(" + time + ", id) < (" + place(1) + ", " + place(2) +
         ") order by " + time + " desc, id desc limit " + place(3);
}

}  // namespace paging_detail
}  // namespace berth::store
