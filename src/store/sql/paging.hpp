#pragma once

#include "store/sql/mapping.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>

// Lists by key: a page starts after the last row of the previous page, so the thousandth page costs
// the same as the first.
namespace berth::store {

// The conditions of a list, one equality per given filter. Every combination is a separate SQL text
// that an index can serve, which `($1 = '' or driver = $1)` would prevent.
class Filter {
 public:
  Filter() = default;
  template <class F>
  Filter& equal(std::string_view column, const F& field) {
    values_.push_back(to_value(field));
    return also(std::string{column} + " = $" + std::to_string(values_.size()));
  }
  template <class F>
  Filter& equal_if(std::string_view column, const std::optional<F>& field) {
    return field ? equal(column, *field) : *this;
  }
  Filter& equal_if(std::string_view column, const std::string& text) {
    return text.empty() ? *this : equal(column, text);
  }
  template <class F>
  Filter& at_least(std::string_view column, const F& field) {
    values_.push_back(to_value(field));
    return also(std::string{column} + " >= $" + std::to_string(values_.size()));
  }
  // One of the columns contains the text, case-insensitive.
  Filter& contains(std::initializer_list<std::string_view> columns, std::string_view text);
  // A condition without a parameter.
  Filter& also(std::string_view condition) {
    text_ += (text_.empty() ? "" : " and ") + std::string{condition};
    return *this;
  }

  const std::string& text() const { return text_; }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::string text_;
  std::vector<Value> values_;
};

namespace paging_detail {

// Sorts before every row, in descending order.
inline constexpr Time latest{std::numeric_limits<std::int64_t>::max()};

// "where ... and (created_at, id) < ($2, $3) order by created_at desc, id desc limit $4"
std::string tail(const Filter& filter, std::string_view time_column);

template <class T, class... M>
std::string_view name_of_member(Time T::* wanted, boost::mp11::mp_list<M...> /*members*/) {
  std::string_view name;
  const auto look = [&]<class Member>(Member /*member*/) {
    if constexpr (std::same_as<std::remove_cv_t<decltype(Member::pointer)>, Time T::*>) {
      if (Member::pointer == wanted) name = Member::name;
    }
  };
  (look(M{}), ...);
  return name;
}

}  // namespace paging_detail

// select_page(session, Filter{}.equal("company_id", company), &Agent::created_at, page): ordered by
// that time and the id, descending. For a struct that inherits its time: select_page<Lease,
// LeaseRecord>(...).
template <class Owner, class T = Owner>
Result<Page<T>> select_page(Session& session, const Filter& filter, Time Owner::* at,
                            const PageRequest& request) {
  const std::int64_t limit = std::clamp<std::int64_t>(request.limit, 1, core::page_limit_max);
  std::vector<Value> values = filter.values();
  values.push_back(to_value(request.after ? request.after->at : paging_detail::latest));
  values.push_back(to_value(request.after ? request.after->id : std::string{}));
  values.push_back(to_value(limit + 1));  // one extra row shows whether there is another page
  const std::string tail =
      paging_detail::tail(filter, paging_detail::name_of_member(at, MembersOf<Owner>{}));
  Page<T> page;
  BERTH_TRY(page.rows, select_bound<T>(session, tail, values));
  if (static_cast<std::int64_t>(page.rows.size()) > limit) {
    page.rows.pop_back();
    const T& last = page.rows.back().value;
    page.next = core::PageKey{last.*at, last.id.str()};
  }
  return page;
}

}  // namespace berth::store
