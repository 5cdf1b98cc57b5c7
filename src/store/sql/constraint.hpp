#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

// Which schema constraint rejected a row. Engines report it differently; verbs query it in one way.
namespace berth::store {

// For engines. `index` is the name of the unique index, following the naming rule of the
// migrations.
Error unique_violation(std::string index);
Error reference_violation();

// For verbs: violates(error, "environments_company_id_name").
bool violates(const Error& error, std::string_view index);
// The row refers to another row that does not exist (any more).
bool violates_reference(const Error& error);

}  // namespace berth::store
