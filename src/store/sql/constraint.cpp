#include "store/sql/constraint.hpp"

namespace berth::store {
namespace {

constexpr auto unique_fact = "unique";
constexpr auto reference_fact = "reference";

}  // namespace

Error unique_violation(std::string index) {
  Error error{Errc::store_constraint, "another row has the same key (" + index + ")"};
  error.facts[unique_fact].push_back(std::move(index));
  return error;
}

Error reference_violation() {
  Error error{Errc::store_constraint, "the row refers to another that does not exist"};
  error.facts[reference_fact] = {};
  return error;
}

bool violates(const Error& error, std::string_view index) {
  if (error.code != Errc::store_constraint) return false;
  const auto found = error.facts.find(unique_fact);
  return found != error.facts.end() && found->second.front() == index;
}

bool violates_reference(const Error& error) {
  return error.code == Errc::store_constraint && error.facts.contains(reference_fact);
}

}  // namespace berth::store
