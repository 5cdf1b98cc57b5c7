#pragma once

#include "store/sql/database.hpp"

#include <atomic>

namespace berth::store {

// A database whose n-th statement or n-th transaction fails, for tests that break a use case at
// every possible step. Everything else goes to the underlying database, which must outlive this
// one.
class FailingDatabase final : public Database {
 public:
  explicit FailingDatabase(Database& inner) : inner_(inner) {}

  // 1 is the next statement; 0 is none.
  void fail_at(std::int64_t nth);
  // The number of statements since the last fail_at.
  std::int64_t statements() const { return count_; }

  // Rejects the n-th transaction from now, read or write, with this code before it does anything; 0
  // is none.
  void refuse_transaction(std::int64_t nth, Errc code);
  // Commits the n-th transaction but reports a lost store to the caller, as when a server dies
  // while it commits.
  void lose_answer(std::int64_t nth);
  // Whether the transaction that was to fail has been requested.
  bool has_failed() const { return transactions_ >= failing_transaction_; }

  EngineKind engine() const override { return inner_.engine(); }
  void read(Work work, Done done) override;
  void write(Work work, Done done) override;

 private:
  enum class Way { refuse, lose_answer };
  using Verb = void (Database::*)(Work, Done);
  void fail_transaction(std::int64_t nth, Way way, Errc code);
  void transact(Verb verb, Work work, Done done);
  Work counted(Work work);

  Database& inner_;
  std::atomic<std::int64_t> count_ = 0;
  std::atomic<std::int64_t> fail_at_ = 0;
  // Used only by the thread that requests transactions.
  std::int64_t transactions_ = 0;
  std::int64_t failing_transaction_ = 0;
  Way way_ = Way::refuse;
  Errc code_ = Errc::store_failed;
};

}  // namespace berth::store
