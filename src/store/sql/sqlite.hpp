#pragma once

#include "store/sql/database.hpp"

namespace berth::store {

// Opens the file at `path`, makes it when it is missing, and migrates it.
//
// One thread writes, with group commit: all jobs that wait go into one transaction, each in a
// savepoint of its own, and share one sync of the disk. `readers` threads read snapshots (WAL), so
// they never wait for the writer. Destruction finishes what was accepted.
Result<std::unique_ptr<Database>> open_sqlite(const std::string& path, unsigned readers);

}  // namespace berth::store
