#pragma once

#include "cli/config.hpp"
#include "core/api_urls.hpp"

namespace berth::app {

// Under which names and addresses this server may be reached from elsewhere.
core::ApiUrlFacts api_url_facts(const cli::Settings& settings, const std::string& host,
                                std::uint16_t port);

// The addresses that a process elsewhere tries, best first: those of the JSON list in
// BERTH_RUNTIME_API_CANDIDATES_JSON or PAPERCLIP_RUNTIME_API_CANDIDATES_JSON where one is set, else
// those that follow from the facts. config_invalid when the list is none.
Result<std::vector<std::string>> api_candidates(const core::ApiUrlFacts& facts);

}  // namespace berth::app
