#pragma once

#include "store/sql/database.hpp"

namespace berth::store {

// Connects to the database that `url` names and migrates it, once, however many servers start
// together.
//
// A pool of `connections` threads, each with a connection of its own. Writes are serializable, so a
// work sees what it would see on SQLite, where writers follow each other; reads are one snapshot.
// What PostgreSQL asks to repeat is repeated, and a lost connection is made anew, both within a
// deadline for each job. Destruction finishes what was accepted.
Result<std::unique_ptr<Database>> open_postgres(const std::string& url, unsigned connections);

}  // namespace berth::store
