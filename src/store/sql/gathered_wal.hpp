#pragma once

#include "base/result.hpp"

namespace berth::store {

// The name of a SQLite VFS for the writing connection. SQLite passes every page of a transaction to
// the kernel in two writes, and our transactions touch about twenty pages. This VFS collects the
// pages of the write-ahead log and writes them at once before the flush. Only for `synchronous =
// full`, where SQLite flushes the log before any reader may look for a commit in it.
Result<const char*> gathered_wal();

}  // namespace berth::store
