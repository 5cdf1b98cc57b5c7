#pragma once

#include "cli/config.hpp"
#include "engine/accounts/settings.hpp"
#include "http/routes/routes.hpp"

#include <boost/asio/thread_pool.hpp>

namespace berth::app {

// What `berth doctor` finds, for the page of a running server. The checks start programs and call
// this server, so they run on a thread of their own, one examination at a time.
class Doctor {
 public:
  Doctor(cli::Settings settings, engine::Settings& kept)
      : settings_(std::move(settings)), kept_(kept) {}

  Task<std::vector<http::Finding>> examine() const;
  // The machine's walls, and after them those that the database knows of.
  Task<std::vector<core::Wall>> walls(engine::Walls& known) const;

 private:
  cli::Settings settings_;
  engine::Settings& kept_;  // in the store
  mutable asio::thread_pool thread_{1};
};

}  // namespace berth::app
