#pragma once

#include "app/home.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "cli/config.hpp"
#include "drivers/registry.hpp"
#include "providers/built_in.hpp"

#include <boost/asio/thread_pool.hpp>

#include <memory>

namespace berth::app {

// Everything that can reach a place where work runs, built from the settings.
class Places {
 public:
  // The clock and the random outlive it.
  static Result<std::unique_ptr<Places>> open(asio::any_io_executor executor, const Clock& clock,
                                              Random& random, const Home& home,
                                              const cli::Settings& settings);

  const drivers::Registry& drivers() const { return drivers_; }
  // Lets go of connections; what they hold lives on.
  Task<> close() { co_return co_await drivers_.close(); }

 private:
  Places() = default;

  asio::thread_pool pool_{2};  // removal of folders and other work that blocks
  providers::BuiltInProviders providers_;
  drivers::Registry drivers_;
};

}  // namespace berth::app
