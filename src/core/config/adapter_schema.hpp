#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"

#include <span>

// The fields of each adapter's config: one table for validation, the schema and the form.
namespace berth::core {

enum class FieldShape { text, long_text, text_list, folder_list, number, flag, object, choice };

struct AdapterField {
  std::string_view key;
  FieldShape shape;
  std::string_view title;
  std::string_view about;
  std::string_view usual = {};    // the default as JSON text; empty: none
  std::string_view choices = {};  // of a choice field, separated by spaces
  bool advanced = false;
};

// In form order.
std::vector<AdapterField> adapter_fields(AdapterType adapter);
std::vector<std::string_view> choices_of(const AdapterField& field);

// An adapter's description, and a JSON Schema of its config.
struct AdapterDescription {
  AdapterType adapter_type = AdapterType::process;
  std::string title = {};
  std::string about = {};
  bj::object config_schema = {};
};
BOOST_DESCRIBE_STRUCT(AdapterDescription, (), (adapter_type, title, about, config_schema))

std::vector<AdapterDescription> describe_adapters();

// The known key with the most similar spelling, if one is close.
std::optional<std::string> nearest_key(std::span<const AdapterField> fields, std::string_view key);

}  // namespace berth::core
