#include "store/sql/gathered_wal.hpp"

#include <sqlite3.h>

#include <new>
#include <string>

namespace berth::store {
namespace {

// The functions below accept less than 128 KiB at a time.
constexpr std::size_t gathered_bytes_max = std::size_t{120} << 10;

// SQLite allocates this memory, followed by the file of the underlying VFS.
struct GatheredFile {
  sqlite3_file base;  // first: the only part SQLite knows
  std::string* pending;
  sqlite3_int64 begin;  // the file offset of `pending`
};

GatheredFile& ours(sqlite3_file* file) {
  return *reinterpret_cast<GatheredFile*>(file);
}

sqlite3_file* below(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<GatheredFile*>(file) + 1);
}

// Drops what cannot be written. SQLite gets the error, rolls the transaction back, and writes the
// next one at the same offset.
int write_pending(sqlite3_file* file) {
  std::string& pending = *ours(file).pending;
  if (pending.empty()) return SQLITE_OK;
  const int code = below(file)->pMethods->xWrite(
      below(file), pending.data(), static_cast<int>(pending.size()), ours(file).begin);
  pending.clear();
  return code;
}

int close(sqlite3_file* file) {
  const int written = write_pending(file);
  delete ours(file).pending;
  const int closed = below(file)->pMethods->xClose(below(file));
  return written != SQLITE_OK ? written : closed;
}

int read(sqlite3_file* file, void* bytes, int count, sqlite3_int64 at) {
  const int written = write_pending(file);
  if (written != SQLITE_OK) return written;
  return below(file)->pMethods->xRead(below(file), bytes, count, at);
}

int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
  GatheredFile& gathered = ours(file);
  const auto size = static_cast<sqlite3_int64>(gathered.pending->size());
  const bool follows = gathered.begin + size == at;
  if (!follows || gathered.pending->size() + static_cast<std::size_t>(count) > gathered_bytes_max) {
    const int written = write_pending(file);
    if (written != SQLITE_OK) return written;
  }
  if (gathered.pending->empty()) gathered.begin = at;
  try {
    gathered.pending->append(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
  return SQLITE_OK;
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  const int written = write_pending(file);
  if (written != SQLITE_OK) return written;
  return below(file)->pMethods->xTruncate(below(file), size);
}

int sync(sqlite3_file* file, int flags) {
  const int written = write_pending(file);
  if (written != SQLITE_OK) return written;
  return below(file)->pMethods->xSync(below(file), flags);
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  const int written = write_pending(file);
  if (written != SQLITE_OK) return written;
  return below(file)->pMethods->xFileSize(below(file), size);
}

int lock(sqlite3_file* file, int level) {
  return below(file)->pMethods->xLock(below(file), level);
}

int unlock(sqlite3_file* file, int level) {
  return below(file)->pMethods->xUnlock(below(file), level);
}

int check_reserved_lock(sqlite3_file* file, int* held) {
  return below(file)->pMethods->xCheckReservedLock(below(file), held);
}

int file_control(sqlite3_file* file, int operation, void* argument) {
  return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

int sector_size(sqlite3_file* file) {
  return below(file)->pMethods->xSectorSize(below(file));
}

int device_characteristics(sqlite3_file* file) {
  return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

// Version 1: the log file needs neither shared memory nor mapping.
constexpr sqlite3_io_methods methods{.iVersion = 1,
                                     .xClose = close,
                                     .xRead = read,
                                     .xWrite = write,
                                     .xTruncate = truncate,
                                     .xSync = sync,
                                     .xFileSize = file_size,
                                     .xLock = lock,
                                     .xUnlock = unlock,
                                     .xCheckReservedLock = check_reserved_lock,
                                     .xFileControl = file_control,
                                     .xSectorSize = sector_size,
                                     .xDeviceCharacteristics = device_characteristics,
                                     .xShmMap = nullptr,
                                     .xShmLock = nullptr,
                                     .xShmBarrier = nullptr,
                                     .xShmUnmap = nullptr,
                                     .xFetch = nullptr,
                                     .xUnfetch = nullptr};

int open(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  sqlite3_vfs* const system = sqlite3_vfs_find("unix");
  if ((flags & SQLITE_OPEN_WAL) == 0) return system->xOpen(system, name, file, flags, flags_out);
  file->pMethods = nullptr;
  auto* const pending = new (std::nothrow) std::string;
  if (pending == nullptr) return SQLITE_NOMEM;
  const int code = system->xOpen(system, name, below(file), flags, flags_out);
  if (code != SQLITE_OK) {
    delete pending;
    return code;
  }
  ours(file) = {.base = {.pMethods = &methods}, .pending = pending, .begin = 0};
  return SQLITE_OK;
}

Result<const char*> register_once() {
  static constexpr const char* name = "berth-gathered-wal";
  const sqlite3_vfs* const system = sqlite3_vfs_find("unix");
  if (system == nullptr) return fail(Errc::store_failed, "SQLite has no file system \"unix\"");
  // Everything else goes to the system's own functions, which keep no state in this struct.
  static sqlite3_vfs vfs = *system;
  vfs.szOsFile = static_cast<int>(sizeof(GatheredFile)) + system->szOsFile;
  vfs.pNext = nullptr;
  vfs.zName = name;
  vfs.xOpen = open;
  if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK) {
    return fail(Errc::store_failed, "SQLite refuses the file system of its log");
  }
  return name;
}

}  // namespace

Result<const char*> gathered_wal() {
  static const Result<const char*> registered = register_once();
  return registered;
}

}  // namespace berth::store
