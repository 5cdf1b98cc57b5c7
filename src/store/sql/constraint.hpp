#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

// Which rule of the schema refused a row. Engines say it in different ways; verbs ask in one.
namespace berth::store {

// For engines. `index` is the name of the unique index, by the rule of the migrations.
Error unique_violation(std::string index);
Error reference_violation();

// For verbs: violates(error, "environments_company_id_name").
bool violates(const Error& error, std::string_view index);
// The row names another that is not there (any more).
bool violates_reference(const Error& error);

}  // namespace berth::store
