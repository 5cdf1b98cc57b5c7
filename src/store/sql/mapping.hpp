#pragma once

#include "base/json/json.hpp"
#include "core/page.hpp"
#include "store/sql/database.hpp"

#include <charconv>

// Maps between described structs and rows: a column has the name of its field, so it is spelled
// once.
namespace berth::store {

using core::Page;
using core::PageRequest;
using core::Stored;

// The table of a struct. Specialized beside the verbs of each topic.
template <class T>
inline constexpr std::string_view table_of = "";

// Columns that never change, separated by spaces. Updates skip them, and so also the indexes that
// contain only such columns. Specialized for rows that are updated often.
template <class T>
inline constexpr std::string_view fixed_columns_of = "";

namespace mapping_detail {

std::unexpected<Error> misread(std::string_view table, std::string_view column);
Result<std::int64_t> to_integer(const Value& value, std::string_view table,
                                std::string_view column);
Result<std::string> to_text(const Value& value, std::string_view table, std::string_view column);
// "$1, $2, $3" for 3.
std::string places(std::size_t count);

}  // namespace mapping_detail

template <class F>
Value to_value(const F& field) {
  using namespace json_detail;
  if constexpr (is_a<F, std::optional>) {
    return field ? to_value(*field) : Value{};
  } else if constexpr (std::integral<F>) {
    return Value{static_cast<std::int64_t>(field)};
  } else if constexpr (std::same_as<F, Time>) {
    return Value{field.ms};
  } else if constexpr (is_id<F>) {
    return Value{field.str()};
  } else if constexpr (DescribedEnum<F>) {
    return Value{std::string{name_of(field)}};
  } else if constexpr (std::convertible_to<const F&, std::string_view>) {
    return Value{std::string{std::string_view{field}}};
  } else {
    return Value{encode_text(field)};
  }
}

template <class F>
Result<F> from_value(const Value& value, std::string_view table, std::string_view column) {
  using namespace json_detail;
  using namespace mapping_detail;
  if constexpr (is_a<F, std::optional>) {
    if (std::holds_alternative<std::monostate>(value)) return F{};
    BERTH_TRY(typename F::value_type inner,
              from_value<typename F::value_type>(value, table, column));
    return F{std::move(inner)};
  } else if constexpr (std::same_as<F, Time>) {
    BERTH_TRY(const std::int64_t ms, to_integer(value, table, column));
    return Time{ms};
  } else if constexpr (std::integral<F>) {
    BERTH_TRY(const std::int64_t number, to_integer(value, table, column));
    return static_cast<F>(number);
  } else {
    const auto* held = std::get_if<std::string>(&value);
    std::string made;
    if (held == nullptr) {
      BERTH_TRY(made, to_text(value, table, column));
    }
    const std::string_view text = held != nullptr ? *held : made;
    if constexpr (std::same_as<F, std::string>) {
      return std::string{text};
    } else if constexpr (is_id<F>) {
      Result<F> id = F::parse(text);
      return id ? std::move(id) : misread(table, column);
    } else if constexpr (DescribedEnum<F>) {
      const std::optional<F> parsed = parse_name<F>(text);
      return parsed ? Result<F>{*parsed} : misread(table, column);
    } else if constexpr (std::same_as<F, bj::object>) {
      Result<bj::value> parsed = parse_json(text);
      if (!parsed || !parsed->is_object()) return misread(table, column);
      return std::move(parsed->get_object());
    } else {
      Result<F> decoded = decode_text<F>(text, UnknownKeys::ignore);
      return decoded ? std::move(decoded) : misread(table, column);
    }
  }
}

namespace mapping_detail {

template <class... M>
std::string names(boost::mp11::mp_list<M...> /*members*/) {
  std::string text;
  ((text += (text.empty() ? "" : ", ") + std::string{M::name}), ...);
  return text;
}

template <class T, class... M>
std::vector<Value> values(const T& row, boost::mp11::mp_list<M...> /*members*/) {
  std::vector<Value> list;
  list.reserve(sizeof...(M) + 2);  // plus a version and a state
  (list.push_back(to_value(row.*M::pointer)), ...);
  return list;
}

constexpr bool is_word_in(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

template <class T>
struct Rewritten {
  template <class M>
  using fn = boost::mp11::mp_bool<!is_word_in(fixed_columns_of<T>, M::name)>;
};

// The members that an update writes, after the key.
template <class T>
using RewrittenOf = boost::mp11::mp_copy_if_q<MembersOf<T>, Rewritten<T>>;

template <class T, class... M>
Result<T> struct_from(const std::vector<Value>& row, boost::mp11::mp_list<M...> /*members*/) {
  if (row.size() < sizeof...(M)) return misread(table_of<T>, "*");
  std::size_t at = 0;
  std::tuple<Result<json_detail::FieldOf<T, M>>...> fields{
      from_value<json_detail::FieldOf<T, M>>(row[at++], table_of<T>, M::name)...};
  std::optional<Error> first;
  const auto note = [&](const auto& field) {
    if (!first && !field) first = field.error();
  };
  std::apply([&](const auto&... field) { (note(field), ...); }, fields);
  if (first) return std::unexpected(*std::move(first));
  return std::apply([](auto&&... field) { return T{*std::move(field)...}; }, std::move(fields));
}

}  // namespace mapping_detail

template <class T>
inline constexpr std::size_t count_of = boost::mp11::mp_size<MembersOf<T>>::value;

// "id, company_id, name, ...": the columns of a described struct, in the order of its fields.
template <class T>
const std::string& columns_of() {
  static const std::string text = mapping_detail::names(MembersOf<T>{});
  return text;
}

template <class T>
Result<T> from_row(const std::vector<Value>& row) {
  return mapping_detail::struct_from<T>(row, MembersOf<T>{});
}

// query(session, "update ... where id = $1", id): parameters of any mapped type.
template <class... P>
Result<Rows> query(Session& session, std::string_view sql, const P&... parameters) {
  const std::vector<Value> values{to_value(parameters)...};
  return session.run(sql, values);
}

// insert(session, environment): one row with version 1.
template <class T>
Result<> insert(Session& session, const T& row) {
  static const std::string sql = "insert into " + std::string{table_of<T>} + " (" +
                                 columns_of<T>() + ", version) values (" +
                                 mapping_detail::places(count_of<T>) + ", 1)";
  const std::vector<Value> values = mapping_detail::values(row, MembersOf<T>{});
  BERTH_DO(session.run(sql, values));
  return {};
}

// The rows that match a tail with these parameters; see select.
template <class T>
Result<std::vector<Stored<T>>> select_bound(Session& session, std::string_view tail,
                                            std::span<const Value> parameters) {
  static const std::string head =
      "select " + columns_of<T>() + ", version from " + std::string{table_of<T>} + " ";
  std::string sql;
  sql.reserve(head.size() + tail.size());
  sql.append(head).append(tail);
  BERTH_TRY(const Rows found, session.run(sql, parameters));
  std::vector<Stored<T>> list;
  list.reserve(found.rows.size());
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(T value, from_row<T>(row));
    BERTH_TRY(const std::int64_t version,
              mapping_detail::to_integer(row.back(), table_of<T>, "version"));
    list.push_back({std::move(value), version});
  }
  return list;
}

// select<Environment>(session, "where company_id = $1 order by id", company)
template <class T, class... P>
Result<std::vector<Stored<T>>> select(Session& session, std::string_view tail,
                                      const P&... parameters) {
  const std::vector<Value> values{to_value(parameters)...};
  return select_bound<T>(session, tail, values);
}

// For rows whose version is not needed.
template <class T>
std::vector<T> values_of(std::vector<Stored<T>> rows) {
  std::vector<T> list;
  list.reserve(rows.size());
  for (Stored<T>& row : rows) list.push_back(std::move(row.value));
  return list;
}

// The one matching row, if there is one.
template <class T, class... P>
Result<std::optional<Stored<T>>> select_one(Session& session, std::string_view tail,
                                            const P&... parameters) {
  BERTH_TRY(std::vector<Stored<T>> list, select<T>(session, tail, parameters...));
  if (list.empty()) return std::nullopt;
  return std::move(list.front());
}

// How many fields of a struct an update binds, including its key.
template <class T>
inline constexpr std::size_t rewritten_count_of =
    boost::mp11::mp_size<mapping_detail::RewrittenOf<T>>::value;

// "update ... set ... where id = $1 and version = $9" for a struct of eight fields.
template <class T>
const std::string& update_of() {
  static const std::string sql = [] {
    std::string text = "update " + std::string{table_of<T>} + " set ";
    std::size_t at = 0;
    boost::mp11::mp_for_each<mapping_detail::RewrittenOf<T>>([&](auto member) {
      ++at;
      if (at > 1) text += std::string{member.name} + " = $" + std::to_string(at) + ", ";
    });
    return text + "version = version + 1 where id = $1 and version = $" + std::to_string(at + 1);
  }();
  return sql;
}

// The parameters of update_of.
template <class T>
std::vector<Value> update_values(const Stored<T>& row) {
  std::vector<Value> values = mapping_detail::values(row.value, mapping_detail::RewrittenOf<T>{});
  values.emplace_back(row.version);
  return values;
}

// Writes every mutable field of a row if it still has the version that was read; false when another
// writer was faster. The table's key must be the struct's first field.
template <class T>
Result<bool> update(Session& session, const Stored<T>& row) {
  const std::vector<Value> values = update_values(row);
  BERTH_TRY(const Rows changed, session.run(update_of<T>(), values));
  return changed.changed == 1;
}

}  // namespace berth::store
