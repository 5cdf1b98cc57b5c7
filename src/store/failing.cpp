#include "store/failing.hpp"

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

  // A work that passes over a failure does not succeed, as in a real transaction.
  Result<> outcome(Result<> result) const { return result && failed_ ? failure() : result; }

 private:
  static std::unexpected<Error> failure() {
    return fail(Errc::store_failed, "the store failed as it was told to");
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

void FailingDatabase::read(Work work, Done done) {
  inner_.read(counted(std::move(work)), std::move(done));
}

void FailingDatabase::write(Work work, Done done) {
  inner_.write(counted(std::move(work)), std::move(done));
}

}  // namespace berth::store
