#pragma once

#include "core/rows/run.hpp"
#include "store/sql/database.hpp"

namespace berth::engine {

struct RunNote {
  std::string type = "lifecycle";
  std::string message;
  core::EventLevel level = core::EventLevel::info;
  std::optional<bj::object> payload = {};  // absent: its status and exit code
};

// Records a run event for its followers. Part of the transaction that makes the change.
Result<> note(store::Session& session, const core::Run& run, RunNote what, Time now);

}  // namespace berth::engine
