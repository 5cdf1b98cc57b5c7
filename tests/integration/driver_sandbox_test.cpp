#include "base/clock.hpp"
#include "places/sandbox.hpp"
#include "integration/driver_contract.hpp"
#include "places/fake/fake.hpp"

// The contract over the sandbox driver with the built-in provider.
namespace berth::driver_test {
namespace {

using namespace drivers;

class FakePlace final : public DriverPlace {
 public:
  FakePlace() { providers_.add(std::make_unique<providers::Fake>(random_, clock_)); }

  std::unique_ptr<Driver> make_driver(asio::any_io_executor /*executor*/,
                                      asio::thread_pool& /*pool*/) override {
    return std::make_unique<Sandbox>(providers_);
  }
  bj::object config() const override { return {{"provider", "fake"}, {"image", "debian:12"}}; }
  pid_t keeper_of(const PlaceRef& /*lease*/) const override { return 0; }
  std::vector<std::string> leftovers() const override { return {}; }

 private:
  SystemRandom random_;
  SystemClock clock_;
  providers::BuiltInProviders providers_;
};

std::unique_ptr<DriverPlace> make_fake_place() {
  return std::make_unique<FakePlace>();
}

INSTANTIATE_TEST_SUITE_P(Fake, DriverContract, testing::Values(&make_fake_place));

}  // namespace
}  // namespace berth::driver_test
