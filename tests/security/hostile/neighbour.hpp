#pragma once

#include <string_view>
#include <vector>

// Two sandboxes side by side: one leaves an object of every kind that processes share, the other
// looks for them.
namespace berth::hostile {

// neighbour leave NAME   leaves them, prints "left KIND" for each that it could leave, and waits
// neighbour find NAME    prints "found KIND" for each that it can reach, then "looked"
int neighbour(const std::vector<std::string_view>& arguments);

}  // namespace berth::hostile
