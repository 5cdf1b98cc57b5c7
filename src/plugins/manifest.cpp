#include "plugins/manifest.hpp"
