#include "store/paging.hpp"

namespace berth::store::paging_detail {

std::string tail(const Filter& filter, std::string_view time_column) {
  const std::string time{time_column};
  const std::size_t given = filter.values().size();
  const auto place = [&](std::size_t nth) { return "$" + std::to_string(given + nth); };
  const std::string conditions = filter.text().empty() ? "" : filter.text() + " and ";
  return "where " + conditions + "(" + time + ", id) < (" + place(1) + ", " + place(2) +
         ") order by " + time + " desc, id desc limit " + place(3);
}

}  // namespace berth::store::paging_detail
