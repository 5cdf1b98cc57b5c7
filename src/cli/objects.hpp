#pragma once

#include "base/json/json.hpp"
#include "base/result.hpp"
#include "cli/print/printer.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

// A kind of object in the API, as its commands need to know it.
struct Kind {
  std::string noun;  // "environment"
  std::string path;  // "environments": /api/companies/C/environments and /api/environments/ID
  Errc missing = Errc::route_not_found;
  std::vector<Column> columns = {};
};

const Kind& company_kind();
const Kind& agent_kind();
const Kind& environment_kind();
const Kind& secret_kind();
const Kind& token_kind();
const Kind& run_kind();
const Kind& lease_kind();
const Kind& sandbox_kind();

std::string text_of(const bj::value& object, std::string_view key);

// Whether a user who typed `named` may mean this id: the id begins or ends with it.
bool is_end_of_id(std::string_view named, std::string_view id);

// Finds the one object that the user named: by its id, by its name or key, or by either end of its
// id. A name wins over an end of an id. Several matches are an error that lists them.
Result<bj::value> choose(const bj::array& objects, std::string_view named, const Kind& kind);

}  // namespace berth::cli
