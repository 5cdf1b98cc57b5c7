#pragma once

#include "store/database.hpp"

#include <atomic>

namespace berth::store {

// A database whose n-th statement fails, for tests that walk a use case through every step it may
// break at. Everything else goes to the database below, which must outlive this one.
class FailingDatabase final : public Database {
 public:
  explicit FailingDatabase(Database& inner) : inner_(inner) {}

  // 1 is the next statement; 0 is none.
  void fail_at(std::int64_t nth);
  // How many statements came since the last fail_at.
  std::int64_t statements() const { return count_; }

  EngineKind engine() const override { return inner_.engine(); }
  void read(Work work, Done done) override;
  void write(Work work, Done done) override;

 private:
  Work counted(Work work);

  Database& inner_;
  std::atomic<std::int64_t> count_ = 0;
  std::atomic<std::int64_t> fail_at_ = 0;
};

}  // namespace berth::store
