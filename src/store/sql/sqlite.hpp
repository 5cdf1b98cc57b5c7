#pragma once

#include "store/sql/database.hpp"

namespace berth::store {

// Opens the file at `path`, creates it if it is missing, and migrates it.
//
// One thread writes, with group commit: all waiting jobs go into one transaction, each in its own
// savepoint, and share one disk sync. `readers` threads read snapshots (WAL), so they never wait
// for the writer. Destruction finishes accepted jobs.
Result<std::unique_ptr<Database>> open_sqlite(const std::string& path, unsigned readers);

}  // namespace berth::store
