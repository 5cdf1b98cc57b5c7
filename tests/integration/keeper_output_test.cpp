#include "integration/keeper_fixture.hpp"
