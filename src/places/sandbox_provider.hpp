#pragma once

#include "places/place.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

// What the providers of sandboxes share.
namespace berth::places {

// A provider's verdict on a config.
struct Verdict {
  bool ok = false;
  std::string summary = {};
  bj::object details = {};
  std::vector<ProbeStep> steps = {};  // what was tried, if there was more than one step
};

// `Sandbox provider "<own>" received config for provider "<other>".`
Result<> check_config_is_for(std::string_view own_key, const bj::object& config);

// The report of a probe of a provider that is part of this program, from its verdict or the reason
// why there is none.
ProbeReport report_of(const Result<Verdict>& verdict, std::string_view provider,
                      std::chrono::steady_clock::time_point begun);

}  // namespace berth::places
