#pragma once

#include "cli/config.hpp"
#include "core/api_urls.hpp"

namespace berth::app {

// The names and addresses under which this server may be reached from elsewhere.
core::ApiUrlFacts api_url_facts(const cli::Settings& settings, const std::string& host,
                                std::uint16_t port);

// The addresses that a remote process tries, best first: those of the JSON list in
// BERTH_RUNTIME_API_CANDIDATES_JSON or PAPERCLIP_RUNTIME_API_CANDIDATES_JSON if set, else those
// derived from the facts. Fails with config_invalid when the value is not a list.
Result<std::vector<std::string>> api_candidates(const core::ApiUrlFacts& facts);

}  // namespace berth::app
