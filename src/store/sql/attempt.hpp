#pragma once

#include "store/sql/database.hpp"

#include <optional>

namespace berth::store {

// One execution of a work inside a transaction. After a failed statement, PostgreSQL only allows a
// rollback, so SQLite is held to the same rule: every later statement fails too, and a work that
// ignores the failure does not succeed.
class Attempt : public Session {
 public:
  Result<Rows> run(std::string_view sql, std::span<const Value> parameters) final;
  // Returns the error of the work, or of a statement whose failure the work ignored. An exception
  // in the work is a bug that must not end the database's thread.
  Result<> perform(Database::Work& work);

 private:
  virtual Result<Rows> execute(std::string_view sql, std::span<const Value> parameters) = 0;

  std::optional<Error> failure_;
};

}  // namespace berth::store
