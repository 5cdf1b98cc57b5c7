#pragma once

#include "store/sql/database.hpp"

namespace berth::store {

// Connects to the database that `url` names and migrates it, only once even if several servers
// start together.
//
// A pool of `connections` threads, each with its own connection. Writes are serializable, so a work
// sees what it would see on SQLite, where writers run one after another; reads use one snapshot.
// Transactions that PostgreSQL asks to retry are retried, and lost connections are reopened, both
// within a deadline per job. Destruction finishes accepted jobs.
Result<std::unique_ptr<Database>> open_postgres(const std::string& url, unsigned connections);

}  // namespace berth::store
