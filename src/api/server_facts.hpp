#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "core/rows/wall.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::api {

// The server's description of itself, fixed when it starts.
struct ServerFacts {
  std::string version;
  std::string mode;
  std::string database;  // "sqlite" or "postgres"
  bool is_tls = false;
  Time started_at;
};

// One finding about the server's machine, and what to do about it.
struct Finding {
  std::string check;
  std::string verdict;  // ok, note, warn or fail
  std::string says;
  std::string remedy;
};
BOOST_DESCRIBE_STRUCT(Finding, (), (check, verdict, says, remedy))

// What the server can report about itself. Its owner outlives the tables.
struct Examination {
  // Whether the disk of the home folder has room for command output.
  std::function<bool()> keeps_output;
  std::function<std::string()> metrics;
  std::function<Task<std::vector<Finding>>()> findings;
  std::function<Task<std::vector<core::Wall>>()> walls;
};

}  // namespace berth::api
