// bare_commit FOLDER BYTES COUNT: the time of COUNT durable SQLite commits of BYTES each, with the
// settings that the store uses and nothing around them. Prints the median in microseconds.

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

[[noreturn]] void stop(sqlite3* db, const char* doing) {
  std::fprintf(stderr, "bare_commit: %s: %s\n", doing, sqlite3_errmsg(db));
  std::exit(1);
}

void run(sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) stop(db, sql);
}

double commit_us(sqlite3* db, sqlite3_stmt* insert, const std::string& bytes) {
  const auto start = std::chrono::steady_clock::now();
  run(db, "begin immediate");
  sqlite3_bind_blob64(insert, 1, bytes.data(), bytes.size(), SQLITE_STATIC);
  if (sqlite3_step(insert) != SQLITE_DONE) stop(db, "insert");
  sqlite3_reset(insert);
  run(db, "commit");
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: bare_commit FOLDER BYTES COUNT\n", stderr);
    return 2;
  }
  const std::string path = std::string{argv[1]} + "/bare_commit.db";
  const std::string bytes(std::strtoul(argv[2], nullptr, 10), 'x');
  const auto count = std::max<std::size_t>(1, std::strtoul(argv[3], nullptr, 10));

  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) stop(db, "open");
  run(db, "pragma journal_mode = wal");
  run(db, "pragma synchronous = full");
  run(db, "create table if not exists rows (id integer primary key, bytes blob not null)");
  sqlite3_stmt* insert = nullptr;
  if (sqlite3_prepare_v2(db, "insert into rows (bytes) values (?)", -1, &insert, nullptr) !=
      SQLITE_OK) {
    stop(db, "prepare");
  }
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) times.push_back(commit_us(db, insert, bytes));
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(count / 2));
  std::printf("%.1f\n", times[count / 2]);
  sqlite3_finalize(insert);
  sqlite3_close(db);
}
