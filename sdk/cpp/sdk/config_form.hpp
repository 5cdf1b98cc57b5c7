#pragma once

// A plugin declares its config in the same way as the host does.
#include "base/json/config_form.hpp"
