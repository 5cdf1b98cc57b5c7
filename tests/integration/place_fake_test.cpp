#include "base/clock.hpp"
#include "integration/place_contract.hpp"
#include "places/fake/fake.hpp"

// The contract over the built-in provider `fake`, which has no ability.
namespace berth::place_test {
namespace {

using namespace places;

class FakeGround final : public Ground {
 public:
  std::unique_ptr<Place> make_place(asio::any_io_executor /*executor*/,
                                    asio::thread_pool& /*pool*/) override {
    return std::make_unique<Fake>(random_, clock_);
  }
  bj::object config() const override { return {{"provider", "fake"}, {"image", "debian:12"}}; }
  std::set<std::string> abilities() const override { return {"found by key"}; }
  pid_t keeper_of(const PlaceRef& /*lease*/) const override { return 0; }
  std::vector<std::string> leftovers() const override { return {}; }

 private:
  SystemRandom random_;
  SystemClock clock_;
};

std::unique_ptr<Ground> make_fake_ground() {
  return std::make_unique<FakeGround>();
}

INSTANTIATE_TEST_SUITE_P(Fake, PlaceContract, testing::Values(&make_fake_ground));

}  // namespace
}  // namespace berth::place_test
