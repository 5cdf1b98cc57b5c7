#pragma once

#include "base/time.hpp"
#include "store/sql/database.hpp"

#include <span>
#include <string_view>

// How a database reaches the schema that this program knows: forward only, one step at a time.
namespace berth::store {

struct Migration {
  std::int64_t number;
  std::string_view name;
  std::string_view sql;  // several statements, each ended by a semicolon at the end of a line
};

// The migrations of this program, in ascending order.
std::span<const Migration> migrations();

// Applies and records the first migration that the database lacks; false when it has them all.
// store_newer when the database has an unknown one. The transaction of `session` must exclude other
// servers, and `database` names the database in messages.
Result<bool> migrate_one(Session& session, EngineKind engine, std::span<const Migration> known,
                         Time now, const std::string& database);

}  // namespace berth::store
