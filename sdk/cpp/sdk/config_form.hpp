#pragma once

#include "base/json/config_form.hpp"

// A plugin's config is declared in the same way as the host's own.
namespace berth::sdk {

using berth::config_schema;
using berth::Note;
using berth::Notes;
using berth::read_config;
using berth::shown_config;

}  // namespace berth::sdk
