#include "store/sql/failing.hpp"

namespace berth::store {
namespace {

class FailingSession final : public Session {
 public:
  FailingSession(Session& inner, std::atomic<std::int64_t>& count, std::int64_t fail_at)
      : inner_(inner), count_(count), fail_at_(fail_at) {}

  Result<Rows> run(std::string_view sql, std::span<const Value> parameters) override {
    failed_ = failed_ || ++count_ == fail_at_;
    if (failed_) return failure();
    return inner_.run(sql, parameters);
  }

  std::string_view skip_locked() const override { return inner_.skip_locked(); }

  // A work that ignores a failure does not succeed, as in a real transaction.
  Result<> outcome(Result<> result) const { return result && failed_ ? failure() : result; }

 private:
  static std::unexpected<Error> failure() {
    return fail(Errc::store_failed, "the store failed as the test asked");
  }

  Session& inner_;
  std::atomic<std::int64_t>& count_;
  std::int64_t fail_at_;
  bool failed_ = false;
};

}  // namespace

void FailingDatabase::fail_at(std::int64_t nth) {
  count_ = 0;
  fail_at_ = nth;
}

Database::Work FailingDatabase::counted(Work work) {
  return [this, work = std::move(work)](Session& inner) mutable {
    FailingSession session{inner, count_, fail_at_};
    return session.outcome(work(session));
  };
}

void FailingDatabase::fail_transaction(std::int64_t nth, Way way, Errc code) {
  transactions_ = 0;
  failing_transaction_ = nth;
  way_ = way;
  code_ = code;
}

void FailingDatabase::refuse_transaction(std::int64_t nth, Errc code) {
  fail_transaction(nth, Way::refuse, code);
}

void FailingDatabase::lose_answer(std::int64_t nth) {
  fail_transaction(nth, Way::lose_answer, Errc::store_unreachable);
}

void FailingDatabase::transact(Verb verb, Work work, Done done) {
  if (++transactions_ != failing_transaction_) {
    return (inner_.*verb)(counted(std::move(work)), std::move(done));
  }
  const Error failure{code_, "the store failed as the test asked"};
  if (way_ == Way::refuse) return done(std::unexpected(failure));
  (inner_.*verb)(counted(std::move(work)),
                 [done = std::move(done), failure](Result<> result) mutable {
                   done(result ? Result<>{std::unexpected(failure)} : std::move(result));
                 });
}

void FailingDatabase::read(Work work, Done done) {
  transact(&Database::read, std::move(work), std::move(done));
}

void FailingDatabase::write(Work work, Done done) {
  transact(&Database::write, std::move(work), std::move(done));
}

}  // namespace berth::store
