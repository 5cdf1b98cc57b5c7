#pragma once

#include "store/sql/database.hpp"

#include <optional>

namespace berth::store {

// One run of a work inside a transaction. PostgreSQL lets a transaction in which a statement failed
// only be rolled back, so SQLite is held to the same: after a failed statement every other one
// fails alike, and a work that passes over the failure does not succeed.
class Attempt : public Session {
 public:
  Result<Rows> run(std::string_view sql, std::span<const Value> parameters) final;
  // The error of the work, or of the statement that the work passed over. An exception of the work
  // is a bug that must not take the database's thread with it.
  Result<> perform(Database::Work& work);

 private:
  virtual Result<Rows> execute(std::string_view sql, std::span<const Value> parameters) = 0;

  std::optional<Error> failure_;
};

}  // namespace berth::store
