#pragma once

#include "cli/config.hpp"
#include "core/api_urls.hpp"

namespace berth::app {

// Under which names and addresses this server may be reached from elsewhere.
core::ApiUrlFacts api_url_facts(const cli::Settings& settings, const std::string& host,
                                std::uint16_t port);

}  // namespace berth::app
