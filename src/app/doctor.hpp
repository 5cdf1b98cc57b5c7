#pragma once

#include "api/server_facts.hpp"
#include "cli/config.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/environments/walls.hpp"

#include <boost/asio/thread_pool.hpp>

namespace berth::app {

// The findings of `berth doctor`, for a running server's page. The checks start programs and call
// this server, so they run on their own thread, one examination at a time.
class Doctor {
 public:
  Doctor(cli::Settings settings, engine::Settings& kept)
      : settings_(std::move(settings)), kept_(kept) {}

  Task<std::vector<api::Finding>> examine() const;
  // The machine's walls, followed by those that the database knows.
  Task<std::vector<core::Wall>> walls(engine::Walls& known) const;

 private:
  cli::Settings settings_;
  engine::Settings& kept_;  // in the store
  mutable asio::thread_pool thread_{1};
};

}  // namespace berth::app
