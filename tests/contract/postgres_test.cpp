#include "contract/store_fixture.hpp"
