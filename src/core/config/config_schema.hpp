#pragma once

#include "core/config/config_path.hpp"

// The JSON Schema with which a plugin describes a config: its provider's, or its own.
namespace berth::core {

// Limits for a schema and for a config that is checked against it. A schema comes from a plugin and
// a config from a caller, so both must be cheap to process.
struct SchemaLimits {
  std::size_t depth_max = 32;
  std::size_t nodes_max = 20'000;
  std::size_t pattern_bytes_max = 512;
  std::size_t pattern_subject_bytes_max = 4'096;
};

class ConfigSchema {
 public:
  // Reads a schema and resolves references within it. Rejects, with a pointer below `at`: a
  // reference that leaves the document or is circular, an unknown or malformed keyword value, a
  // pattern that RE2 cannot compile, and a schema over the limits. The `x-paperclip-*` keys and all
  // other non-keywords are accepted.
  static Result<ConfigSchema> read(const bj::object& schema, std::string_view at);

  // Fills in the default of each absent field, at any depth of the existing values.
  bj::object with_defaults(bj::object config) const;

  // Reports every invalid field by its pointer below `at`, as `unprocessable`. A secret field may
  // hold its text, an id or a reference, so only its type is checked.
  Result<> check(const bj::object& config, std::string_view at) const;

  // The paths in this config that hold a secret: fields with `format: "secret-ref"`, through
  // objects, arrays and every branch of allOf, anyOf and oneOf.
  std::vector<ConfigPath> secrets_in(const bj::object& config) const;

  // Whether the schema itself declares this field of the outermost object.
  bool declares(std::string_view field) const;

 private:
  explicit ConfigSchema(bj::object whole) : whole_(std::move(whole)) {}

  bj::object whole_;  // with references resolved
};

namespace schema_detail {

// Whether the validator can read the schema. Defined beside the validator.
Result<> parse(const bj::object& schema, std::string_view at);
std::vector<Issue> problems_of(const bj::object& schema, const bj::object& config,
                               std::string_view at);

}  // namespace schema_detail

}  // namespace berth::core
