#pragma once

#include "base/result.hpp"

namespace berth::store {

// The name of a VFS of SQLite for the connection that writes. SQLite hands every page of a
// transaction to the kernel in two writes, and a transaction of ours touches twenty pages; here
// the write-ahead log gathers them and is written in one go before it is flushed. Only for
// `synchronous = full`, where SQLite flushes the log before anybody may look for a commit in it.
Result<const char*> gathered_wal();

}  // namespace berth::store
