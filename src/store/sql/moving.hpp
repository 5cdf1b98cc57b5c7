#pragma once

#include "core/lifecycle.hpp"
#include "core/rows/plugin.hpp"
#include "store/sql/mapping.hpp"

// Rows with a life cycle: they move by the tables of core, and only from the state that was read.
namespace berth::store {

// "'queued', 'starting', 'running'": the non-final states, for SQL. Partial indexes in the
// migrations spell the same list in the same order.
template <DescribedEnum State>
const std::string& unfinished_states() {
  static const std::string list = [] {
    std::string text;
    for (const State state : all<State>()) {
      if (core::is_final(state)) continue;
      text += (text.empty() ? "'" : ", '") + std::string{name_of(state)} + "'";
    }
    return text;
  }();
  return list;
}

// "(status = 'queued' or status = 'starting')": the same as a condition, spelled like the partial
// indexes of unfinished rows. With an `in` list, SQLite would build a table on every row write to
// check whether the row belongs in such an index.
template <DescribedEnum State>
const std::string& is_unfinished() {
  static const std::string condition = [] {
    std::string text;
    for (const State state : all<State>()) {
      if (core::is_final(state)) continue;
      text += (text.empty() ? "(status = '" : " or status = '") + std::string{name_of(state)} + "'";
    }
    return text + ")";
  }();
  return condition;
}

namespace moving_detail {

std::unexpected<Error> outrun(std::string_view noun, const std::string& id);
std::unexpected<Error> was_fixed(std::string_view noun, const std::string& id,
                                 std::string_view column);

// An update skips fixed columns, so a change to one would be silently lost. Builds with assertions
// check this. A reference that the store itself has cleared is not a change.
template <class T>
Result<> expect_fixed([[maybe_unused]] Session& session, [[maybe_unused]] const Stored<T>& row,
                      [[maybe_unused]] std::string_view noun) {
#ifndef NDEBUG
  if constexpr (!fixed_columns_of<T>.empty()) {
    BERTH_TRY(const auto kept,
              select_one<T>(session, "where id = $1 and version = $2", row.value.id, row.version));
    if (!kept) return {};
    std::string_view changed;
    boost::mp11::mp_for_each<MembersOf<T>>([&](auto member) {
      if (!mapping_detail::is_word_in(fixed_columns_of<T>, member.name)) return;
      const Value before = to_value(kept->value.*member.pointer);
      if (std::holds_alternative<std::monostate>(before)) return;
      if (before != to_value(row.value.*member.pointer)) changed = member.name;
    });
    if (!changed.empty()) return was_fixed(noun, row.value.id.str(), changed);
  }
#endif
  return {};
}

}  // namespace moving_detail

// Writes a row as given; `conflict` when it changed since it was read.
template <class T>
Result<Stored<T>> rewrite(Session& session, Stored<T> row, std::string_view noun) {
  BERTH_DO(moving_detail::expect_fixed(session, row, noun));
  BERTH_TRY(const bool written, update(session, row));
  if (!written) return moving_detail::outrun(noun, row.value.id.str());
  ++row.version;
  return row;
}

// Writes a row in the state that follows on this event. `conflict`, and nothing written, when none
// follows, or when the row no longer has the state and version that were read.
template <class T, class Event>
Result<Stored<T>> move_row(Session& session, Stored<T> row, Event event, std::string_view noun) {
  static const std::string sql =
      update_of<T>() + " and status = $" + std::to_string(rewritten_count_of<T> + 2);
  const auto from = row.value.status;
  const auto next = core::advance(from, event);
  if (!next) {
    return fail(next.error().code,
                std::string{noun} + " " + row.value.id.str() + ": " + next.error().message);
  }
  BERTH_DO(moving_detail::expect_fixed(session, row, noun));
  row.value.status = *next;
  std::vector<Value> values = update_values(row);
  values.push_back(to_value(from));
  BERTH_TRY(const Rows written, session.run(sql, values));
  if (written.changed != 1) return moving_detail::outrun(noun, row.value.id.str());
  ++row.version;
  return row;
}

}  // namespace berth::store
